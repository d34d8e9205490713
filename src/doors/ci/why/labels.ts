/** Labels that no runner has, and what was probably meant. Pure. */
import { nearest } from "#base/nearest.ts";
import type { ExecutorView } from "#kernel/read/query.ts";

import { groupsIn } from "#doors/ci/queues.ts";

export type UnknownLabel = { readonly label: string; readonly nearest?: string; readonly isGroup?: true };

const prefix = "runner=";
const containersPrefix = "containers=";

/** What is missing is an engine of containers, wherever else the job might run. */
export const lacksContainers = (missing: readonly string[]): boolean =>
  missing.some((label) => label.startsWith(containersPrefix));

/** Of what a job asks for, the labels of runs-on. */
export const runnerLabels = (requires: readonly string[]): readonly string[] =>
  requires.flatMap((label) => (label.startsWith(prefix) ? [label.slice(prefix.length)] : []));

/** What to say of words of runs-on that no runner has; empty: each is known. */
export const unknownAmong = (words: readonly string[], executors: readonly Pick<ExecutorView, "offers">[]): string =>
  tellLabels(
    unknownLabels(
      words.map((word) => `${prefix}${word}`),
      executors,
    ),
  );

/** `missing` are labels that the nearest runner lacks: of them, those that no runner has at all. */
export function unknownLabels(
  missing: readonly string[],
  executors: readonly Pick<ExecutorView, "offers">[],
): readonly UnknownLabel[] {
  const unknown = (wordsIn: (labels: readonly string[]) => readonly string[]): readonly UnknownLabel[] => {
    const known = [...new Set(executors.flatMap(({ offers }) => wordsIn(offers)))].toSorted();
    return wordsIn(missing)
      .filter((label) => !known.includes(label))
      .map((label) => {
        const near = nearest(label, known);
        return { label, ...(near !== undefined && { nearest: near }) };
      });
  };
  return [...unknown(runnerLabels), ...unknown(groupsIn).map((one) => ({ ...one, isGroup: true as const }))];
}

export function tellLabels(unknown: readonly UnknownLabel[]): string {
  const said = (what: string, isGroup: boolean): readonly string[] => {
    const each = unknown
      .filter((one) => (one.isGroup === true) === isGroup)
      .map(({ label, nearest: near }) => (near === undefined ? `"${label}"` : `"${label}" (is "${near}" meant?)`));
    return each.length === 0 ? [] : [`no runner ${what} ${each.join(" or ")}`];
  };
  return [...said("has the label", false), ...said("is in the group", true)].join("; ");
}
