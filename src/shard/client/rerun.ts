/** Submits a job again, from what history kept of its submission. */
import { Fault } from "#base/fault.ts";
import type { JobHistory } from "#journal/journal.ts";
import type { Submit } from "#kernel/model/command.ts";
import type { Reuse, Tag } from "#kernel/model/model.ts";
import { isReference } from "#kernel/model/text-reference.ts";
import { listedIn } from "#kernel/model/task-set.ts";
import { isRejected } from "#shard/work/rejected.ts";
import { mapCommand } from "#shard/texts/text-fields.ts";

/** The tag that names the job that was repeated. */
export const rerunTag = "rerun-of";
const tagsMax = 16;

type Kept = Omit<Submit, "kind" | "tenant" | "door" | "series"> & { readonly series?: string };

export type RerunOptions = {
  /** Results of tasks that succeeded are taken over where the task is the same; the others run again. */
  readonly reuse?: boolean;
  readonly requestKey?: string;
};

/**
 * The submission, without its request key and its notices. `whole` reads a text that is kept in the store. Throws a
 * Fault where there is nothing to repeat.
 */
export async function rerunOf(
  jobId: string,
  history: JobHistory,
  options: RerunOptions,
  whole: ((text: string) => Promise<string>) | undefined,
): Promise<Submit> {
  const { submission, job } = history;
  const why = "its submission was not kept: its door does not track jobs, or it was too long";
  if (submission === undefined) throw new Fault("not-found", "repeat job", { job: jobId, why });
  const kept = JSON.parse(submission) as Kept;
  const { requestKey } = options;
  const again: Submit = {
    ...kept,
    kind: "submit",
    tenant: job.tenant,
    door: job.door,
    tracked: true,
    tags: withOrigin(kept.tags ?? [], jobId),
    ...(requestKey !== undefined && { requestKey }),
  };
  const submit = await withTexts(again, whole);
  if (!options.reuse) return submit;
  const reuse = reusable(history, submit);
  return reuse.length === 0 ? submit : { ...submit, reuse };
}

function withOrigin(tags: readonly Tag[], jobId: string): readonly Tag[] {
  const others = tags.filter(({ name }) => name !== rerunTag);
  if (others.length >= tagsMax) return others;
  return [...others, { name: rerunTag, value: jobId }].toSorted((a, b) => (a.name < b.name ? -1 : 1));
}

async function withTexts(submit: Submit, whole: ((text: string) => Promise<string>) | undefined): Promise<Submit> {
  const wanted = new Set<string>();
  mapCommand(submit, (text) => {
    if (isReference(text)) wanted.add(text);
    return text;
  });
  if (wanted.size === 0) return submit;
  if (!whole) throw new Fault("unavailable", "repeat job", { why: "its long texts cannot be read from here" });
  const found = new Map<string, string>();
  for (const text of wanted) found.set(text, await whole(text));
  return mapCommand(submit, (text) => found.get(text) ?? text) as Submit;
}

/** Only tasks that the submission names: what a planner found out is planned again. */
function reusable({ tasks, stages }: JobHistory, submit: Submit): readonly Reuse[] {
  const done = new Map(
    tasks.filter(({ phase }) => phase === "SUCCEEDED").map((task) => [`${task.stage} ${task.key}`, task] as const),
  );
  return submit.stages.flatMap((stage, index) => {
    const named = stages.find((row) => row.stage === index)?.name ?? stage.name;
    return [...listedIn(stage.tasks)].flatMap(({ key, spec }): readonly Reuse[] => {
      const task = done.get(`${index} ${key}`);
      if (!task) return [];
      return [{ stage: named, key, spec, result: { payload: task.result, digests: task.digests } }];
    });
  });
}

const triesMax = 20;

/** Results whose blobs are gone, or not the tenant's own, cannot be taken over: their tasks run again. */
export async function submitAgain<T>(submit: Submit, send: (submit: Submit) => Promise<T>): Promise<T> {
  let { reuse = [] } = submit;
  for (let tries = 0; ; tries += 1)
    try {
      const { reuse: _all, ...plain } = submit;
      return await send(reuse.length === 0 ? plain : { ...plain, reuse });
    } catch (error) {
      if (!isRejected(error, "evidence-missing") || reuse.length === 0) throw error;
      const { digest } = error.rejection as { readonly digest: string };
      reuse = tries >= triesMax ? [] : reuse.filter(({ result }) => !result.digests.includes(digest));
    }
}
