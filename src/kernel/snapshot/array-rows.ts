/** Arrays of tasks as rows of a snapshot: capture.ts writes them, restore.ts reads them. */
import type { Stage } from "#kernel/model/entities.ts";
import type { Result, TaskTemplate } from "#kernel/model/model.ts";
import { EndsPage, TaskArray } from "#kernel/model/task-array.ts";
import { bytesOfResult } from "#kernel/memory/weigh.ts";

/* oxlint-disable typescript/no-explicit-any -- rows are what capture.ts wrote; their checksums were verified before */
type Row = any[];

/** Without what says where the array belongs, and its template. */
export const arrayRow = (array: TaskArray): Row => {
  const { no, plan, next, rest, restReason, failures, troubles } = array;
  return [no, plan, next, rest ?? null, restReason, failures, troubles];
};

export function readArray(stage: Stage, template: TaskTemplate, row: Row): TaskArray {
  const [no, plan, next, rest, restReason, failures, troubles] = row;
  const array = new TaskArray(no, stage, plan, template);
  Object.assign(array, { next, rest: rest ?? undefined, restReason, troubles });
  array.failures.push(...failures);
  if (array.rest) array.ended += plan.count - next;
  return array;
}

/**
 * A page: phases as digits, then attempts and generations where they are not 1, then tokens and results. Most tasks end
 * at the first attempt.
 */
export function pageRow({ array, number, phases, attempts, generations, tokens, marks, results }: EndsPage): Row {
  const { stage } = array;
  const at = (stage.arrays ?? []).indexOf(array);
  const unusual = (list: Iterable<number>): [number, number][] =>
    [...list].flatMap((value, i): [number, number][] => (value === 1 || phases[i] === 0 ? [] : [[i, value]]));
  const texts = [phases.join(""), unusual(attempts), unusual(generations), [...tokens], [...marks]];
  return ["E", stage.job.no, stage.index, at, number, ...texts, results?.map((result) => result ?? 0) ?? null];
}

export function readPage(array: TaskArray, [number, phases, attempts, generations, tokens, marks, results]: Row): void {
  const page = new EndsPage(array, number);
  page.phases.set(Array.from(phases as string, Number));
  page.attempts.fill(1);
  for (const [i, value] of attempts) page.attempts[i] = value;
  page.generations.fill(1);
  for (const [i, value] of generations) page.generations[i] = value;
  page.tokens.set(tokens);
  page.marks.set(marks);
  if (results) page.results = (results as (Result | 0)[]).map((result) => (result === 0 ? undefined : result));
  for (const result of page.results ?? []) array.resultBytes += bytesOfResult(result);
  for (const phase of page.phases) if (phase !== 0) array.ended += 1;
  array.pages[number] = page;
}
