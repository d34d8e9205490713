/**
 * Which results are believed. Whoever may write results decides what others' builds contain; when that turns out to
 * have been a mistake, what was written is taken back: by who wrote it, by when, or by its key. Pure.
 *
 * T1 A rule takes back only what was written up to the time it names: what is written afterwards counts.
 */
import type { Entry, EntryKey } from "#blobs/action-index.ts";

export type TrustRule = { readonly fromMs?: number; readonly untilMs: number; readonly why: string } & (
  | { readonly kind: "principal"; readonly principal: string }
  /** Everything, or everything of one space: the lever for a whole cache that went bad. */
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

/** As notes of an entry; everything is text there. */
export function notesOfRule(rule: TrustRule): Readonly<Record<string, string>> {
  return { rule: JSON.stringify(rule) };
}

/** Undefined for what was not written by us. */
export function ruleOfNotes(notes: Entry["notes"]): TrustRule | undefined {
  try {
    const rule = JSON.parse(notes?.["rule"] ?? "") as TrustRule;
    return ["principal", "time", "key"].includes(rule.kind) && Number.isFinite(rule.untilMs) ? rule : undefined;
  } catch {
    return undefined;
  }
}
