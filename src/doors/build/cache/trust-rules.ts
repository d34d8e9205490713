/**
 * The rules of `trust.ts` where every node finds them: in the index, in a space that no protocol can name. One entry
 * per rule, and a head entry that is rewritten with every change: while its version is the one seen last, the cached
 * rules are current.
 */
import { randomUUID } from "node:crypto";
import type { ActionIndex, Entry, EntryKey } from "#blobs/action-index.ts";
import { emptyHash } from "#doors/build/digests.ts";
import { isRevoked, notesOfRule, ruleOfNotes, type TrustRule } from "./trust.ts";

export const trustSpace = "trust/rules";
const headName = "head";
const nothing = `${emptyHash("sha256")}/0`;
const pageLimit = 500;
const rulesMax = 10_000;

type Known = { readonly version: number; readonly rules: readonly TrustRule[] };

export type NamedRule = { readonly id: string; readonly rule: TrustRule; readonly principal: string };

export class TrustRules {
  readonly #index: ActionIndex;
  readonly #known = new Map<string, Known>();
  readonly #thisTurn = new Map<string, Known>();

  constructor(index: ActionIndex) {
    this.#index = index;
  }

  /** Undefined if the index must be read first. */
  rulesAtOnce(tenant: string): readonly TrustRule[] | undefined {
    return (this.#thisTurn.get(tenant) ?? this.#look(tenant))?.rules;
  }

  /** Undefined if the index must be read first. */
  isRevokedAtOnce(key: EntryKey, entry: Entry): boolean | undefined {
    const rules = this.rulesAtOnce(key.tenant);
    return rules && isRevoked(rules, key, entry);
  }

  /** Concurrent calls share one lookup: a rule that a caller knew of before its call is in the index by then. */
  #look(tenant: string): Known | undefined {
    const head = this.#index.prompt?.(headOf(tenant));
    const known = this.#known.get(tenant);
    if (!head || known?.version !== head.version) return undefined;
    if (this.#thisTurn.size === 0) setImmediate(() => this.#thisTurn.clear());
    this.#thisTurn.set(tenant, known);
    return known;
  }

  async isRevoked(key: EntryKey, entry: Entry): Promise<boolean> {
    const head = (await this.#index.get(headOf(key.tenant))) ?? (await this.#begin(key.tenant));
    let known = this.#known.get(key.tenant);
    if (known?.version !== head.version) {
      const rules = (await this.list(key.tenant)).map(({ rule }) => rule);
      this.#known.set(key.tenant, (known = { version: head.version, rules }));
    }
    return isRevoked(known.rules, key, entry);
  }

  async list(tenant: string): Promise<readonly NamedRule[]> {
    const found: NamedRule[] = [];
    for (let after: string | undefined; ;) {
      const page = await this.#index.list({
        tenant,
        spacePrefix: trustSpace,
        limit: pageLimit,
        ...(after !== undefined && { after }),
      });
      for (const { name, notes, principal } of page.entries) {
        const rule = name === headName ? undefined : ruleOfNotes(notes);
        if (rule) found.push({ id: name, rule, principal });
      }
      if (page.next === undefined || found.length > rulesMax) return found;
      after = page.next;
    }
  }

  async revoke(tenant: string, rule: TrustRule, by: { readonly principal: string; readonly atMs: number }) {
    const id = randomUUID();
    await this.#index.put(
      { tenant, space: trustSpace, name: id },
      { digest: nothing, ...by, notes: notesOfRule(rule) },
    );
    await this.#changed(tenant, by);
    return id;
  }

  async lift(tenant: string, id: string, by: { readonly principal: string; readonly atMs: number }): Promise<boolean> {
    const removed = id !== headName && (await this.#index.remove({ tenant, space: trustSpace, name: id }));
    if (removed) await this.#changed(tenant, by);
    return removed;
  }

  async #begin(tenant: string): Promise<{ readonly version: number }> {
    const written = await this.#index.put(headOf(tenant), { digest: nothing, principal: "millrace", atMs: 0 }, 0);
    if (written.kind === "written") return written;
    return written.current ?? { version: 0 };
  }

  /** After the rule itself: a reader that sees the new head also sees the rule. */
  async #changed(tenant: string, by: { readonly principal: string; readonly atMs: number }): Promise<void> {
    await this.#index.put(headOf(tenant), { digest: nothing, ...by });
  }
}

const headOf = (tenant: string): EntryKey => ({ tenant, space: trustSpace, name: headName });
