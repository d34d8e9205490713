/** An executor in a separate process: the real worker, which knows only the nodes' addresses. */
import { Random } from "#base/random.ts";
import { openSharedDirectory } from "#blobs/tiers/shared-directory.ts";
import { systemClock } from "#door/system-clock.ts";
import { createWorker } from "#worker/create-worker.ts";
import { AttemptLog } from "./attempts.ts";
import { createEdge, edgeClient } from "./edge.ts";
import { chaosPlanners, chaosRunners, label } from "./work.ts";

export type WorkerSettings = {
  readonly name: string;
  readonly addresses: readonly string[];
  readonly shards: number;
  readonly slots: number;
  readonly blobsFolder: string;
  readonly attemptsFolder: string;
};

async function main(): Promise<void> {
  const settings = JSON.parse(process.argv[2] ?? "{}") as WorkerSettings;
  const { name, shards, slots } = settings;
  const random = new Random(`${name} ${process.pid}`);
  const edge = createEdge({ clock: systemClock, random, addresses: () => settings.addresses, tryMs: 2_000 });
  const client = edgeClient(edge, shards, random);
  const log = new AttemptLog(settings.attemptsFolder, `${name}-${process.pid}`);
  const worker = createWorker({
    client: {
      ...client,
      async commit(claim, result, options) {
        const committed = await client.commit(claim, result, options);
        if (committed) log.add("acknowledged", claim);
        return committed;
      },
    },
    blobs: await openSharedDirectory(settings.blobsFolder, systemClock),
    clock: systemClock,
    random,
    executor: name,
    offers: [label],
    shards,
    sources: edge.sources,
    runners: chaosRunners(log),
    planners: chaosPlanners,
    options: { slots },
    log: (line) => console.log(line),
  });
  const stop = new AbortController();
  process.on("SIGTERM", () => stop.abort(new Error("told to stop")));
  await worker.run(stop.signal);
  await edge.close();
}

if (import.meta.main) await main();
