import { deepEqual, equal, ok } from "node:assert/strict";
import { batch, only, own, scene, type MakeStore } from "./support.ts";
import type { NodeRow } from "#journal/journal.ts";

const nodeRow = (node: string, features = 1): NodeRow => ({
  node,
  address: `${node}.test:1`,
  features,
  state: "up",
  facts: { pid: 7, version: "0.1" },
});

export function exerciseLeases(makeStore: MakeStore): void {
  scene(
    makeStore,
    "J4 a held lease is not given to another node until it has expired",
    async ({ journal, node, advance }) => {
      const other = await node();
      const epoch = await own(journal, 0, "ada", 60_000);
      const held = await other.acquire(0, "grace", { leaseMs: 60_000, features: 1 });
      ok(held.kind === "held" && held.by === "ada" && held.epoch === epoch);
      ok(held.remainingMs > 0 && held.remainingMs <= 60_000);
      advance(30_000);
      deepEqual((await journal.renew("ada", [{ shard: 0, epoch }], 60_000)).held, [0]);
      advance(57_000);
      equal((await other.acquire(0, "grace", { leaseMs: 60_000, features: 1 })).kind, "held");
      advance(3_100);
      equal(await own(other, 0, "grace"), epoch + 1);
      deepEqual((await journal.renew("ada", [{ shard: 0, epoch }], 60_000)).held, []);
    },
  );

  scene(
    makeStore,
    "J4 an expired lease still belongs to its owner while no other node has taken it",
    async ({ journal, advance }) => {
      const epoch = await own(journal, 0, "ada", 1000);
      advance(5000);
      deepEqual((await journal.renew("ada", [{ shard: 0, epoch }], 1000)).held, [0]);
      equal(only(await journal.append([batch(0, epoch, 1)])), "appended");
    },
  );

  scene(makeStore, "J4 a renewal extends only the owner's own epoch", async ({ journal }) => {
    const first = await own(journal, 0, "ada");
    const second = await own(journal, 1, "ada");
    const { held } = await journal.renew(
      "ada",
      [
        { shard: 0, epoch: first },
        { shard: 1, epoch: second + 1 },
      ],
      10_000,
    );
    deepEqual(held, [0]);
    deepEqual((await journal.renew("grace", [{ shard: 0, epoch: first }], 10_000)).held, []);
    deepEqual((await journal.renew("ada", [], 10_000)).held, []);
  });

  scene(
    makeStore,
    "J4 a node that comes back under its name gets its shard at once, under a new epoch",
    async ({ journal, node }) => {
      const before = await own(journal, 0, "ada");
      const after = await own(await node(), 0, "ada");
      ok(after > before);
      equal(only(await journal.append([batch(0, before, 1)])), "fenced");
    },
  );

  scene(
    makeStore,
    "J4 release ends the lease and the epoch; only a named successor may take the shard at first",
    async ({ journal, node, advance }) => {
      const other = await node();
      const epoch = await own(journal, 0, "ada");
      await journal.release(0, epoch, { node: "grace", reservedMs: 60_000 });
      equal(only(await journal.append([batch(0, epoch, 1)])), "fenced");
      equal((await other.acquire(0, "barbara", { leaseMs: 1000, features: 1 })).kind, "refused");
      const next = await own(other, 0, "grace");
      ok(next > epoch);
      await journal.release(0, epoch);
      deepEqual(
        await other.confirm([{ shard: 0, epoch: next }]),
        [true],
        "a late release of an old epoch changes nothing",
      );
      await other.release(0, next, { node: "ada", reservedMs: 1000 });
      advance(1100);
      ok((await own(other, 0, "barbara")) > next, "a reservation does not outlive its time");
      const free = await own(journal, 1, "ada");
      await journal.release(1, free);
      ok((await own(other, 1, "barbara")) > free);
    },
  );

  scene(makeStore, "J4 of many nodes that acquire a shard at once one gets it", async ({ journal, node }) => {
    const nodes = [journal, await node(), await node()];
    for (let round = 0; round < 5; round += 1) {
      const answers = await Promise.all(
        nodes.map((each, i) => each.acquire(round, `node-${i}`, { leaseMs: 60_000, features: 1 })),
      );
      equal(answers.filter(({ kind }) => kind === "acquired").length, 1);
      equal(answers.filter(({ kind }) => kind === "held").length, 2);
    }
  });

  scene(makeStore, "ownerships show owner, address and the time left of the lease", async ({ journal, advance }) => {
    await journal.announce(nodeRow("ada"), 10_000);
    const epoch = await own(journal, 2, "ada", 60_000);
    await own(journal, 3, "grace", 60_000);
    const rows = await journal.ownerships();
    deepEqual(
      rows.map(({ shard }) => shard),
      [0, 1, 2, 3, 4, 5, 6, 7],
    );
    deepEqual(
      { ...rows[0], remainingMs: 0 },
      { shard: 0, epoch: 0, owner: undefined, address: undefined, remainingMs: 0 },
    );
    deepEqual({ ...rows[2], remainingMs: 0 }, { shard: 2, epoch, owner: "ada", address: "ada.test:1", remainingMs: 0 });
    ok((rows[2]?.remainingMs ?? 0) > 0 && (rows[2]?.remainingMs ?? 0) <= 60_000);
    equal(rows[3]?.address, undefined);
    advance(70_000);
    ok(((await journal.ownerships())[2]?.remainingMs ?? 0) < 0);
  });

  scene(makeStore, "nodes are listed while they announce themselves", async ({ journal, node, advance }) => {
    await journal.announce(nodeRow("ada"), 10_000);
    const other = await node();
    await other.announce({ ...nodeRow("grace"), state: "leaving" }, 60_000);
    advance(20_000);
    const seen = [...(await other.nodes())].sort((a, b) => a.node.localeCompare(b.node));
    deepEqual(
      seen.map(({ node: name, alive, state }) => [name, alive, state]),
      [
        ["ada", false, "up"],
        ["grace", true, "leaving"],
      ],
    );
    ok((seen[0]?.seenAgoMs ?? 0) >= 20_000);
    deepEqual(seen[0]?.facts, { pid: 7, version: "0.1" });
    await journal.announce({ ...nodeRow("ada"), address: "elsewhere:2" }, 10_000);
    const ada = (await other.nodes()).find((row) => row.node === "ada");
    ok(ada?.alive && ada.address === "elsewhere:2");
  });

  scene(
    makeStore,
    "the feature level is the lowest of all live nodes, never falls, and refuses older nodes",
    async ({ journal, advance }) => {
      equal(await journal.raiseFeatureLevel(), 0);
      await journal.announce(nodeRow("ada", 3), 10_000);
      await journal.announce(nodeRow("grace", 2), 60_000);
      equal(await journal.raiseFeatureLevel(), 2);
      equal((await journal.acquire(0, "old", { leaseMs: 1000, features: 1 })).kind, "refused");
      equal((await journal.acquire(0, "grace", { leaseMs: 1000, features: 2 })).kind, "acquired");
      await journal.announce(nodeRow("old", 1), 10_000);
      equal(await journal.raiseFeatureLevel(), 2);
      advance(70_000);
      await journal.announce(nodeRow("ada", 3), 10_000);
      equal(await journal.raiseFeatureLevel(), 3);
      equal((await journal.cluster()).featureLevel, 3);
      advance(48 * 3600_000);
      equal(await journal.raiseFeatureLevel(), 3);
      deepEqual(await journal.nodes(), [], "nodes unseen for long are forgotten");
    },
  );
}
