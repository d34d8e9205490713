/** The ground of a node: its folder, journal, store, transport to other nodes, metrics and traces. */
import { randomUUID } from "node:crypto";
import type { Clock } from "#base/clock.ts";
import type { Fault } from "#base/fault.ts";
import { Random } from "#base/random.ts";
import type { Door } from "#door/door.ts";
import { Memory } from "#kernel/memory/memory.ts";
import { sharedReads } from "#records/shared-reads.ts";
import { watchedRecords } from "#records/watch.ts";
import { parseAddress } from "#shard/transport/tcp-address.ts";
import { createTcpTransport } from "#shard/transport/tcp.ts";
import { type PeersView, type RunningMesh } from "./mesh.ts";
import { openWatching } from "./watching.ts";
import { Keeps } from "#retention/keeps.ts";
import { keepPins } from "./services/retention.ts";
import { openStore } from "./store/store.ts";
import { openVaults } from "./services/vault.ts";
import { issuerNameOf } from "./services/issuer.ts";
import { Issuer } from "#issuer/issuer.ts";
import type { Config } from "#app/config/config.ts";
import { doorOfJob } from "#app/door-kinds.ts";
import { clusterSecret } from "#app/node/cluster-secret.ts";
import { folderLost, lockFolder, nodeName, watchLock, type DataFolder } from "#app/node/data-folder.ts";
import { watchJournal } from "#app/node/journal-watch.ts";
import { ownerToken } from "#app/node/owner-token.ts";
import { peerEdges } from "#app/peers/peer-edges.ts";
import { processMemory, workBytesMax } from "#app/work/work-memory.ts";
import { openJournal } from "./journal.ts";

export type ComposePorts = {
  readonly clock?: Clock;
  readonly log: (line: string) => void;
  /** The configuration's file, if there is one: it may contain secrets. */
  readonly configFile?: string | undefined;
  /** Left out: all doors of this program. */
  readonly doors?: readonly Door[];
};

export type StartPorts = ComposePorts & Required<Pick<ComposePorts, "clock" | "doors">>;

export type Ground = Awaited<ReturnType<typeof openGround>>;

/** What the other parts need: the folder, the journal, the store, the transport to other nodes, metrics and traces. */
export async function openGround(
  config: Config,
  folder: DataFolder,
  { clock, log, configFile, doors }: StartPorts,
  undo: AsyncDisposableStack,
) {
  const listenOn = config.node.listen.map((address) => (address === "unix" ? `unix:${folder.socket}` : address));
  for (const address of listenOn) parseAddress(address); // checked before anything is written
  const lost = Promise.withResolvers<Fault>();
  const lock = undo.use(await lockFolder(folder));
  undo.use(watchLock(lock, folder, clock, lost.resolve));
  const name = await nodeName(folder, config.node.name);
  const owner = await ownerToken(folder);
  const random = new Random(randomUUID());
  const journal = await openJournal(config, folder, clock);
  undo.defer(() => journal.close());
  undo.use(watchJournal(journal, { clock, log }));
  const records = watchedRecords(sharedReads(journal.records), clock);
  const shared = await clusterSecret(config.cluster.secretFile);
  const vaults = openVaults(config, folder, { records, clock, secret: shared });
  const issuer = new Issuer({ name: issuerNameOf(config), vault: vaults.system, clock });
  const mesh: { joined?: RunningMesh } = {}; // the edge and the mesh refer to each other
  const peers = (): PeersView | undefined => mesh.joined?.peers();
  const otherEdges = () => peerEdges(peers(), config.cluster.name, config.edge.tls !== undefined, config.node.region);
  const onLost = (path: string): void => lost.resolve(folderLost(path));
  const stored = await openStore(config, folder, { clock, log, onLost, peers: otherEdges });
  undo.defer(() => stored.close());
  const keeps = new Keeps({ records, clock, pins: keepPins(stored) });
  // A local address is not a credential: without a shared secret, TCP is for the folder's owner alone.
  const tcp = createTcpTransport({ clock, listenOn, secret: shared ?? owner, advertise: config.node.advertise });
  undo.defer(() => tcp.close());
  const memory = new Memory(config.node.workMemoryMax ?? workBytesMax(processMemory()));
  const traceIn = (door: string, spec: string): string | undefined => doorOfJob(door, doors)?.traceIn?.(spec);
  const watching = await openWatching(config, { name, clock, random, memory, traceIn, log });
  undo.defer(() => watching.close());
  return {
    config,
    folder,
    clock,
    log,
    configFile,
    lost: lost.promise,
    name,
    owner,
    random,
    journal,
    records,
    vaults,
    keeps,
    issuer,
    mesh,
    peers,
    stored,
    listenOn,
    tcp,
    memory,
    watching,
    doors,
    leaving: new AbortController(),
    serves: {} as { origin?: string }, // known once the edge listens
  };
}
