import { deepEqual, equal, ok } from "node:assert/strict";
import { test } from "node:test";
import { ManualClock } from "#base/testing/manual-clock.ts";
import { createMemoryIndex } from "#blobs/memory/memory-index.ts";
import { createMemoryStore } from "#blobs/memory/memory-store.ts";
import { sha256Digest } from "#blobs/sha256.ts";
import { manifestText } from "#doors/deploy/manifest/manifest.ts";
import { createKey, signerOf } from "#doors/deploy/signing/signing.ts";
import { memoryRecords } from "#records/memory.ts";
import { watchedRecords } from "#records/watch.ts";
import { Keeps } from "#retention/keeps.ts";
import { GoalStore } from "./goals.ts";
import { KeptReleases } from "./kept-releases.ts";

const day = 24 * 3_600_000;
const run = {
  command: ["run"],
  env: {},
  probe: null,
  withinMs: 1,
  everyMs: 10,
  drainMs: 0,
  keepVersions: 2,
  diskBytesMax: 1_000_000,
};
const at = { tenant: "acme", service: "web", region: "eu" };

async function rig() {
  const clock = new ManualClock(Date.UTC(2026, 10, 1));
  const store = createMemoryStore({ clock, sizeBytesMax: 10_000_000 });
  const { blobs } = store.forTenant("acme");
  const signer = signerOf(createKey().privatePem);
  const goals = new GoalStore({ index: createMemoryIndex(), store, signer: async () => signer, clock });
  const records = watchedRecords(
    memoryRecords(() => clock.wallMs()),
    clock,
  );
  const keeps = new Keeps({ records, clock, pins: (tenant) => store.forTenant(tenant).blobs });
  const releases = new KeptReleases({ keeps, store, goals, clock });
  const manifests = new Map<string, string>();
  const seal = async (word: string): Promise<string> => {
    const segment = sha256Digest(Buffer.from(word));
    await blobs.write(segment, Buffer.from(word));
    const files = [{ path: "app", executable: true, sizeBytes: word.length, segments: [segment] }];
    const text = manifestText({ format: 1, service: "web", sha: "abcdef0", builder: "j", run, files, links: [] });
    const manifest = await goals.write("acme", JSON.stringify(signer.sign("manifest", text)));
    manifests.set(word, manifest);
    return segment;
  };
  const release = async (word: string, stable: string | null) =>
    await goals.append(at, await goals.head(at), {
      kind: "release",
      halted: false,
      release: "j1-1",
      manifest: manifests.get(word) ?? null,
      labels: [],
      stable: stable === null ? null : (manifests.get(stable) ?? null),
      sharePpm: 1_000_000,
      named: [],
      wave: 0,
      evidence: null,
    });
  const kept = async (): Promise<readonly string[]> => {
    const found = (await keeps.records.read("acme", "deploy/eu/web"))?.value;
    const parts: string[] = [];
    for (const list of found?.lists ?? [])
      for await (const part of blobs.read(list)) parts.push(Buffer.from(part).toString());
    return parts.join("").split("\n");
  };
  return { clock, store, blobs, goals, keeps, releases, manifests, seal, release, kept };
}

test("KR1 keeps the newest goal, and what it may run and go back to, and nothing older", async () => {
  const { goals, releases, seal, release, kept, manifests } = await rig();
  const segments = [await seal("one"), await seal("two"), await seal("three"), await seal("four")];
  for (const word of ["one", "two", "three"]) {
    await release(word, null);
    await goals.setStable(at, manifests.get(word) ?? "");
  }
  const head = await release("four", "three");
  await releases.keep(at, head);
  const all = new Set(await kept());
  ok(all.has(head.entry.digest));
  deepEqual(
    segments.map((segment) => all.has(segment)),
    [false, true, true, true],
    "the one before the last that ended well can be gone back to",
  );
});

test("KR1 is renewed long before its time, and writes nothing while nothing changes", async () => {
  const { clock, releases, seal, release, keeps } = await rig();
  await seal("one");
  const head = await release("one", null);
  const read = async () => await keeps.records.read("acme", "deploy/eu/web");
  await releases.keep(at, head);
  const first = await read();
  await releases.keep(at, head);
  equal((await read())?.version, first?.version);
  for (let days = 0; days < 100; days += 1) {
    clock.wallAheadMs += day;
    await releases.keep(at, head);
    ok(((await read())?.value.untilMs ?? 0) > clock.wallMs() + 25 * day, `after ${days + 1} days`);
  }
});

test("a release of which something is gone is not kept, and keeps nothing else from being kept", async () => {
  const { store, goals, releases, seal, release, kept, manifests } = await rig();
  const lost = { ...at, service: "other" };
  equal(await goals.head(lost), undefined);
  const segment = await seal("one");
  manifests.set("gone", `${"a".repeat(64)}/100`);
  const head = await release("one", "gone");
  await releases.keep(at, head);
  ok((await kept()).includes(segment));
  await store.close();
});
