/** What executors really do, and when: who runs which task under which token at this instant. */
import type { Grant } from "#kernel/model/model.ts";
import type { Life } from "#sim/world/machine.ts";

export type Run = {
  readonly shard: number;
  readonly grant: Grant;
  readonly life: Life;
  readonly sinceMs: number;
  /** It does not keep to its lease, so nobody can answer for it. */
  readonly rogue: boolean;
  /** It has been told to stop, and does. */
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
   * Those that are really at it: a stopped machine does nothing. Not those on a machine that has just woken: it takes
   * the executor a moment to notice that it slept, and nobody can shorten that to nothing (ADR 0037).
   */
  running(): readonly Run[] {
    return [...this.#running].filter(
      ({ life, rogue, isStopped }) => life.state === "up" && !life.isDrowsy && !rogue && !isStopped(),
    );
  }
}
