import type { Run } from "./launcher/run.ts";

/** How often claims are looked at: so long may a run go on when the machine wakes after the claim's end. */
const lookMs = 10;

/** Ends runs with their claims. Looks only while there are any. */
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
