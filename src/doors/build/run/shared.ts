/**
 * Runs equal actions that are requested at the same time only once: Execute calls share a job, and this lets builds
 * share a run with them and with each other. A worker with an action that already runs elsewhere waits for its result.
 * It keeps its slot, in which it would otherwise run the same: so the awaited run always has a slot of its own.
 */
import { randomUUID } from "node:crypto";
import type { Clock } from "#base/clock.ts";
import type { Granted } from "#shard/client/executor.ts";
import type { RunContext, Runner, RunOutcome } from "#worker/runner.ts";
import {
  deskLimitsDefault,
  type Desk,
  type DeskAnswer,
  type DeskQuestion,
  type SharedResult,
} from "#doors/build/execute/flight-desk.ts";
import { readSpec, type ActionSpec } from "#doors/build/plan.ts";
import { publicationText } from "#doors/build/execute/publish.ts";
import { outcomeText, readOutcome, type RanBecause } from "./outcome.ts";

export type SharingPorts = {
  readonly clock: Clock;
  /** Every node gives the same desk for a key, while nodes do not come and go. */
  readonly deskFor: (key: string) => Desk;
  /** An earlier process of this node has started it, and it still runs. */
  readonly isUnderWay: (task: Granted) => boolean;
};

/** After that it is run here: the attempt's time must suffice for both. */
const waitMsMax = 10 * 60_000;
const askMsMax = 20_000;

/** Runs an action or takes the result of an equal one. `because`: why it is not taken from the cache. */
export type SharedRun = (context: RunContext, because?: RanBecause) => Promise<RunOutcome>;

export function sharedRunner(run: Runner, ports: SharingPorts): SharedRun & Pick<Runner, "prepares"> {
  const runner: SharedRun = async (context, given) => {
    const spec = readSpec(context.task.spec);
    if (!spec || spec.doNotCache || ports.isUnderWay(context.task)) return await run(context);
    const place = new Place(`${context.task.tenant}/${spec.merge}`, ports);
    let outcome: RunOutcome | undefined;
    try {
      const shared = await place.enter(context, given ?? spec.because);
      const taken = shared && takenOver(shared, spec);
      if (taken) return taken;
      return (outcome = await run(context));
    } finally {
      place.leave(outcome && sharedOf(outcome));
    }
  };
  return Object.assign(runner, { prepares: run.prepares ?? false });
}

/**
 * An action that must run again, or whose requester may not see the results of others, does not wait; but others may
 * wait for it.
 */
const mayWait = (because: RanBecause | undefined): boolean =>
  because?.kind !== "skip-cache-lookup" && because?.kind !== "may-not-read";

/** The right to run an action, or to wait for it. */
class Place {
  readonly #key: string;
  readonly #desk: Desk;
  readonly #clock: Clock;
  readonly #runner = randomUUID();
  /** Others wait for this one. */
  #isRunning = false;
  #cancelRenewal: (() => void) | undefined;

  constructor(key: string, { clock, deskFor }: SharingPorts) {
    this.#key = key;
    this.#desk = deskFor(key);
    this.#clock = clock;
  }

  /** The result of another run; undefined when it must be run here. */
  async enter({ signal, started }: RunContext, because: RanBecause | undefined): Promise<SharedResult | undefined> {
    const waitMs = mayWait(because) ? waitMsMax : 0;
    const untilMono = this.#clock.monotonicMs() + waitMs;
    const takesEnded = because?.kind === "never-stored";
    let answer = await this.#ask({ waitMs: 0, takesEnded }, signal);
    // While it waits, its claim should be confirmed as held.
    if (answer.kind === "busy" && waitMs > 0) await started?.();
    for (;;) {
      this.#isRunning = answer.kind === "yours";
      signal.throwIfAborted();
      if (answer.kind === "shared") return answer.shared;
      const leftMs = untilMono - this.#clock.monotonicMs();
      if (this.#isRunning || leftMs <= 0) break;
      const askMs = Math.min(leftMs, askMsMax);
      const askedMono = this.#clock.monotonicMs();
      answer = await this.#ask({ waitMs: askMs, takesEnded }, signal);
      // FL2: if too many wait already, the others are refused at once.
      if (answer.kind === "busy" && this.#clock.monotonicMs() - askedMono < askMs / 2 && !signal.aborted) break;
    }
    if (this.#isRunning) this.#renewLater();
    return undefined;
  }

  leave(shared: SharedResult | undefined): void {
    this.#cancelRenewal?.();
    if (!this.#isRunning) return;
    this.#desk.end(this.#key, this.#runner, shared).catch(() => {});
  }

  /** A desk that cannot be reached must not prevent the action from running. */
  async #ask(how: Pick<DeskQuestion, "waitMs" | "takesEnded">, signal: AbortSignal): Promise<DeskAnswer> {
    try {
      return await this.#desk.enter({ key: this.#key, runner: this.#runner, ...how }, signal);
    } catch {
      return { kind: "yours" };
    }
  }

  #renewLater(): void {
    this.#cancelRenewal = this.#clock.after(deskLimitsDefault.leaseMs / 3, () => {
      void this.#ask({ waitMs: 0, takesEnded: false }, new AbortController().signal);
      this.#renewLater();
    });
  }
}

/** Only what the command itself resulted in: a failure of this machine is not shared. */
function sharedOf(outcome: RunOutcome): SharedResult | undefined {
  if (outcome.kind !== "done" || readOutcome({ payload: outcome.payload, digests: [] })?.code !== 0) return undefined;
  const { payload, digests = [], publish } = outcome;
  return { payload, digests, isForCache: publish !== undefined };
}

/**
 * Published for this task as well: its job may end before the other's result is published. Undefined if it is not this
 * action's.
 */
function takenOver({ payload, digests }: SharedResult, spec: ActionSpec): RunOutcome | undefined {
  const outcome = readOutcome({ payload, digests: [] });
  if (!outcome || outcome.action !== spec.action || outcome.instance !== spec.instance) return undefined;
  const { token: _token, because: _because, ...rest } = outcome;
  const { because } = spec;
  const publish = "result" in outcome ? publicationText(spec, outcome.result) : undefined;
  return {
    kind: "done",
    payload: outcomeText({ ...rest, cached: true, ...(because && { because }) }),
    digests,
    ...(publish !== undefined && { publish }),
  };
}
