/**
 * Equal actions that are wanted at the same time are run once, whoever wants them: calls to execute share a job, and
 * this has builds share a run with them and with each other. A worker that is given an action which is being run
 * somewhere waits for what comes of it. It keeps its slot, where it would otherwise run the same: so whoever is waited
 * for always has one.
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
  /** The same one for a key wherever it is asked for, while nodes do not come and go. */
  readonly deskFor: (key: string) => Desk;
  /** An earlier life of this node has begun it, and it is under way still. */
  readonly isUnderWay: (task: Granted) => boolean;
};

/** After that it is run here: the attempt has only so much time for both. */
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

/** Whoever wants it run anew, or may not see the results of others, waits for nobody; but others may for it. */
const mayWait = (because: RanBecause | undefined): boolean =>
  because?.kind !== "skip-cache-lookup" && because?.kind !== "may-not-read";

/** Where an action is run, or waited for. */
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

  /** What another's run has come to; undefined when it is to be run here. */
  async enter({ signal, started }: RunContext, because: RanBecause | undefined): Promise<SharedResult | undefined> {
    const waitMs = mayWait(because) ? waitMsMax : 0;
    const untilMono = this.#clock.monotonicMs() + waitMs;
    const takesEnded = because?.kind === "never-stored";
    let answer = await this.#ask({ waitMs: 0, takesEnded }, signal);
    // While it waits, others may want to know whether its claim is held.
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
      // FL2: where too many wait already, the others are sent away at once.
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

  /** A desk that cannot be asked keeps nobody from running it. */
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

/** Only what its command itself has come to: what this machine has done to it is not the next one's fate. */
function sharedOf(outcome: RunOutcome): SharedResult | undefined {
  if (outcome.kind !== "done" || readOutcome({ payload: outcome.payload, digests: [] })?.code !== 0) return undefined;
  const { payload, digests = [], publish } = outcome;
  return { payload, digests, isForCache: publish !== undefined };
}

/** Published for this task as well: it may end before the other's is. Undefined for what is not this action's. */
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
