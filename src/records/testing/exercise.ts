/** The conformance suite: what every store of records promises, however it is implemented. */
import { deepEqual, equal, ok, rejects } from "node:assert/strict";
import { test } from "node:test";
import { isFault, type FaultCode } from "#base/fault.ts";
import { documentBytesMax, type RecordId, type RecordQuery, type RecordStore } from "#records/records.ts";

export type RecordsUnderTest = {
  /** Two nodes' views of one store. */
  readonly one: RecordStore;
  readonly two: RecordStore;
  readonly advance: (ms: number) => void;
};

export type PlayRecords = (name: string, play: (under: RecordsUnderTest) => Promise<void>) => void;

const id = (name = "web", more: Partial<RecordId> = {}): RecordId => ({ tenant: "acme", kind: "test", name, ...more });

const faults = (promise: Promise<unknown>, code: FaultCode): Promise<void> =>
  rejects(promise, (error) => {
    if (isFault(error, code)) return true;
    throw new Error(`expected a fault "${code}"`, { cause: error });
  });

const versionOf = async (records: RecordStore, of: RecordId): Promise<number> => {
  const found = await records.read(of);
  ok(found, `${of.name} is there`);
  return found.version;
};

export function exerciseRecords(play: PlayRecords): void {
  exerciseChanges(play);
  exerciseLists(play);
  exerciseNews(play);
}

function exerciseChanges(play: PlayRecords): void {
  play("RC1 of many that create one record, one succeeds and the others get its record", async ({ one, two }) => {
    const made = await Promise.all(
      Array.from({ length: 10 }, (_, i) => (i % 2 === 0 ? one : two).create(id(), `document ${i}`)),
    );
    const winners = made.filter(({ created }) => created);
    equal(winners.length, 1);
    for (const { record } of made) deepEqual(record, winners[0]?.record);
    deepEqual(await two.read(id()), winners[0]?.record);
    for (const other of [id("api"), id("web", { tenant: "globex" }), id("web", { kind: "other" })])
      equal((await one.create(other, "x")).created, true, "another tenant, kind or name is another record");
  });

  play("RC1 several are created together, or none of them", async ({ one, two }) => {
    const of = { tenant: "acme", kind: "test" };
    const given = (...names: readonly string[]) => names.map((name) => ({ name, document: `of ${name}` }));
    const made = await one.createAll(of, given("a", "b", "c"));
    ok(made.created);
    deepEqual(
      made.records.map(({ name, document }) => [name, document]),
      [
        ["a", "of a"],
        ["b", "of b"],
        ["c", "of c"],
      ],
    );
    const versions = made.records.map(({ version }) => version);
    deepEqual(
      versions,
      versions.toSorted((x, y) => x - y),
    );
    equal(new Set(versions).size, 3, "each has a version of its own");
    deepEqual(await two.read(id("b")), made.records[1]);
    const refused = await two.createAll(of, given("d", "b", "e"));
    ok(!refused.created);
    deepEqual(refused.record, made.records[1], "the one that was there");
    equal(await one.read(id("d")), undefined);
    await faults(one.createAll(of, given("f", "f")), "invalid");
    await faults(one.createAll(of, given("f", "g"), { countMax: 4, bytesMax: 1_000 }), "exhausted");
    equal(await one.read(id("f")), undefined, "too many together are none");
    deepEqual(await one.createAll(of, []), { created: true, records: [] });
    const mixed = await Promise.all([one.createAll(of, given("x", "y")), two.createAll(of, given("y", "z"))]);
    equal(mixed.filter(({ created }) => created).length, 1);
  });

  play("RC2 of many that replace one version, one succeeds", async ({ one, two, advance }) => {
    equal(await one.replace(id(), 1, "x"), undefined, "there is none");
    const { record } = await one.create(id(), "first");
    advance(5_000);
    const done = await Promise.all(
      Array.from({ length: 10 }, (_, i) => (i % 2 === 0 ? one : two).replace(id(), record.version, `next ${i}`)),
    );
    const winners = done.filter((each) => each !== undefined);
    equal(winners.length, 1);
    const [winner] = winners;
    ok(winner && winner.version > record.version && winner.changedAtMs >= record.changedAtMs + 5_000);
    equal(winner.createdAtMs, record.createdAtMs);
    deepEqual(await two.read(id()), winner);
    equal(await one.remove(id(), record.version), false);
    equal(await two.replace(id("web", { tenant: "globex" }), winner.version, "x"), undefined);
  });

  play("RC2 a version is never given twice, over removals too", async ({ one, two }) => {
    const versions: number[] = [];
    for (let n = 0; n < 5; n += 1) {
      const { record } = await (n % 2 === 0 ? one : two).create(id(), "same");
      versions.push(record.version);
      equal(await two.remove(id(), record.version), true);
      equal(await one.remove(id(), record.version), false, "it is gone");
      equal(await one.replace(id(), record.version, "back"), undefined);
      equal(await one.read(id()), undefined);
    }
    equal(new Set(versions).size, versions.length);
    deepEqual(
      versions,
      [...versions].toSorted((a, b) => a - b),
    );
  });

  play("RC2 many increments at once lose none", async ({ one, two }) => {
    await one.create(id(), "0");
    const increment = async (records: RecordStore): Promise<void> => {
      for (;;) {
        const found = await records.read(id());
        ok(found);
        if (await records.replace(id(), found.version, String(Number(found.document) + 1))) return;
      }
    };
    await Promise.all([one, two, one, two, one, two].map(increment));
    equal((await two.read(id()))?.document, "6");
  });

  play("RC4 a tenant's records are limited in number and bytes, and others' do not count", async ({ one }) => {
    const few = { countMax: 2, bytesMax: 100 };
    await one.create(id("a"), "x", few);
    await one.create(id("b"), "x", few);
    await faults(one.create(id("c"), "x", few), "exhausted");
    equal((await one.create(id("a"), "x", few)).created, false, "what is there can be asked for");
    equal((await one.create(id("c", { tenant: "globex" }), "x", few)).created, true);
    equal((await one.create(id("c", { kind: "other" }), "x", few)).created, true);
    const version = await versionOf(one, id("a"));
    await faults(one.replace(id("a"), version, "x".repeat(98), few), "exhausted");
    equal(await versionOf(one, id("a")), version, "a refused change leaves no trace");
    const longer = await one.replace(id("a"), version, "x".repeat(97), few);
    ok(longer && (await one.replace(id("a"), longer.version, "y", few)), "a shorter one is always possible");
    equal(await one.remove(id("b"), await versionOf(one, id("b"))), true);
    equal((await one.create(id("c"), "x", few)).created, true);
  });

  play("names and documents are checked, and come back as they were given", async ({ one }) => {
    for (const name of ["", "a\u0000b", "line\nfeed", "\ud800", "\u{10FFFF}", "x".repeat(513)])
      await faults(one.create(id(name), "x"), "invalid");
    for (const kind of ["", "Upper", "a b", "9"]) await faults(one.create(id("a", { kind }), "x"), "invalid");
    await faults(one.create(id(), "x".repeat(documentBytesMax + 1)), "invalid");
    await faults(one.create(id(), "a\u0000b"), "invalid");
    const document = JSON.stringify({ text: "\u0000 \ud800 ü 漢 😀 '\"\\ % _" });
    for (const name of ["ü/漢 😀", "it's", "100%", 'a"b', "../..", "x".repeat(512)]) {
      await one.create(id(name), document);
      const { document: read, name: readName } = (await one.read(id(name))) ?? {};
      deepEqual([readName, read], [name, document]);
    }
    await one.create(id("long"), "x".repeat(documentBytesMax));
    equal((await one.read(id("long")))?.document.length, documentBytesMax);
  });
}

async function pages(records: RecordStore, query: Omit<RecordQuery, "kind">): Promise<string[][]> {
  const found: string[][] = [];
  let cursor: string | undefined;
  do {
    const page = await records.list({ kind: "test", ...query, cursor });
    found.push(page.records.map(({ tenant, name }) => (query.tenant === undefined ? `${tenant}:${name}` : name)));
    ({ cursor } = page);
    ok(found.length < 50, "a list ends");
  } while (cursor !== undefined);
  return found;
}

function exerciseLists(play: PlayRecords): void {
  play("a list is in order of names, by prefix, in pages, and of one tenant", async ({ one, two }) => {
    const names = ["b/2", "a", "b/1", "b", "b/", "b0", "B", "ü", "😀", "\u{FFFD}", "b%", "b_"];
    for (const name of names) await one.create(id(name), name);
    await one.create(id("b/9", { tenant: "globex" }), "theirs");
    await one.create(id("b/9", { kind: "other" }), "other");
    const byBytes = names.toSorted((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)));
    deepEqual((await pages(two, { tenant: "acme", limit: 5 })).flat(), byBytes);
    deepEqual(await pages(two, { tenant: "acme", prefix: "b/", limit: 2 }), [["b/", "b/1"], ["b/2"]]);
    deepEqual(await pages(two, { tenant: "acme", prefix: "b%", limit: 2 }), [["b%"]]);
    deepEqual(await pages(two, { tenant: "nobody", limit: 2 }), [[]]);
    deepEqual((await pages(two, { prefix: "b/", limit: 2 })).flat(), ["acme:b/", "acme:b/1", "acme:b/2", "globex:b/9"]);
    await two.remove(id("b/1"), await versionOf(two, id("b/1")));
    deepEqual((await pages(one, { tenant: "acme", prefix: "b/", limit: 9 })).flat(), ["b/", "b/2"]);
  });

  play("a list can have the last created first, also over tenants", async ({ one, two, advance }) => {
    for (const [n, name] of ["c", "a", "d", "b"].entries()) {
      await one.create(id(name, { tenant: n === 2 ? "globex" : "acme" }), name);
      advance(1_000);
    }
    const changed = await versionOf(one, id("c"));
    await one.replace(id("c"), changed, "changed");
    deepEqual(await pages(two, { tenant: "acme", order: "newest", limit: 2 }), [["b", "a"], ["c"]]);
    deepEqual((await pages(two, { order: "newest", limit: 1 })).flat(), ["acme:b", "globex:d", "acme:a", "acme:c"]);
    deepEqual((await pages(two, { tenant: "acme", order: "newest", prefix: "a", limit: 1 })).flat(), ["a"]);
  });

  play("pages stay right while records come and go, and are limited in bytes", async ({ one }) => {
    for (const name of ["a", "b", "c", "d"]) await one.create(id(name), name);
    const first = await one.list({ tenant: "acme", kind: "test", limit: 2 });
    await one.remove(id("b"), await versionOf(one, id("b")));
    await one.create(id("a2"), "before the cursor");
    const second = await one.list({ tenant: "acme", kind: "test", limit: 2, cursor: first.cursor });
    deepEqual(
      [first, second].map(({ records }) => records.map(({ name }) => name)),
      [
        ["a", "b"],
        ["c", "d"],
      ],
    );
    for (let n = 0; n < 20; n += 1) await one.create(id(`large ${n}`), "x".repeat(documentBytesMax));
    const found = await pages(one, { tenant: "acme", prefix: "large", limit: 100 });
    deepEqual([found.length >= 2, found.flat().length], [true, 20]);
    await faults(one.list({ kind: "test", limit: 1, cursor: "nonsense" }), "invalid");
    await faults(one.list({ kind: "test", limit: 0 }), "invalid");
    await faults(one.list({ kind: "test", limit: 1_001 }), "invalid");
  });
}

function exerciseNews(play: PlayRecords): void {
  const of = { tenant: "acme", kind: "test" };
  play("RC5 changes are read in the order of versions, each record's newest, and removals", async ({ one, two }) => {
    deepEqual(await one.changes(of, 0), { kind: "changes", changes: [], through: 0 });
    await one.create(id("a"), "a1");
    await one.create(id("b"), "b1");
    await one.create(id("x", { tenant: "globex" }), "theirs");
    await one.replace(id("a"), await versionOf(one, id("a")), "a2");
    await one.remove(id("b"), await versionOf(one, id("b")));
    const all = await two.changes(of, 0);
    ok(all.kind === "changes");
    deepEqual(
      all.changes.map(({ name, record }) => [name, record?.document]),
      [
        ["a", "a2"],
        ["b", undefined],
      ],
    );
    deepEqual(
      await two.newest("test").then((rows) => rows.find(({ tenant }) => tenant === "acme")?.version),
      all.through,
    );
    deepEqual(await two.changes(of, all.through), { kind: "changes", changes: [], through: all.through });
    equal((await two.changes(of, all.through + 1)).kind, "reset", "the database is older than its reader");
  });

  play("RC5 a reader that was away for too long is told to read everything again", async ({ one, two }) => {
    await one.create(id("stays"), "x");
    const { through } = await one.changes(of, 0);
    const { record } = await one.create(id("goes"), "x");
    await one.remove(id("goes"), record.version);
    const soon = await two.changes(of, through);
    ok(soon.kind === "changes" && soon.changes.some(({ name, record: now }) => name === "goes" && now === undefined));
    for (let n = 0; n < 510; n += 1) {
      const made = await one.create(id("again"), "x");
      await one.remove(id("again"), made.record.version);
    }
    equal((await two.changes(of, through)).kind, "reset");
    const { records } = await two.list({ ...of, limit: 10 });
    deepEqual(
      records.map(({ name }) => name),
      ["stays"],
    );
  });

  play("RC5 a reader that polls during many writes misses none", async ({ one, two }) => {
    const known = new Map<string, string>();
    let since = 0;
    let isDone = false;
    const poll = async (): Promise<void> => {
      const found = await two.changes(of, since);
      ok(found.kind === "changes");
      for (const { name, version, record } of found.changes) {
        ok(version > since, "in order");
        if (record) known.set(name, record.document);
        else known.delete(name);
      }
      since = found.through;
    };
    const write = async (n: number): Promise<void> => {
      for (let round = 0; round < 5; round += 1) {
        const made = await one.create(id(`r${n}`), `${round}`);
        if (round % 2 === 0) await one.replace(id(`r${n}`), made.record.version, `${round} again`);
        else await one.remove(id(`r${n}`), made.record.version);
      }
    };
    const writes = Promise.all(Array.from({ length: 6 }, (_, n) => write(n))).then(() => (isDone = true));
    while (!isDone) await poll();
    await writes;
    await poll();
    const { records } = await one.list({ ...of, limit: 100 });
    deepEqual(Object.fromEntries(known), Object.fromEntries(records.map(({ name, document }) => [name, document])));
  });
}

/** Each scene as a test of its own. */
export const playAsTest =
  (make: () => Promise<RecordsUnderTest & { readonly close: () => Promise<void> }>): PlayRecords =>
  (name, play) =>
    void test(name, async () => {
      const { close, ...under } = await make();
      try {
        await play(under);
      } finally {
        await close();
      }
    });
