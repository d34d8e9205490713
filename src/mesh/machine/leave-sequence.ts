/**
 * How a node leaves without being taken for failed: first serf's intent to leave, then the protocol's own "dead"
 * message about itself, then a while in which it still answers while the messages spread.
 */
import type { Core } from "./core.ts";
import { encodeMessage } from "#mesh/wire/messages.ts";
import type { SerfNeighbour } from "#mesh/serf/serf-neighbour.ts";

export type Phase = "up" | "leaving" | "left";

export class LeaveSequence {
  readonly #core: Core;
  readonly #serf: SerfNeighbour;
  readonly #setPhase: (phase: Phase) => void;

  constructor(core: Core, serf: SerfNeighbour, setPhase: (phase: Phase) => void) {
    this.#core = core;
    this.#serf = serf;
    this.#setPhase = setPhase;
  }

  begin(): void {
    const { timers, times, nowMs } = this.#core;
    this.#setPhase("leaving");
    if (!this.#hasCompany()) return this.#end();
    const goOn = once(() => this.#say());
    this.#serf.announce("leave", goOn);
    timers.set(nowMs() + times.leaveBroadcastMs, goOn);
  }

  #say(): void {
    const { self, news, timers, times, name, nowMs } = this.#core;
    this.#setPhase("left");
    self.state = "left";
    self.changedAtMs = nowMs();
    const bytes = encodeMessage({ kind: "dead", incarnation: self.incarnation, node: name, from: name });
    const goOn = once(() => void timers.set(nowMs() + times.leavePropagateMs, () => this.#end()));
    news.add({ about: name, bytes, whenDone: goOn });
    timers.set(nowMs() + times.leaveBroadcastMs, goOn);
  }

  #end(): void {
    this.#setPhase("left");
    this.#core.timers.close();
    this.#core.effect({ kind: "left" });
  }

  #hasCompany(): boolean {
    const { roster, self } = this.#core;
    return roster.all.some((member) => member !== self && (member.state === "alive" || member.state === "suspect"));
  }
}

function once(run: () => void): () => void {
  let done = false;
  return () => {
    if (done) return;
    done = true;
    run();
  };
}
