/**
 * Notices changed files by polling: that works on every file system, over networks, and for files behind links that are
 * switched. A change whose handling fails is handled again at the next check.
 */
import { stat } from "node:fs/promises";
import type { Clock } from "#base/clock.ts";

export type WatchedFilesPorts = {
  readonly clock: Clock;
  readonly everyMs: number;
  /** Called with one change at a time. */
  readonly onChange: () => Promise<void>;
  readonly onTrouble: (error: unknown) => void;
};

export class WatchedFiles implements Disposable {
  readonly #paths: readonly string[];
  readonly #ports: WatchedFilesPorts;
  #seen: string;
  #cancel: () => void = () => {};
  #stopped = false;

  private constructor(paths: readonly string[], ports: WatchedFilesPorts, seen: string) {
    this.#paths = paths;
    this.#ports = ports;
    this.#seen = seen;
    if (paths.length > 0) this.#arm();
  }

  /** Start before the files are read for the first time, so that no change is missed in between. */
  static async start(paths: readonly string[], ports: WatchedFilesPorts): Promise<WatchedFiles> {
    return new WatchedFiles(paths, ports, await stampOf(paths));
  }

  [Symbol.dispose](): void {
    this.#stopped = true;
    this.#cancel();
  }

  #arm(): void {
    if (!this.#stopped) this.#cancel = this.#ports.clock.after(this.#ports.everyMs, () => void this.#look());
  }

  async #look(): Promise<void> {
    const stamp = await stampOf(this.#paths);
    if (stamp !== this.#seen && !this.#stopped)
      try {
        await this.#ports.onChange();
        this.#seen = stamp;
      } catch (error) {
        this.#ports.onTrouble(error);
      }
    this.#arm();
  }
}

/** Inode, size and time of each; a file that cannot be read has a stamp of its own. */
async function stampOf(paths: readonly string[]): Promise<string> {
  const stamps = paths.map((path) =>
    stat(path, { bigint: true }).then(
      ({ ino, size, mtimeNs }) => `${ino}:${size}:${mtimeNs}`,
      (error: NodeJS.ErrnoException) => error.code ?? "unknown",
    ),
  );
  return (await Promise.all(stamps)).join(" ");
}
