// What one database of several costs when it is lost: its own shards, until it is back, and nothing else.
import { deepEqual, equal, ok } from "node:assert/strict";
import { after, describe, test } from "node:test";
import { Random } from "#base/random.ts";
import { createMemoryBlobs } from "#blobs/memory/memory.ts";
import type { Journal } from "#journal/journal.ts";
import { memoryStore } from "#journal/memory/memory.ts";
import { partitionedJournal } from "#journal/partitioned.ts";
import { postgresJournal } from "#journal/postgres/postgres.ts";
import type { Answers } from "#kernel/read/query.ts";
import { startPostgres } from "#testing/postgres.ts";
import { realClock as clock } from "#testing/real-clock.ts";
import { until } from "#testing/until.ts";
import { createNode, type Node } from "./node.ts";
import { createRouter, type Router } from "./router/router.ts";
import { FlakyJournal, Rig, submit } from "./testing/host.ts";
import { MemoryNetwork } from "./transport/memory.ts";

const shards = 8;
const leaseMs = 3_000;
const all = Array.from({ length: shards }, (_, shard) => shard);
const [left, right] = [all.filter((shard) => shard % 2 === 0), all.filter((shard) => shard % 2 === 1)];

const [first, second] = await Promise.all([startPostgres(), startPostgres()]);
const skip = first.skip !== false ? first.skip : second.skip;
after(() => Promise.all([first.stop(), second.stop()]));

type Acknowledged = { readonly key: string; readonly job: number };

/** Submits job after job to each shard, and keeps what was acknowledged. */
class Callers {
  readonly acknowledged = new Map<number, Acknowledged[]>(all.map((shard) => [shard, []]));
  readonly #router: Router;
  readonly #stop = new AbortController();
  readonly #running: Promise<void>[];

  constructor(router: Router) {
    this.#router = router;
    this.#running = all.map((shard) => this.#call(shard));
  }

  count(shard: number): number {
    return this.acknowledged.get(shard)?.length ?? 0;
  }

  /** Resolves when each of the shards has acknowledged so many more. */
  async more(of: readonly number[], count: number, what: string): Promise<void> {
    const goals = of.map((shard) => [shard, this.count(shard) + count] as const);
    await until(what, () => goals.every(([shard, goal]) => this.count(shard) >= goal), { limitMs: 60_000 });
  }

  async stop(): Promise<void> {
    this.#stop.abort(new Error("enough"));
    await Promise.all(this.#running);
  }

  async submitted(shard: number, key: string, signal?: AbortSignal): Promise<number> {
    const request = { kind: "command", shard, command: submit({ requestKey: key }) } as const;
    const response = await this.#router.request(request, { deadlineMs: 60_000, ...(signal && { signal }) });
    if (response.kind !== "reply" || !("job" in response.reply)) throw new Error(JSON.stringify(response));
    return response.reply.job;
  }

  async #call(shard: number): Promise<void> {
    const { signal } = this.#stop;
    for (let i = 0; !signal.aborted; i += 1) {
      const key = `${shard}-${i}`;
      const job = await this.submitted(shard, key, signal).catch((error: unknown) => {
        if (signal.aborted) return undefined;
        throw error;
      });
      if (job !== undefined) this.acknowledged.get(shard)?.push({ key, job });
      await clock.sleep(10);
    }
  }
}

async function fleet(urls: readonly string[]) {
  const network = new MemoryNetwork();
  const journals: Journal[] = [];
  const connect = (): Journal => {
    const databases = urls.map((url) => postgresJournal({ url }));
    const journal = partitionedJournal({ databases, clock });
    journals.push(journal);
    return journal;
  };
  const start = async (id: string): Promise<Node> => {
    const node = createNode({
      id,
      clock,
      journal: connect(),
      blobs: createMemoryBlobs({ clock, sizeBytesMax: 1 << 24 }),
      random: new Random(id),
      transport: network.transportAt(`mem:${id}`),
      cluster: { shards, clusterId: "two" },
      keeper: { leaseMs },
    });
    await node.start();
    return node;
  };
  const nodes = await Promise.all(["a", "b"].map(start));
  const journal = connect();
  const transport = network.transportAt("mem:caller");
  const router = createRouter({ ownerships: () => journal.ownerships(), transport, clock, random: new Random(1) });
  const close = async (): Promise<void> => {
    await Promise.all(nodes.map((node) => node.stop()));
    await Promise.all(journals.map((each) => each.close()));
  };
  return { nodes, journal, router, start, close };
}

const served = (nodes: readonly Node[]): ReadonlySet<number> =>
  new Set(
    nodes.flatMap(({ host }) => [...host.shards.values()].flatMap((s) => (s.phase === "serving" ? s.shard : []))),
  );

describe("a journal in two databases", () => {
  async function scene() {
    const rig = new Rig();
    const [here, there] = [rig.store.connect(), memoryStore(() => rig.clock.wallMs()).connect()];
    const flaky = new FlakyJournal(there, rig.clock);
    const journal = partitionedJournal({ databases: [here, flaky.asJournal], clock: rig.clock });
    const a = await rig.node("a", { journal, cluster: { shards: 2, clusterId: "two" }, keeper: { leaseMs } });
    await a.serving([0, 1]);
    const kinds: string[] = [];
    const order = (shard: number): void =>
      void a.node
        .request({ kind: "command", shard, command: submit() })
        .then((response) => kinds.push(`${shard} ${response.kind}`));
    return { rig, a, flaky, kinds, order };
  }

  test("an append that hangs holds up the shards of its own database only", async () => {
    const { rig, flaky, kinds, order } = await scene();
    flaky.fail("append", "late");
    order(1);
    await rig.clock.advance(100);
    order(0);
    await rig.clock.advance(100);
    deepEqual(kinds, ["0 reply"]);
    flaky.deliver();
    await rig.clock.advance(100);
    deepEqual(kinds, ["0 reply", "1 reply"]);
  });

  test("while one does not answer at all the leases in the other are renewed, and its own run out", async () => {
    const { rig, a, flaky, kinds, order } = await scene();
    const epoch = a.node.keeper.held.get(0)?.epoch;
    const hung = Array.from({ length: 1_000 }, () => "stuck" as const);
    for (const op of ["renew", "announce", "nodes", "ownerships", "append", "acquire", "tail"] as const)
      flaky.fail(op, ...hung);
    await rig.clock.advance(5 * leaseMs);
    deepEqual([...a.node.keeper.held.keys()], [0]);
    equal(a.node.keeper.held.get(0)?.epoch, epoch);
    order(0);
    await rig.clock.advance(100);
    deepEqual(kinds, ["0 reply"]);
    equal(a.node.keeper.reach(2).reachable, 1);
  });
});

describe("a journal in two PostgreSQL servers", { skip }, () => {
  test("one is killed: the other's shards go on, its own come back with it, nothing is lost", async () => {
    const urls = await Promise.all([first.server().freshDatabase(), second.server().freshDatabase()]);
    const { nodes, journal, router, start, close } = await fleet(urls);
    await until("all shards are served", () => served(nodes).size === shards, { limitMs: 60_000 });
    const callers = new Callers(router);
    await callers.more(all, 3, "every shard acknowledged something");
    const before = await journal.ownerships();

    await second.server().stop("kill");
    await callers.more(left, 20, "the shards of the server that lives went on at once");
    await until("the others were given up", () => right.every((shard) => !served(nodes).has(shard)), {
      limitMs: 60_000,
    });
    await callers.more(left, 20, "the shards of the server that lives went on after that");
    const during = await journal.ownerships();
    for (const shard of left) equal(during[shard]?.epoch, before[shard]?.epoch, `shard ${shard} was never let go of`);
    ok(right.every((shard) => during[shard]?.unseen));
    const late = await start("late");
    equal(late.cluster.shards, shards, "a node can start meanwhile");
    nodes.push(late);

    await second.server().start();
    await callers.more(right, 5, "the shards of the killed server came back");
    await callers.stop();
    for (const shard of all) await checkShard(shard);
    await close();

    async function checkShard(shard: number): Promise<void> {
      const acknowledged = callers.acknowledged.get(shard) ?? [];
      equal(new Set(acknowledged.map(({ job }) => job)).size, acknowledged.length);
      for (const { key, job } of acknowledged)
        equal(await callers.submitted(shard, key), job, "K1: the same job again");
      const query = { kind: "query", shard, query: { kind: "jobs", limit: 1_000 } } as const;
      const listed = await router.request(query);
      if (listed.kind !== "answer") throw new Error(JSON.stringify(listed));
      const known = new Set((listed.answer as Answers["jobs"]).jobs.map(({ job }) => job));
      deepEqual(
        acknowledged.filter(({ job }) => !known.has(job)),
        [],
      );
    }
  });
});
