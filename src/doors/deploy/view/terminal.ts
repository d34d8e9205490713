/** A release in a terminal: lines for what has changed, and a table of regions and waves. Pure. */
import { tableLines } from "#door/table.ts";
import { shownStates } from "./machine-state.ts";
import type { ShownRelease } from "./release-view.ts";

/** What is worth a line of its own since the last look; everything at the first. */
export function newLines(shown: ShownRelease, before: ShownRelease | undefined): readonly string[] {
  const lines: string[] = [];
  if (!before) lines.push(`${shown.job} ${shown.service} ${shown.sha?.slice(0, 12) ?? "rollback"}`);
  if (shown.paused !== (before?.paused ?? null))
    lines.push(shown.paused === null ? "goes on" : `paused by ${shown.paused}`);
  for (const { name, phase, why } of shown.stages) {
    const known = before?.stages.find((one) => one.name === name);
    if (phase === "BLOCKED" || (known?.phase === phase && wordsOf(known.why) === wordsOf(why))) continue;
    lines.push(`${name} ${phase.toLowerCase()}${why === "" ? "" : `: ${why}`}`);
  }
  return lines;
}

/** Numbers that count down or up are no news. */
const wordsOf = (why: string): string => why.replace(/\d+/g, "#");

/** One row for each region: its waves, and its machines by state. */
export function gridLines({ waves, regions }: ShownRelease): readonly string[] {
  const headings = ["REGION", "GOAL", ...waves.map(({ wave }) => `WAVE ${wave}`), "MACHINES"];
  const rows = regions.map(({ region, version, halted, machines, states }) => [
    region,
    halted ? `${version} HALTED` : String(version),
    ...waves.map((wave) => {
      const cell = wave.regions.find((one) => one.region === region);
      return cell ? `${cell.running}/${cell.machines}${signs[wave.state]}` : "";
    }),
    [
      String(machines),
      ...shownStates.filter((state) => states[state] > 0).map((state) => `${states[state]} ${state}`),
    ].join(", "),
  ]);
  return tableLines(headings, rows);
}

const signs = { waiting: "", running: " …", passed: " ✔", failed: " ✖", skipped: " -" } as const;

export const endLine = ({ job, phase, reason }: ShownRelease): string =>
  `${phase === "SUCCEEDED" ? "✔" : "✖"} ${job} ${phase.toLowerCase()}${reason === "" ? "" : `: ${reason}`}`;
