/** What only the engine knows of a run, for its github context: its id, its number, and how often it was started. */
import type { WorkClient } from "#shard/client/client.ts";
import type { PlainValue } from "#doors/ci/workflow/expression/value.ts";
import { numericRunId } from "#doors/ci/job/run-id.ts";
import type { RunAbout, RunRecord } from "./record.ts";

export type RunFacts = { readonly jobId: string; readonly number: number; readonly attempt: number };

export async function runFacts(
  client: Pick<WorkClient, "job">,
  jobId: string,
  { attempt = 1, number }: RunAbout,
): Promise<RunFacts> {
  const { view } = await client.job(jobId, { tasksMax: 0 });
  return { jobId, number: number ?? view.series?.number ?? 1, attempt };
}

/** A run that is started again has the same record, so they are no part of it. */
export function withRunFacts(record: RunRecord, { jobId, number, attempt }: RunFacts): RunRecord {
  const github = record.github as Readonly<Record<string, PlainValue>>;
  const own = { run_id: String(numericRunId(jobId)), run_number: String(number), run_attempt: String(attempt) };
  return { ...record, github: { ...github, ...own } };
}

/** Most files name none of them, and then no plan asks for them. */
export const asksForFacts = ({ file, called = [] }: RunRecord): boolean =>
  [file, ...called].some(({ text }) => /run_(?:id|number|attempt)|toJSON\s*\(\s*github/i.test(text));
