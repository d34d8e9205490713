import type { Run } from "./launcher/run.ts";

/** How often claims are checked: a run may continue for so long when the machine wakes after its claim ended. */
const lookMs = 10;

/** Ends runs with their claims. Runs its timer only while there are any. */
export class ClaimWatch {
  readonly #runs = new Set<Run>();
  #ticker: NodeJS.Timeout | undefined;

  add(run: Run): void {
    if (run.start.claimUntilMs === undefined) return;
    this.#runs.add(run);
    this.#ticker ??= setInterval(() => this.#runs.forEach((each) => each.lookAtClaim()), lookMs);
  }

  delete(run: Run): void {
    if (!this.#runs.delete(run) || this.#runs.size > 0) return;
    clearInterval(this.#ticker);
    this.#ticker = undefined;
  }
}
