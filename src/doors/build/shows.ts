/** Jobs of this door, in `millrace job show`. */
import type { ShownJobs } from "#door/door.ts";
import type { JobView } from "#kernel/read/query.ts";
import { buildsDoor } from "./builds/plan-build.ts";
import { readOutcome } from "./run/outcome.ts";

export const shows: ShownJobs = {
  show: (jobId, view) => (view.door === buildsDoor ? ofBuild(jobId, view) : ofAction(jobId, view)),
};

function ofBuild(jobId: string, { tasks }: JobView): readonly string[] {
  return tasks.some(({ phase }) => phase === "FAILED")
    ? [`what its actions printed: millrace build show ${jobId}, millrace why ${jobId} ACTION`]
    : [];
}

/** A job has done what it should when its command has ended, however that did: it is said apart. */
function ofAction(jobId: string, { tasks }: JobView): readonly string[] {
  const outcome = readOutcome(tasks.find(({ planning }) => !planning)?.result);
  if (!outcome) return [];
  const { exitCode, code } = outcome;
  if (code === 0 && exitCode === 0) return [];
  const status = code === 0 ? "" : `, with status ${code}`;
  return [`its command ended with exit code ${exitCode}${status}; what it printed: millrace why ${jobId}`];
}
