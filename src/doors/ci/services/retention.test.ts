/** Artifacts and caches are there until their time, to the millisecond, and not after it. */
import { deepEqual, equal, ok } from "node:assert/strict";
import { mkdtemp } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { must } from "#base/assert.ts";
import { ManualClock } from "#base/testing/manual-clock.ts";
import { createMemoryStore } from "#blobs/memory/memory-store.ts";
import { spoolIn } from "#blobs/spool.ts";
import { memoryRecords } from "#records/memory.ts";
import { watchedRecords } from "#records/watch.ts";
import { Keeps } from "#retention/keeps.ts";
import { clearAway } from "#testing/clear-away.ts";
import { Artifacts } from "#doors/ci/services/artifacts/artifacts.ts";
import { Caches } from "#doors/ci/services/caches/caches.ts";
import { BlockUploads } from "./block-uploads.ts";
import { serviceLimitsDefault } from "./limits.ts";

const day = 24 * 3_600_000;
const job = {
  tenant: "mill",
  run: "j0-1",
  task: "t0-1",
  claim: 1,
  repository: "o/mill",
  cacheRefs: ["refs/heads/main"],
};

async function rig() {
  const clock = new ManualClock(Date.UTC(2026, 0, 31));
  const folder = await mkdtemp(join(tmpdir(), "millrace-retention-"));
  const names = watchedRecords(
    memoryRecords(() => clock.wallMs()),
    clock,
  );
  const store = createMemoryStore({ clock, sizeBytesMax: 1_000_000 });
  const pins = (tenant: string) => store.forTenant(tenant).blobs;
  const ports = {
    names,
    store,
    clock,
    spool: spoolIn(folder),
    limits: serviceLimitsDefault,
    checkName: async () => {},
  };
  const uploads = new BlockUploads(ports);
  const keeps = new Keeps({ records: names, pins, clock });
  const bytes = (text: string) =>
    (async function* () {
      yield Buffer.from(text);
    })();
  return {
    clock,
    artifacts: new Artifacts({ ...ports, uploads, keeps }),
    caches: new Caches({ ...ports, uploads }),
    put: async (ref: Parameters<BlockUploads["putWhole"]>[0], text: string) =>
      void (await uploads.putWhole(ref, bytes(text))),
    [Symbol.dispose]: () => clearAway(folder),
  };
}

test("CI-70: an artifact with retention-days is there for as many days, then its name is free", async () => {
  using at = await rig();
  const { artifacts, clock } = at;
  for (const [name, days] of [
    ["short", 1],
    ["long", 89],
  ] as const) {
    const expiresAt = new Date(clock.wallMs() + days * day).toISOString();
    await at.put(await artifacts.create(job, { name, expiresAt, mimeType: "text/plain" }), name);
    await artifacts.finalize(job, { name, sizeBytes: name.length, hash: undefined });
  }
  await at.put(await artifacts.create(job, { name: "usual", mimeType: "text/plain" }), "usual");
  await artifacts.finalize(job, { name: "usual", sizeBytes: 5, hash: undefined });
  const there = async (): Promise<string> =>
    (await artifacts.list("mill", job.run))
      .map(({ name }) => name)
      .toSorted()
      .join(" ");
  const found = async (name: string): Promise<boolean> => (await artifacts.find("mill", job.run, name)) !== undefined;
  clock.wallAheadMs += day - 1;
  deepEqual([await there(), await found("short")], ["long short usual", true]);
  clock.wallAheadMs += 1;
  deepEqual([await found("short"), await there()], [false, "long usual"]);
  await at.put(await artifacts.create({ ...job, task: "t0-2" }, { name: "short", mimeType: "text/plain" }), "again");
  clock.wallAheadMs += 88 * day - 1;
  equal(await there(), "long usual");
  clock.wallAheadMs += 1;
  equal(await there(), "usual");
  clock.wallAheadMs += day;
  equal(await there(), "", "90 days for what does not say otherwise");
});

test("CI-69: a cache is there for seven days after its last use, and its key can be saved again then", async () => {
  using at = await rig();
  const { caches, clock } = at;
  const save = async (key: string): Promise<void> => {
    await at.put(must(await caches.begin(job, { key, version: "v" }), "a free key"), key);
    await caches.finalize(job, { key, version: "v" }, key.length);
  };
  await save("used");
  await save("unused");
  const listed = async (): Promise<string> =>
    (await caches.list("mill", "o/mill"))
      .map(({ key }) => key)
      .toSorted()
      .join(" ");
  clock.wallAheadMs += 7 * day - 1;
  equal(await listed(), "unused used");
  const first = await caches.page("mill", "o/mill", { limit: 1, cursor: undefined });
  const second = await caches.page("mill", "o/mill", { limit: 1, cursor: first.next });
  deepEqual(
    [...first.entries, ...second.entries].map(({ key }) => key),
    ["unused", "used"],
  );
  const used = must(await caches.find(job, ["used"], "v"), "a cache that is still there");
  clock.wallAheadMs += 1;
  equal(await listed(), "used");
  equal(await caches.find(job, ["unused"], "v"), undefined);
  equal(await caches.begin(job, { key: "used", version: "v" }), undefined, "a key is saved once");
  await save("unused");
  ok(await caches.byId("mill", String(used.id)));
  clock.wallAheadMs += 7 * day - 1;
  equal(await caches.byId("mill", String(used.id)), undefined);
  equal(await listed(), "unused");
});
