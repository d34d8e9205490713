/** How jobs are shown to people: what all jobs have in common, and what the door of each adds. */
import { JobFollower, viewJob, viewWhy } from "#door/view.ts";
import type { JobView } from "#kernel/read/query.ts";
import { doorOfJob } from "./door-kinds.ts";

export const followJob = (jobId: string): JobFollower =>
  new JobFollower(jobId, (door, payload) => doorOfJob(door)?.shows?.result?.(payload));

export const showWhy = viewWhy;

export const showJob = (jobId: string, view: JobView, nowMs: number): readonly string[] => [
  ...viewJob(jobId, view, nowMs),
  ...(doorOfJob(view.door)?.shows?.show?.(jobId, view) ?? []),
];

/** What the job's door adds to why its tasks are where they are. */
export const explainJob = (jobId: string, view: JobView): readonly string[] =>
  doorOfJob(view.door)?.shows?.why?.(jobId, view) ?? [];
