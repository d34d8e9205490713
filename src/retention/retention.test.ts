/** What is kept until a time stays pinned until then, by one node, through changes of owners, and then goes. */
import { deepEqual, equal, ok, rejects } from "node:assert/strict";
import { describe, test } from "node:test";
import type { Digest } from "#base/digest.ts";
import { Fault, isFault } from "#base/fault.ts";
import { ManualClock } from "#base/testing/manual-clock.ts";
import { sha256Digest } from "#blobs/sha256.ts";
import { memoryRecords } from "#records/memory.ts";
import { watchedRecords } from "#records/watch.ts";
import { RetentionKeeper, type KeeperEvent } from "./keeper.ts";
import { Keeps, pinSliceMs } from "./keeps.ts";
import { ResultsKeeper, type JobResults } from "./results.ts";

const day = 24 * 3_600_000;
const lookMs = 5_000;
const digestOf = (text: string): Digest => sha256Digest(Buffer.from(text));

/** A store with the times of its pins, which evicts what is not pinned whenever it is looked at. */
class PinnedStore {
  readonly blobs = new Map<Digest, { readonly bytes: Buffer; untilMs: number }>();
  readonly #nowMs: () => number;
  forMsMax = Infinity;
  pins = 0;

  constructor(nowMs: () => number) {
    this.#nowMs = nowMs;
  }

  put(text: string): Digest {
    const digest = digestOf(text);
    this.blobs.set(digest, { bytes: Buffer.from(text), untilMs: this.#nowMs() + 1 });
    return digest;
  }

  /** Which of them are left. */
  evict(): ReadonlySet<Digest> {
    for (const [digest, { untilMs }] of this.blobs) if (untilMs <= this.#nowMs()) this.blobs.delete(digest);
    return new Set(this.blobs.keys());
  }

  readonly pin = async (digests: readonly Digest[], forMs: number) => {
    if (forMs > this.forMsMax) throw new Fault("invalid", "pin", { forMs });
    const missing = digests.filter((digest) => !this.blobs.has(digest));
    if (missing.length > 0) return { missing };
    this.pins += 1;
    for (const digest of digests) {
      const blob = this.blobs.get(digest);
      if (blob) blob.untilMs = Math.max(blob.untilMs, this.#nowMs() + forMs);
    }
    return { digests, pinnedForMs: forMs };
  };

  async *read(digest: Digest): AsyncGenerator<Uint8Array> {
    const blob = this.blobs.get(digest);
    if (!blob) throw new Fault("not-found", "read blob", { digest });
    yield blob.bytes;
  }
}

function rig() {
  const clock = new ManualClock(Date.UTC(2026, 10, 18));
  const store = new PinnedStore(() => clock.wallMs());
  const records = watchedRecords(
    memoryRecords(() => clock.wallMs()),
    clock,
  );
  const keeps = new Keeps({ records, pins: () => store, clock });
  const events: KeeperEvent["kind"][] = [];
  const lines: string[] = [];
  const keeper = (owns: (key: string) => boolean = () => true, of = keeps): RetentionKeeper =>
    new RetentionKeeper({
      keeps: of,
      records,
      clock,
      owns,
      log: (line) => lines.push(line),
      observe: ({ kind }) => events.push(kind),
    });
  /** Time goes on by this much, and the keepers look. */
  const pass = async (ms: number): Promise<void> => {
    clock.wallAheadMs += ms;
    await clock.advance(2 * lookMs);
  };
  const names = async (): Promise<readonly string[]> =>
    (await keeps.records.list({ tenant: "a", limit: 100 })).records.map(({ name }) => name);
  const keep = (name: string, digests: readonly Digest[], forMs: number, more: object = {}): Promise<void> =>
    keeps.keep({
      tenant: "a",
      name,
      door: "ci",
      about: name,
      untilMs: clock.wallMs() + forMs,
      digests: [...digests],
      ...more,
    });
  return { clock, store, records, keeps, keeper, events, lines, pass, names, keep };
}

describe("what is kept under a name", () => {
  test("RT1 is recorded only if its blobs are there, and at once pinned", async () => {
    const { store, keep, names, keeps, clock } = rig();
    const one = store.put("one");
    await rejects(keep("x", [one, digestOf("none")], day), (error) => isFault(error, "not-found"));
    await rejects(keep("x", [one], 0), (error) => isFault(error, "invalid"));
    deepEqual(await names(), []);
    await keep("x", [one], day);
    deepEqual(await names(), ["x"]);
    clock.wallAheadMs += day - 1;
    ok(store.evict().has(one));
    equal((await keeps.records.read("a", "x"))?.value.bytes, 3);
  });

  test("RT2 RT3 RT4 stays for ten days although pins are short, and goes with its records, exactly", async () => {
    const { store, keep, names, keeper, pass, records, events } = rig();
    const [one, two, part] = [store.put("one"), store.put("two"), store.put("part")];
    const list = store.put(`${two}\n${part}`);
    const id = { tenant: "a", kind: "ci.artifact", name: "run/x" };
    await records.create(id, "{}");
    await keep("x", [one], 10 * day, { lists: [list], drops: [{ kind: id.kind, name: id.name }] });
    await using _ = keeper();
    for (let days = 0; days < 9.5; days += 0.5) {
      await pass(day / 2);
      deepEqual([...store.evict()].length, 4, `after ${days + 0.5} days`);
    }
    ok(store.pins < 15, "pins are renewed when half of them is left, not at every look");
    ok(await records.read(id));
    await pass(day / 2);
    deepEqual([...store.evict()], [], "no pin goes beyond its time");
    deepEqual([await names(), await records.read(id), events.at(-1)], [[], undefined, "expired"]);
  });

  test("RT3 is pinned by one of two nodes, and by the other when the first has died", async () => {
    const { store, keep, keeper, pass, events } = rig();
    const blobs = Array.from({ length: 20 }, (_, i) => store.put(`blob ${i}`));
    for (const [i, digest] of blobs.entries()) await keep(`n${i}`, [digest], 20 * day);
    let owner = "first";
    const first = keeper(() => owner === "first");
    await using _ = keeper(() => owner === "second");
    await pass(0);
    equal(events.length, 20, "once each");
    await first[Symbol.asyncDispose]();
    owner = "second";
    for (let days = 0; days < 6; days += 1) await pass(day);
    equal(store.evict().size, 20);
    ok(events.every((kind) => kind === "renewed"));
  });

  test("is free to go once it is dropped, and a longer time under the same name counts", async () => {
    const { store, keep, keeps, keeper, pass, names } = rig();
    const [one, two] = [store.put("one"), store.put("two")];
    await keep("x", [one], 30 * day);
    await keep("y", [two], day);
    await keep("y", [two], 20 * day);
    await using _ = keeper();
    equal(await keeps.drop("a", "x"), true);
    for (let days = 0; days < 4; days += 1) await pass(day);
    deepEqual([[...store.evict()], await names()], [[two], ["y"]]);
  });

  test("is kept in shorter pins by a store that allows no longer ones", async () => {
    const { store, keep, keeper, pass } = rig();
    store.forMsMax = 8 * 3_600_000;
    const one = store.put("one");
    await keep("x", [one], 3 * day);
    await using _ = keeper();
    for (let hours = 0; hours < 70; hours += 2) {
      await pass(2 * 3_600_000);
      ok(store.evict().has(one), `after ${hours + 2} hours`);
    }
  });

  test("of which a blob was lost says so, once", async () => {
    const { store, keep, keeps, keeper, pass, lines, events } = rig();
    const one = store.put("one");
    await keep("x", [one], 9 * day);
    store.blobs.delete(one);
    await using _ = keeper();
    for (let days = 0; days < 3; days += 1) await pass(day);
    equal(events.filter((kind) => kind === "lost").length, 1);
    equal(lines.length, 1);
    ok((await keeps.records.read("a", "x"))?.value.lostAtMs);
  });
});

test("RT5 results of jobs stay for their time after the end, live ones as long as they live", async () => {
  const { clock, store, keeps } = rig();
  const [ended, old, live] = [store.put("ended"), store.put("old"), store.put("live")];
  const startMs = clock.wallMs();
  const keepMs = 7 * day;
  const of = (endedAtMs: number, digest: Digest): JobResults => ({ tenant: "a", endedAtMs, digests: [digest, digest] });
  const jobs = async function* (): AsyncGenerator<JobResults> {
    yield* [of(startMs, ended), of(startMs - keepMs, old), of(0, live)];
  };
  await store.pin([ended, live], pinSliceMs);
  await using keeper = new ResultsKeeper({ keeps, pins: () => store, clock, jobs, keepMs, log: () => {} }, Infinity);
  for (let days = 0; days < 7; days += 0.5) {
    const walked = keeper.walk();
    await clock.advance(1_000);
    equal(await walked, 2);
    clock.wallAheadMs += day / 2;
    const left = store.evict();
    deepEqual([left.has(ended), left.has(live), left.has(old)], [days < 6.5, true, false], `after ${days + 0.5} days`);
  }
});
