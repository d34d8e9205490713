/** What is stored with a run for a later process of this node: its kind of sandbox, and the caller's note. */
import type { Isolation } from "./isolation.ts";

export type Note = { readonly kind: Isolation["kind"]; readonly said: string };

/** A line for the kind, then the note unchanged. */
export const noteText = ({ kind, said }: Note): string => `${kind}\n${said}`;

/** Undefined for another kind. */
export function saidOf(kind: Isolation["kind"], text: string | undefined): string | undefined {
  const line = `${kind}\n`;
  return text?.startsWith(line) ? text.slice(line.length) : undefined;
}
