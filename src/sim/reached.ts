/**
 * What several hunts over the same sources have reached together, in a file: a long hunt can be run in slices, and its
 * verdict on branches is about all of them.
 */
import { createHash } from "node:crypto";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { unreachedByAll, type Unreached } from "./coverage.ts";

type Kept = { readonly sources: string; readonly seeds: number; readonly unreached: Unreached };

export type Reached = { readonly seeds: number; readonly unreached: Unreached };

/** Adds the hunt to the file. If the sources have changed the file starts again: its offsets point into other texts. */
export function addReached(file: string, hunt: Reached): Reached {
  const sources = stampOf(Object.keys(hunt.unreached));
  const before = existsSync(file) ? (JSON.parse(readFileSync(file, "utf8")) as Kept) : undefined;
  const isSame = before?.sources === sources;
  const kept: Kept = {
    sources,
    seeds: hunt.seeds + (isSame ? before.seeds : 0),
    unreached: isSame ? unreachedByAll([before.unreached, hunt.unreached]) : hunt.unreached,
  };
  writeFileSync(file, JSON.stringify(kept));
  return kept;
}

function stampOf(paths: readonly string[]): string {
  const hash = createHash("sha256");
  for (const path of paths.toSorted()) hash.update(path).update("\0").update(readFileSync(path)).update("\0");
  return hash.digest("hex");
}
