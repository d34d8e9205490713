/** Serves pins: machines that stay at a version for a time. */
import { isDigest } from "#base/digest.ts";
import { Fault } from "#base/fault.ts";
import type { Clock } from "#base/clock.ts";
import type { Store } from "#blobs/store.ts";
import { route, type Route } from "#http/route.ts";
import * as endpoints from "./endpoints.ts";
import type { Fleet, Waking } from "./fleet/fleet.ts";
import type { At, GoalStore, Head } from "./fleet/goals.ts";
import { isSameSubject, livePins, pinsMax, type Pin } from "./goal/pins.ts";

export type PinRoutePorts = {
  readonly goals: GoalStore;
  readonly fleet: Fleet;
  readonly news: Waking;
  readonly store: Store;
  readonly clock: Pick<Clock, "wallMs">;
};

export const pinRoutes = (ports: PinRoutePorts): readonly Route[] => [
  route(endpoints.pinMachines, async ({ params, body, caller, tenant }) => {
    const { goals, news, clock } = ports;
    const { region, machine, label, forMs, why } = body;
    const at = { tenant, ...params, region };
    const head = await headOf(goals, at);
    const subject = machine === undefined ? { label } : { machine };
    const manifest = body.manifest ?? (await presentManifest(ports, at, machine));
    await requireManifest(ports.store, tenant, manifest);
    const pin: Pin = { ...subject, manifest, by: caller.principal.name, why, untilMs: clock.wallMs() + forMs };
    const others = livePins(head.goal.pins, clock.wallMs()).filter((one) => !isSameSubject(one, subject));
    if (others.length >= pinsMax) throw new Fault("exhausted", "pin", { pinsMax, try: "pin a label instead" });
    news.wake(await goals.amend(at, head, { pins: [...others, pin] }));
    return { status: 201, body: pin };
  }),
  route(endpoints.unpinMachines, async ({ params, body, tenant }) => {
    const { goals, news } = ports;
    const { region, ...subject } = body;
    const at = { tenant, ...params, region };
    const head = await headOf(goals, at);
    const pins = head.goal.pins ?? [];
    const left = pins.filter((one) => !isSameSubject(one, subject));
    if (left.length === pins.length) throw new Fault("not-found", "unpin", { ...params, ...body });
    news.wake(await goals.amend(at, head, { pins: left }));
    return undefined;
  }),
];

async function headOf(goals: GoalStore, at: At): Promise<Head> {
  const head = await goals.head(at);
  if (!head) throw new Fault("not-found", "find the service's goal", { service: at.service, region: at.region });
  return head;
}

/** What the machine runs; for a label, the version that ended well last. */
async function presentManifest({ fleet, goals }: PinRoutePorts, at: At, machine: string | undefined): Promise<string> {
  const seen = machine === undefined ? undefined : await fleet.machine(at.tenant, machine);
  const reports = seen?.region === at.region ? seen.reports : [];
  const running = reports.find(({ service }) => service === at.service)?.running;
  const found = machine === undefined ? (await goals.stable(at))?.manifest : running;
  if (typeof found === "string") return found;
  throw new Fault("invalid", "pin", {
    why: machine === undefined ? "no version has ended well yet" : `${machine} has not said what it runs`,
    try: "name the version with --manifest",
  });
}

async function requireManifest(store: Store, tenant: string, manifest: string): Promise<void> {
  const isThere = isDigest(manifest) && (await store.forTenant(tenant).blobs.missing([manifest])).length === 0;
  if (!isThere) throw new Fault("not-found", "find the manifest", { manifest });
}
