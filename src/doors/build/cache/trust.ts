/**
 * Which results are trusted. Writers of results decide what others' builds contain; after a mistake, results can be
 * revoked by writer, by time, or by key. Pure.
 *
 * T1 A rule revokes only what was written up to the time it names: later results count.
 */
import type { Entry, EntryKey } from "#blobs/action-index.ts";

export type TrustRule = { readonly fromMs?: number; readonly untilMs: number; readonly why: string } & (
  | { readonly kind: "principal"; readonly principal: string }
  /** Everything, or everything of one space: for a whole cache that went bad. */
  | { readonly kind: "time"; readonly space?: string }
  | { readonly kind: "key"; readonly space: string; readonly name: string }
);

export function isRevoked(rules: readonly TrustRule[], key: EntryKey, entry: Entry): boolean {
  return rules.some((rule) => {
    if (entry.atMs > rule.untilMs || entry.atMs < (rule.fromMs ?? Number.NEGATIVE_INFINITY)) return false;
    switch (rule.kind) {
      case "principal":
        return entry.principal === rule.principal;
      case "time":
        return rule.space === undefined || rule.space === key.space;
      case "key":
        return rule.space === key.space && rule.name === key.name;
      default:
        return rule satisfies never;
    }
  });
}

/** As notes of an entry, where every value is a string. */
export function notesOfRule(rule: TrustRule): Readonly<Record<string, string>> {
  return { rule: JSON.stringify(rule) };
}

/** Undefined if we did not write it. */
export function ruleOfNotes(notes: Entry["notes"]): TrustRule | undefined {
  try {
    const rule = JSON.parse(notes?.["rule"] ?? "") as TrustRule;
    return ["principal", "time", "key"].includes(rule.kind) && Number.isFinite(rule.untilMs) ? rule : undefined;
  } catch {
    return undefined;
  }
}
