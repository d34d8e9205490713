/** Entries of an audit trail, each with the hash of the one before, so that a changed or removed entry shows. */
import { createHash } from "node:crypto";
import { z } from "zod";

export const AuditEntry = z.object({
  seq: z.int().min(1),
  at: z.string(),
  who: z.object({ name: z.string(), tenant: z.string(), proof: z.string(), address: z.string() }),
  /** The row of the policy table. */
  action: z.string(),
  /** The call, such as "POST /v1/jobs/{job}/cancel". */
  call: z.string(),
  /** What it named: parts of the path and the query; never a body. */
  of: z.record(z.string(), z.string()),
  outcome: z.enum(["asked", "failed"]),
  /** For "failed": the entry that asked, and why. */
  why: z.string().optional(),
  prev: z.string(),
  hash: z.string(),
});

export type AuditEntry = z.output<typeof AuditEntry>;
export type AuditFacts = Pick<AuditEntry, "at" | "who" | "action" | "call" | "of" | "outcome" | "why">;

/** Stands before the first entry. */
export const noHash = "0".repeat(64);

export function chained(facts: AuditFacts, last: Pick<AuditEntry, "seq" | "hash"> | undefined): AuditEntry {
  const entry = { ...facts, seq: (last?.seq ?? 0) + 1, prev: last?.hash ?? noHash };
  return { ...entry, hash: hashOf(entry) };
}

function hashOf({ seq, at, who, action, call, of, outcome, why, prev }: Omit<AuditEntry, "hash">): string {
  const named = Object.entries(of).toSorted(([a], [b]) => (a < b ? -1 : 1));
  const fields = [seq, at, who.name, who.tenant, who.proof, who.address, action, call, named, outcome, why ?? "", prev];
  return createHash("sha256").update(JSON.stringify(fields)).digest("hex");
}

export type Verdict =
  | {
      readonly ok: true;
      readonly entries: number;
      readonly first: number;
      readonly last: number;
      readonly hash: string;
    }
  | { readonly ok: false; readonly seq: number; readonly why: string };

/** Checks entries one by one, in order. The first may be any: older ones may have been removed by their age. */
export class ChainCheck {
  #first: number | undefined;
  #last: AuditEntry | undefined;
  #entries = 0;

  /** Undefined: it fits. */
  add(entry: AuditEntry): Verdict | undefined {
    const wrong = (why: string): Verdict => ({ ok: false, seq: entry.seq, why });
    const last = this.#last;
    if (hashOf(entry) !== entry.hash) return wrong("the entry was changed: its hash does not fit it");
    if (last && entry.seq !== last.seq + 1) return wrong(`entries are missing after ${last.seq}`);
    if (last && entry.prev !== last.hash) return wrong("it does not follow the entry before it");
    this.#first ??= entry.seq;
    this.#last = entry;
    this.#entries += 1;
    return undefined;
  }

  verdict(): Verdict {
    const { seq = 0, hash = noHash } = this.#last ?? {};
    return { ok: true, entries: this.#entries, first: this.#first ?? 0, last: seq, hash };
  }
}
