/**
 * pg-boss, a fresh queue each time, in two modes. As its workers do when each job has a result: batches of 500, each
 * settled by one statement with the results. And by plain fetch and complete, which store none.
 */
import { createHash } from "node:crypto";
import pg from "pg";
import { loadPeer, versions } from "./install.ts";
import { inThousands, type Peer } from "./peer.ts";

type Job = { readonly id: string };
type Boss = {
  on(event: "error", listener: (error: Error) => void): void;
  start(): Promise<unknown>;
  stop(options: object): Promise<void>;
  createQueue(name: string): Promise<void>;
  insert(name: string, jobs: readonly object[]): Promise<unknown>;
  fetch(name: string, options: { batchSize: number }): Promise<readonly Job[]>;
  complete(name: string, ids: readonly string[]): Promise<unknown>;
  work(name: string, options: object, run: (jobs: readonly Job[]) => Promise<readonly object[]>): Promise<string>;
  offWork(name: string, options: { wait: boolean }): Promise<void>;
};
type Library = { PgBoss: new (options: object) => Boss };
type Way = {
  readonly name: string;
  readonly how: string;
  drain(boss: Boss, queue: string, tasks: number): Promise<void>;
};

const batchSize = 500;
const fetchers = 2;

/** As large as what ours commits: a payload and three digests. */
const digests = Array.from({ length: 300 }, (_, no) => `${createHash("sha256").update(`${no}`).digest("hex")}/1000`);
const outputOf = (no: number): object => ({ payload: "0 exit", digests: digests.slice(no % 298, (no % 298) + 3) });

const withResults: Way = {
  name: "pg-boss",
  how: `insert of 1,000; work with batchSize ${batchSize}, localConcurrency ${fetchers}, burstWhenBatchFull, perJobResults`,
  async drain(boss, queue, tasks) {
    let done = 0;
    const all = Promise.withResolvers<void>();
    const options = { batchSize, localConcurrency: fetchers, burstWhenBatchFull: true, perJobResults: true };
    await boss.work(queue, options, async (jobs) => {
      const results = jobs.map(({ id }, no) => ({ id, status: "completed", output: outputOf(done + no) }));
      done += jobs.length;
      if (done >= tasks) all.resolve();
      return results;
    });
    await all.promise;
    await boss.offWork(queue, { wait: true }); // until the last batch is settled
  },
};

const withoutResults: Way = {
  name: "pg-boss, no results",
  how: `insert of 1,000; fetch ${batchSize} in ${fetchers} loops, complete as fetched, which keeps no result`,
  async drain(boss, queue) {
    const fetcher = async (): Promise<void> => {
      for (;;) {
        const jobs = await boss.fetch(queue, { batchSize });
        if (jobs.length === 0) return;
        await boss.complete(
          queue,
          jobs.map(({ id }) => id),
        );
      }
    };
    await Promise.all(Array.from({ length: fetchers }, fetcher));
  },
};

export const pgBossWays = { withResults, withoutResults } as const;

export async function pgBoss(url: string, way: Way): Promise<Peer> {
  const { PgBoss } = await loadPeer<Library>("pg-boss");
  const boss = new PgBoss({ connectionString: url, supervise: false, schedule: false });
  boss.on("error", () => {});
  await boss.start();
  const client = new pg.Client(url);
  await client.connect();
  let queues = 0;
  const queue = (): string => `bench-${queues}`;
  const completed = async (): Promise<number> => {
    const text = "select count(*)::int as count from pgboss.job where name = $1 and state = 'completed'";
    return (await client.query<{ count: number }>(text, [queue()])).rows[0]?.count ?? 0;
  };
  return {
    name: `${way.name} ${versions["pg-boss"]}`,
    how: `${way.how}; a fresh queue each round`,
    async fill(tasks) {
      queues += 1;
      await boss.createQueue(queue());
      await inThousands(
        tasks,
        (no) => ({ data: { no } }),
        (jobs) => boss.insert(queue(), jobs),
      );
    },
    async drain(tasks) {
      // As the server does by itself within a minute. Until then it plans for an empty queue and is fifty times slower.
      await client.query("analyze");
      const startedMono = performance.now();
      await way.drain(boss, queue(), tasks);
      const tookMs = performance.now() - startedMono;
      const done = await completed();
      if (done !== tasks) throw new Error(`pg-boss completed ${done} of ${tasks}`);
      return tookMs;
    },
    async close() {
      await client.end();
      await boss.stop({ graceful: false });
    },
  };
}
