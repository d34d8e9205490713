/** How jobs are shown to people, for those who may not know the doors themselves. */
import { JobFollower, viewJob, viewWhy } from "#doors/shell/view.ts";

export const followJob = (jobId: string): JobFollower => new JobFollower(jobId);
export const showJob = viewJob;
export const showWhy = viewWhy;
