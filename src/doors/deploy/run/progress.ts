/**
 * What a wave says while it runs. Each line is a record in the log of its shard, so there are few, however long a wave
 * bakes and however often its numbers change.
 */
import type { RunContext } from "#worker/runner.ts";
import type { Verdict } from "#doors/deploy/health/judge.ts";

const sayEveryMs = 15_000;
const lineMax = 200;

export class Progress {
  readonly #context: Pick<RunContext, "report" | "clock">;
  readonly #step: number;
  #said = "";
  #saidAtMs = -Infinity;

  constructor(context: Pick<RunContext, "report" | "clock">, step: number) {
    this.#context = context;
    this.#step = step;
  }

  /** The end of a wave is said at once, numbers on the way now and then. */
  say({ verdict, why }: Pick<Verdict, "verdict" | "why">): void {
    const { report, clock } = this.#context;
    const nowMs = clock.monotonicMs();
    if (why === this.#said || (verdict === "wait" && nowMs - this.#saidAtMs < sayEveryMs)) return;
    this.#said = why;
    this.#saidAtMs = nowMs;
    report({ step: this.#step, name: why.slice(0, lineMax), status: "progress" });
  }
}
