/** What a node lends to its doors. */
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { Fault } from "#base/fault.ts";
import type { DoorPorts, WantedToken } from "#door/ports.ts";
import { isThisMachineOnly } from "#edge/identity/identity-config.ts";
import { Log } from "#edge/log/log.ts";
import { clusterAudience } from "#issuer/grant-token.ts";
import type { Issuer } from "#issuer/issuer.ts";
import { spoolIn } from "#blobs/spool.ts";
import { Sources } from "#sources/sources.ts";
import { standingOwner, standingsIn, type Standings } from "#pools/standing.ts";
import { poolOf } from "#pools/demand.ts";
import { whyPools, type WaitingWork } from "#pools/why.ts";
import { sharedKey } from "#vault/shared-key.ts";
import type { joinNode } from "./node.ts";
import type { Place } from "./place.ts";
import type { Config } from "#app/config/config.ts";
import type { DataFolder } from "#app/node/data-folder.ts";
import { liveSource } from "#app/peers/live-streams.ts";
import type { OpenDoors } from "./doors.ts";
import type { Ground } from "./ground.ts";

/** What doors are opened with. The client and the peers answer once the node has started. */
export async function doorPorts(
  {
    config,
    folder,
    clock,
    log,
    name,
    random,
    records,
    keeps,
    vaults,
    stored,
    tcp,
    watching,
    leaving,
    serves,
    issuer,
  }: Ground,
  { node, client }: Pick<ReturnType<typeof joinNode>, "node" | "client">,
  place: Place | undefined,
  undo: AsyncDisposableStack,
  /** Known once all doors are open. */
  opened: () => Pick<OpenDoors, "calls">,
): Promise<DoorPorts> {
  const { metrics, calls, watch } = watching;
  const doorLog = undo.use(new Log((line) => log(line.trimEnd()), clock));
  const { blobs, store, index, upkeep, streams } = stored;
  const spool = { folder: await spoolFolder(folder), bytesMax: spoolBytesMax(config) };
  const { protocols, privateAddresses, pushMax } = config.sources;
  const sources = new Sources({
    node: name,
    folder: folder.path,
    records,
    store,
    spool: spoolIn(spool.folder, spool.bytesMax),
    clock,
    rules: { protocols, privateAddresses },
    pushBytesMax: pushMax,
    others: {
      addressOf: (id) => node.keeper.nodes.find((one) => one.node === id && one.alive)?.address,
      call: (address, method, body, signal) => tcp.call(address, method, body, signal),
    },
  });
  sources.announceMissed().catch((error: unknown) => doorLog.warn("sources-announce-failed", { error }));
  return {
    node: name,
    clock,
    random: random.fork("doors"),
    log,
    warn: (event, fields) => doorLog.warn(event, fields),
    client,
    peers: {
      nodes: () => node.keeper.nodes,
      call: (address, method, body, signal) => tcp.call(address, method, body, signal),
    },
    ask: async (method, body) => {
      const call = opened().calls[method];
      if (!call) throw new Fault("not-found", "ask a door", { method, why: "no door of this node answers it" });
      return await call(body, leaving.signal);
    },
    stored: { blobs, store, index, upkeep, streams, counted: (door) => metrics.countedFor({ store, index }, door) },
    records,
    keeps,
    vault: vaults.secrets,
    keyOf: (key) => sharedKey(vaults.system, key),
    issue: (wanted) => issueOutside(issuer, wanted),
    dataFolder: folder.path,
    sources,
    spool,
    live: liveSource({ name, streams, areShared: stored.areStreamsShared ?? false }, node, tcp),
    origin: () => serves.origin,
    place,
    labels: config.worker.labels,
    traces: calls,
    poolOf: (work) => poolOf(config.pools, work),
    pools: (waiting) => askPools(config.pools, standingsIn(records), waiting),
    watch,
    counts: {
      looked: (door, tenant, outcome) => metrics.stored.looked(door, tenant, outcome),
      publicationRefused: (door) => metrics.work.publicationRefused(door),
    },
    isThisMachineOnly: isThisMachineOnly(config.edge.identity),
    leaving: leaving.signal,
  };
}

async function askPools(pools: Config["pools"], standings: Standings, waiting: WaitingWork) {
  const all = await Promise.all(pools.map(async ({ name }) => await standings.read(standingOwner, name)));
  const known = new Map(all.flatMap((one) => (one ? [[one.name, one.value] as const] : [])));
  return whyPools(pools, known, waiting);
}

/** What a door has signed says who a task is, to others; it is no key to this cluster. */
async function issueOutside(issuer: Pick<Issuer, "issue">, { claims, ...wanted }: WantedToken): Promise<string> {
  if (wanted.audience === clusterAudience || Object.hasOwn(claims, "millrace"))
    throw new Fault("invalid", "issue a token for others", { why: `the audience ${clusterAudience} is this cluster` });
  return (await issuer.issue({ ...wanted, claims })).token;
}

/** For uploads whose digest is not known yet; nothing in it survives the process. */
export async function spoolFolder({ path }: DataFolder): Promise<string> {
  const folder = join(path, "spool");
  await mkdir(folder, { recursive: true, mode: 0o700 });
  return folder;
}

/** They are on the same disk as the store, which should not evict blobs for unfinished uploads. */
export const spoolBytesMax = ({ blobs }: Config): number =>
  blobs.kind === "disk" ? Math.max(64 * 1024 ** 2, Math.floor(blobs.sizeMax / 4)) : 16 * 1024 ** 3;
