/** Pure: what the results of a stage's tasks say about it. */
import type { Manifest, TaskResult } from "./documents.ts";
import type { StageFacts } from "./plan/stage.ts";

export function factsOf(results: readonly TaskResult[]): StageFacts {
  const partitionBytes: number[] = [];
  for (const { shares, bytes } of results) {
    const parts = sharesIn(shares);
    const sum = parts.reduce((all, share) => all + share, 0);
    for (const [i, share] of parts.entries())
      partitionBytes[i] = (partitionBytes[i] ?? 0) + (sum === 0 ? 0 : (bytes * share) / sum);
  }
  return {
    rows: results.reduce((sum, { rows }) => sum + rows, 0),
    bytes: results.reduce((sum, { bytes }) => sum + bytes, 0),
    partitionBytes: partitionBytes.map(Math.round),
    packs: results.length,
    cuts: results.flatMap(({ cuts }) => cuts).toSorted(),
  };
}

export const sharesIn = (shares: string): readonly number[] =>
  Array.from({ length: shares.length / 2 }, (_, i) => Number.parseInt(shares.slice(2 * i, 2 * i + 2), 16));

/** In the order of the parts, whatever order they ended in. */
export const manifestOf = (stage: string, results: readonly TaskResult[]): Manifest => ({
  version: 1,
  stage,
  packs: results.toSorted((a, b) => a.part - b.part).map(({ pack, rows }) => ({ digest: pack, rows })),
});
