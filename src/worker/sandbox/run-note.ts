/** What is kept beside a run for a later life of this node: which kind of sandbox it is in, and what was said of it. */
import type { Isolation } from "./isolation.ts";

export type Note = { readonly kind?: Isolation["kind"]; readonly said?: string };
export const noteText = (note: Note): string => JSON.stringify(note);

export function readNote(text: string | undefined): Note {
  try {
    return JSON.parse(text ?? "{}") as Note;
  } catch {
    return {}; // of another version
  }
}
