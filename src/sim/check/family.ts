/** Numbers of series, and ends that are told: each once (ADR 0075, ADR 0076). */
import { formatJob } from "#base/ids.ts";
import type { EventOf } from "#kernel/model/event.ts";
import { isOver, isUnderWay, type ShardModel } from "#sim/model/model.ts";
import type { Checker, Court } from "./court.ts";
import { where } from "./log.ts";

export const numbersOnce: Checker = {
  invariant: "series",
  promise: "each number of a series is given to one job, in order",
  event(_court, { model }, event) {
    if (event.kind !== "job-submitted" || !event.series) return undefined;
    const { name, number } = event.series;
    const last = model.series.get(`${event.tenant} ${event.door} ${name}`) ?? 0;
    return number === last + 1 ? undefined : `${String(where(model, event))} gives ${number} of ${name} after ${last}`;
  },
};

export const endsAreTold: Checker = {
  invariant: "notice",
  promise: "who asked to be told of a job's end is told, once, and of nothing else",
  event(court, { model }, event) {
    if (event.kind === "signalled" && event.id.startsWith("ended ")) return checkNotice(court, model, event);
    return event.kind === "notified" ? notified(court, model, event) : undefined;
  },
  end(court) {
    for (const model of court.models)
      for (const owed of model.owed.keys()) return `shard ${model.shard}: ${owed} (job, notice) was never told`;
    return undefined;
  },
};

function checkNotice(court: Court, model: ShardModel, event: EventOf<"signalled">): string | undefined {
  const at = String(where(model, event));
  if (model.stage(event.job, event.stage)?.signals.has(event.id)) return `${at}: ${event.id} is told twice`;
  for (const source of court.models)
    for (const { no, phase, submitted } of source.jobs.values())
      for (const [i, notice] of (submitted.notify ?? []).entries()) {
        if (`ended ${formatJob(source.shard, no)} ${i}` !== event.id) continue;
        const isMeant = notice.shard === model.shard && notice.job === event.job && notice.stage === event.stage;
        return isMeant && isOver(phase) ? undefined : `${at}: ${event.id} is told, and that job is ${phase}`;
      }
  return `${at}: ${event.id} is told, and nobody asked for it`;
}

function notified(court: Court, model: ShardModel, event: EventOf<"notified">): string | undefined {
  const at = String(where(model, event));
  const notice = model.owed.get(`${event.job}/${event.notice}`);
  if (!notice) return `${at}: nothing of the kind was to be told`;
  const target = court.models[notice.shard];
  const stage = target?.stage(notice.job, notice.stage);
  const isRecorded = stage?.signals.has(`ended ${formatJob(model.shard, event.job)} ${event.notice}`) === true;
  if (event.outcome === "delivered") return isRecorded ? undefined : `${at}: nobody was told`;
  // A stage with too many signals refuses more.
  const isOpen = stage !== undefined && isUnderWay(stage.job) && stage.signals.size < 2;
  return event.outcome === "refused" && isOpen ? `${at}: the one to be told goes on` : undefined;
}
