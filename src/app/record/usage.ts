/**
 * What tenants use, by door, repository, pool and day: slot time, tasks, attempts, bytes of results. Counted from
 * durable events by the owner of each shard, added up in memory and written as records every half minute: a node that
 * is killed loses at most that much. Each node has records of its own, so that no two nodes write the same one;
 * readers add them up.
 */
import { z } from "zod";
import type { Clock } from "#base/clock.ts";
import { digestSizeBytes } from "#base/digest.ts";
import { workerPrefix } from "#pools/queue.ts";
import type { MetricsRegistry } from "#edge/metrics/registry.ts";
import type { Event } from "#kernel/model/event.ts";
import type { Task } from "#kernel/model/entities.ts";
import { recordsOf } from "#records/typed.ts";
import type { Records } from "#records/watch.ts";
import type { SealedBatch } from "#shard/host/batch.ts";
import type { ShardObserver } from "#shard/host/observer.ts";
import type { HostedShard } from "#shard/host/shard.ts";

const Counts = z.object({
  slotMs: z.number(),
  cpuMs: z.number().default(0),
  tasks: z.number(),
  attempts: z.number(),
  outputBytes: z.number(),
});
export type UsageCounts = z.output<typeof Counts>;

/** Repository and pool are "" where there is none. */
export type UsageOf = {
  readonly tenant: string;
  readonly door: string;
  readonly repository: string;
  readonly pool: string;
};
export type Usage = UsageCounts & UsageOf;

const kind = "usage";
const limits = { countMax: 200_000, bytesMax: 128 * 1024 * 1024 };
const flushEveryMs = 30_000;
const pendingMax = 2_000;
const followedMax = 100_000;
const seriesMax = 500;
/** Repositories of one tenant that are told apart between two writes: the tag comes from callers. */
const repositoriesMax = 500;
const repositoryTag = "repository";

const none: UsageCounts = { slotMs: 0, cpuMs: 0, tasks: 0, attempts: 0, outputBytes: 0 };
const sum = (a: UsageCounts, b: UsageCounts): UsageCounts => ({
  slotMs: a.slotMs + b.slotMs,
  cpuMs: a.cpuMs + b.cpuMs,
  tasks: a.tasks + b.tasks,
  attempts: a.attempts + b.attempts,
  outputBytes: a.outputBytes + b.outputBytes,
});

export const dayOf = (ms: number): string => new Date(ms).toISOString().slice(0, 10);

export type UsagePorts = {
  readonly node: string;
  readonly records: Records;
  readonly clock: Clock;
  /** Processor time in a result of a door. */
  readonly cpuMsIn?: (door: string, payload: string) => number | undefined;
  readonly log: (line: string) => void;
};

type Pending = UsageOf & { readonly day: string; counts: UsageCounts };
type Begun = { readonly startedMs: number; readonly pool: string };

/** Of the name of a worker that a pool made; "" of any other. */
const poolOf = (executor: string): string =>
  executor.startsWith(workerPrefix) ? (executor.slice(workerPrefix.length).split(".")[0] ?? "") : "";

export class UsageMeter implements ShardObserver, AsyncDisposable {
  readonly #ports: UsagePorts;
  readonly #records;
  /** When attempts began, by token, which is unique in its shard. */
  readonly #began = new WeakMap<HostedShard, Map<number, Begun>>();
  #pending = new Map<string, Pending>();
  #count: ((tenant: string, door: string, counts: UsageCounts) => void) | undefined;
  #cancel: () => void = () => {};
  #flushing: Promise<void> = Promise.resolve();

  constructor(ports: UsagePorts) {
    this.#ports = ports;
    this.#records = recordsOf(ports.records, { kind, schema: Counts, limits });
    this.#later();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#cancel();
    await this.flush();
  }

  show(registry: MetricsRegistry): void {
    const labels = ["tenant", "door"] as const;
    const counter = (name: string, help: string) =>
      registry.counter({ name: `millrace_usage_${name}_total`, help, labels, seriesMax });
    const slots = counter("slot_seconds", "Time for which attempts held a slot, in the shards of this node.");
    const cpu = counter("cpu_seconds", "Processor time that results speak of.");
    const tasks = counter("tasks", "Tasks that ended with a result.");
    const bytes = counter("output_bytes", "Bytes of the blobs that results name.");
    this.#count = (tenant, door, counts) => {
      slots.with(tenant, door).add(counts.slotMs / 1_000);
      cpu.with(tenant, door).add(counts.cpuMs / 1_000);
      tasks.with(tenant, door).add(counts.tasks);
      bytes.with(tenant, door).add(counts.outputBytes);
    };
  }

  /** Attempts that began under another owner. */
  adopted(shard: HostedShard): void {
    const began = this.#beganIn(shard);
    for (const { claim, second } of shard.state.tasks.values())
      for (const held of [claim, second])
        if (held) began.set(held.token, { startedMs: held.startedAtMs, pool: poolOf(held.executor.id) });
  }

  durable(shard: HostedShard, { events }: SealedBatch): void {
    for (const event of events) this.#see(shard, event);
  }

  #see(shard: HostedShard, event: Event): void {
    switch (event.kind) {
      case "claimed":
        return this.#begin(shard, event.token, {
          startedMs: event.started ? event.at : 0,
          pool: poolOf(event.executor),
        });
      case "started": {
        const pool = this.#beganIn(shard).get(event.token)?.pool ?? "";
        return this.#begin(shard, event.token, { startedMs: event.at, pool });
      }
      case "committed": {
        const outputBytes = event.result.digests.reduce((all, digest) => all + (digestSizeBytes(digest) || 0), 0);
        return this.#end(shard, event, { tasks: 1, outputBytes }, event.result.payload);
      }
      case "attempt-ended":
        return this.#end(shard, event, {}, event.result?.payload);
      default:
    }
  }

  #begin(shard: HostedShard, token: number, begun: Begun): void {
    const began = this.#beganIn(shard);
    if (began.size < followedMax || began.has(token)) began.set(token, begun);
  }

  #end(
    shard: HostedShard,
    { task, token, at }: { readonly task: number; readonly token: number; readonly at: number },
    made: Partial<UsageCounts>,
    payload: string | undefined,
  ): void {
    const began = this.#beganIn(shard);
    const { startedMs = 0, pool = "" } = began.get(token) ?? {};
    began.delete(token);
    const found: Task | undefined = shard.state.tasks.get(task);
    if (!found) return;
    const { door, tenant, extras } = found.stage.job;
    const repository = extras?.tags.find(({ name }) => name === repositoryTag)?.value ?? "";
    const cpuMs = payload === undefined ? 0 : (this.#ports.cpuMsIn?.(door, payload) ?? 0);
    const attempts = startedMs === 0 ? 0 : 1;
    const slotMs = startedMs === 0 ? 0 : Math.max(0, at - startedMs);
    this.#add({ tenant: tenant.name, door, repository, pool }, at, { ...none, attempts, slotMs, cpuMs, ...made });
  }

  #beganIn(shard: HostedShard): Map<number, Begun> {
    let found = this.#began.get(shard);
    if (!found) this.#began.set(shard, (found = new Map()));
    return found;
  }

  #add(of: UsageOf, atMs: number, counts: UsageCounts): void {
    this.#count?.(of.tenant, of.door, counts);
    const day = dayOf(atMs);
    const isNew = of.repository !== "" && !this.#pending.has(keyOf(of, day));
    const others = isNew ? this.#pending.values().filter(({ tenant }) => tenant === of.tenant) : [];
    const owner = [...others].length >= repositoriesMax ? { ...of, repository: "" } : of;
    const key = keyOf(owner, day);
    const known = this.#pending.get(key);
    if (known) known.counts = sum(known.counts, counts);
    else this.#pending.set(key, { ...owner, day, counts });
    if (this.#pending.size >= pendingMax) void this.flush();
  }

  #later(): void {
    this.#cancel = this.#ports.clock.after(flushEveryMs, () => void this.flush().then(() => this.#later()));
  }

  /** Writes what was counted; what cannot be written now is written with the next. */
  flush(): Promise<void> {
    return (this.#flushing = this.#flushing.then(() => this.#write()));
  }

  async #write(): Promise<void> {
    const all = this.#pending;
    this.#pending = new Map();
    for (const [key, one] of all)
      try {
        await this.#put(one);
        all.delete(key);
      } catch (error) {
        this.#ports.log(`record usage: ${error instanceof Error ? error.message : String(error)}`);
        break;
      }
    for (const [key, one] of all) {
      const since = this.#pending.get(key);
      this.#pending.set(key, { ...one, counts: since ? sum(since.counts, one.counts) : one.counts });
    }
  }

  async #put({ tenant, door, repository, pool, day, counts }: Pending): Promise<void> {
    const of = repository === "" && pool === "" ? "" : `/${encodeURIComponent(repository)}/${pool}`;
    const name = `${day}/${door}/${this.#ports.node}${of}`;
    const { created } = await this.#records.create(tenant, name, counts);
    if (!created) await this.#records.update(tenant, name, (known) => sum(known, counts));
  }
}

const keyOf = ({ tenant, door, repository, pool }: UsageOf, day = ""): string =>
  JSON.stringify([tenant, door, repository, pool, day]);

/** Sums of all nodes over these days, by tenant, door, repository and pool. Left out, `tenant` means every tenant. */
export async function usageOver(
  records: Records,
  { tenant, fromMs, toMs }: { readonly tenant: string | undefined; readonly fromMs: number; readonly toMs: number },
): Promise<readonly Usage[]> {
  const typed = recordsOf(records, { kind, schema: Counts, limits });
  const found = new Map<string, Usage>();
  for (let ms = fromMs; dayOf(ms) <= dayOf(toMs); ms += 24 * 3_600_000) {
    let cursor: string | undefined;
    do {
      const page = await typed.list({ tenant, prefix: `${dayOf(ms)}/`, limit: 1_000, cursor });
      for (const { tenant: of, name, value } of page.records) {
        const [, door = "", , encoded = "", pool = ""] = name.split("/");
        const owner = { tenant: of, door, repository: decodeURIComponent(encoded), pool };
        const key = keyOf(owner);
        found.set(key, { ...owner, ...sum(found.get(key) ?? none, value) });
      }
      ({ cursor } = page);
    } while (cursor !== undefined);
  }
  return [...found.values()].toSorted((a, b) => (a.tenant + a.door < b.tenant + b.door ? -1 : 1));
}
