/**
 * Tracks which tasks' streams of an earlier process were counted already, while a walk goes through all folders and
 * callers use some of them: each task is counted once, by whichever comes first. Pure.
 */
export class StreamCounts {
  /** Tasks counted ahead of the walk; undefined once the walk is over. */
  #ahead: Set<string> | undefined = new Set();
  #passed = "";

  /** Whether the caller must count this task. */
  begin(hash: string): boolean {
    if (!this.#ahead || hash.slice(0, 2) <= this.#passed || this.#ahead.has(hash)) return false;
    this.#ahead.add(hash);
    return true;
  }

  /** The walk has counted all tasks up to this prefix of their hash. */
  passed(prefix: string): void {
    this.#passed = prefix;
    for (const hash of this.#ahead ?? []) if (hash.slice(0, 2) <= prefix) this.#ahead?.delete(hash);
  }

  end(): void {
    this.#ahead = undefined;
  }
}
