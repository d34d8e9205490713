/** What starts runs by itself, on a node: pushes, webhooks, schedules, and the ends of other runs. */
import type { DoorPorts } from "#door/ports.ts";
import type { Repository } from "#sources/book.ts";
import type { CiSettings } from "#doors/ci/config.ts";
import { Listeners } from "#doors/ci/runs/trigger/listeners.ts";
import { CiSchedules } from "#doors/ci/runs/trigger/schedules.ts";
import { Switches } from "#doors/ci/runs/trigger/switches.ts";
import { followPushes, runEvent, type Triggered, type TriggerPorts } from "#doors/ci/runs/trigger/trigger-event.ts";
import { Variables } from "#doors/ci/runs/variables.ts";
import { Deliveries, type KeptDelivery } from "./deliveries.ts";
import { DeliveryFollower } from "./follow.ts";
import { meaningOf } from "./forge-event.ts";
import { runForgeEvent } from "./forge-runs.ts";
import { takeHook } from "./hooks.ts";
import { ownsOn } from "./owner.ts";
import { fieldsOf } from "./reading.ts";
import type { IntakePorts } from "./routes.ts";
import { Strangers } from "./strangers.ts";
import { endedEvent, runEnded } from "./run-ended.ts";

export type Intake = AsyncDisposable & {
  readonly triggers: TriggerPorts;
  readonly variables: Variables;
  readonly routes: IntakePorts;
  readonly takeHook: ReturnType<typeof takeHook>;
  readonly runEnded: ReturnType<typeof runEnded>;
};

/** `scheduled` hears how late each scheduled run was recorded. */
export function openIntake(ports: DoorPorts, settings: CiSettings, scheduled: (lagMs: number) => void): Intake {
  const { records, clock, client, sources, stored, vault, node } = ports;
  const [switches, variables, listeners] = [new Switches(records), new Variables(records), new Listeners(records)];
  const strangers = new Strangers(records, settings.forks);
  const schedules = new CiSchedules({ records, clock, catchUp: settings.catchUp });
  const deliveries = new Deliveries({ records, blobs: stored.blobs, clock });
  const triggers: TriggerPorts = {
    client,
    blobs: stored.blobs,
    traces: ports.traces,
    variables,
    queues: settings.queues,
    required: settings.required,
    retentionDays: settings.retentionDays,
    onRunnerLoss: (tenant, requires) => ports.poolOf({ tenant, requires })?.onRunnerLoss ?? settings.onRunnerLoss,
    sources,
    switches,
    async seen(repository, files, isTrusted) {
      await schedules.sync(repository, files, isTrusted);
      await listeners.sync(repository, files);
    },
  };
  const hooks = { book: sources.book, vault, deliveries };
  const closing = new AbortController();
  const signal = AbortSignal.any([ports.leaving, closing.signal]);
  const owns = ownsOn(ports.peers, node);
  const warn = (error: unknown): void => ports.warn("ci-trigger-failed", { error });
  const pushes = followPushes(triggers, {
    signal,
    warn: (repository, error) => ports.warn("ci-push-failed", { error: new Error(repository, { cause: error }) }),
  }).catch((error: unknown) => signal.aborted || warn(error));
  const follower = new DeliveryFollower({
    deliveries,
    clock,
    repository: (tenant, name) => sources.get(tenant, name),
    owns: (key, repository) => repository.url === undefined || owns(key),
    run: (delivery, repository) => runDelivery({ ...triggers, strangers }, deliveries, delivery, repository),
    warn,
  });
  const timer = schedules.timer(triggers, {
    owns: (key) => isKeptBy(key, node) ?? owns(key),
    log: ports.log,
    observe: (seen) => seen.kind === "started" && scheduled(seen.lagMs),
  });
  return {
    triggers,
    variables,
    routes: { client, clock, triggers, hooks, deliveries, schedules, switches, variables },
    takeHook: takeHook(hooks),
    runEnded: runEnded({ deliveries, listeners }),
    async [Symbol.asyncDispose]() {
      closing.abort();
      await Promise.all([pushes, follower[Symbol.asyncDispose](), timer[Symbol.asyncDispose]()]);
    },
  };
}

/** A repository that a node keeps is looked after there. Undefined: it is fetched from elsewhere. */
function isKeptBy(key: string, node: string): boolean | undefined {
  const [, keeper] = /\/kept (\S+) [0-9a-f]+$/.exec(key) ?? [];
  return keeper === undefined ? undefined : decodeURIComponent(keeper) === node;
}

async function runDelivery(
  triggers: Parameters<typeof runForgeEvent>[0],
  deliveries: Deliveries,
  delivery: KeptDelivery,
  repository: Repository,
): Promise<Triggered | { readonly ignored: string }> {
  const { name, value } = delivery;
  const body = await deliveries.payload(delivery);
  if (value.forge === "node") return await runEvent(triggers, repository, endedEvent(name, body));
  const meaning = meaningOf({ forge: value.forge, event: value.event, id: value.id }, fieldsOf(body));
  return "ignored" in meaning ? meaning : await runForgeEvent(triggers, repository, name, meaning.event);
}
