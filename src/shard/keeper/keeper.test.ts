import { deepEqual, equal, match, ok } from "node:assert/strict";
import { describe, test } from "node:test";
import { orAborted } from "#base/calls/abort.ts";
import { must } from "#base/assert.ts";
import { featuresHere } from "#shard/features.ts";
import { commit, replyOf, Rig, submit, type TestNode } from "#shard/testing/host.ts";
import { bestFor, moveTo, nextMove, successors, toTake, toTakeSoon } from "./share.ts";
import type { ShardResponse } from "#shard/transport/protocol.ts";
import type { Transport } from "#shard/transport/transport.ts";

const cluster = { shards: 6, clusterId: "test" };
const all = [0, 1, 2, 3, 4, 5];
const served = ({ node }: TestNode): number[] =>
  [...node.host.shards.values()]
    .filter(({ phase }) => phase === "serving")
    .map(({ shard }) => shard)
    .toSorted((a, b) => a - b);

describe("the keeper", () => {
  test("takes free shards, and renews them", async () => {
    const rig = new Rig();
    const a = await (await rig.node("a", { cluster })).serving(all);
    await rig.clock.advance(60_000);
    deepEqual(served(a), all);
    ok(a.node.status().shards.every(({ epoch, phase }) => epoch === 1 && phase === "serving"));
    deepEqual(rig.reports, []);
  });

  test("shares with a node that joins, one shard at a time, without losing any", async () => {
    const rig = new Rig();
    const a = await (await rig.node("a", { cluster })).serving(all);
    const b = await rig.node("b", { cluster });
    await rig.clock.advance(10_000);
    equal(served(a).length, 3);
    equal(served(b).length, 3);
    deepEqual(
      [...served(a), ...served(b)].toSorted((one, other) => one - other),
      all,
    );
    await rig.clock.advance(30_000);
    equal(served(a).length, 3, "and leaves it at that");
  });

  test("a node that joins gets its share from the others and no shard moves twice", async () => {
    const many = { shards: 12, clusterId: "test" };
    const rig = new Rig();
    const old = [await rig.node("a", { cluster: many })];
    for (const name of ["b", "c"]) old.push(await rig.node(name, { cluster: many }));
    await rig.clock.advance(20_000);
    deepEqual(
      old.map((each) => served(each).length),
      [4, 4, 4],
    );
    const taken = old.map(({ journal }) => journal.count("acquire"));
    const joined = await rig.node("d", { cluster: many });
    await rig.clock.advance(20_000);
    deepEqual(
      [...old, joined].map((each) => served(each).length),
      [3, 3, 3, 3],
    );
    equal(joined.journal.count("acquire"), 3);
    deepEqual(
      old.map(({ journal }) => journal.count("acquire")),
      taken,
      "and nothing came back",
    );
  });

  test("takes the shards of a dead node when their leases have expired, not before", async () => {
    const rig = new Rig();
    const a = await (await rig.node("a", { cluster })).serving(all);
    const b = await rig.node("b", { cluster });
    await rig.clock.advance(10_000);
    a.node.kill();
    await rig.clock.advance(3_000);
    equal(served(b).length, 3);
    await b.serving(all, 10_000);
  });

  test("takes them when the leases end, not a round later, and has read their logs by then", async () => {
    const rig = new Rig();
    const a = await (await rig.node("a", { cluster })).serving(all);
    const b = await rig.node("b", { cluster });
    await rig.clock.advance(10_000);
    a.node.kill();
    const read = b.journal.count("loadSnapshot");
    const rows = await rig.store.connect().ownerships();
    const leftMs = Math.min(...rows.flatMap(({ owner, remainingMs }) => (owner === "a" ? [remainingMs] : [])));
    await rig.clock.advance(leftMs - 2_800);
    equal(b.journal.count("loadSnapshot") - read, 3, "read ahead");
    await rig.clock.advance(2_700);
    equal(served(b).length, 3, "but not served");
    await b.serving(all, 200);
    equal(b.journal.count("loadSnapshot") - read, 3, "and not again");
  });

  test("a successor that hangs does not keep it from looking after its shards", async () => {
    const rig = new Rig();
    const a = await (await rig.node("a", { cluster })).serving(all);
    rig.network.set("mem://c", {
      request: () => new Promise(() => {}),
      watch: () => must<never>(undefined, "not asked"),
    });
    const sleeper = { node: "c", address: "mem://c", features: 1, state: "up", facts: {} } as const;
    await rig.store.connect().announce(sleeper, 60_000);
    await rig.clock.advance(2_000);
    const looks = a.journal.count("ownerships");
    await rig.clock.advance(8_000);
    ok(a.journal.count("ownerships") - looks >= 3, "it goes on looking");
    deepEqual(served(a), all);
  });

  test("a round does not wait for the feature level to be raised", async () => {
    const rig = new Rig();
    const a = await rig.node("a");
    a.journal.fail("raiseFeatureLevel", ...Array.from({ length: 100 }, () => "stuck" as const));
    await a.serving([0], 1_000);
    const looks = a.journal.count("ownerships");
    await rig.clock.advance(30_000);
    ok(a.journal.count("ownerships") - looks >= 10);
  });

  test("a hand-over takes well under a second, and watchers and callers hear the new address", async () => {
    const rig = new Rig();
    const a = await (await rig.node("a")).serving();
    const b = await rig.node("b");
    await rig.clock.advance(3_000);
    await a.reply(submit());
    const grant = must((await a.grants())[0], "grant");
    const startedMono = rig.clock.monotonicMs();
    ok(await a.node.handOver(0, "b"));
    deepEqual(await a.query({ kind: "stats" }), { kind: "not-owner", shard: 0, hint: "mem://b" });
    await b.serving();
    const tookMs = rig.clock.monotonicMs() - startedMono;
    ok(tookMs < 300, `took ${tookMs} ms`);
    deepEqual(await b.reply(commit(grant)), { committed: true, generation: 1 });
  });

  test("a caller that follows a shard to its successor is held until it is there", async () => {
    const rig = new Rig();
    const a = await (await rig.node("a")).serving();
    const b = await rig.node("b");
    await rig.clock.advance(3_000);
    b.journal.fail("tail", "late");
    const moving = a.node.handOver(0, "b"); // b reads ahead, and is slow
    await rig.clock.advance(100);
    const early = b.query({ kind: "stats" });
    await rig.clock.advance(100);
    b.journal.deliver();
    ok(await moving);
    await b.serving();
    equal((await early).kind, "answer");
    equal(b.journal.count("acquire"), 1, "taken once, whoever asked for it");
  });

  test("a repeated announcement does not hold back callers of a shard that is here", async () => {
    const rig = new Rig();
    const a = await (await rig.node("a")).serving();
    void a.node.request({ kind: "take", shard: 0, when: "prepare" });
    await rig.clock.advance(50);
    let answered: ShardResponse | undefined;
    void a.ask(submit()).then((response) => (answered = response));
    await rig.clock.advance(50);
    equal(answered?.kind, "reply");
  });

  test("a successor is ready when it has also read what was written while it was reading", async () => {
    const rig = new Rig();
    const a = await (await rig.node("a")).serving();
    const b = await rig.node("b");
    await rig.clock.advance(3_000);
    await a.reply(submit());
    b.journal.fail("loadSnapshot", "late");
    const moving = a.node.handOver(0, "b");
    await rig.clock.advance(100);
    await a.reply(submit({ tasks: 3 })); // after the tail that b works with
    a.journal.fail("release", "late");
    b.journal.deliver();
    await rig.clock.advance(100);
    equal(b.journal.count("tail"), 2, "it looked for the end again, and a has let go only then");
    equal(a.node.host.shards.size, 0);
    a.journal.deliver();
    await rig.clock.advance(100);
    ok(await moving);
    equal((await b.grants()).length, 4);
  });

  test('a successor reads no other log between its "ready" and the shard\'s arrival', async () => {
    const rig = new Rig();
    const a = await (await rig.node("a", { cluster, keeper: { moveEveryMs: 1_000_000 } })).serving(all);
    const long = [submit({ tasks: 5_000 }), submit()]; // in two batches, the first a slice by itself
    for (const command of long) replyOf(await a.node.request({ kind: "command", shard: 5, command }));
    const b = await rig.node("b", { cluster });
    await rig.clock.advance(3_000);
    a.journal.fail("release", "late");
    const first = a.node.handOver(4, "b");
    await rig.clock.advance(50);
    const other = a.node.handOver(5, "b");
    await rig.clock.advance(500);
    equal(a.node.host.shards.get(5)?.phase, "serving", "b is not ready for it");
    a.journal.deliver();
    await b.serving([4, 5], 100);
    ok((await first) && (await other));
  });

  test("shards handed to one successor at the same time arrive one after the other", async () => {
    const rig = new Rig();
    const a = await (await rig.node("a", { cluster, keeper: { moveEveryMs: 1_000_000 } })).serving(all);
    const b = await rig.node("b", { cluster });
    await rig.clock.advance(3_000);
    b.journal.fail("acquire", "late");
    const moving = [a.node.handOver(4, "b"), a.node.handOver(5, "b")];
    await rig.clock.advance(500);
    deepEqual(served(a).slice(-1), [5], "still served where it was");
    b.journal.deliver();
    await b.serving([4, 5], 100);
    deepEqual(await Promise.all(moving), [true, true]);
  });

  test("reading ahead for an owner that is only late gives way to a hand-over", async () => {
    const many = { shards: 10, clusterId: "test" };
    const rig = new Rig();
    const a = await rig.node("a", { cluster: many, keeper: { moveEveryMs: 1_000_000 } });
    await a.serving(Array.from({ length: 10 }, (_, shard) => shard));
    const b = await rig.node("b", { cluster: many });
    await rig.clock.advance(2_000);
    const read = b.journal.count("loadSnapshot");
    a.journal.fail("renew", "unavailable", "unavailable", "unavailable", "unavailable", "unavailable");
    await rig.clock.advance(4_000);
    equal(b.journal.count("loadSnapshot") - read, 4, "as many as there is room for");
    const shard = must(served(a)[0], "a shard that is still there");
    ok(await a.node.handOver(shard, "b"));
    await b.serving([shard], 200);
    deepEqual(
      rig.reports.filter((report) => report.includes("exhausted")),
      [],
    );
  });

  test("hands everything over when it is stopped", async () => {
    const rig = new Rig();
    const a = await (await rig.node("a", { cluster })).serving(all);
    const b = await rig.node("b", { cluster, keeper: { moveEveryMs: 1_000_000 } });
    await rig.clock.advance(3_000);
    const stopped = a.node.stop();
    await b.serving(all, 1_000);
    await stopped;
    deepEqual(rig.reports, []);
    equal(rig.network.has("mem://a"), false);
  });

  test("hands over at most as many shards at once as its successor can prepare", async () => {
    const many = { shards: 12, clusterId: "test" };
    const shards = Array.from({ length: 12 }, (_, shard) => shard);
    const rig = new Rig();
    const a = await (await rig.node("a", { cluster: many, keeper: { moveEveryMs: 1_000_000 } })).serving(shards);
    const b = await rig.node("b", { cluster: many });
    await rig.clock.advance(3_000);
    b.journal.fail("loadSnapshot", ...shards.map(() => "late" as const));
    const stopped = a.node.stop();
    for (const _shard of shards) {
      await rig.clock.advance(100);
      b.journal.deliver();
    }
    await b.serving(shards, 100);
    await stopped;
    deepEqual(rig.reports, []);
  });

  test("a leaving node redirects callers of its shards until they are served elsewhere", async () => {
    const rig = new Rig();
    const a = await (await rig.node("a")).serving();
    const b = await rig.node("b");
    await rig.clock.advance(3_000);
    b.journal.fail("acquire", "late");
    let left = false;
    const stopped = a.node.stop().then(() => (left = true));
    await rig.clock.advance(200);
    equal(left, false);
    deepEqual(await a.query({ kind: "stats" }), { kind: "not-owner", shard: 0, hint: "mem://b" });
    b.journal.deliver();
    await b.serving([0], 100);
    await stopped;
    deepEqual(rig.reports, []);
  });

  test("a leaving node does not wait for a successor that hangs", async () => {
    const rig = new Rig();
    const ready: ShardResponse = { kind: "reply", stamp: { epoch: 0, seq: 0 }, reply: { claims: 0 } };
    const transport: Transport = {
      request: (_to, request, signal) =>
        request.kind === "take" && request.when === "prepare"
          ? Promise.resolve(ready)
          : orAborted(new Promise<never>(() => {}), signal),
      watch: () => must<never>(undefined, "not asked"),
      listen: async () => ({ address: "mem://a", close: async () => {} }),
      close: async () => {},
    };
    const a = await (await rig.node("a", { transport })).serving();
    const sleeper = { node: "c", address: "mem://c", features: 1, state: "up", facts: {} } as const;
    await rig.store.connect().announce(sleeper, 60_000);
    let left = false;
    const stopped = a.node.stop().then(() => (left = true));
    await rig.clock.advance(1_900);
    equal(left, false, "as long as the shard is kept for it");
    await rig.clock.advance(200);
    ok(left);
    await stopped;
  });

  test("a leaving node hands everything over, takes nothing, and gets its share again when it is resumed", async () => {
    const rig = new Rig();
    const a = await (await rig.node("a", { cluster })).serving(all);
    const b = await rig.node("b", { cluster });
    await rig.clock.advance(10_000);
    const left = a.node.leave();
    await b.serving(all, 1_000);
    await left;
    equal(a.node.status().state, "leaving");
    await rig.clock.advance(20_000);
    deepEqual(served(a), []);
    await a.node.resume();
    await rig.clock.advance(10_000);
    deepEqual([served(a).length, served(b).length], [3, 3]);
    deepEqual(rig.reports, []);
  });

  test("a leaving node keeps shards that no other node can take, until one comes", async () => {
    const rig = new Rig();
    const a = await (await rig.node("a", { cluster })).serving(all);
    await a.node.leave();
    await rig.clock.advance(20_000);
    deepEqual(served(a), all);
    const b = await rig.node("b", { cluster });
    await b.serving(all, 5_000);
    await a.node.stop();
    deepEqual(rig.reports, []);
  });

  test("stopped as the only node, it releases: the next node need not wait for the lease", async () => {
    const rig = new Rig();
    const a = await (await rig.node("a")).serving();
    await a.node.stop();
    const b = await rig.node("b");
    await b.serving([0], 100);
  });

  test("a shard that cannot be read back is reported and not served; the others are (OW3)", async () => {
    const rig = new Rig();
    const a = await (await rig.node("a", { cluster })).serving(all);
    await a.node.request({ kind: "command", shard: 2, command: submit() });
    a.node.kill();
    rig.store.tamper.flipRecord(2, 1, 400);
    const b = await rig.node("a", { cluster });
    await rig.clock.advance(10_000);
    deepEqual(served(b), [0, 1, 3, 4, 5]);
    const status = b.node.status().shards.find(({ shard }) => shard === 2);
    equal(status?.phase, "trouble");
    match(status?.trouble ?? "", /corrupt/);
    match(rig.reports.join("\n"), /take over shard 2.*corrupt/);
  });

  test("steps down in time when it cannot renew, and comes back", async () => {
    const rig = new Rig();
    const a = await (await rig.node("a")).serving();
    a.journal.fail("renew", ...Array.from({ length: 1_000 }, () => "unavailable" as const));
    await rig.clock.advance(5_800);
    ok((a.node.status().shards[0]?.epoch ?? 0) !== 1, "by its own clock, before the journal's lease is over");
    await rig.clock.advance(1_000);
    ok((a.node.status().shards[0]?.epoch ?? 0) > 1);
  });

  test("a renewal that never returns does not keep it from renewing", async () => {
    const rig = new Rig();
    const a = await (await rig.node("a")).serving();
    a.journal.fail("renew", "stuck");
    await rig.clock.advance(60_000);
    const [status] = a.node.status().shards;
    equal(status?.phase, "serving");
    ok((status?.epoch ?? 0) <= 2, "it stepped down once");
  });

  test("a node that lost its shard to another notices when it renews", async () => {
    const rig = new Rig();
    const a = await (await rig.node("a")).serving();
    await rig.store.connect().release(0, 1);
    await rig.store.connect().acquire(0, "z", { leaseMs: 100_000, features: featuresHere });
    await rig.clock.advance(3_000);
    equal(a.node.host.shards.size, 0);
  });
});

describe("which node should own which shard", () => {
  const node = (name: string, alive = true, state: "up" | "leaving" = "up") => ({
    node: name,
    address: name,
    features: 1,
    state,
    facts: {},
    seenAgoMs: 0,
    alive,
  });
  const owned = (owners: readonly (string | undefined)[], remainingMs = 1_000) =>
    owners.map((owner, shard) => ({ shard, epoch: 1, owner, address: owner, remainingMs: owner ? remainingMs : 0 }));
  const standing = (owners: readonly (string | undefined)[], nodes = [node("a"), node("b")], remainingMs = 1_000) => ({
    node: "a",
    held: new Set(owners.flatMap((owner, shard) => (owner === "a" ? [shard] : []))),
    ownerships: owned(owners, remainingMs),
    nodes,
  });

  test("an isolated shard gets its node, and that node gives all others away", () => {
    const three = [node("a"), node("b"), node("c")];
    const isolated = new Map([[1, "a"]]);
    const hot = { ...standing(["a", "a", "b", "b", "c", "c"], three), isolated };
    deepEqual(nextMove(hot, [0, 1]), { shard: 0, to: "b" }, "the hot shard itself stays");
    const elsewhere = { ...hot, isolated: new Map([[1, "c"]]) };
    deepEqual(nextMove(elsewhere, [0, 1]), { shard: 1, to: "c" });
    const alone = { ...standing(["b", "a", "b", "b", "c", "c"], three), isolated };
    equal(nextMove(alone, [1]), undefined);
    equal(
      toTake({ ...standing([undefined, "a", "b", "b", "c", "c"], three), isolated }).length,
      0,
      "it takes no other",
    );
    const freed = { ...standing(["b", undefined, "b", "b", "c", "c"], three), isolated };
    deepEqual(toTake(freed), [1], "nobody else takes what is its own");
    const other = { ...freed, node: "c", held: new Set([4, 5]) };
    deepEqual(toTake(other), []);
    deepEqual(toTake({ ...other, freeLooks: new Map([[1, 3]]) }), [1], "unless it stays free");
    deepEqual(successors({ ...alone, node: "b" }), ["c"]);
  });

  test("an isolation without its node, or of every node, has no effect", () => {
    const gone = { ...standing(["a", "a", "b", "b"]), isolated: new Map([[0, "z"]]) };
    equal(nextMove(gone, [0, 1]), undefined);
    const all = new Map([
      [0, "a"],
      [2, "b"],
    ]);
    const both = { ...standing(["a", "a", "b", "b"]), isolated: all };
    deepEqual(nextMove(both, [0, 1]), { shard: 1, to: "b" }, "the first one counts");
    equal(nextMove({ ...both, node: "b", held: new Set([2, 3]) }, [2, 3]), undefined);
    deepEqual(successors({ ...both, node: "b" }), ["a"], "someone must take the rest");
  });

  test("a fair share of the free shards", () => {
    equal(toTake(standing([undefined, undefined, undefined, undefined])).length, 2);
    equal(toTake(standing(["a", "a", undefined, undefined])).length, 0);
    equal(toTake(standing([undefined, undefined, undefined, undefined], [node("a"), node("b", false)])).length, 4);
    deepEqual(toTake({ ...standing(["a", "a"]), held: new Set() }), [0, 1], "what is its own already comes back first");
    equal(toTake(standing(["b", "b"], [node("a"), node("b")], -1)).length, 1, "leases that ran out");
    const silent = { ...node("b"), seenAgoMs: 5_000 };
    equal(toTake(standing(["b", "b"], [node("a"), silent], -1)).length, 2, "of one that has said nothing since");
  });

  test("shards that will be free if their owner stays silent", () => {
    deepEqual(new Set(toTakeSoon(standing(["a", "a", "b", "b"]), 2_000)), new Set([2, 3]));
    deepEqual(toTakeSoon(standing(["a", "a", "b", "b"]), 500), []);
    equal(toTakeSoon(standing(["a", "c", "b", "b"], [node("a"), node("b"), node("c")]), 2_000).length, 3);
  });

  test("a move only if it makes the shares more even", () => {
    equal(moveTo(standing(["a", "a", "a", undefined])), "b");
    equal(moveTo(standing(["a", "a", "b"])), undefined);
    const four = ["a", "b", "c", "d"].map((name) => node(name));
    equal(moveTo(standing("aaaabbbbcccc".split(""), four)), "d");
    equal(moveTo(standing("aaadbbbbcccc".split(""), four)), undefined, "the others have more than their share");
    equal(moveTo(standing(["a", "a", "a"], [node("a"), node("b", true, "leaving")])), undefined);
    deepEqual(successors(standing(["b", "c", "c"], [node("a"), node("b"), node("c")])), ["b", "c"]);
  });

  test("nodes that see the same tables want different shards, and together they want all", () => {
    const names = ["a", "b", "c", "d", "e"];
    const nodes = names.map((name) => node(name));
    const free = Array.from({ length: 64 }, () => undefined);
    const wanted = names.map((name) => toTake({ ...standing(free, nodes), node: name, held: new Set() }));
    deepEqual(
      wanted.flat().toSorted((a, b) => a - b),
      Array.from({ length: 64 }, (_, shard) => shard),
    );
    for (const each of wanted) ok(each.length <= 13, `${each.length}`);
  });

  test("a node that comes back gets the shards it had before", () => {
    const nodes = ["a", "b", "c"].map((name) => node(name));
    const free = Array.from({ length: 30 }, () => undefined);
    const before = new Set(toTake({ ...standing(free, nodes), node: "c", held: new Set() }));
    // While it was away the others had everything; now each of them gives back, one by one, what belongs to it.
    const heldByA = Array.from({ length: 15 }, (_, i) => i);
    const given: number[] = [];
    for (let i = 0; i < 5; i += 1) {
      const best = bestFor(
        "c",
        heldByA.filter((shard) => !given.includes(shard)),
      );
      if (best !== undefined) given.push(best);
    }
    const back = given.filter((shard) => before.has(shard)).length;
    ok(back >= Math.min(5, heldByA.filter((shard) => before.has(shard)).length) - 1, `${back} of ${given.join()}`);
  });

  test("a shard that stays free for a few rounds may be taken by any node", () => {
    const nodes = ["a", "b"].map((name) => node(name));
    const free = [undefined, undefined];
    const [first = [], second = []] = ["a", "b"].map((name) =>
      toTake({ ...standing(free, nodes), node: name, held: new Set() }),
    );
    equal(first.length + second.length, 2);
    const freeLooks = new Map([
      [0, 5],
      [1, 5],
    ]);
    const alone = { ...standing(free, nodes), node: "a", held: new Set<number>(), freeLooks };
    deepEqual(toTake(alone).length, 1, "as much as is its share");
    const three = toTake({ ...alone, ...standing([undefined], nodes), node: "b", held: new Set(), freeLooks });
    deepEqual(three, [0]);
  });
});
