/** Labels that no runner has, and what was probably meant. Pure. */
import { nearest } from "#base/nearest.ts";
import type { ExecutorView } from "#kernel/read/query.ts";

export type UnknownLabel = { readonly label: string; readonly nearest?: string };

const prefix = "runner=";

/** Of what a job asks for, the labels of runs-on. */
export const runnerLabels = (requires: readonly string[]): readonly string[] =>
  requires.flatMap((label) => (label.startsWith(prefix) ? [label.slice(prefix.length)] : []));

/** `missing` are labels that the nearest runner lacks: of them, those that no runner has at all. */
export function unknownLabels(
  missing: readonly string[],
  executors: readonly Pick<ExecutorView, "offers">[],
): readonly UnknownLabel[] {
  const known = [...new Set(executors.flatMap(({ offers }) => runnerLabels(offers)))].toSorted();
  return runnerLabels(missing)
    .filter((label) => !known.includes(label))
    .map((label) => {
      const near = nearest(label, known);
      return { label, ...(near !== undefined && { nearest: near }) };
    });
}

export function tellLabels(unknown: readonly UnknownLabel[]): string {
  const each = unknown.map(({ label, nearest: near }) =>
    near === undefined ? `"${label}"` : `"${label}" (is "${near}" meant?)`,
  );
  return `no runner has the label ${each.join(" or ")}`;
}
