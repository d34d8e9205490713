/** The disk store alone: the cost of each operation, and what a million blobs do to it. */
import { spawnSync } from "node:child_process";
import { hash, randomBytes } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Digest } from "#base/digest.ts";
import { openDiskStore, type DiskStore } from "#blobs/disk/open.ts";
import type { BlobStore } from "#blobs/store.ts";
import { systemClock } from "#door/system-clock.ts";
import { percentile } from "#bench/measure.ts";
import type { Report } from "#bench/report.ts";
import { lanes, smallBlob } from "./blobs.ts";
import { Waits, type Pauses } from "./waits.ts";
import type { Suite } from "#bench/suite.ts";

export const store: Suite = {
  name: "store",
  about: "the disk store by itself: CPU an operation, a restart and reads with a million blobs",
  notMeasured: [
    "the way over a socket and through a protocol: that is `npm run bench cache`",
    "a disk that is cold or slow: what is read has been written before, and the system has it in memory",
    "other stores: their servers are in `npm run bench cache`",
  ],
  async run(report, { smoke }) {
    const folder = mkdtempSync(join(tmpdir(), "millrace-bench-store-"));
    try {
      // This one first: garbage of the other would be collected while readers are measured.
      await million(report, join(folder, "million"), smoke ? 20_000 : 1_000_000);
      await operations(report, join(folder, "operations"), smoke ? 2_000 : 100_000);
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  },
};

const blobBytes = 4_096;

/** CPU of this process, all its threads, for each of this many. */
async function cpuUs(count: number, work: () => Promise<void> | void): Promise<number> {
  const before = process.cpuUsage();
  await work();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / count;
}

async function operations(report: Report, folder: string, count: number): Promise<void> {
  const opened = await openDiskStore(folder, { clock: systemClock, sizeBytesMax: 8 * 1024 ** 3 });
  const { blobs } = opened.forTenant("bench");
  const all = Array.from({ length: count }, (_, i) => smallBlob(i, blobBytes));
  const hashing = await cpuUs(count, () => all.forEach(({ bytes }) => hash("sha256", bytes)));
  const writing = await cpuUs(count, () =>
    lanes(count, 64, (i) => blobs.write(all[i]?.digest ?? "", all[i]?.bytes ?? Buffer.alloc(0))),
  );
  const reads = await readCosts(
    blobs,
    all.map(({ digest }) => digest),
  );
  const names = await nameCosts(
    opened,
    all.map(({ digest }) => digest),
  );
  await opened.close();
  report.table(
    "CPU an operation, 4 KiB blobs",
    ["operation", "us"],
    [
      ["SHA-256 alone", hashing],
      ["write, without the hash", writing - hashing],
      ...Object.entries({ ...reads, ...names }),
    ].map(([what, us]) => [String(what), Number(us).toFixed(3)]),
  );
  report.figure("write_cpu_us", writing - hashing);
  report.figure("has_cpu_ns", reads["has, there"] * 1_000);
  report.target({
    what: "CPU us a 4 KiB write costs the store, the hash not counted",
    atMost: 6,
    got: writing - hashing,
  });
  report.target({ what: "CPU us a 4 KiB read from memory", atMost: 1, got: reads["bytes, in memory"] });
  report.target({ what: "CPU us a 4 KiB read from the page cache", atMost: 12, got: reads["bytes, page cache"] });
  report.target({ what: "CPU us to say that a blob is there", atMost: 0.15, got: reads["has, there"] });
}

async function readCosts(blobs: BlobStore, digests: readonly Digest[]) {
  const { prompt } = blobs;
  if (!prompt) throw new Error("a store that answers promptly");
  const count = digests.length;
  const young = digests.slice(-Math.min(count, 10_000));
  const rounds = 10;
  let found = 0;
  const look = (some: readonly Digest[]): void => {
    for (const digest of some) found += prompt.bytes(digest)?.length ?? 0;
  };
  look(young);
  const inMemory = await cpuUs(young.length * rounds, () => {
    for (let round = 0; round < rounds; round += 1) look(young);
  });
  // Spread over all of it, so that few are in memory.
  const spread = Array.from({ length: Math.min(count, 50_000) }, (_, i) => digests[(i * 7_919) % count] ?? "");
  const pageCache = await cpuUs(spread.length, () => look(spread));
  const hashes = Buffer.concat(digests.map((digest) => Buffer.from(digest.slice(0, 64), "hex")));
  const strange = randomBytes(hashes.length);
  const ask = (from: Buffer): void => {
    for (let i = 0; i < count; i += 1) if (prompt.has("sha256", from, 32 * i, blobBytes)) found += 1;
  };
  ask(hashes);
  const there = await cpuUs(count, () => ask(hashes));
  ask(strange);
  const missing = await cpuUs(count, () => ask(strange));
  return { "bytes, in memory": inMemory, "bytes, page cache": pageCache, "has, there": there, "has, missing": missing };
}

async function nameCosts({ index }: DiskStore, digests: readonly Digest[]) {
  const count = Math.min(digests.length, 50_000);
  const keys = Array.from({ length: count }, (_, i) => ({
    tenant: "bench",
    space: "ac/sha256/main",
    name: `${i}/142`,
  }));
  const put = await cpuUs(count, () =>
    lanes(count, 64, async (i) => {
      const key = keys[i];
      if (key) await index.put(key, { digest: digests[i] ?? "", principal: "bench", atMs: 1 });
    }),
  );
  const get = await cpuUs(count, () => keys.forEach((key) => index.prompt?.(key)));
  return { "name, put": put, "name, prompt": get };
}

async function million(report: Report, folder: string, count: number): Promise<void> {
  const sizeBytes = 256;
  const filled = spawnSync(process.execPath, [
    join(import.meta.dirname, "fill.ts"),
    folder,
    `${count}`,
    `${sizeBytes}`,
  ]);
  if (filled.signal !== "SIGKILL") throw new Error(`the store could not be filled: ${String(filled.stderr)}`);
  const killed = await timedOpen(folder, {});
  const { recovered } = killed.store;
  const { indexBytes, blobs: found, usedBytes } = await killed.store.upkeep.stat();
  await killed.store.close();
  const clean = await timedOpen(folder, {});
  await clean.store.close();
  const beside = await readsBesideJanitor(folder, { count, sizeBytes, usedBytes });
  const p99 = percentile(beside.janitor.ms, 0.99);
  report.table(
    `${count} blobs of ${sizeBytes} bytes`,
    ["what", "figure"],
    [
      ["blobs found after kill -9", found],
      ["ms to open after kill -9", killed.ms.toFixed(0)],
      ["  of it, ms of CPU", killed.cpuMs.toFixed(0)],
      ["  of it, MiB of log read", (recovered.scannedBytes / 1024 ** 2).toFixed(0)],
      ["ms to open after a clean end", clean.ms.toFixed(0)],
      ["  of it, ms of CPU", clean.cpuMs.toFixed(0)],
      ["bytes of memory a blob", (indexBytes / found).toFixed(1)],
      ["blobs let go of while reading", beside.evicted],
      ["MiB freed meanwhile", ((usedBytes - beside.leftBytes) / 1024 ** 2).toFixed(0)],
      ["ms of CPU of that and the reads", beside.cpuMs.toFixed(0)],
      ["reads meanwhile", beside.janitor.ms.length],
      ["p50 of a read meanwhile, ms", percentile(beside.janitor.ms, 0.5).toFixed(3)],
      ["p99 of a read meanwhile, ms", p99.toFixed(3)],
      ["  and before, with no janitor", percentile(beside.alone.ms, 0.99).toFixed(3)],
      ...whyRows(beside.janitor),
    ],
  );
  report.figure("restart_ms", killed.ms);
  report.figure("index_bytes_per_blob", indexBytes / found);
  report.figure("read_p99_ms", p99);
  report.figure("read_alone_p99_ms", percentile(beside.alone.ms, 0.99));
  report.target({ what: "blobs lost by kill -9", atMost: 0, got: count - found });
  report.target({ what: "ms until a killed store serves again", atMost: 1_000, got: killed.ms });
  report.target({ what: "bytes of memory a blob", atMost: 100, got: indexBytes / found });
  report.target({ what: "p99 ms of a small read while the janitor runs", atMost: readMsMax, got: p99 });
}

async function timedOpen(folder: string, options: object) {
  const startedMono = performance.now();
  const before = process.cpuUsage();
  const opened = await openDiskStore(folder, { clock: systemClock, sizeBytesMax: 16 * 1024 ** 3, ...options });
  const { user, system } = process.cpuUsage(before);
  return { store: opened, ms: performance.now() - startedMono, cpuMs: (user + system) / 1_000 };
}

const readMsMax = 5;

function whyRows(waits: Waits): readonly (readonly [string, string])[] {
  const text = ({ count, ms, longestMs }: Pauses): string =>
    `${count}, ${ms.toFixed(0)} ms, the longest ${longestMs.toFixed(1)}`;
  const { collections, noCore, other } = waits.causes(readMsMax);
  return [
    ["collections of the young meanwhile", text(waits.pauses(true))],
    ["collections of more", text(waits.pauses(false))],
    [`reads of more than ${readMsMax} ms: in a collection`, `${collections}`],
    ["  with no core to run on", `${noCore}`],
    ["  else", `${other}`],
  ];
}

/** Readers come at fixed times: one that comes while the event loop is blocked has waited. Timers fire a bit early. */
const arrivalMs = 2;
const readsMin = 1_000;

type Filled = { readonly count: number; readonly sizeBytes: number; readonly usedBytes: number };

/** Four tenths are evicted, and all segments are compacted, during reads; the reads before run alone. */
async function readsBesideJanitor(folder: string, { count, sizeBytes, usedBytes }: Filled) {
  const { store: opened } = await timedOpen(folder, { promisedMs: 0 });
  const { blobs } = opened.forTenant("bench");
  const digests = Array.from({ length: 2_000 }, (_, i) => smallBlob((i * 104_729) % count, sizeBytes).digest);
  await blobs.pin(digests, 3_600_000);
  const alone = await readsUntil(blobs, digests, () => true);
  const working = { isDone: false };
  const before = process.cpuUsage();
  const evicting = opened.upkeep.evict(Math.floor(usedBytes * 0.6)).finally(() => (working.isDone = true));
  const janitor = await readsUntil(blobs, digests, () => working.isDone);
  const { evictedBlobs, usedBytes: leftBytes } = await evicting;
  const { user, system } = process.cpuUsage(before);
  await opened.close();
  return { alone, janitor, evicted: evictedBlobs, leftBytes, cpuMs: (user + system) / 1_000 };
}

async function readsUntil(blobs: BlobStore, digests: readonly Digest[], isDone: () => boolean): Promise<Waits> {
  const waits = new Waits();
  const firstMono = performance.now();
  for (let i = 0; i < readsMin || !isDone(); i += 1) {
    const dueMono = firstMono + i * arrivalMs;
    const aheadMs = dueMono - performance.now();
    if (aheadMs > 0) await new Promise((resolve) => setTimeout(resolve, aheadMs));
    const startedMono = performance.now();
    const digest = digests[i % digests.length] ?? "";
    for await (const part of blobs.read(digest)) if (!digest.endsWith(`/${part.length}`)) throw new Error("short");
    waits.answered(Math.min(dueMono, startedMono), performance.now());
  }
  await waits.end();
  return waits;
}
