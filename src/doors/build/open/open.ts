/** The door on a node: its caches, the execution of actions, builds, and what workers do for them. */
import { formatTask } from "#base/ids.ts";
import type { OpenDoor } from "#door/door.ts";
import type { DoorPorts } from "#door/ports.ts";
import { assetSettingsDefault } from "#doors/build/assets/asset-download.ts";
import { buildsDoor, planLabel } from "#doors/build/builds/plan-build.ts";
import { BuildsService } from "#doors/build/builds/service.ts";
import { TenantTrees } from "#doors/build/cache/tenant-trees.ts";
import { TrustRules } from "#doors/build/cache/trust-rules.ts";
import type { BuildConfig } from "#doors/build/config.ts";
import type { ExecutionPorts } from "#doors/build/execute/execution-ports.ts";
import { actionPrinted } from "#doors/build/execute/printed.ts";
import { FlightDesk } from "#doors/build/execute/flight-desk.ts";
import { buildPublisher } from "#doors/build/execute/publish.ts";
import { spoolIn } from "#blobs/spool.ts";
import { door, taskLabel } from "#doors/build/plan.ts";
import { serveBuild, type ServedPorts } from "#doors/build/serve.ts";
import { Seen } from "#doors/build/why/seen.ts";
import { grpcCallers } from "./callers.ts";
import { desks, flightCalls } from "./flight-calls.ts";
import { openHttp } from "./http.ts";
import { assetSettings, buildSettings, executionSettings } from "./settings.ts";
import { toolMetrics } from "./tool-metrics.ts";
import { openWork } from "./work.ts";

export async function openBuild(ports: DoorPorts, config: BuildConfig): Promise<OpenDoor> {
  const { node, clock, stored, peers, place } = ports;
  const trees = new TenantTrees();
  const seen = new Seen({ index: stored.index, wallMs: () => clock.wallMs() });
  // One of each for all services: they remember what they read.
  const trust = new TrustRules(stored.index);
  const desk = new FlightDesk(clock);
  const deskFor = desks({ name: node, desk }, peers);
  const boxed = place?.boxed;
  const settings = executionSettings(config, ports.labels);
  const work = boxed && openWork(ports, boxed, { trees, trust, seen, deskFor, settings });
  const execution = config.execute ? executionPorts(ports, trees, settings) : undefined;
  const { store } = stored.counted("build");
  const builds = execution && new BuildsService({ store, clock, settings: buildSettings(config), execution });
  const spool = spoolIn(ports.spool.folder, ports.spool.bytesMax);
  const services = { execution, builds, trust, seen, spool };
  const http = openHttp(ports, { settings: buildSettings(config), ...services });
  const published = publisher(ports);
  const printed = actionPrinted(stored.store);
  return {
    labels: work ? [taskLabel, planLabel] : [],
    facts: { actions: work ? 1 : 0 },
    ...work,
    publishers: { [door]: published, [buildsDoor]: published },
    printed: { [door]: printed, [buildsDoor]: printed },
    calls: flightCalls(desk),
    services: (server) => {
      const paths = serveBuild(server, servedPorts(ports, config, services), grpcCallers());
      return new Map(paths.map((path) => [path, "service.describe"]));
    },
    routes: http.routes,
    http: http.http,
    metrics(metrics) {
      http.metrics(metrics);
      const tools = boxed?.tools;
      if (tools) toolMetrics(metrics, () => tools.counts);
    },
  };
}

function servedPorts(
  { clock, stored, counts, warn, isThisMachineOnly }: DoorPorts,
  config: BuildConfig,
  services: Pick<ServedPorts, "execution" | "builds" | "trust" | "seen" | "spool">,
): ServedPorts {
  return {
    clock,
    store: stored.counted("build").store,
    index: stored.index,
    settings: buildSettings(config),
    assets: { ...assetSettingsDefault, ...assetSettings(config, isThisMachineOnly) },
    ...services,
    looked: (tenant, outcome) => counts.looked("build", tenant, outcome),
    report: (doing, error) => warn("build-cache-trouble", { reason: doing, error }),
  };
}

function publisher({ stored, clock, counts, log }: DoorPorts) {
  return buildPublisher({
    index: stored.index,
    wallMs: () => clock.wallMs(),
    refused: ({ door: of, shard, task }, why) => {
      counts.publicationRefused(of);
      log(`the result of ${formatTask(shard, task)} is not published: ${why}`);
    },
  });
}

function executionPorts(
  { client, node, place, live, traces, leaving, clock }: DoorPorts,
  trees: TenantTrees,
  settings: ExecutionPorts["settings"],
): ExecutionPorts {
  const here = place?.boxed ? node : undefined;
  // Workers of a pool that is named come when there is work for them.
  const hasWorkers = settings.pools.length > 0 ? () => true : workersOf({ here, client, clock });
  return { client, trees, settings, live, here, hasWorkers, traces, leaving };
}

const seenForMs = 5_000;

/** Whether actions are run at all: by this node, or by any that the journal has heard of lately. */
function workersOf({ here, client, clock }: Pick<ExecutionPorts, "here" | "client"> & Pick<DoorPorts, "clock">) {
  const isOwn = here !== undefined;
  let seen = isOwn;
  let askedMonoMs = Number.NEGATIVE_INFINITY;
  return (): boolean => {
    if (isOwn || clock.monotonicMs() - askedMonoMs < seenForMs) return seen;
    askedMonoMs = clock.monotonicMs();
    client.nodes().then(
      (all) => (seen = all.some(({ alive, facts }) => alive && facts["actions"] === 1)),
      () => {}, // the next call asks again
    );
    return seen;
  };
}
