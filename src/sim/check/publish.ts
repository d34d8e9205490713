/** Results that are to be published are, before their job has succeeded; and nothing else is (ADR 0020). */
import type { Publication } from "#shard/outbox/outbox.ts";
import type { EventOf } from "#kernel/model/event.ts";
import { where } from "./log.ts";
import type { Checker, Court } from "./court.ts";
import { isOver, type ModelJob, type ModelPublication, type ShardModel } from "#sim/model/model.ts";

export const committedIsPublished: Checker = {
  invariant: "publication",
  promise: "what is published was committed, and a job has succeeded only when all that it asked for was published",
  published(court, publication, by) {
    const complaint = unfounded(court, publication);
    return complaint && `${by.name} published ${JSON.stringify(publication)}: ${complaint}`;
  },
  event(court, { model }, event) {
    if (event.kind === "job-ended" && event.phase === "SUCCEEDED") {
      const open = openOf(model, model.jobs.get(event.job)).find((one) => !isKnown(court, model, one));
      return open && `${String(where(model, event))}: the result of task ${open.task} is not published`;
    }
    if (event.kind === "publishing-given-up") return givenUp(model, event);
    return event.kind === "published" ? published(court, model, event) : undefined;
  },
  end(court) {
    for (const model of court.models)
      for (const { task, standing } of model.publications.values())
        if (standing === "waiting") return `shard ${model.shard}: the result of task ${task} was never published`;
    return undefined;
  },
};

function unfounded(court: Court, { shard, task, generation, publish, tenant, door }: Publication): string | undefined {
  const known = court.models[shard]?.publications.get(`${task}/${generation}`);
  if (!known) return "no such result is in the log";
  if (known.publish !== publish) return `the log has ${known.publish}`;
  const { job } = known;
  return job.tenant === tenant && job.door === door ? undefined : "it is another's";
}

function published(court: Court, model: ShardModel, event: EventOf<"published">): string | undefined {
  const at = String(where(model, event));
  const one = model.publications.get(`${event.task}/${event.generation}`);
  if (one?.standing !== "waiting" || one.job.no !== event.job) return `${at}: nothing of the kind was waiting`;
  return isKnown(court, model, one) ? undefined : `${at}: nobody outside knows it`;
}

function givenUp(model: ShardModel, event: EventOf<"publishing-given-up">): string | undefined {
  const job = model.jobs.get(event.job);
  const at = String(where(model, event));
  if (!job || !isOver(job.phase)) return `${at}: the job goes on`;
  return openOf(model, job).length > 0 ? undefined : `${at}: nothing of it was waiting`;
}

const openOf = (model: ShardModel, job: ModelJob | undefined): readonly ModelPublication[] =>
  [...model.publications.values()].filter((one) => one.job === job && one.standing === "waiting");

const isKnown = (court: Court, { shard }: ShardModel, { task, generation }: ModelPublication): boolean =>
  court.isKnown(shard, task, generation);
