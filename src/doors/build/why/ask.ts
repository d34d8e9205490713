/**
 * "Why is it queued?" and "why did it run again?", for an operation, a build, an action of a build, or an action by its
 * digest. Answered from shards, history and the cache; each tenant sees only its own.
 */
import { isDigest, parseDigest, type Digest } from "#base/digest.ts";
import { parseJob } from "#base/ids.ts";
import type { Clock } from "#base/clock.ts";
import type { ActionIndex } from "#blobs/action-index.ts";
import type { Store } from "#blobs/store.ts";
import type { TaskView, Why, WhyOf } from "#kernel/read/query.ts";
import type { Job } from "#shard/client/client.ts";
import { isRejected } from "#shard/work/rejected.ts";
import { spaceOf } from "#doors/build/cache/action-cache.ts";
import { buildsDoor } from "#doors/build/builds/plan-build.ts";
import type { BuildsService } from "#doors/build/builds/service.ts";
import { stageOf, viewActions } from "#doors/build/builds/view-build.ts";
import { actionWords } from "#doors/build/builds/words.ts";
import { need } from "#doors/build/caller.ts";
import { shown } from "#doors/build/digests.ts";
import type { BuildCall } from "#doors/build/call.ts";
import { withEmpty } from "#doors/build/cache/empty-blobs.ts";
import type { ExecutionPorts } from "#doors/build/execute/execution-ports.ts";
import { refusalOfWork } from "#doors/build/execute/execution-refusals.ts";
import { checkedInstance } from "#doors/build/names.ts";
import { parseCachedName } from "#doors/build/execute/operation-names.ts";
import { door } from "#doors/build/plan.ts";
import { invalid, notFound } from "#doors/build/refusals.ts";
import type { TrustRules } from "#doors/build/cache/trust-rules.ts";
import { formatDuration } from "#base/units.ts";
import { tell } from "./difference.ts";
import { endingOf } from "./ending.ts";
import { explainMiss, type Explanation } from "./explain.ts";
import { answerOf, runOf, tellRuns, type Run } from "./runs.ts";
import type { Seen } from "./seen.ts";
import { tellWaits, type Workers } from "./words.ts";

export type WhyPorts = {
  readonly client: Pick<ExecutionPorts["client"], "job" | "jobs" | "why" | "attempts" | "nodes">;
  readonly store: Store;
  readonly index: ActionIndex;
  readonly trust: Pick<TrustRules, "isRevoked">;
  readonly seen: Seen;
  readonly builds: Pick<BuildsService, "recorded">;
  readonly clock: Clock;
};

export type WhyQuestion = {
  /** An operation's name, the id of a build or of a job, or the digest of an action. */
  readonly of: string;
  /** For a build: which action. */
  readonly key?: string | undefined;
  readonly instance?: string | undefined;
};

export type WhyAnswer = {
  readonly of: string;
  /** For people, all of it. */
  readonly lines: readonly string[];
  readonly waits: readonly Pick<Why, "key" | "phase" | "because">[];
  /** If the shard has seen no worker: what the nodes report. */
  readonly workers?: Workers;
  /** Newest first. */
  readonly runs: readonly Run[];
  /** What the cache has for the action now. */
  readonly cached?: { readonly principal: string; readonly atMs: number; readonly revoked: boolean };
  readonly miss?: Explanation;
};

export type WhyCall = Pick<BuildCall, "caller" | "signal">;

/** How many jobs are searched for runs of an action, and how many runs are listed. */
const lookMax = 5_000;
const pageMax = 1_000;
const runsMax = 5;
const tasksMax = 10_000;

export async function askWhy(ports: WhyPorts, question: WhyQuestion, call: WhyCall): Promise<WhyAnswer> {
  need(call.caller, "work.read");
  const { of } = question;
  if (isDigest(of)) return await whyAction(ports, of, checkedInstance(question.instance ?? ""), call);
  // An operation from the cache has no job, but earlier jobs may have made the result.
  const cached = parseCachedName(of);
  if (cached) return { ...(await whyAction(ports, cached.action, cached.instance, call)), of };
  const jobId = of.slice(of.lastIndexOf("/") + 1);
  if (!parseJob(jobId))
    throw invalid("name an operation, a build or a job (j0-1), or an action by its digest HASH/SIZE");
  const job = await found(ports, jobId, call);
  const { view } = job;
  if (view.door === buildsDoor && question.key !== undefined) return await whyStep(ports, job, question.key, call);
  if (view.door !== door) return await whyJob(ports, job, call);
  const [instance, action] = [of.slice(0, Math.max(0, of.indexOf("/operations/"))), view.name.split(" ")[0] ?? ""];
  const task = view.tasks.find(({ planning }) => !planning);
  const run = await endedRun(ports, job, task, action);
  const waits = await waitsOf(ports, job);
  return await answered(ports, { of, waits, runs: [run], instance }, call);
}

/** A foreign job is not found. */
async function found({ client }: WhyPorts, jobId: string, { caller, signal }: WhyCall): Promise<Job> {
  const missing = notFound(`there is no job ${jobId}`);
  try {
    const job = await client.job(jobId, { tasksMax, signal });
    if (job.view.tenant !== caller.tenant) throw missing;
    return job;
  } catch (error) {
    throw isRejected(error, "job-unknown") ? missing : refusalOfWork(error);
  }
}

const isLive = ({ view }: Job): boolean => view.endedAtMs === undefined;

/** It may have ended since it was read. */
async function waitsOf({ client }: WhyPorts, job: Job, of: WhyOf = {}): Promise<readonly Why[]> {
  if (!isLive(job)) return [];
  return await client.why(job.jobId, { of: { ...of, tenant: job.view.tenant } }).catch((error: unknown) => {
    if (isRejected(error, "job-unknown")) return [];
    throw error;
  });
}

const attemptsOf = async ({ client }: WhyPorts, job: Job) => (isLive(job) ? [] : await client.attempts(job.jobId));

/** With how its command ended: a caller that may see the operation may see its answer. */
async function endedRun(ports: WhyPorts, job: Job, task: TaskView | undefined, action: Digest): Promise<Run> {
  const { jobId, view } = job;
  const run = runOf(jobId, view, task, await attemptsOf(ports, job), action);
  const answer = answerOf(task);
  const blobs = withEmpty(ports.store.forTenant(view.tenant).blobs);
  const ending = answer && (await endingOf(answer, run.action, blobs));
  return ending ? { ...run, ending } : run;
}

/** A whole build, or a job of any other door: where its work is. */
async function whyJob(ports: WhyPorts, job: Job, call: WhyCall): Promise<WhyAnswer> {
  const waits = await waitsOf(ports, job);
  const { phase, reason } = job.view;
  const ended = isLive(job) ? [] : [`it has ended: ${phase.toLowerCase()}${reason === "" ? "" : `: ${reason}`}`];
  const answer = await answered(ports, { of: job.jobId, waits, runs: [], instance: "" }, call);
  return { ...answer, lines: [...ended, ...answer.lines] };
}

async function whyStep(ports: WhyPorts, job: Job, key: string, call: WhyCall): Promise<WhyAnswer> {
  const { jobId, view } = job;
  const task = view.tasks.find((one) => !one.planning && one.key === key);
  if (!task) return await whyUnplanned(ports, job, key, call);
  const waits = (await waitsOf(ports, job, { task: task.task })).filter((why) => why.task === task.task);
  const run = { ...(await endedRun(ports, job, task, "")), key };
  return await answered(ports, { of: `${jobId} ${key}`, waits, runs: [run], instance: "" }, call);
}

/** Its stage waits, is being planned, or was planned without it. */
async function whyUnplanned(ports: WhyPorts, job: Job, key: string, call: WhyCall): Promise<WhyAnswer> {
  const { jobId, view } = job;
  const recorded = await ports.builds.recorded(view, call);
  const status = viewActions(jobId, view, recorded).find((action) => action.key === key);
  if (!recorded || !status) throw notFound(`build ${jobId} has no action ${shown(key)}`);
  const stage = stageOf(recorded, key);
  const waits = (await waitsOf(ports, job, { stage }))
    .filter((why) => why.stage === stage && (why.task === 0 || why.key === planning))
    .map((why) => ({ ...why, key: why.task === 0 ? key : `${key}, to be planned` }));
  const answer = await answered(ports, { of: `${jobId} ${key}`, waits, runs: [], instance: "" }, call);
  if (waits.length > 0) return answer;
  const { state, message } = actionWords(status);
  return { ...answer, lines: [`${key}  ${state}${message === undefined ? "" : `: ${message}`}`, ...answer.lines] };
}

/** The kernel's name for the task that plans a stage. */
const planning = "plan";

async function whyAction(ports: WhyPorts, action: Digest, instance: string, call: WhyCall): Promise<WhyAnswer> {
  const { client } = ports;
  const { tenant } = call.caller;
  const runs: Run[] = [];
  const waits: Why[] = [];
  let looked = 0;
  for (let cursor: string | undefined; looked < lookMax && runs.length < runsMax;) {
    const query = { tenant, door, limit: pageMax, ...(cursor !== undefined && { cursor }) };
    const page = await client.jobs(query, { signal: call.signal });
    looked += page.jobs.length;
    for (const { jobId } of page.jobs.filter(({ name }) => isNamed(name, action)).slice(0, runsMax - runs.length)) {
      const job = await found(ports, jobId, call);
      waits.push(...(await waitsOf(ports, job)));
      const task = job.view.tasks.find(({ planning }) => !planning);
      runs.push(await endedRun(ports, job, task, action));
    }
    cursor = page.cursor;
    if (cursor === undefined) break;
  }
  const inOrder = runs.toSorted((a, b) => b.submittedAtMs - a.submittedAtMs);
  const answer = await answered(ports, { of: action, waits, runs: inOrder, instance, action }, call);
  if (runs.length > 0) return answer;
  return { ...answer, lines: [...answer.lines, `no run of it is among the last ${looked} jobs`] };
}

const isNamed = (name: string, action: Digest): boolean => name === action || name.startsWith(`${action} `);

type Gathered = Pick<WhyAnswer, "of" | "waits" | "runs"> & { readonly instance: string; readonly action?: Digest };

/** With what the cache knows of the action, if the caller may read the cache. */
async function answered(ports: WhyPorts, gathered: Gathered, { caller }: WhyCall): Promise<WhyAnswer> {
  const { of, waits, runs, instance } = gathered;
  const nowMs = ports.clock.wallMs();
  const action = gathered.action ?? runs[0]?.action ?? "";
  const mayLook = caller.may("action-cache.read") && caller.may("cache.read") && isDigest(action);
  const cached = mayLook ? await cachedOf(ports, caller.tenant, instance, action) : undefined;
  const wasRun = runs.length === 0 || runs.some((run) => !run.cached);
  const miss = mayLook && wasRun ? await missOf(ports, caller.tenant, instance, action) : undefined;
  const isUnseen = waits.some(({ because }) => because.kind === "no-executor" && because.nearest === undefined);
  const workers = isUnseen ? await workersOf(ports) : undefined;
  const lines = [
    ...waits.map(({ key, phase, because }) => `${key}  ${phase.toLowerCase()}: ${tellWaits(because, workers)}`),
    ...tellRuns(runs, nowMs),
    ...(miss ? tellMiss(miss, nowMs) : []),
    ...(cached ? [tellCached(cached, nowMs)] : []),
  ];
  return { of, lines, waits, runs, ...(workers && { workers }), ...(cached && { cached }), ...(miss && { miss }) };
}

async function workersOf({ client }: WhyPorts): Promise<Workers> {
  const able = (await client.nodes()).filter(({ alive, facts }) => alive && facts["actions"] === 1);
  const sum = (fact: string): number => able.reduce((all, { facts }) => all + (Number(facts[fact]) || 0), 0);
  return { nodes: able.length, slots: sum("slots"), running: sum("running") };
}

async function cachedOf({ index, trust }: WhyPorts, tenant: string, instance: string, action: Digest) {
  const { fn = "sha256", hash = "", sizeBytes = 0 } = parseDigest(action) ?? {};
  const key = { tenant, space: spaceOf(fn, instance), name: `${hash}/${sizeBytes}` };
  const entry = await index.get(key);
  return entry && { principal: entry.principal, atMs: entry.atMs, revoked: await trust.isRevoked(key, entry) };
}

async function missOf({ seen, store }: WhyPorts, tenant: string, instance: string, action: Digest) {
  const miss = await explainMiss({ tenant, instance, action }, seen, store.forTenant(tenant).blobs);
  return miss.verdict === "unknown" ? undefined : miss;
}

function tellMiss({ verdict, nearest, differences, miss }: Explanation, nowMs: number): readonly string[] {
  const of = miss ? ` of ${[miss.mnemonic, miss.target].filter((word) => word !== "").join(" ")}` : "";
  if (verdict === "first-of-its-target") return [`it was the first action${of} that this cache saw`];
  if (verdict === "unreadable") return ["the action itself is not in the store, so it cannot be compared"];
  if (verdict !== "differs" || !nearest) return [];
  const ago = formatDuration(Math.max(0, nowMs - nearest.atMs));
  const head = `it differs from the nearest earlier action${of}, ${nearest.action}, of ${ago} ago:`;
  return [head, ...differences.map((one) => `  ${tell(one)}`)];
}

function tellCached({ principal, atMs, revoked }: NonNullable<WhyAnswer["cached"]>, nowMs: number): string {
  const ago = formatDuration(Math.max(0, nowMs - atMs));
  return `now its result is in the cache, stored by ${principal} ${ago} ago${revoked ? ", and revoked" : ""}`;
}
