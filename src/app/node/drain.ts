/**
 * Takes a node out of service gracefully: it takes no more work, lets running attempts finish within a time, hands its
 * shards to other nodes, and then leaves, or stays until it is resumed. It answers all calls as before, by asking other
 * nodes.
 */
import type { Clock } from "#base/clock.ts";
import { Fault } from "#base/fault.ts";
import type { Worker } from "#worker/worker.ts";

/** What a drain needs from the node. */
export type DrainedNode = {
  leave(): Promise<void>;
  resume(): Promise<void>;
  /** Shards that it still owns. */
  shards(): number;
};

export type DrainPorts = {
  readonly clock: Clock;
  readonly node: DrainedNode;
  readonly worker: () => Pick<Worker, "hold" | "resume" | "giveBack" | "status"> | undefined;
  readonly log: (line: string) => void;
};

export type DrainWish = {
  /** How long attempts may continue; then they are released, and other workers run them. */
  readonly withinMs: number;
  /** Whether the node ends when it is empty. */
  readonly leave: boolean;
};

export type DrainView = {
  readonly state: "serving" | "draining" | "drained" | "leaving";
  /** Attempts that run here, and those that are not reported yet. */
  readonly running: number;
  readonly shards: number;
  readonly forMs: number;
  readonly leaves: boolean;
};

const lookEveryMs = 100;
/** How long runners that were asked to stop may take. */
const stopMsMax = 15_000;

export class Drain {
  readonly #ports: DrainPorts;
  readonly #left = Promise.withResolvers<void>();
  #state: DrainView["state"] = "serving";
  #leaves = false;
  #sinceMono = 0;
  #untilMono = 0;
  /** The number of this drain: one that was undone stops. */
  #turn = 0;

  constructor(ports: DrainPorts) {
    this.#ports = ports;
  }

  /** Resolves when the node is empty and should end. */
  get left(): Promise<void> {
    return this.#left.promise;
  }

  view(): DrainView {
    const { running = 0, planning = 0, telling = 0 } = this.#ports.worker()?.status() ?? {};
    const forMs = this.#state === "serving" ? 0 : Math.floor(this.#ports.clock.monotonicMs() - this.#sinceMono);
    const shards = this.#ports.node.shards();
    return { state: this.#state, running: running + planning + telling, shards, forMs, leaves: this.#leaves };
  }

  /** If called again, the last time limit and the last `leave` count. */
  begin({ withinMs, leave }: DrainWish): DrainView {
    const { clock, log } = this.#ports;
    if (this.#state === "leaving") return this.view();
    this.#untilMono = clock.monotonicMs() + withinMs;
    this.#leaves = leave;
    if (this.#state === "serving") {
      this.#sinceMono = clock.monotonicMs();
      this.#state = "draining";
      this.#turn += 1;
      const { running } = this.view();
      if (running > 0) log(`draining: ${running} running, given up to ${Math.ceil(withinMs / 1_000)} s`);
      void this.#drain(this.#turn);
    } else if (this.#state === "drained" && leave) this.#leave();
    return this.view();
  }

  /** Takes work and shards again. A node that is already leaving cannot be resumed. */
  async resume(): Promise<DrainView> {
    const { node, worker, log } = this.#ports;
    if (this.#state === "leaving") throw new Fault("stale", "resume", { why: "the node is leaving" });
    if (this.#state === "serving") return this.view();
    this.#turn += 1;
    this.#state = "serving";
    this.#leaves = false;
    worker()?.resume();
    await node.resume();
    log("resumed: it takes work again");
    return this.view();
  }

  /** Whatever fails on the way, a node that should leave does. */
  async #drain(turn: number): Promise<void> {
    const { node, log } = this.#ports;
    const handed = node.leave().catch((error: unknown) => log(`hand over shards: ${String(error)}`));
    await this.#empty(turn).catch((error: unknown) => log(`drain: ${String(error)}`));
    await handed;
    if (this.#turn !== turn) return;
    this.#state = "drained";
    if (this.#leaves) return this.#leave();
    log("drained: nothing runs here any more");
  }

  async #empty(turn: number): Promise<void> {
    const { clock, worker, log } = this.#ports;
    await worker()?.hold();
    let gaveBack = false;
    while (this.#turn === turn && this.view().running > 0) {
      const lateMs = clock.monotonicMs() - this.#untilMono;
      if (lateMs >= 0 && !gaveBack) {
        log(`drain: time is up, and ${this.view().running} attempts are released`);
        worker()?.giveBack();
        gaveBack = true;
      }
      if (lateMs > stopMsMax) return;
      await clock.sleep(lookEveryMs);
    }
  }

  #leave(): void {
    this.#state = "leaving";
    this.#left.resolve();
  }
}
