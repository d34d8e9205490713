/** The smallest program around a node: only what it takes to own shards and to answer for all of them. */
import { Random } from "#base/random.ts";
import { openDiskBlobs } from "#blobs/disk.ts";
import { systemClock } from "#app/system-clock.ts";
import { postgresJournal } from "#journal/postgres.ts";
import { createNode } from "#shard/node.ts";
import { createRouter } from "#shard/router.ts";
import { createTcpTransport } from "#shard/tcp.ts";

export type NodeSettings = {
  readonly name: string;
  readonly address: string;
  readonly database: string;
  readonly shards: number;
  readonly leaseMs: number;
  readonly blobsFolder: string;
};

async function main(): Promise<void> {
  const { name, address, database, shards, leaseMs, blobsFolder } = JSON.parse(process.argv[2] ?? "{}") as NodeSettings;
  const clock = systemClock;
  const random = new Random(`${name} ${process.pid}`);
  const journal = postgresJournal({ url: database });
  const transport = createTcpTransport({ clock, listenOn: [address] });
  const router = createRouter({
    self: {
      request: (request, signal) => node.request(request, signal),
      watch: (request, signal) => node.watch(request, signal),
    },
    selfAddress: address,
    ownerships: () => journal.ownerships(),
    transport,
    clock,
    random,
  });
  const node = createNode({
    id: name,
    clock,
    journal,
    blobs: await openDiskBlobs(blobsFolder),
    random,
    transport: {
      ...transport,
      listen: (service) =>
        transport.listen(service, {
          routed: {
            request: (request, signal) => router.request(request, signal ? { signal } : {}),
            watch: (request, signal) => router.watch(request, signal),
          },
        }),
    },
    cluster: { shards, clusterId: "chaos" },
    keeper: { leaseMs },
    report: (doing, error) => console.log(new Date().toISOString(), doing, String(error)),
  });
  await node.start();
  console.log("ready");
  process.on("SIGTERM", () => void node.stop().then(() => process.exit(0)));
}

if (import.meta.main) await main();
