import { noRows, type Rows } from "#kernel/history.ts";

export const countRows = ({ jobs, stages, tasks, attempts, steps }: Rows): number =>
  jobs.length + stages.length + tasks.length + attempts.length + steps.length;

/** All rows in order, the last word on each thing only: a database takes a key once in a statement. */
export function mergeRows(parts: readonly Rows[]): Rows {
  const merged = noRows();
  lastOfEach(
    parts.flatMap(({ jobs }) => jobs),
    ({ job }) => job,
    merged.jobs,
  );
  lastOfEach(
    parts.flatMap(({ stages }) => stages),
    ({ job, stage }) => `${job} ${stage}`,
    merged.stages,
  );
  lastOfEach(
    parts.flatMap(({ tasks }) => tasks),
    ({ task }) => task,
    merged.tasks,
  );
  lastOfEach(
    parts.flatMap(({ attempts }) => attempts),
    ({ task, token }) => `${task} ${token}`,
    merged.attempts,
  );
  lastOfEach(
    parts.flatMap(({ steps }) => steps),
    (row) => `${row.task} ${row.token} ${row.step}`,
    merged.steps,
  );
  return merged;
}

function lastOfEach<T>(rows: readonly T[], keyOf: (row: T) => string | number, into: T[]): void {
  if (rows.length === 0) return;
  const byKey = new Map<string | number, T>();
  for (const row of rows) byKey.set(keyOf(row), row);
  for (const row of byKey.values()) into.push(row);
}

/** The same rows in parts of at most so many. */
export function splitRows({ jobs, stages, tasks, attempts, steps }: Rows, rowsMax: number): readonly Rows[] {
  const cut = <T>(rows: readonly T[], as: (part: T[]) => Partial<Rows>): readonly Partial<Rows>[] =>
    Array.from({ length: Math.ceil(rows.length / rowsMax) }, (_, i) => as(rows.slice(i * rowsMax, (i + 1) * rowsMax)));
  const whole = { jobs, stages, tasks, attempts, steps };
  if (countRows(whole) <= rowsMax) return [whole];
  // A job comes after all that is its own.
  const parts = [
    ...cut(stages, (part) => ({ stages: part })),
    ...cut(tasks, (part) => ({ tasks: part })),
    ...cut(attempts, (part) => ({ attempts: part })),
    ...cut(steps, (part) => ({ steps: part })),
    ...cut(jobs, (part) => ({ jobs: part })),
  ];
  return parts.map((part) => ({ ...noRows(), ...part }));
}
