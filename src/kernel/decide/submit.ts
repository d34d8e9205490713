/** Submitting a job once, joining an equal job (or only joining), and leaving it again. */
import { newestFeatures, retriesByReason, taskLocks, tooNew } from "./feature.ts";
import { isPlainTemplate, mergeKeyOf, requestKeyOf } from "#kernel/apply/job.ts";
import type { CommandOf, Submit } from "#kernel/model/command.ts";
import { accept, type Decision, reject } from "./decision.ts";
import type { Job } from "#kernel/model/entities.ts";
import type { Event, EventOf } from "#kernel/model/event.ts";
import { displacements } from "#kernel/apply/settle-locks.ts";
import { isJobOver } from "#kernel/apply/moves.ts";
import type { Evidence, Notice } from "#kernel/model/model.ts";
import type { Rejection } from "#kernel/model/rejection.ts";
import { noMemoryForJob, noMemoryForMore } from "#kernel/memory/free-memory.ts";
import type { State } from "#kernel/model/state.ts";
import { wrongReferences } from "#kernel/model/text-reference.ts";
import { wrongNotices } from "./notice.ts";
import { wrongTags } from "./tags.ts";
import { wrongSubmit } from "./validate.ts";
import { visibleJob } from "#kernel/read/visible.ts";
import { bytesOfSubscriber } from "#kernel/memory/weigh.ts";

type Mutable<T> = { -readonly [K in keyof T]: T[K] };

export function decideSubmit(state: State, submit: Submit, nowMs: number): Decision {
  const wrong =
    wrongSubmit(submit, state.limits) ??
    wrongReferences(submit) ??
    tooNewIn(state, submit) ??
    wrongExtras(state, submit);
  if (wrong) return reject(wrong);
  const key = submit.requestKey === undefined ? undefined : requestKeyOf(submit.tenant, submit.door, submit.requestKey);
  const known = key === undefined ? undefined : boundJob(state, key, submit, nowMs);
  if (known) {
    // K1: the same request again gets the same job; a different request under the same key is the caller's mistake.
    if (known.payloadHash !== submit.payloadHash)
      return reject({ kind: "key-reused", key: submit.requestKey ?? "", job: known.job });
    const number = state.jobs.get(known.job)?.extras?.series?.number;
    return accept({ job: known.job, created: false, merged: false, ...(number === undefined ? {} : { number }) });
  }
  const keyUntilMs = nowMs + state.limits.keyRetentionMs;
  const merged = mergeTarget(state, submit);
  if (merged) return join(state, merged, submit, { key, keyUntilMs, nowMs });
  if (submit.joinOnly) return reject({ kind: "nothing-to-join", mergeKey: submit.mergeKey ?? "" });
  const full = noMemoryForJob(state, submit) ?? noSeriesLeft(state, submit);
  if (full) return reject(full);
  const unproven =
    submit.reuse &&
    wrongEvidence(
      submit.reuse.flatMap(({ result }) => result.digests),
      submit.reuseEvidence,
    );
  if (unproven) return reject(unproven);
  const job = state.nextJob;
  // Built field by field: one object spread per optional field costs more than everything else here.
  const submitted: Mutable<EventOf<"job-submitted">> = {
    kind: "job-submitted",
    job,
    firstTask: state.nextTask,
    tenant: submit.tenant,
    door: submit.door,
    name: submit.name,
    payloadHash: submit.payloadHash,
    priority: submit.priority,
    spec: submit.spec,
    stages: submit.stages,
    deadlineAtMs: nowMs + submit.deadlineMs,
    at: nowMs,
  };
  if (key !== undefined) {
    submitted.key = key;
    submitted.keyUntilMs = keyUntilMs;
  }
  if (submit.mergeKey !== undefined) submitted.mergeKey = submit.mergeKey;
  if (submit.subscriber !== undefined) submitted.subscriber = submit.subscriber;
  if (submit.leaveGraceMs !== undefined) submitted.leaveGraceMs = submit.leaveGraceMs;
  if (submit.cancelGraceMs !== undefined) submitted.cancelGraceMs = submit.cancelGraceMs;
  if (submit.lock !== undefined) submitted.lock = submit.lock;
  if (submit.reuse !== undefined && submit.reuse.length > 0) submitted.reuse = submit.reuse;
  if (submit.trace !== undefined) submitted.trace = submit.trace;
  if (submit.tags !== undefined && submit.tags.length > 0)
    submitted.tags = submit.tags.map(({ name, value }) => ({ name, value }));
  if (submit.notify !== undefined && submit.notify.length > 0) submitted.notify = submit.notify.map(noticeOf);
  if (submit.tracked === true && !tooNew(state, "tracked")) submitted.tracked = true;
  const number = submit.series === undefined ? undefined : nextOf(state, submit);
  if (submit.series !== undefined && number !== undefined) submitted.series = { name: submit.series, number };
  const events: Event[] = [submitted];
  if (submit.lock) {
    events.push({ kind: "lock-queued", job, stage: -1, at: nowMs });
    events.push(...displacements(state, submit.tenant, submit.lock, nowMs));
  }
  if (number !== undefined) return accept({ job, created: true, merged: false, number }, events);
  return accept({ job, created: true, merged: false }, events);
}

export function decideLeave(state: State, command: CommandOf<"leave">, nowMs: number): Decision {
  const job = visibleJob(state, command);
  if (!job) return reject({ kind: "job-unknown", job: command.job });
  if (isJobOver(job) || !job.audience?.subscribers.has(command.subscriber)) return accept({ left: true });
  return accept({ left: true }, [{ kind: "job-left", job: job.no, subscriber: command.subscriber, at: nowMs }]);
}

/** What an older program in the cluster could not read back. */
function tooNewIn(state: State, { cancelGraceMs, stages }: Submit): Rejection | undefined {
  if (state.featureLevel >= retriesByReason) return undefined;
  const typed = stages.findIndex(({ tasks }) => tasks?.template.retries);
  if (typed !== -1) return tooNew(state, `stages[${typed}].tasks.template.retries`, retriesByReason);
  if (state.featureLevel >= taskLocks) return undefined;
  const locked = stages.findIndex(({ tasks }) => tasks?.template.lock);
  if (locked !== -1) return tooNew(state, `stages[${locked}].tasks.template.lock`, taskLocks);
  if (state.featureLevel >= newestFeatures) return undefined;
  if (cancelGraceMs !== undefined) return tooNew(state, "cancelGraceMs");
  const at = stages.findIndex(({ tasks }) => tasks && !isPlainTemplate(tasks.template));
  if (at !== -1) return tooNew(state, `stages[${at}].tasks.template`);
  const array = stages.findIndex(({ tasks, manifest }) => tasks?.array || manifest !== undefined);
  return array === -1 ? undefined : tooNew(state, `stages[${array}].tasks.array`);
}

/** The job that the key is bound to, from memory, or from the journal if memory no longer has the key. */
function boundJob(
  state: State,
  key: string,
  submit: Submit,
  nowMs: number,
): { readonly job: number; readonly payloadHash: string } | undefined {
  const bound = state.keys.get(key);
  if (bound) return bound.untilMs > nowMs ? bound : undefined;
  return submit.keyFound;
}

/** Field by field: extra fields of the caller's must not get into the log. */
const noticeOf = ({ shard, job, stage, name }: Notice): Notice => ({ shard, job, stage, name });

const nextOf = ({ series }: State, { tenant, door, series: name = "" }: Submit): number =>
  series.last(tenant, door, name) + 1;

function wrongExtras(state: State, { tags, series, notify, tracked }: Submit): Rejection | undefined {
  if (tags === undefined && series === undefined && notify === undefined && tracked === undefined) return undefined;
  const wrong =
    (tags === undefined ? undefined : wrongTags("tags", tags, state.limits)) ??
    (notify === undefined ? undefined : wrongNotices("notify", notify, state.limits));
  if (wrong) return wrong;
  if (tracked !== undefined && typeof tracked !== "boolean")
    return { kind: "invalid", path: "tracked", why: "must be true or false" };
  // An older cluster does not track jobs: no reason to refuse them.
  const path = tags ? "tags" : notify ? "notify" : series === undefined ? undefined : "series";
  return path === undefined ? undefined : tooNew(state, path);
}

function noSeriesLeft({ series, limits }: State, { tenant, door, series: name }: Submit): Rejection | undefined {
  const { seriesMax: limit } = limits;
  if (name === undefined || series.countOf(tenant) < limit || series.last(tenant, door, name) > 0) return undefined;
  return { kind: "limit", what: "series of the tenant", limit, got: limit + 1 };
}

function mergeTarget(state: State, submit: Submit): Job | undefined {
  if (submit.mergeKey === undefined) return undefined;
  return state.merges.get(mergeKeyOf(submit.tenant, submit.door, submit.mergeKey));
}

function join(
  state: State,
  job: Job,
  submit: Submit,
  given: { key: string | undefined; keyUntilMs: number; nowMs: number },
): Decision {
  const { subscribersMax } = state.limits;
  const { size = 0 } = job.audience?.subscribers ?? {};
  // A caller that is already subscribed gets the same answer again.
  if (size >= subscribersMax && !isSubscribed(job, submit))
    return reject({ kind: "limit", what: "subscribers", limit: subscribersMax, got: subscribersMax + 1 });
  const full = isNewSubscriber(job, submit)
    ? noMemoryForMore(state, job, bytesOfSubscriber(submit.subscriber ?? ""), "new")
    : undefined;
  if (full) return reject(full);
  const number = job.extras?.series?.number;
  return accept({ job: job.no, created: false, merged: true, ...(number === undefined ? {} : { number }) }, [
    {
      kind: "job-joined",
      job: job.no,
      ...(submit.subscriber === undefined ? {} : { subscriber: submit.subscriber }),
      ...(given.key === undefined ? {} : { key: given.key, keyUntilMs: given.keyUntilMs }),
      payloadHash: submit.payloadHash,
      // The most urgent subscriber sets the priority of the job.
      priority: Math.max(job.priority, submit.priority),
      at: given.nowMs,
    },
  ]);
}

/** Subscribers are remembered only for jobs that end when the last one leaves. */
const isNewSubscriber = (job: Job, submit: Submit): boolean =>
  job.audience !== undefined && submit.subscriber !== undefined && !isSubscribed(job, submit);

const isSubscribed = ({ audience }: Job, { subscriber }: Submit): boolean =>
  subscriber !== undefined && audience?.subscribers.has(subscriber) === true;

const nothingPinned: Evidence = { digests: [], pinnedForMs: 0 };

/** K3: the receiving node vouches that each blob is pinned, and for how long. */
export function wrongEvidence(digests: readonly string[], evidence: Evidence | undefined): Rejection | undefined {
  const { digests: pinned, pinnedForMs } = evidence ?? nothingPinned;
  // Usually the pin was taken for exactly these digests, in this order.
  const missing = digests.find((digest, i) => pinned[i] !== digest && !pinned.includes(digest));
  if (missing !== undefined) return { kind: "evidence-missing", digest: missing };
  return digests.length === 0 || pinnedForMs > 0 ? undefined : { kind: "evidence-expired", pinnedForMs };
}
