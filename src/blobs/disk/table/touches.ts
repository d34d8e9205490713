/** Records uses of blobs a moment later, so that a restart knows which are old and which were promised. */
import type { Core } from "#blobs/disk/core.ts";
import { kinds } from "#blobs/disk/log/record.ts";
import { flags } from "./table.ts";

const pendingMax = 100_000;

export class Touches {
  readonly #core: Core;
  #pending: number[] = [];

  constructor(core: Core) {
    this.#core = core;
    core.onTouched = (entry) => {
      this.#pending.push(entry);
      if (this.#pending.length >= pendingMax) void this.flush();
    };
  }

  async flush(): Promise<void> {
    const pending = this.#pending;
    if (pending.length === 0) return;
    this.#pending = [];
    const { table } = this.#core.holdings;
    // Some were evicted since, and their number may be reused.
    const used = pending.filter((entry) => table.isTaken(entry) && table.has(entry, flags.touched));
    for (const entry of used) table.setFlag(entry, flags.touched, false);
    // A record has one time for its blobs and counts at once: with the time of writing, blobs would stay too long.
    const bySecond = Map.groupBy(used, (entry) => table.accessSec(entry));
    const written = [...bySecond].map(([accessSec, entries]) =>
      this.#core.appendKeys({ kind: kinds.touches, accessSec }, entries),
    );
    // If this fails, blobs look older after a restart than they are, which is acceptable.
    await Promise.all(written).catch(() => {});
  }
}
