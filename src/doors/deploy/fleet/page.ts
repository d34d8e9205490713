/**
 * Machines as pages, in the order of their names: no one is shown 100,000 at once. Each node answers with the first of
 * its own after the cursor, and the node that was asked merges them. Pure.
 *
 * PG1 No machine between two cursors is left out: where a node has more, nothing behind its last one is shown.
 * PG2 A machine is shown once: as the node has it that holds its stream, else by its newest report.
 */
import { z } from "zod";
import { Goal } from "#doors/deploy/goal/goal.ts";
import { shownStates } from "#doors/deploy/view/machine-state.ts";
import { driftOf } from "./drift.ts";
import type { Known } from "./tally.ts";

export const PageQuestion = z.object({
  tenant: z.string(),
  /** The last name of the page before. */
  after: z.string(),
  limit: z.number(),
  regions: z.array(z.string()).optional(),
  service: z.string().optional(),
  state: z.enum(shownStates).optional(),
  /** Only machines that run something other than these goals say. */
  drift: z.array(Goal).optional(),
});
export type PageQuestion = z.output<typeof PageQuestion>;

export type Page = { readonly machines: readonly Known[]; readonly isMore: boolean };

const silentAfterMs = 30_000;

export function pageOf(known: readonly Known[], question: PageQuestion): Page {
  const all = known
    .filter((one) => one.machine > question.after && isWanted(one, question))
    .toSorted((a, b) => (a.machine < b.machine ? -1 : 1));
  return { machines: all.slice(0, question.limit), isMore: all.length > question.limit };
}

function isWanted(one: Known, { tenant, regions, service, state, drift }: PageQuestion): boolean {
  if (one.tenant !== tenant || (regions && !regions.includes(one.region))) return false;
  if (drift) return drift.some((goal) => driftOf(one, goal) !== undefined);
  if (service === undefined && state === undefined) return true;
  const reports = one.reports.filter((report) => service === undefined || report.service === service);
  if (state === undefined) return reports.length > 0;
  if (state === "silent") return !one.isHeld || reports.some(({ agoMs }) => agoMs > silentAfterMs);
  const said = state === "waiting" ? "idle" : state;
  return reports.some((report) => report.state === said);
}

/** What the nodes' pages are together; `next` is the cursor of the following page, null after the last one. */
export function mergePages(
  pages: readonly Page[],
  limit: number,
): { readonly machines: readonly Known[]; readonly next: string | null } {
  const ends = pages.flatMap(({ machines, isMore }) => (isMore ? (machines.at(-1)?.machine ?? []) : []));
  const end = ends.toSorted()[0]; // PG1
  const shown = new Map<string, Known>();
  for (const one of pages.flatMap(({ machines }) => machines)) {
    if (end !== undefined && one.machine > end) continue;
    const known = shown.get(one.machine);
    if (!known || isBetter(one, known)) shown.set(one.machine, one);
  }
  const sorted = [...shown.values()].toSorted((a, b) => (a.machine < b.machine ? -1 : 1));
  const machines = sorted.slice(0, limit);
  return { machines, next: sorted.length > limit ? (machines.at(-1)?.machine ?? null) : (end ?? null) };
}

const isBetter = (a: Known, b: Known): boolean => (a.isHeld === b.isHeld ? a.agoMs < b.agoMs : a.isHeld);
