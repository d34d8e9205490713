/**
 * The audit trail of each tenant, as records that are only ever created.
 *
 * AU1 Entries of a tenant have the numbers 1, 2, 3 ..., each once, whichever nodes write them: the record's name is the
 *     number, and of all that create it one succeeds (RC1).
 * AU2 Each entry holds the hash of the one before.
 * AU3 A tenant keeps its last `keptMax` entries; older ones go, and the oldest that is left still names its forerunner.
 */
import { isFault } from "#base/fault.ts";
import { recordsOf, type TypedRecords } from "#records/typed.ts";
import type { Records } from "#records/watch.ts";
import { AuditEntry, chained, type AuditFacts } from "./chain.ts";

export const auditKept = 100_000;
/** How many are removed at once when a trail is full. */
const prunedAtOnce = 100;
const triesMax = 50;

export type AuditPage = { readonly entries: readonly AuditEntry[]; readonly cursor: string | undefined };

export class AuditTrail {
  readonly #entries: TypedRecords<AuditEntry>;
  readonly #keptMax: number;
  /** The last entry of each tenant, as far as this node knows. */
  readonly #last = new Map<string, AuditEntry>();
  /** Appends of one tenant by this node come one after the other. */
  readonly #queues = new Map<string, Promise<unknown>>();

  constructor(records: Records, keptMax = auditKept) {
    const limits = { countMax: keptMax + 10 * prunedAtOnce, bytesMax: 2 ** 32 };
    this.#entries = recordsOf(records, { kind: "audit.entry", schema: AuditEntry, limits });
    this.#keptMax = keptMax;
  }

  /** Durable when it resolves. */
  async append(tenant: string, facts: AuditFacts): Promise<AuditEntry> {
    const before = this.#queues.get(tenant) ?? Promise.resolve();
    const appended = before.then(() => this.#append(tenant, facts));
    const settled = appended.catch(() => undefined);
    this.#queues.set(tenant, settled);
    try {
      return await appended;
    } finally {
      if (this.#queues.get(tenant) === settled) this.#queues.delete(tenant);
    }
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

  async #append(tenant: string, facts: AuditFacts): Promise<AuditEntry> {
    let last = this.#last.get(tenant) ?? (await this.#newest(tenant));
    for (let tries = 0; ; tries += 1) {
      const entry = chained(facts, last);
      const { created, record } = await this.#entries.create(tenant, nameOf(entry.seq), entry);
      this.#last.set(tenant, record.value);
      if (created) {
        if (entry.seq % prunedAtOnce === 0) await this.#prune(tenant, entry.seq);
        return entry;
      }
      // Another node was first. It may be far ahead: look for the end again, then for the next free number.
      last = tries === 0 ? ((await this.#newest(tenant)) ?? record.value) : record.value;
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
