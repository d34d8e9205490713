/**
 * Renews the pins of what is kept, and forgets it when its time is over. Every node may run it: the owner of a name's
 * shard does the work, and two nodes that both believe so do no harm.
 *
 * RT3 What is kept is pinned without a gap while some node runs: a pin is renewed when half of it is left, and a new
 *     owner pins everything once, at a bounded rate.
 * RT4 When its time is over, a name goes with the records that it names, within `lookEveryMs` of a node that runs.
 */
import type { Clock } from "#base/clock.ts";
import type { Typed } from "#records/typed.ts";
import type { Records } from "#records/watch.ts";
import type { Keep, Keeps } from "./keeps.ts";

export type KeeperPorts = {
  readonly keeps: Keeps;
  readonly records: Records;
  readonly clock: Clock;
  /** Whether this node looks after what has this key. */
  readonly owns: (key: string) => boolean;
  readonly log: (line: string) => void;
  readonly observe?: ((event: KeeperEvent) => void) | undefined;
};

export type KeeperEvent = { readonly kind: "renewed" | "expired" | "lost" | "failed" };

/** Little is known of each: there may be many, and the record is read when it is due. */
type Known = {
  readonly tenant: string;
  readonly name: string;
  version: number;
  untilMs: number;
  pinnedUntilMs: number;
};

const lookEveryMs = 5_000;
/** How many are pinned or removed in one look. */
const perLookMax = 200;

export class RetentionKeeper implements AsyncDisposable {
  readonly #ports: KeeperPorts;
  readonly #known = new Map<string, Known>();
  readonly #ended = new AbortController();
  readonly #done: Promise<unknown>;

  constructor(ports: KeeperPorts) {
    this.#ports = ports;
    this.#done = Promise.all([this.#watch(), this.#tick()]);
  }

  /** How many names are kept, of all tenants. */
  get count(): number {
    return this.#known.size;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#ended.abort(new Error("the keeper ends"));
    await this.#done;
  }

  async #watch(): Promise<void> {
    const { keeps, clock, log } = this.#ports;
    const { signal } = this.#ended;
    while (!signal.aborted) {
      try {
        for await (const { tenant, isReset, changed, removed } of keeps.records.watch({}, signal)) {
          if (isReset) for (const [key, known] of this.#known) if (known.tenant === tenant) this.#known.delete(key);
          for (const record of changed) this.#learn(record);
          for (const name of removed) this.#known.delete(`${tenant}/${name}`);
        }
      } catch (error) {
        log(`watch what is kept: ${error instanceof Error ? error.message : String(error)}`);
        await clock.sleep(lookEveryMs, signal).catch(() => undefined);
      }
    }
  }

  #learn({ tenant, name, version, value: { untilMs } }: Typed<Keep>): void {
    const key = `${tenant}/${name}`;
    const before = this.#known.get(key);
    if (before && before.version >= version) return;
    this.#known.set(key, { tenant, name, version, untilMs, pinnedUntilMs: 0 });
  }

  async #tick(): Promise<void> {
    const { clock } = this.#ports;
    const { signal } = this.#ended;
    while (!signal.aborted) {
      await this.#look();
      await clock.sleep(lookEveryMs, signal).catch(() => undefined);
    }
  }

  async #look(): Promise<void> {
    const { clock, owns, keeps, log, observe } = this.#ports;
    let left = perLookMax;
    for (const [key, known] of this.#known) {
      if (left === 0 || this.#ended.signal.aborted) return;
      const nowMs = clock.wallMs();
      if (known.untilMs > nowMs && known.pinnedUntilMs >= Math.min(known.untilMs, nowMs + keeps.sliceMs / 2)) continue;
      if (!owns(key)) {
        known.pinnedUntilMs = 0; // the owner pins; this node does when it becomes the owner
        continue;
      }
      left -= 1;
      try {
        await (known.untilMs <= nowMs ? this.#expire(known) : this.#renew(known));
      } catch (error) {
        observe?.({ kind: "failed" });
        log(`keep ${key}: ${error instanceof Error ? error.message : String(error)}`);
        return; // the store or the database is away: the next look goes on
      }
    }
  }

  async #renew(known: Known): Promise<void> {
    const { keeps, clock, log, observe } = this.#ports;
    const record = await keeps.records.read(known.tenant, known.name);
    if (!record) return void this.#known.delete(`${known.tenant}/${known.name}`);
    const { value } = record;
    known.untilMs = value.untilMs;
    if (value.lostAtMs !== undefined) return void (known.pinnedUntilMs = value.untilMs);
    const pinnedUntilMs = await keeps.pin(known.tenant, value);
    known.pinnedUntilMs = pinnedUntilMs ?? value.untilMs;
    observe?.({ kind: pinnedUntilMs === undefined ? "lost" : "renewed" });
    if (pinnedUntilMs !== undefined) return;
    log(`keep ${known.tenant}/${known.name}: some of its blobs are gone, although they were pinned`);
    await keeps.records.replace(record, { ...value, lostAtMs: clock.wallMs() });
  }

  /** RT4: its records first, so that a node that dies in between leaves the name, and another goes on. */
  async #expire({ tenant, name }: Known): Promise<void> {
    const { keeps, clock, records, observe } = this.#ports;
    const record = await keeps.records.read(tenant, name);
    if (record && record.value.untilMs <= clock.wallMs()) {
      for (const drop of record.value.drops) {
        const found = await records.read({ tenant, ...drop });
        if (found) await records.remove({ tenant, ...drop }, found.version);
      }
      await keeps.records.remove(tenant, name, record.version);
      observe?.({ kind: "expired" });
    }
    this.#known.delete(`${tenant}/${name}`);
  }
}
