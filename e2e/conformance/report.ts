/** The outcomes, item by item. Pure. */
import type { Outcome } from "./suite.ts";

export function reportLines(outcomes: readonly Outcome[]): readonly string[] {
  const byItem = Map.groupBy(outcomes, ({ item }) => item);
  const items = [...byItem].toSorted(([one], [other]) => one - other);
  const lines = items.flatMap(([item, all]) => [
    `${verdict(all).padEnd(7)} ${String(item).padStart(3)}  ${counted(all)}`,
    ...all.flatMap(({ outcome, title, why }) =>
      outcome === "failed" ? [`             FAILED ${title}`, `                    ${why ?? ""}`] : [],
    ),
    ...[...new Set(all.flatMap(({ outcome, why }) => (outcome === "skipped" ? [why ?? ""] : [])))].map(
      (why) => `             skipped: ${why}`,
    ),
  ]);
  const of = (wanted: string): number => items.filter(([, all]) => verdict(all) === wanted).length;
  const cases = counted(outcomes);
  return [
    ...lines,
    "",
    `items: ${of("ok")} ok, ${of("partly")} partly, ${of("FAILED")} failed, ${of("skipped")} skipped`,
    `cases: ${cases}`,
  ];
}

/** "partly": some of its cases could not be run, and none failed. */
function verdict(all: readonly Outcome[]): string {
  if (all.some(({ outcome }) => outcome === "failed")) return "FAILED";
  const skipped = all.filter(({ outcome }) => outcome === "skipped").length;
  return skipped === 0 ? "ok" : skipped === all.length ? "skipped" : "partly";
}

function counted(all: readonly Outcome[]): string {
  const of = (wanted: Outcome["outcome"]): number => all.filter(({ outcome }) => outcome === wanted).length;
  return `${of("passed")} passed, ${of("failed")} failed, ${of("skipped")} skipped`;
}
