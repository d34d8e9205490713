/** The composition root: a configuration becomes a running node. */
import type { Fault } from "#base/fault.ts";
import type { LoginLink } from "#edge/identity/login.ts";
import type { Journal } from "#journal/journal.ts";
import type { WorkClient } from "#shard/client/client.ts";
import type { Node } from "#shard/node.ts";
import type { Worker } from "#worker/worker.ts";
import type { RunningMesh } from "./mesh.ts";
import type { Config } from "#app/config/config.ts";
import { doors as allDoors } from "#app/doors.ts";
import { publishAddress, type DataFolder } from "#app/node/data-folder.ts";
import { Drain, type DrainPorts } from "#app/node/drain.ts";
import { asSystemFault } from "#app/node/system-faults.ts";
import { systemClock } from "#door/system-clock.ts";
import { openGround, type ComposePorts, type StartPorts } from "./ground.ts";
import { joinMesh, serveEdge } from "./serving.ts";
import { startWorking } from "./working.ts";

export type Running = {
  readonly name: string;
  readonly node: Node;
  readonly client: WorkClient;
  readonly worker: Worker | undefined;
  readonly journal: Journal;
  readonly labels: readonly string[];
  /** The edge's ports; empty if there is no edge. */
  readonly edgePorts: readonly number[];
  readonly edgeAddresses: readonly string[];
  /** The token of the data folder. */
  readonly owner: string;
  /** A one-time link that signs a browser in as the operator; undefined if there is no edge. */
  loginLink(): Promise<LoginLink | undefined>;
  readonly mesh: RunningMesh | undefined;
  /** Takes the node out of service gracefully; `left` resolves when it should be stopped. */
  readonly drain: Drain;
  /** Resolves when its folder was removed while it ran: it is not ready then, and must be stopped. */
  readonly lost: Promise<Fault>;
  /** Lets running work continue for the configured time, hands the shards over, closes everything. */
  stop(): Promise<void>;
};

export async function startNode(
  config: Config,
  folder: DataFolder,
  { clock = systemClock, doors = allDoors, ...ports }: ComposePorts,
): Promise<Running> {
  try {
    return await started(config, folder, { ...ports, clock, doors });
  } catch (error) {
    throw asSystemFault(error, "start the node");
  }
}

async function started(config: Config, folder: DataFolder, ports: StartPorts): Promise<Running> {
  const { clock, log } = ports;
  await using undo = new AsyncDisposableStack();
  const ground = await openGround(config, folder, ports, undo);
  const working = await startWorking(ground, undo);
  const { node, client, worker, labels } = working;
  const drain = drainOf(node, { clock, worker: () => worker, log });
  const edge = await serveEdge(ground, working, drain, undo);
  const mesh = await joinMesh(ground, working, edge, undo);
  const local = ground.listenOn.find((address) => address.startsWith("unix:")); // tools do not know the secret
  undo.use(await publishAddress(folder, local ?? node.address));
  const { name, journal, owner, lost } = ground;
  const { ports: edgePorts = [], addresses: edgeAddresses = [] } = edge ?? {};
  const owned = undo.move();
  return {
    name,
    node,
    client,
    worker,
    journal,
    labels,
    edgePorts,
    edgeAddresses,
    owner,
    loginLink: async () => await edge?.loginLink(),
    mesh,
    drain,
    lost,
    async stop() {
      drain.begin({ withinMs: config.node.stopWithin, leave: true });
      await drain.left;
      await owned.disposeAsync();
    },
  };
}

const drainOf = (node: Node, ports: Omit<DrainPorts, "node">): Drain =>
  new Drain({
    ...ports,
    node: { leave: () => node.leave(), resume: () => node.resume(), shards: () => node.keeper.held.size },
  });
