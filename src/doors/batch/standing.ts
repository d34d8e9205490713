/**
 * Pure: which results of earlier waves a later wave may go on from.
 *
 * BW3 Generations are never mixed: what was computed from packs that have come out with other bytes since does
 *     not count any more, nor does what was computed from that. Packs that came out the same change nothing.
 */
import type { Digest } from "#base/digest.ts";
import type { TaskResult } from "./documents.ts";
import { manifestOf } from "./stage-facts.ts";
import { digestOf } from "./plan/stage.ts";

/** By stage, in the order of their parts. */
export type Results = ReadonlyMap<string, readonly TaskResult[]>;

/** What a task has read of a stage, in the few digits that it takes to notice that it is another now. */
export const readsMark = (packs: readonly Digest[]): string => digestOf(packs).slice(0, 16);

/** `results` name the wave that they are of: a stage that was computed again is that of its last wave. */
export function standingResults(results: readonly (TaskResult & { readonly wave: number })[]): Results {
  const waves = new Map<string, number>();
  for (const { stage, wave } of results) waves.set(stage, Math.max(wave, waves.get(stage) ?? 0));
  const found = new Map<string, TaskResult[]>();
  for (const { wave, ...one } of results) {
    if (waves.get(one.stage) !== wave) continue;
    const others = found.get(one.stage);
    if (others) others.push(one);
    else found.set(one.stage, [one]);
  }
  for (const parts of found.values()) parts.sort((a, b) => a.part - b.part);
  dropFallen(found);
  return found;
}

function dropFallen(found: Map<string, TaskResult[]>): void {
  const marks = new Map(
    [...found].map(([id, parts]) => [id, readsMark(manifestOf(id, parts).packs.map(({ digest }) => digest))]),
  );
  const hasFallen = (parts: readonly TaskResult[]): boolean =>
    parts.some(({ reads = {} }) => Object.entries(reads).some(([id, mark]) => marks.get(id) !== mark));
  for (;;) {
    const fallen = [...found].filter(([, parts]) => hasFallen(parts)).map(([id]) => id);
    if (fallen.length === 0) return;
    for (const id of fallen) {
      found.delete(id);
      marks.delete(id);
    }
  }
}

export const readsOf = (
  packs: ReadonlyMap<string, { readonly digests: readonly Digest[] }>,
): Pick<TaskResult, "reads"> =>
  packs.size === 0
    ? {}
    : { reads: Object.fromEntries([...packs].map(([id, { digests }]) => [id, readsMark(digests)])) };
