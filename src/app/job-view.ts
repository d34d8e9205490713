/** How jobs are shown to people: what all jobs have in common, and what the door of each adds. */
import { JobFollower, viewBesides, viewJob, viewWhy } from "#door/view.ts";
import type { Door } from "#door/door.ts";
import type { JobView, Why, WhyBesides } from "#kernel/read/query.ts";
import { doorOfJob } from "./door-kinds.ts";
import { doors } from "./doors.ts";

/** `besideOutput`: the output of tasks is shown as well, so less has to be said about them. */
export const followJob = (
  jobId: string,
  { besideOutput = false, of = doors }: { readonly besideOutput?: boolean; readonly of?: readonly Door[] } = {},
): JobFollower =>
  new JobFollower(
    jobId,
    besideOutput ? "beside-output" : (door, payload) => doorOfJob(door, of)?.shows?.result?.(payload),
  );

export const showWhy = (why: Pick<Why, "because"> & WhyBesides): string =>
  [viewWhy(why.because), ...viewBesides(why)].join("; ");

export const showJob = (jobId: string, view: JobView, nowMs: number, of = doors): readonly string[] => [
  ...viewJob(jobId, view, nowMs),
  ...(doorOfJob(view.door, of)?.shows?.show?.(jobId, view) ?? []),
];

/** What the job's door adds to why its tasks are where they are. */
export const explainJob = (jobId: string, view: JobView, of = doors): readonly string[] =>
  doorOfJob(view.door, of)?.shows?.why?.(jobId, view) ?? [];
