/**
 * The audit trail of each tenant, as records that are only ever created.
 *
 * AU1 Entries of a tenant have the numbers 1, 2, 3 ..., each once, whichever nodes write them: the record's name is the
 *     number, and of all that create it one succeeds (RC1).
 * AU2 Each entry holds the hash of the one before.
 * AU3 A tenant keeps its last `keptMax` entries; older ones go, and the oldest that is left still names its forerunner.
 */
import { must } from "#base/assert.ts";
import { isFault } from "#base/fault.ts";
import { recordsOf, type TypedRecords } from "#records/typed.ts";
import type { Records } from "#records/watch.ts";
import { AuditEntry, chained, type AuditFacts } from "./chain.ts";

export const auditKept = 100_000;
/** How many are removed at once when a trail is full. */
const prunedAtOnce = 100;
const triesMax = 50;
const togetherMax = 100;

type Waiting = { readonly facts: AuditFacts } & Omit<PromiseWithResolvers<AuditEntry>, "promise">;

export type AuditPage = { readonly entries: readonly AuditEntry[]; readonly cursor: string | undefined };

export class AuditTrail {
  readonly #entries: TypedRecords<AuditEntry>;
  readonly #keptMax: number;
  /** The last entry of each tenant, as far as this node knows. */
  readonly #last = new Map<string, AuditEntry>();
  /** By tenant, while this node writes: what comes next. */
  readonly #waiting = new Map<string, Waiting[]>();

  constructor(records: Records, keptMax = auditKept) {
    const limits = { countMax: keptMax + 10 * prunedAtOnce, bytesMax: 2 ** 32 };
    this.#entries = recordsOf(records, { kind: "audit.entry", schema: AuditEntry, limits });
    this.#keptMax = keptMax;
  }

  /** Durable when it resolves. Those that come while one is written are written together. */
  append(tenant: string, facts: AuditFacts): Promise<AuditEntry> {
    const waiting = this.#waiting.get(tenant);
    const { promise, resolve, reject } = Promise.withResolvers<AuditEntry>();
    const one = { facts, resolve, reject };
    if (waiting) waiting.push(one);
    else {
      this.#waiting.set(tenant, [one]);
      void this.#write(tenant);
    }
    return promise;
  }

  /** The newest first. */
  async list(tenant: string, limit: number, cursor?: string): Promise<AuditPage> {
    const page = await this.#entries.list({ tenant, limit, cursor, order: "newest" });
    return { entries: page.records.map(({ value }) => value), cursor: page.cursor };
  }

  /** The oldest first. */
  async *export(tenant: string): AsyncIterable<AuditEntry> {
    let cursor: string | undefined;
    do {
      const page = await this.#entries.list({ tenant, limit: 500, cursor });
      for (const { value } of page.records) yield value;
      ({ cursor } = page);
    } while (cursor !== undefined);
  }

  /** One group of a tenant's after the other. */
  async #write(tenant: string): Promise<void> {
    const waiting = this.#waiting.get(tenant) ?? [];
    while (waiting.length > 0) {
      const group = waiting.splice(0, togetherMax);
      try {
        const entries = await this.#append(
          tenant,
          group.map(({ facts }) => facts),
        );
        for (const [at, { resolve }] of group.entries()) resolve(must(entries[at], "an entry"));
      } catch (error) {
        for (const { reject } of group) reject(error);
      }
    }
    this.#waiting.delete(tenant);
  }

  async #append(tenant: string, all: readonly AuditFacts[]): Promise<readonly AuditEntry[]> {
    let last = this.#last.get(tenant) ?? (await this.#newest(tenant));
    for (let tries = 0; ; tries += 1) {
      const entries: AuditEntry[] = [];
      for (const facts of all) entries.push(chained(facts, entries.at(-1) ?? last));
      const given = entries.map((value) => ({ name: nameOf(value.seq), value }));
      const done = await this.#entries.createAll(tenant, given);
      if (done.created) {
        const newest = must(entries.at(-1), "an entry");
        this.#last.set(tenant, newest);
        const hundred = newest.seq - (newest.seq % prunedAtOnce);
        if (entries.some(({ seq }) => seq === hundred)) await this.#prune(tenant, newest.seq);
        return entries;
      }
      this.#last.set(tenant, done.record.value);
      // Another node was first. It may be far ahead: look for the end again, then for the next free number.
      last = tries === 0 ? ((await this.#newest(tenant)) ?? done.record.value) : done.record.value;
      if (tries > triesMax) last = await this.#newest(tenant);
    }
  }

  async #newest(tenant: string): Promise<AuditEntry | undefined> {
    return (await this.list(tenant, 1)).entries[0];
  }

  /** Two nodes may do this at once; what one removed, the other does not find. */
  async #prune(tenant: string, seq: number): Promise<void> {
    const through = seq - this.#keptMax;
    if (through <= 0) return;
    const { records } = await this.#entries.list({ tenant, limit: 2 * prunedAtOnce });
    for (const { name, version, value } of records)
      if (value.seq <= through)
        await this.#entries.remove(tenant, name, version).catch((error: unknown) => {
          if (!isFault(error, "unavailable")) throw error;
        });
  }
}

/** In the order of numbers, as records are listed by name. */
const nameOf = (seq: number): string => String(seq).padStart(12, "0");
