/** pg-boss by its own batch calls: insert, fetch 500 from two loops, complete. A fresh queue each time. */
import pg from "pg";
import { loadPeer, versions } from "./install.ts";
import type { Peer } from "./peer.ts";

type Boss = {
  on(event: "error", listener: (error: Error) => void): void;
  start(): Promise<unknown>;
  stop(options: object): Promise<void>;
  createQueue(name: string): Promise<void>;
  insert(name: string, jobs: readonly object[]): Promise<unknown>;
  fetch(name: string, options: { batchSize: number }): Promise<readonly { id: string }[]>;
  complete(name: string, ids: readonly string[]): Promise<unknown>;
};
type Library = { PgBoss: new (options: object) => Boss };

const batchSize = 500;
const fetchers = 2;

export async function pgBoss(url: string): Promise<Peer> {
  const { PgBoss } = await loadPeer<Library>("pg-boss");
  const boss = new PgBoss({ connectionString: url, supervise: false, schedule: false });
  boss.on("error", () => {});
  await boss.start();
  const client = new pg.Client(url);
  await client.connect();
  let queues = 0;
  const queue = (): string => `bench-${queues}`;
  return {
    name: `pg-boss ${versions["pg-boss"]}`,
    how: `insert of 1,000; fetch ${batchSize} in ${fetchers} loops, complete as fetched; a fresh queue each round`,
    async fill(tasks) {
      queues += 1;
      await boss.createQueue(queue());
      for (let from = 0; from < tasks; from += 1_000)
        await boss.insert(
          queue(),
          Array.from({ length: Math.min(1_000, tasks - from) }, (_, i) => ({ data: { no: from + i } })),
        );
    },
    async drain(tasks) {
      // As the server does by itself within a minute. Until then it plans for an empty queue and is fifty times slower.
      await client.query("analyze");
      let done = 0;
      const startedMono = performance.now();
      const fetcher = async (): Promise<void> => {
        for (;;) {
          const jobs = await boss.fetch(queue(), { batchSize });
          if (jobs.length === 0) return;
          await boss.complete(
            queue(),
            jobs.map(({ id }) => id),
          );
          done += jobs.length;
        }
      };
      await Promise.all(Array.from({ length: fetchers }, fetcher));
      if (done !== tasks) throw new Error(`pg-boss completed ${done} of ${tasks}`);
      return performance.now() - startedMono;
    },
    async close() {
      await client.end();
      await boss.stop({ graceful: false });
    },
  };
}
