import { deepEqual, equal, match, rejects } from "node:assert/strict";
import { test } from "node:test";
import { Fault } from "#base/fault.ts";
import { ManualClock } from "#base/testing/manual-clock.ts";
import { exerciseJournal } from "./testing/exercise.ts";
import { batch, faults, own } from "./testing/support.ts";
import type { Journal, NodeRow } from "./journal.ts";
import { memoryStore } from "./memory/memory.ts";
import { partitionedJournal } from "./partitioned.ts";

const clock = new ManualClock();

exerciseJournal("in two databases", async () => {
  let nowMs = 1_700_000_000_000;
  const stores = [memoryStore(() => nowMs), memoryStore(() => nowMs + 7)] as const;
  const tamperAt = (shard: number) => stores[shard % 2 === 0 ? 0 : 1].tamper;
  return {
    connect: async () => partitionedJournal({ databases: stores.map((store) => store.connect()), clock }),
    advance: (ms) => void (nowMs += ms),
    tamper: {
      flipRecord: async (shard, seq, bit) => tamperAt(shard).flipRecord(shard, seq, bit),
      dropRecord: async (shard, seq) => tamperAt(shard).dropRecord(shard, seq),
      flipChunk: async (shard, index, bit) => tamperAt(shard).flipChunk(shard, index, bit),
    },
    destroy: async () => undefined,
  };
});

type Trouble = "refuses" | "hangs" | undefined;

/** A journal all of whose methods fail, or never answer, while there is trouble. */
function troubled<T extends object>(journal: T, trouble: () => Trouble): T {
  const wrapped = Object.entries(journal).map(([name, member]: [string, unknown]) => {
    if (typeof member === "object" && member !== null) return [name, troubled(member, trouble)];
    const call = (...args: unknown[]): unknown => {
      if (trouble() === "hangs") return new Promise(() => {});
      if (trouble() === "refuses") return Promise.reject(new Fault("unavailable", "reach database", {}));
      return (member as (...given: unknown[]) => unknown)(...args);
    };
    return [name, call];
  });
  return Object.fromEntries(wrapped) as T;
}

function twoDatabases() {
  const time = new ManualClock();
  let trouble: Trouble;
  const stores = [memoryStore(() => 1_000), memoryStore(() => 1_000)] as const;
  const connect = (): Journal =>
    partitionedJournal({ databases: [stores[0].connect(), troubled(stores[1].connect(), () => trouble)], clock: time });
  return { time, stores, connect, suffer: (what: Trouble) => void (trouble = what) };
}

async function opened() {
  const two = twoDatabases();
  const journal = two.connect();
  await journal.open({ shards: 8, clusterId: "two" });
  return { ...two, journal };
}

const row = (node: string, features = 1): NodeRow => ({
  node,
  address: `tcp:${node}`,
  features,
  state: "up",
  facts: {},
});

test("with one of two databases down an append over both has an unknown outcome, and the tails tell", async () => {
  const { journal, suffer } = await opened();
  const [two, five] = [await own(journal, 2), await own(journal, 5)];
  suffer("refuses");
  await faults(journal.append([batch(2, two, 1), batch(5, five, 1)]), "unknown-outcome");
  suffer(undefined);
  deepEqual([(await journal.tail(2)).seq, (await journal.tail(5)).seq], [1, 0]);
  suffer("refuses");
  await faults(journal.append([batch(5, five, 1)]), "unavailable");
  deepEqual((await journal.append([batch(2, two, 2)])).outcomes, ["appended"]);
});

test("with one of two databases down the leases of the other are renewed", async () => {
  const { journal, suffer } = await opened();
  const [two, five] = [await own(journal, 2), await own(journal, 5)];
  const [here, there] = [[{ shard: 2, epoch: two }], [{ shard: 5, epoch: five }]];
  suffer("refuses");
  deepEqual((await journal.renew("ada", here, 1_000)).held, [2]);
  await faults(journal.renew("ada", there, 1_000), "unavailable");
  suffer(undefined);
  deepEqual((await journal.renew("ada", [...here, ...there], 1_000)).held, [2, 5]);
});

test("who owns the shards of a database that is away is told as it was last seen, and marked", async () => {
  const { journal, suffer } = await opened();
  await own(journal, 5);
  await own(journal, 2);
  equal((await journal.ownerships())[5]?.owner, "ada");
  suffer("refuses");
  const rows = await journal.ownerships();
  deepEqual(
    rows.map(({ shard, owner, unseen }) => [shard, owner, unseen ?? false]),
    [0, 1, 2, 3, 4, 5, 6, 7].map((shard) => [shard, shard === 2 || shard === 5 ? "ada" : undefined, shard % 2 === 1]),
  );
  suffer(undefined);
  equal((await journal.ownerships()).filter(({ unseen }) => unseen).length, 0);
});

test("a database that hangs is waited for once, and then not until it has answered", async () => {
  const { journal, suffer, time } = await opened();
  await journal.announce(row("ada"), 10_000);
  suffer("hangs");
  const first = journal.nodes();
  let isAnswered = false;
  void first.then(() => (isAnswered = true));
  await time.advance(1_000);
  equal(isAnswered, false);
  await time.advance(1_500);
  deepEqual(
    (await first).map(({ node }) => node),
    ["ada"],
  );
  deepEqual(
    (await journal.nodes()).map(({ node }) => node),
    ["ada"],
  ); // the clock stands still
});

test("a node that one database has not heard of lately is there if the other has", async () => {
  const { journal, suffer } = await opened();
  suffer("refuses");
  await journal.announce(row("bob"), 10_000);
  suffer(undefined);
  await journal.announce(row("ada"), 10_000);
  deepEqual(
    (await journal.nodes()).map(({ node, alive }) => [node, alive]),
    [
      ["ada", true],
      ["bob", true],
    ],
  );
});

test("the feature level is the lowest of all databases, also of one that cannot be asked", async () => {
  const { journal, suffer } = await opened();
  await journal.announce(row("ada", 3), 10_000);
  suffer("refuses");
  equal(await journal.raiseFeatureLevel(), 0, "the other may be at the lowest");
  suffer(undefined);
  equal(await journal.raiseFeatureLevel(), 3);
  suffer("refuses");
  equal(await journal.raiseFeatureLevel(), 3, "it never falls");
});

test("a node starts while a database is away, and opens it when it is back", async () => {
  const { connect, suffer } = twoDatabases();
  suffer("refuses");
  const journal = connect();
  deepEqual(await journal.open({ shards: 8, clusterId: "two" }), { clusterId: "two", shards: 8, featureLevel: 0 });
  const two = await own(journal, 2);
  deepEqual((await journal.append([batch(2, two, 1)])).outcomes, ["appended"]);
  await faults(journal.tail(5), "unavailable");
  suffer(undefined);
  const five = await own(journal, 5);
  deepEqual((await journal.append([batch(5, five, 1)])).outcomes, ["appended"]);
});

test("with all databases away nothing is opened", async () => {
  const { connect, suffer, stores } = twoDatabases();
  suffer("refuses");
  const journal = partitionedJournal({
    databases: [0, 1].map(() => troubled(stores[0].connect(), () => "refuses")),
    clock,
  });
  await faults(journal.open({ shards: 8, clusterId: "two" }), "unavailable");
  equal((await connect().open({ shards: 8, clusterId: "two" })).shards, 8);
});

test("a list of jobs is of all databases or fails: a part would look like the whole", async () => {
  const { journal, suffer } = await opened();
  deepEqual((await journal.history.jobs({ limit: 10 })).jobs, []);
  suffer("refuses");
  await faults(journal.history.jobs({ limit: 10 }), "unavailable");
});

test("says which database does not answer", async () => {
  const { journal, suffer } = await opened();
  suffer("refuses");
  const { kind, notes } = await journal.describe();
  equal(kind, "2 databases of memory");
  match(notes.join("\n"), /database 2 of 2: it does not answer/);
});

test("databases of different clusters are refused", async () => {
  const [left, right] = [memoryStore(() => 1).connect(), memoryStore(() => 1).connect()];
  await right.open({ shards: 8, clusterId: "other 2/2" });
  const journal = partitionedJournal({ databases: [left, right], clock });
  await faults(journal.open({ shards: 8, clusterId: "one" }), "invalid");
});

test("a database in another place than it was created for is refused", async () => {
  const { stores, journal } = await opened();
  const connect = (...order: number[]) =>
    partitionedJournal({ databases: order.map((i) => (stores[i] ?? memoryStore(() => 1)).connect()), clock });
  const swapped = connect(1, 0);
  await rejects(swapped.open({ shards: 8, clusterId: "two" }), /keeps its place in journal.servers/);
  await rejects(connect(0, 1, 2).open({ shards: 8, clusterId: "two" }), /createdAs=1\/2/);
  const alone = memoryStore(() => 1);
  await alone.connect().open({ shards: 8, clusterId: "two" });
  const grown = partitionedJournal({ databases: [alone.connect(), memoryStore(() => 1).connect()], clock });
  await rejects(grown.open({ shards: 8, clusterId: "two" }), /createdAs=1\/1/);
  equal((await journal.cluster()).clusterId, "two");
});
