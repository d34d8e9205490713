/** What executors really do: which executor runs which task under which token at this instant. */
import type { Grant } from "#kernel/model/model.ts";
import type { Life } from "#sim/world/machine.ts";

export type Run = {
  readonly shard: number;
  readonly grant: Grant;
  readonly life: Life;
  readonly sinceMs: number;
  /** It does not respect its lease, so it may do anything. */
  readonly rogue: boolean;
  /** It has been asked to stop, and does. */
  readonly isStopped: () => boolean;
};

export class Runs {
  readonly #running = new Set<Run>();
  observe: (run: Run) => void = () => {};
  started = 0;
  finished = 0;

  begin(run: Run): () => void {
    this.started += 1;
    this.#running.add(run);
    if (!run.rogue) this.observe(run);
    const forget = run.life.onEnd(() => this.#running.delete(run));
    return () => {
      forget();
      if (this.#running.delete(run)) this.finished += 1;
    };
  }

  /**
   * The runs that are really active: a stopped machine does nothing. Not those on a machine that has just woken: the
   * executor needs a moment to notice that it slept, and that cannot be avoided (ADR 0037).
   */
  running(): readonly Run[] {
    return [...this.#running].filter(
      ({ life, rogue, isStopped }) => life.state === "up" && !life.isDrowsy && !rogue && !isStopped(),
    );
  }
}
