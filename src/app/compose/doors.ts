/** The doors of a node, opened: what each of them brings, put together. */
import { assert } from "#base/assert.ts";
import type { Caller } from "#access/caller.ts";
import type { Action } from "#access/policy.ts";
import type { Door, Metrics, OpenDoor, PeerCalls, TaskAnswer } from "#door/door.ts";
import type { DoorPorts } from "#door/ports.ts";
import type { GrpcServer } from "#grpc/server.ts";
import type { Route } from "#http/route.ts";
import type { Identify } from "#http/serve.ts";
import type { ShardObserver } from "#shard/host/observer.ts";
import type { Publisher } from "#shard/outbox/outbox.ts";
import type { PrintedByDoor } from "#worker/follow/printed.ts";
import type { Planners, Resume, Runners } from "#worker/runner.ts";
import type { FoundRun } from "#worker/sandbox/sandbox.ts";
import { sectionOf, type Config } from "#app/config/config.ts";

export type OpenDoors = {
  readonly labels: readonly string[];
  readonly facts: Readonly<Record<string, string | number>>;
  readonly runners: Runners;
  readonly planners: Planners;
  readonly resumes: readonly Resume[];
  readonly found: readonly FoundRun[];
  readonly publishers: Readonly<Record<string, Publisher>>;
  readonly printed: Readonly<Record<string, PrintedByDoor>>;
  readonly calls: PeerCalls;
  readonly answers: Readonly<Record<string, TaskAnswer>>;
  readonly routes: readonly Route[];
  readonly observers: readonly ShardObserver[];
  services(server: GrpcServer<Caller | undefined>): ReadonlyMap<string, Action>;
  http(request: Request, identify: Identify): Promise<Response> | undefined;
  metrics(metrics: Metrics): void;
};

/** Closes those that are open when the node stops, or when another does not open. */
export async function openDoors(
  doors: readonly Door[],
  config: Config,
  ports: DoorPorts,
  undo: AsyncDisposableStack,
): Promise<OpenDoors> {
  const opened: OpenDoor[] = [];
  for (const door of doors) {
    const open = await door.open(ports, sectionOf(config, door));
    undo.defer(async () => await open.close?.());
    checkDeclared(door, open);
    opened.push(open);
  }
  return together(opened);
}

/** D1 */
function checkDeclared(
  { name, kinds, endpoints }: Door,
  { runners, planners, publishers, printed, routes = [] }: OpenDoor,
): void {
  const kindNames = new Set(kinds.flatMap((one) => Object.keys(one.kinds)));
  for (const kind of Object.keys({ ...runners, ...planners }))
    assert(kindNames.has(kind), `the door ${name} runs ${kind} and does not list it in its kinds`);
  const jobNames = new Set(kinds.map(({ door }) => door));
  for (const job of Object.keys(publishers ?? {}))
    assert(jobNames.has(job), `the door ${name} publishes for ${job}, which is not a name of its jobs`);
  for (const job of Object.keys(printed ?? {}))
    assert(jobNames.has(job), `the door ${name} finds output of ${job}, which is not a name of its jobs`);
  const declared = new Set(endpoints.map((endpoint) => endpoint.name));
  for (const route of routes)
    assert(declared.has(route.name), `the door ${name} serves ${route.name} and does not list it in its endpoints`);
}

const together = (opened: readonly OpenDoor[]): OpenDoors => ({
  labels: opened.flatMap(({ labels = [] }) => labels),
  facts: merged(opened.map(({ facts }) => facts)),
  runners: merged(opened.map(({ runners }) => runners)),
  planners: merged(opened.map(({ planners }) => planners)),
  resumes: opened.flatMap(({ resumes = [] }) => resumes),
  found: opened.flatMap(({ found = [] }) => found),
  publishers: merged(opened.map(({ publishers }) => publishers)),
  printed: merged(opened.map(({ printed }) => printed)),
  calls: merged(opened.map(({ calls }) => calls)),
  answers: merged(opened.map(({ answers }) => answers)),
  routes: opened.flatMap(({ routes = [] }) => routes),
  observers: opened.flatMap(({ observer }) => observer ?? []),
  services: (server) => new Map(opened.flatMap(({ services }) => [...(services?.(server) ?? [])])),
  http(request, identify) {
    for (const { http } of opened) {
      const response = http?.(request, identify);
      if (response) return response;
    }
    return undefined;
  },
  metrics: (metrics) => {
    for (const open of opened) open.metrics?.(metrics);
  },
});

/** Those of the doors, which are opened after the node has been put together. */
export const observerOf = (doors: () => Pick<OpenDoors, "observers">): ShardObserver => ({
  adopted: (shard) => doors().observers.forEach((one) => one.adopted?.(shard)),
  durable: (shard, batch) => doors().observers.forEach((one) => one.durable?.(shard, batch)),
  gone: (shard) => doors().observers.forEach((one) => one.gone?.(shard)),
});

/** Two doors that bring something under the same name are a mistake in one of them. */
function merged<T>(parts: readonly (Readonly<Record<string, T>> | undefined)[]): Readonly<Record<string, T>> {
  const all: Record<string, T> = {};
  for (const part of parts)
    for (const [name, value] of Object.entries(part ?? {})) {
      assert(!Object.hasOwn(all, name), `two doors bring ${name}`);
      all[name] = value;
    }
  return all;
}

/** A node without doors, for what is tried without any. */
export const noDoors: OpenDoors = together([]);
