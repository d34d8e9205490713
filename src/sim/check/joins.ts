/** Merging: a submission that joins gets a live job and counts for it, and one that only joins starts no job. */
import type { CommandOf } from "#kernel/model/command.ts";
import type { Replies } from "#kernel/model/reply.ts";
import { where } from "./log.ts";
import type { Checker } from "./court.ts";
import { isUnderWay, type ShardModel } from "#sim/model/model.ts";

export const joinsWhatIsUnderWay: Checker = {
  invariant: "merging",
  promise:
    "a job is joined only while it is live, never at a lower priority, and a submission that only joins starts no job",
  event(_court, { model }, event) {
    if (event.kind === "job-submitted" && event.stages.length === 0)
      return `${String(where(model, event))}: it has nothing to do`;
    if (event.kind !== "job-joined") return undefined;
    const job = model.jobs.get(event.job);
    if (!job || !isUnderWay(job)) return `${String(where(model, event))}: the job is ${job?.phase ?? "unknown"}`;
    return event.priority < job.priority ? `${String(where(model, event))}: it had ${job.priority}` : undefined;
  },
  said(_court, { model, request, response }) {
    if (request.kind !== "command" || request.command.kind !== "submit" || response.kind !== "reply") return undefined;
    const wrong = wronglyJoined(model, request.command, response.reply as Replies["submit"]);
    return wrong && `shard ${model.shard}, ${JSON.stringify(request.command)}: ${wrong}`;
  },
};

function wronglyJoined(
  model: ShardModel,
  { joinOnly, mergeKey, priority }: CommandOf<"submit">,
  { job: no, created, merged }: Replies["submit"],
): string | undefined {
  if (joinOnly && created) return `job ${no} was begun`;
  if (!merged) return undefined;
  const job = model.jobs.get(no);
  if (!job || job.submitted.mergeKey !== mergeKey) return `job ${no} has another merge key`;
  return job.priority < priority ? `job ${no} was left at priority ${job.priority}` : undefined;
}
