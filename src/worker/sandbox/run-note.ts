/** What is kept beside a run for a later life of this node: which kind of sandbox it is in, and what was said of it. */
import type { Isolation } from "./isolation.ts";

export type Note = { readonly kind: Isolation["kind"]; readonly said: string };

/** A line for the kind, and then what was said as it is. */
export const noteText = ({ kind, said }: Note): string => `${kind}\n${said}`;

/** Undefined for one that is of another kind. */
export function saidOf(kind: Isolation["kind"], text: string | undefined): string | undefined {
  const line = `${kind}\n`;
  return text?.startsWith(line) ? text.slice(line.length) : undefined;
}
