/** A case of the suite. Cases use the raw protocol, so they run against any server. */
import type { Lab } from "./lab.ts";

export type Case = {
  /** Its number in the checklist; several cases may belong to one item. */
  readonly item: number;
  readonly title: string;
  /** Throws what is wrong, or `Skip`. */
  readonly run: (lab: Lab) => Promise<void>;
};

/** The server does not offer what the case is about, or the suite lacks an option that it needs. */
export class Skip extends Error {}

export function needs<T>(value: T | undefined | false, what: string): T {
  if (value === undefined || value === false) throw new Skip(`needs ${what}`);
  return value;
}

export const at = (item: number, title: string, run: Case["run"]): Case => ({ item, title, run });
