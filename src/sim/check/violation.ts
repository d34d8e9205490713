/** A broken promise in a run, named by its invariant (K1 to K12, S1...). */
export class Violation extends Error {
  readonly invariant: string;
  readonly atMs: number;

  constructor(invariant: string, what: string, atMs: number, cause?: unknown) {
    super(`${invariant}: ${what}`, cause === undefined ? undefined : { cause });
    this.name = "Violation";
    this.invariant = invariant;
    this.atMs = atMs;
  }
}
