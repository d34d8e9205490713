/**
 * Eviction racing commits, on the real disk store: executors write outputs, have them pinned and commit a result that
 * names them, while a janitor without any retention evicts everything it may, all the time. No committed result ever
 * names a missing blob (K3, B2, B3). The seed chooses the actions; the disk's timing decides the race.
 */
import { deepEqual, ok } from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import type { Digest } from "#base/digest.ts";
import { isFault } from "#base/fault.ts";
import { ManualClock } from "#base/testing/manual-clock.ts";
import { Random } from "#base/random.ts";
import { openDiskStore, type DiskStore } from "#blobs/disk/open.ts";
import { digestOf } from "#blobs/hashing.ts";

const seeds = Number(process.env["RACE_SEEDS"] ?? 3);
const pinMs = 50_000;

type Committed = { readonly outputs: readonly Digest[]; readonly untilMs: number };

class Race {
  readonly #random: Random;
  readonly #clock = new ManualClock(10_000_000);
  /** Waiting for the disk leaves more operations in progress during evictions. */
  readonly #sync: "written" | "synced";
  readonly committed: Committed[] = [];
  store: DiskStore | undefined;
  refused = 0;
  checked = 0;
  isOver = false;

  constructor(seed: number) {
    this.#random = new Random(`race ${seed}`);
    this.#sync = seed % 2 === 0 ? "written" : "synced";
  }

  async open(root: string): Promise<DiskStore> {
    const limits = { sizeBytesMax: 24 * 1024 * 1024, promisedMs: 0, packedBytesMax: 16 * 1024 };
    return (this.store = await openDiskStore(root, { clock: this.#clock, sync: this.#sync, ...limits }));
  }

  /** Outputs are few and repeat, so that one executor's outputs are evicted while another writes them again. */
  async execute(store: DiskStore, times: number): Promise<void> {
    const { blobs } = store.forTenant("mill");
    for (let i = 0; i < times; i += 1) {
      const outputs: Digest[] = [];
      for (let n = 1 + this.#random.below(4); n > 0; n -= 1) {
        const sizeBytes = this.#random.below(3) === 0 ? 60_000 : 3_000;
        const bytes = Buffer.alloc(sizeBytes, `output ${this.#random.below(60)} `);
        await blobs.write(digestOf(bytes), bytes);
        outputs.push(digestOf(bytes));
      }
      for (let turns = this.#random.below(4); turns > 0; turns -= 1) await new Promise(setImmediate);
      const untilMs = this.#clock.monotonicMs() + pinMs;
      const pin = await blobs.pin(outputs, pinMs);
      if ("missing" in pin) this.refused += 1;
      else this.committed.push({ outputs, untilMs });
    }
  }

  async evict(store: DiskStore): Promise<void> {
    while (!this.isOver) {
      await this.#clock.advance(1_000 + this.#random.below(3_000)); // what was written a moment ago may be evicted now
      await store.upkeep.evict(0);
      await new Promise(setImmediate);
    }
  }

  /** Every result that is still pinned has all its outputs, with the right bytes. */
  async check(store: DiskStore): Promise<void> {
    const blobs = store.all;
    const living = this.committed.filter(({ untilMs }) => untilMs > this.#clock.monotonicMs());
    for (const { outputs, untilMs } of living.slice(-20)) {
      const missing = await blobs.missing(outputs);
      if (untilMs <= this.#clock.monotonicMs()) continue; // expired during the check
      deepEqual(missing, [], "a committed result names a blob that is missing");
      for (const digest of outputs) this.checked += await this.#checkBytes(store, digest, untilMs);
    }
  }

  async #checkBytes(store: DiskStore, digest: Digest, untilMs: number): Promise<number> {
    const parts: Uint8Array[] = [];
    try {
      for await (const part of store.all.read(digest)) parts.push(Uint8Array.from(part));
    } catch (error) {
      if (isFault(error, "not-found") && untilMs <= this.#clock.monotonicMs()) return 0;
      throw error;
    }
    ok(digestOf(Buffer.concat(parts)) === digest, "and it has the bytes that its digest says");
    return 1;
  }
}

for (let i = 0; i < seeds; i += 1) {
  const seed = Number(process.env["RACE_SEED"] ?? Date.now() % 2 ** 31) + i;
  test(
    `eviction racing commits: no result ever names a missing blob (RACE_SEED=${seed})`,
    { timeout: 120_000 },
    async () => {
      const root = await mkdtemp(join(tmpdir(), "millrace-race-"));
      const race = new Race(seed);
      try {
        const store = await race.open(root);
        const evicting = race.evict(store);
        const executing = Promise.all(Array.from({ length: 4 }, () => race.execute(store, 25)));
        const looking = (async () => {
          while (!race.isOver) {
            await race.check(store);
            await new Promise(setImmediate);
          }
        })();
        await executing.finally(() => (race.isOver = true));
        await Promise.all([evicting, looking]);
        await store.close();
        const again = await race.open(root);
        await race.check(again);
        await again.close();
        ok(race.committed.length > 10, `${race.committed.length} commits`);
        ok(race.checked > 10, `${race.checked} outputs looked at`);
      } finally {
        await race.store?.close();
        await rm(root, { recursive: true });
      }
    },
  );
}
