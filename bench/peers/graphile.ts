/** graphile-worker as its own page on performance runs it: worker.graphile.org/docs/performance. */
import { loadPeer, versions } from "./install.ts";
import { inThousands, type Peer } from "./peer.ts";

type Library = {
  readonly run: (options: object) => Promise<{ stop(): Promise<void> }>;
  readonly makeWorkerUtils: (options: object) => Promise<{
    migrate(): Promise<void>;
    addJobs(jobs: readonly { identifier: string; payload: object }[]): Promise<unknown>;
    withPgClient<T>(run: (client: { query(text: string): Promise<{ rows: T[] }> }) => Promise<T[]>): Promise<T[]>;
    release(): Promise<void>;
  }>;
};

export async function graphileWorker(url: string): Promise<Peer> {
  const { run, makeWorkerUtils } = await loadPeer<Library>("graphile-worker");
  const logger = { scope: () => logger, error() {}, warn() {}, info() {}, debug() {} };
  const worker = {
    connectionString: url,
    concurrentJobs: 24,
    maxPoolSize: 25,
    localQueue: { size: 500 },
    completeJobBatchDelay: 0,
    failJobBatchDelay: 0,
    logger,
  };
  const utils = await makeWorkerUtils({ preset: { worker } });
  await utils.migrate();
  return {
    name: `graphile-worker ${versions["graphile-worker"]}`,
    how: "addJobs of 1,000; concurrentJobs 24, localQueue 500, completeJobBatchDelay 0",
    async fill(tasks) {
      await inThousands(
        tasks,
        (no) => ({ identifier: "noop", payload: { no } }),
        (jobs) => utils.addJobs(jobs),
      );
    },
    async drain(tasks) {
      let done = 0;
      let startedMono = 0;
      const all = Promise.withResolvers<void>();
      const noop = (): void => {
        if (done === 0) startedMono = performance.now();
        done += 1;
        if (done === tasks) all.resolve();
      };
      const runner = await run({ preset: { worker }, noHandleSignals: true, taskList: { noop: async () => noop() } });
      await all.promise;
      await runner.stop(); // waits until all of them are marked as done
      const tookMs = performance.now() - startedMono;
      const left = await utils.withPgClient<{ count: string }>(
        async (client) => (await client.query("select count(*) from graphile_worker.jobs")).rows,
      );
      if (left[0]?.count !== "0") throw new Error(`graphile-worker left ${left[0]?.count} jobs`);
      return tookMs;
    },
    close: () => utils.release(),
  };
}
