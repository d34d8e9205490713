/** Serves /v1/deploy: `deployRoutes` is the door's one table. Decisions are made in plan.ts, goal/ and health/. */
import type { Clock } from "#base/clock.ts";
import { isDigest } from "#base/digest.ts";
import { Fault } from "#base/fault.ts";
import type { Store } from "#blobs/store.ts";
import type { EndpointDeclaration } from "#http/endpoint.ts";
import { route, type Call, type Route } from "#http/route.ts";
import type { WorkClient } from "#shard/client/client.ts";
import * as endpoints from "./endpoints.ts";
import type { FleetDesk, Machine } from "./fleet/desk.ts";
import { keys as counted } from "./fleet/census.ts";
import type { Fleet, Waking } from "./fleet/fleet.ts";
import { machineKeyHeader } from "./agent/machine-key.ts";
import type { CapsBook } from "./fleet/caps-book.ts";
import type { MachineBook } from "./fleet/machine-book.ts";
import type { KeyBook } from "./fleet/key-book.ts";
import type { ServiceBook } from "./fleet/service-book.ts";
import type { GoalStore } from "./fleet/goals.ts";
import { livePins } from "./goal/pins.ts";
import { pinRoutes, type PinRoutePorts } from "./pin-routes.ts";
import { planRelease, planRollback } from "./plan.ts";
import { releaseRoutes, requireRelease, type ReleaseRoutePorts } from "./release-routes.ts";
import type { Signed } from "./signing/signing.ts";
import type { Priority } from "#swarm/uploads.ts";
import { capsAsJson, fleetCapsAsJson, fleetCapsFromJson } from "./swarm/caps.ts";
import type { Origin } from "./swarm/origin.ts";
import { questionOf, type SwarmDesk } from "./swarm/swarm-desk.ts";
import type { LookPorts } from "./view/look.ts";
import { viewRoutes } from "./view/routes.ts";

export type RoutePorts = PinRoutePorts &
  ReleaseRoutePorts &
  LookPorts & {
    readonly client: WorkClient;
    readonly goals: GoalStore;
    readonly desk: FleetDesk;
    readonly fleet: Fleet;
    readonly news: Waking;
    readonly store: Store;
    readonly keys: KeyBook;
    readonly swarms: SwarmDesk;
    readonly origin: Origin;
    readonly book: Pick<MachineBook, "check" | "forget">;
    readonly services: ServiceBook;
    readonly caps: CapsBook;
    readonly clock: Pick<Clock, "wallMs">;
  };

export const deployRoutes = (ports: RoutePorts): readonly Route[] => [
  ...agentRoutes(ports),
  ...swarmRoutes(ports),
  ...serviceRoutes(ports),
  ...peopleRoutes(ports),
  ...pinRoutes(ports),
  ...releaseRoutes(ports),
  ...viewRoutes(ports),
];

/** A call in a machine's name, if it may be made (fleet/machine-book.ts). */
const speaking =
  ({ book }: Pick<RoutePorts, "book">) =>
  async ({ params, tenant, caller, headers }: MachineCall): Promise<void> =>
    await book.check({ tenant, ...params, by: caller.principal.name, key: headers.get(machineKeyHeader) });

type MachineCall = Pick<Call<EndpointDeclaration>, "tenant" | "caller" | "headers"> & {
  readonly params: { readonly machine: string };
};

const agentRoutes = ({ desk, origin, keys, book, swarms }: RoutePorts): readonly Route[] => [
  route(endpoints.listKeys, async () => ({
    body: { ...(await keys.trusted()), signs: (await keys.signer()).keyId },
  })),
  route(endpoints.rotateKey, async ({ caller }) => ({ body: { key: await keys.rotate(caller.principal.name) } })),
  route(endpoints.revokeKey, async ({ params, caller }) => {
    await keys.revoke(params.key, caller.principal.name);
    return undefined;
  }),
  route(endpoints.attachMachine, async (call) => {
    const { params, query, tenant, signal } = call;
    await speaking({ book })(call);
    return { body: goalEvents(desk.attach(machineOf(tenant, params, query), query.trust, signal)) };
  }),
  route(endpoints.reportMachine, async (call) => {
    const { params, query, body, tenant } = call;
    await speaking({ book })(call);
    desk.report(machineOf(tenant, params, query), { machine: params.machine, ...body });
    return { body: { caps: capsAsJson(await swarms.capsOf(tenant, params.machine)) } };
  }),
  route(endpoints.readBlob, async ({ params, query, tenant, signal }) => {
    if (!isDigest(params.digest)) throw new Fault("invalid", "read blob", { digest: params.digest });
    return { body: await begun(origin.blob(tenant, params.digest, signal, query.region)) };
  }),
];

const swarmRoutes = ({ swarms, origin, book, caps: kept }: RoutePorts): readonly Route[] => [
  route(endpoints.showCaps, async ({ tenant }) => ({ body: fleetCapsAsJson(await kept.of(tenant)) })),
  route(endpoints.setCaps, async ({ body, caller, tenant }) => {
    await kept.set(tenant, fleetCapsFromJson(body), caller.principal.name);
    return undefined;
  }),
  route(endpoints.askSwarm, async (call) => {
    const { params, body, tenant } = call;
    await speaking({ book })(call);
    const { caps, parents, ...rest } = await swarms.answer(tenant, params.machine, questionOf(body.question));
    return { body: { ...rest, parents: [...parents], caps: capsAsJson(caps) } };
  }),
  route(endpoints.readUnits, ({ params, query, tenant, signal }) => {
    if (!isDigest(params.content)) throw new Fault("invalid", "read units", { content: params.content });
    const priority = query.priority as Priority;
    swarms.heard(tenant, query.region, params.content, priority);
    const { machine, ...range } = query;
    const units = origin.units(tenant, params.content, { ...range, priority }, signal);
    const ended = (): void =>
      machine === undefined ? undefined : swarms.fed(tenant, machine, params.content, query.stripe);
    return { body: followed(units, ended) };
  }),
];

const serviceRoutes = ({ goals, news, fleet, services, clock }: RoutePorts): readonly Route[] => [
  route(endpoints.listServices, async ({ tenant }) => ({
    body: {
      services: (await services.list(tenant)).map(({ service, regions, sha, atMs }) => ({
        service,
        regions,
        sha,
        releasedAt: new Date(atMs).toISOString(),
      })),
    },
  })),
  route(endpoints.showService, async ({ params, query, tenant }) => {
    const regions = [];
    const known = (await services.find(tenant, params.service))?.regions ?? [];
    for (const region of query.regions === "" ? known : query.regions.split(",")) {
      const at = { tenant, ...params, region };
      const goal = (await goals.head(at))?.goal;
      if (!goal) continue;
      const { version, kind, halted, release, wave, sharePpm, manifest, labels } = goal;
      const about = { tenant, ...params, regions: [region], labels, manifest, release };
      const census = await fleet.census({ ...about, silentAfterMs: Number.MAX_SAFE_INTEGER, waves: [] });
      const stable = (await goals.stable(at))?.manifest ?? null;
      const counts = { machines: census.of(counted.machines(region)), running: census.of(counted.running(region)) };
      const pins = [...livePins(goal.pins, clock.wallMs())];
      regions.push({ region, version, kind, halted, release, wave, sharePpm, manifest, stable, ...counts, pins });
    }
    return { body: { regions } };
  }),
  route(endpoints.haltService, async ({ params, body, tenant }) => {
    for (const region of body.regions) {
      const at = { tenant, ...params, region };
      const head = await goals.head(at);
      if (!head || head.goal.halted === body.halted) continue;
      news.wake(await goals.amend(at, head, { halted: body.halted }));
    }
    return undefined;
  }),
];

const peopleRoutes = ({ client, fleet, book, services, clock }: RoutePorts): readonly Route[] => [
  route(endpoints.forgetMachine, async ({ params, tenant }) => {
    if (!(await book.forget(tenant, params.machine))) throw new Fault("not-found", "forget machine", params);
    return undefined;
  }),
  route(endpoints.startRelease, async ({ body, tenant }) => {
    const { notBefore, ...given } = body;
    const notBeforeMs = notBefore === undefined ? undefined : Date.parse(notBefore);
    const release = { ...given, ...(notBeforeMs !== undefined && { notBeforeMs }) };
    await services.enter(tenant, release);
    const heldMs = Math.max(0, (notBeforeMs ?? 0) - clock.wallMs());
    const { jobId } = await client.submit(planRelease(release, { tenant, heldMs }));
    return { status: 202, body: { job: jobId } };
  }),
  route(endpoints.startRollback, async ({ params, body, tenant }) => {
    const { jobId } = await client.submit(planRollback({ ...params, ...body, tenant }));
    return { status: 202, body: { job: jobId } };
  }),
  route(endpoints.listMachines, async ({ query, tenant }) => {
    const { after, limit, regions, service, state } = query;
    const given = { ...(regions !== undefined && { regions: regions.split(",") }), service, state };
    const { machines, next } = await fleet.page({ tenant, after, limit, ...given });
    const shown = machines.map(({ machine, region, labels, reports }) => ({
      machine,
      region,
      labels: [...labels],
      reports: [...reports],
    }));
    return { body: { machines: shown, next } };
  }),
  route(endpoints.approveWave, async ({ params, body, caller, tenant }) => {
    await requireRelease(client, params.job, tenant);
    const name = body.reject ? "reject" : "approve";
    await client.signal(params.job, `wave-${body.wave}`, { name, payload: caller.principal.name });
    return undefined;
  }),
];

const machineOf = (
  tenant: string,
  { machine }: { readonly machine: string },
  { region, labels }: { readonly region: string; readonly labels: string },
): Machine => ({ tenant, machine, region, labels: labels.split(",").filter((label) => label !== "") });

/** Reads the first part before the answer begins: what is not there is a 404, not an answer without bytes. */
async function begun(parts: AsyncGenerator<Uint8Array>): Promise<AsyncIterable<Uint8Array>> {
  const first = await parts.next();
  return (async function* () {
    if (first.done !== true) yield first.value;
    yield* parts;
  })();
}

async function* followed<T>(parts: AsyncIterable<T>, ended: () => void): AsyncGenerator<T> {
  try {
    yield* parts;
  } finally {
    ended();
  }
}

async function* goalEvents(goals: AsyncIterable<Signed>) {
  for await (const data of goals) yield { data };
}
