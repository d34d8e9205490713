import type { StepRow } from "#base/history-rows.ts";
import { noRows, type Rows } from "#kernel/read/history.ts";

export const countRows = ({ jobs, stages, tasks, attempts, steps, submissions }: Rows): number =>
  jobs.length + stages.length + tasks.length + attempts.length + steps.length + (submissions?.length ?? 0);

/**
 * All rows in order. Of the reports of a step only the last is kept: a step is often reported twice within a moment.
 * Other rows rarely repeat, and a store that accepts a key only once per statement handles that itself.
 */
export function mergeRows(parts: readonly Rows[]): Rows {
  const [only] = parts;
  if (only && parts.length === 1 && only.steps.length === 0) return only;
  return {
    jobs: parts.flatMap(({ jobs }) => jobs),
    stages: parts.flatMap(({ stages }) => stages),
    tasks: parts.flatMap(({ tasks }) => tasks),
    attempts: parts.flatMap(({ attempts }) => attempts),
    steps: lastOfEach(parts.flatMap(({ steps }) => steps)),
    submissions: parts.flatMap(({ submissions = [] }) => submissions),
  };
}

function lastOfEach(steps: StepRow[]): StepRow[] {
  if (steps.length < 2) return steps;
  return [...new Map(steps.map((row) => [`${row.task} ${row.token} ${row.step}`, row])).values()];
}

/** The same rows in parts of limited size. */
export function splitRows(
  { jobs, stages, tasks, attempts, steps, submissions = [] }: Rows,
  rowsMax: number,
): readonly Rows[] {
  const cut = <T>(rows: readonly T[], as: (part: T[]) => Partial<Rows>): readonly Partial<Rows>[] =>
    Array.from({ length: Math.ceil(rows.length / rowsMax) }, (_, i) => as(rows.slice(i * rowsMax, (i + 1) * rowsMax)));
  const whole = { jobs, stages, tasks, attempts, steps, submissions };
  if (countRows(whole) <= rowsMax) return [whole];
  // A job's row comes after all rows that belong to it.
  const parts = [
    ...cut(stages, (part) => ({ stages: part })),
    ...cut(tasks, (part) => ({ tasks: part })),
    ...cut(attempts, (part) => ({ attempts: part })),
    ...cut(steps, (part) => ({ steps: part })),
    ...cut(submissions, (part) => ({ submissions: part })),
    ...cut(jobs, (part) => ({ jobs: part })),
  ];
  return parts.map((part) => ({ ...noRows(), ...part }));
}
