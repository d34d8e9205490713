/** The build cache behind the edge: who calls is the edge's word, what they may do is its policy table. */
import { tmpdir } from "node:os";
import type { Clock } from "#base/clock.ts";
import type { ActionIndex } from "#blobs/action-index.ts";
import type { Store } from "#blobs/store.ts";
import { assetSettingsDefault, type AssetSettings } from "#doors/build/assets/asset-download.ts";
import type { AssetPorts } from "#doors/build/assets/assets.ts";
import { buildCaller, nobody, type BuildCaller } from "#doors/build/caller.ts";
import { spoolIn, type Spool } from "#doors/build/http/spool.ts";
import type { ExecutionPorts } from "#doors/build/execute/execution-ports.ts";
import { executionSettingsDefault, type ExecutionSettings } from "#doors/build/execute/execution-settings.ts";
import { serveBuild, type ServedPorts } from "#doors/build/serve.ts";
import { buildSettingsDefault, type BuildSettings } from "#doors/build/settings.ts";
import type { Admitted } from "#edge/port/admission.ts";
import { isThisMachineOnly, type Identity } from "#edge/identity/identity-config.ts";
import type { Action } from "#access/policy.ts";
import type { Principal } from "#access/principal.ts";
import type { Journal } from "#journal/journal.ts";
import type { GrpcServer } from "#grpc/server.ts";
import { homeTenant } from "#access/caller.ts";
import type { BuildConfig } from "#app/config/build-config.ts";
import type { Config } from "#app/config/config.ts";

export type BuildParts = {
  readonly store: Store;
  readonly index: ActionIndex;
  readonly clock: Clock;
  readonly settings?: Partial<BuildSettings>;
  readonly assets?: Partial<AssetSettings>;
  /** For what is fetched and not known yet. */
  readonly spool?: Spool | undefined;
  /** Where there is none to share. */
  readonly spoolFolder?: string;
  /** Remembers what missed, for `millrace cache why`. */
  readonly seen?: AssetPorts["seen"];
  /** Told of every lookup of a result. */
  readonly looked?: AssetPorts["looked"];
  /** Left out: it is a cache only. */
  readonly execution?: ExecutionPorts | undefined;
  readonly report: (doing: string, error: unknown) => void;
};

/** Adds the services; answers what must be known of whoever calls a method, by its path. */
export function composeBuild(
  server: GrpcServer<Admitted>,
  { settings, assets, spool, spoolFolder = tmpdir(), ...parts }: BuildParts,
): ReadonlyMap<string, Action> {
  const callers = new WeakMap<Principal, BuildCaller>();
  const callerOf = (principal: Admitted): BuildCaller => {
    if (!principal) return nobody;
    let caller = callers.get(principal);
    if (!caller) callers.set(principal, (caller = buildCaller(principal, homeTenant(principal))));
    return caller;
  };
  const ports: ServedPorts = {
    ...parts,
    settings: { ...buildSettingsDefault, ...settings },
    assets: { ...assetSettingsDefault, ...assets },
    spool: spool ?? spoolIn(spoolFolder),
  };
  const paths = serveBuild(server, ports, callerOf);
  return new Map(paths.map((path) => [path, "service.describe"]));
}

export const buildSettings = ({ instances, blobMax, fetchFrom }: BuildConfig, identity: Identity) => ({
  settings: { instances, blobBytesMax: blobMax },
  assets: { allow: fetchFrom ?? (isThisMachineOnly(identity) ? anywhere : []) },
});

/** Whoever is on this machine reaches all that the node does by themselves: there is nothing to keep from them. */
const anywhere = ["https://", "http://"];

type ExecutionParts = Pick<ExecutionPorts, "client" | "trees" | "live"> & WorkersParts;
type WorkersParts = Pick<ExecutionPorts, "here"> & {
  readonly journal: Pick<Journal, "nodes">;
  readonly clock: Clock;
};

/** Undefined where it is not wanted. */
export function executionPorts(
  { build, worker }: Config,
  { client, trees, live, ...parts }: ExecutionParts,
): ExecutionPorts | undefined {
  if (!build.execute) return undefined;
  const settings = executionSettings(build, worker.labels);
  // Workers of a pool that is named come when there is work for them.
  const hasWorkers = settings.pools.length > 0 ? () => true : workersOf(parts);
  return { client, trees, settings, live, here: parts.here, hasWorkers };
}

const seenForMs = 5_000;

/** Whether actions are run at all: by this node, or by any that the journal has heard of lately. */
function workersOf({ here, journal, clock }: WorkersParts): () => boolean {
  const isOwn = here !== undefined;
  let seen = isOwn;
  let askedMonoMs = Number.NEGATIVE_INFINITY;
  return () => {
    if (isOwn || clock.monotonicMs() - askedMonoMs < seenForMs) return seen;
    askedMonoMs = clock.monotonicMs();
    journal.nodes().then(
      (all) => (seen = all.some(({ alive, facts }) => alive && facts["actions"] === 1)),
      () => {}, // whoever asks next hears it then
    );
    return seen;
  };
}

/** What workers here offer is understood as a property of the same name. */
export function executionSettings(config: BuildConfig, labels: readonly string[]): ExecutionSettings {
  const offered = labels.map((label) => label.slice(0, label.indexOf("=")));
  return {
    ...executionSettingsDefault,
    timeoutMsDefault: Math.min(config.actionTimeout, config.actionTimeoutMax),
    timeoutMsMax: config.actionTimeoutMax,
    queueMs: config.queueWithin,
    noWorkerMs: config.noWorkerWithin,
    pools: config.pools,
    leaveGraceMs: config.leaveGrace,
    properties: [...new Set([...config.properties, ...offered])],
    ignoredProperties: config.ignoreProperties,
    memoryBytesDefault: config.actionMemory ?? 0,
  };
}
