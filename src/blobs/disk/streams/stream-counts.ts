/**
 * Which tasks' streams of an earlier process count as used already, while one goes through the folders of all of them
 * and others use some: each is counted once, by whoever comes first. Pure.
 */
export class StreamCounts {
  /** Counted ahead of the walk; undefined: it is over, and all are. */
  #ahead: Set<string> | undefined = new Set();
  #passed = "";

  /** Whether the caller has to count this task. */
  begin(hash: string): boolean {
    if (!this.#ahead || hash.slice(0, 2) <= this.#passed || this.#ahead.has(hash)) return false;
    this.#ahead.add(hash);
    return true;
  }

  /** All whose hash begins with this, or with less, are counted. */
  passed(prefix: string): void {
    this.#passed = prefix;
    for (const hash of this.#ahead ?? []) if (hash.slice(0, 2) <= prefix) this.#ahead?.delete(hash);
  }

  end(): void {
    this.#ahead = undefined;
  }
}
