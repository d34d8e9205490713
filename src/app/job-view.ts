/** How jobs are shown to people, for those who may not know the doors themselves. */
import { buildsDoor } from "#doors/build/builds/plan-build.ts";
import { door as buildDoor } from "#doors/build/plan.ts";
import { readOutcome } from "#doors/build/run/outcome.ts";
import { JobFollower, viewJob, viewWhy } from "#doors/shell/view.ts";
import type { JobView } from "#kernel/read/query.ts";

export const followJob = (jobId: string): JobFollower => new JobFollower(jobId);
export const showWhy = viewWhy;

export const showJob = (jobId: string, view: JobView, nowMs: number): readonly string[] => [
  ...viewJob(jobId, view, nowMs),
  ...endingsOf(jobId, view),
];

/** A job has done what it should when its command has ended, however that did: it is said apart. */
function endingsOf(jobId: string, { door, tasks }: JobView): readonly string[] {
  if (door === buildsDoor && tasks.some(({ phase }) => phase === "FAILED"))
    return [`what its actions printed: millrace build show ${jobId}, millrace why ${jobId} ACTION`];
  if (door !== buildDoor) return [];
  const outcome = readOutcome(tasks.find(({ planning }) => !planning)?.result);
  if (!outcome) return [];
  const { exitCode, code } = outcome;
  if (code === 0 && exitCode === 0) return [];
  const status = code === 0 ? "" : `, with status ${code}`;
  return [`its command ended with exit code ${exitCode}${status}; what it printed: millrace why ${jobId}`];
}
