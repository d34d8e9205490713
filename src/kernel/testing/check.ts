/**
 * Test support: everything that must hold for a state between two commands. Recounts what the kernel counts
 * incrementally, and checks every index against the things it indexes.
 */
import { must } from "#base/assert.ts";
import { mergeKeyOf } from "#kernel/apply/job.ts";
import type { Claim, Executor, Job, Stage, Task, Tenant } from "#kernel/model/entities.ts";
import { isOver, lockKey, placeIn, taskHolder } from "#kernel/ready/locks.ts";
import { isJobOver, isStageOver, isTaskOver, slotsOf } from "#kernel/apply/moves.ts";
import type { Due, State } from "#kernel/model/state.ts";
import type { TaskPhase } from "#kernel/model/model.ts";
import { pageTasks, type TaskArray } from "#kernel/model/task-array.ts";
import { bytesOfExecutor, bytesOfJob, bytesOfKey, bytesOfSeries, bytesOfTenant } from "#kernel/memory/weigh.ts";
import { bytesOfResult } from "#kernel/memory/weigh.ts";
import { parallelMaxOf } from "#kernel/model/stage-rules.ts";

/** Complaints; empty when all is well. */
export function checkState(state: State): string[] {
  const wrong: string[] = [];
  const same = (what: string, kept: unknown, counted: unknown): void => {
    if (kept !== counted) wrong.push(`${what}: kept ${String(kept)}, counted ${String(counted)}`);
  };
  const holds = (what: string, fact: boolean): void => {
    if (!fact) wrong.push(what);
  };
  const claims = [...state.executors.values()].flatMap((executor) => [...executor.claims.values()]);
  const seen: Counted = { claims, same, holds };
  for (const job of state.jobs.values()) checkJob(state, job, seen);
  for (const tenant of state.tenants.values()) checkTenant(state, tenant, seen);
  for (const executor of state.executors.values()) checkExecutor(state, executor, seen);
  checkTotals(state, seen);
  checkLocks(state, seen);
  return wrong;
}

type Counted = {
  readonly claims: readonly Claim[];
  readonly same: (what: string, kept: unknown, counted: unknown) => void;
  readonly holds: (what: string, fact: boolean) => void;
};

const count = <T>(items: Iterable<T>, is: (item: T) => boolean): number => {
  let found = 0;
  for (const item of items) if (is(item)) found += 1;
  return found;
};

function checkTotals(state: State, { claims, same, holds }: Counted): void {
  const jobs = [...state.jobs.values()];
  same("claims", state.claims, claims.length);
  same(
    "live jobs",
    state.liveJobs,
    count(jobs, (job) => !isJobOver(job)),
  );
  const sum = <T>(items: Iterable<T>, bytesOf: (item: T) => number): number =>
    [...items].reduce((bytes, item) => bytes + bytesOf(item), 0);
  const keyBytes = sum(state.keys, ([key, bound]) => bytesOfKey(key, bound));
  same("bytes of keys", state.keyBytes, keyBytes);
  const others = sum(state.executors.values(), bytesOfExecutor) + sum(state.tenants.keys(), bytesOfTenant);
  const series = sum(state.series.all, ([tenant, numbers]) => sum(numbers.keys(), (key) => bytesOfSeries(tenant, key)));
  same("bytes", state.bytes, sum(jobs, bytesOfJob) + keyBytes + others + series);
  checkTags(state, jobs, { claims, same, holds });
  holds("all of it counts in the memory that it shares", state.memory.bytes >= state.bytes);
  same(
    "ready",
    state.ready.size,
    count(state.tasks.values(), (task) => task.list !== undefined),
  );
  same(
    "tasks known",
    state.tasks.size,
    count(jobs.flatMap(tasksOf), () => true),
  );
  const weights = [...state.tenants.values()].filter((tenant) => tenant.ready > 0).map((tenant) => tenant.weight);
  same(
    "ready weight",
    state.ready.readyWeight,
    weights.reduce((sum, weight) => sum + weight, 0),
  );
  same(
    "unpublished",
    state.outbox.size,
    jobs.reduce((sum, job) => sum + (job.outbox?.size ?? 0), 0),
  );
  same(
    "manifests due",
    state.manifests.size,
    count(
      jobs.flatMap(({ stages }) => stages),
      ({ manifest }) => manifest !== undefined && manifest.no > 0 && manifest.digest === undefined,
    ),
  );
  holds(
    "all follow-ups are done",
    state.unsettled.isEmpty && state.locks.unsettled.size === 0 && state.locks.wanting.size === 0,
  );
  holds(`no follow-up threw: ${state.faults.join("; ")}`, state.faults.length === 0);
  const tokens = claims.map((claim) => claim.token);
  holds(
    "tokens are given out once, below the next",
    new Set(tokens).size === tokens.length && tokens.every((t) => t < state.nextToken),
  );
  for (const [key, job] of state.merges)
    holds(`merge key ${key} leads to a live job`, !isJobOver(job) && !job.cancelled && state.jobs.get(job.no) === job);
  for (const job of jobs) {
    if (job.mergeKey === undefined || isJobOver(job) || job.cancelled) continue;
    const found = state.merges.get(mergeKeyOf(job.tenant.name, job.door, job.mergeKey));
    holds(`live job ${job.no} is found by its merge key`, found === job);
  }
}

/** Every job is found by each of its tags, and nothing else is; its number is none that the series will give. */
function checkTags(state: State, jobs: readonly Job[], { same, holds }: Counted): void {
  const keys = new Set<string>();
  const numbers = new Set<string>();
  for (const { no, tenant, door, extras } of jobs) {
    for (const tag of extras?.tags ?? []) {
      keys.add(`${tenant.name} ${tag.name}=${tag.value}`);
      const found = [...state.tagged.having(tenant.name, [tag])];
      holds(
        `job ${no} is found by ${tag.name}`,
        found.some((job) => job.no === no),
      );
      holds(
        `${tag.name}=${tag.value} leads to known jobs`,
        found.every((job) => state.jobs.get(job.no) === job),
      );
    }
    if (!extras?.series) continue;
    const { name, number } = extras.series;
    const taken = `${tenant.name} ${door} ${name} ${number}`;
    holds(`${taken} was given once`, !numbers.has(taken) && number <= state.series.last(tenant.name, door, name));
    numbers.add(taken);
  }
  const telling = jobs.filter((job) => isJobOver(job) && (job.extras?.owed.length ?? 0) > 0);
  same("jobs that tell their end", state.telling.size, telling.filter((job) => state.telling.has(job)).length);
  same("jobs whose end is to be told", state.telling.size, telling.length);
  same("tags in the index", state.tagged.size, keys.size);
}

const tasksOf = (job: Job): Task[] =>
  job.stages.flatMap((stage) => [...(stage.planning ? [stage.planning] : []), ...objectsOf(stage)]);

/** The tasks that exist as objects. */
const objectsOf = (stage: Stage): Task[] => [
  ...stage.tasks,
  ...(stage.arrays ?? []).flatMap(({ live }) => [...live.values()]),
];

function checkTenant(state: State, tenant: Tenant, { claims, same, holds }: Counted): void {
  const { name } = tenant;
  const tasks = [...state.tasks.values()].filter((task) => task.stage.job.tenant === tenant);
  same(
    `queued of ${name}`,
    tenant.queued,
    count(tasks, (task) => !isTaskOver(task.phase) && !task.claim),
  );
  same(
    `ready of ${name}`,
    tenant.ready,
    count(tasks, (task) => task.list !== undefined),
  );
  same(
    `running of ${name}`,
    tenant.running,
    count(claims, (claim) => !claim.void && claim.task.stage.job.tenant === tenant),
  );
  const jobs = [...state.jobs.values()].filter((job) => job.tenant === tenant);
  const bytes = jobs.reduce((sum, job) => sum + bytesOfJob(job), 0);
  same(`bytes of ${name}`, tenant.bytes, bytes);
  holds(`all of ${name} counts in its account`, tenant.account.bytes >= bytes);
  same(
    `jobs of ${name}`,
    tenant.jobs,
    count(state.jobs.values(), (job) => job.tenant === tenant),
  );
  // An expired slice is noticed at the next look at the agenda, so the check is exact only without slices.
  if (tenant.lent.size === 0 && tenant.slice.untilMs === 0)
    same(`parked of ${name}`, tenant.parked, tenant.running >= slotsOf(state, tenant));
  for (const [readyClass, queue] of tenant.queues) {
    const what = `queue ${readyClass.key} of ${name}`;
    holds(`${what} is of its class and tenant`, queue.class === readyClass && queue.tenant === tenant);
    same(`${what} in its heap`, queue.heapAt !== -1, !tenant.parked);
    same(
      `size of ${what}`,
      queue.size,
      queue.lists.reduce((sum, list) => sum + list.size, 0),
    );
    holds(`${what} holds something`, queue.size > 0);
    queue.lists.forEach((list, i) => {
      holds(`${what} is by priority`, i === 0 || (queue.lists[i - 1]?.priority ?? 0) > list.priority);
      let size = 0;
      let last: Task | undefined;
      for (let task = list.head; task; last = task, task = task.next) {
        size += 1;
        holds(`task ${task.no} is linked`, task.list === list && task.prev === last);
        holds(`task ${task.no} has its job's priority`, task.stage.job.priority === list.priority);
        holds(`task ${task.no} is in its class`, task.template.requires.join() === readyClass.requires.join());
      }
      same(`size of a list of ${what}`, list.size, size);
      holds(`tail of a list of ${what}`, list.tail === last && size > 0);
    });
  }
}

function checkExecutor(state: State, executor: Executor, { holds }: Counted): void {
  for (const [token, claim] of executor.claims) {
    const { task } = claim;
    holds(`claim ${token} is filed under its token`, claim.token === token && claim.executor === executor);
    const isLive = task.claim === claim || task.second === claim;
    holds(`claim ${token} has a say exactly when its task knows it (K2)`, isLive === !claim.void);
    holds(`claim ${token} is looked at by the end of its lease`, isFiledBy(state, claim, claim.expiresAtMs));
  }
}

/** Filed no later than its time plus one fine bucket of the agenda, or for the very next look. */
function isFiledBy(state: State, item: Due, dueAtMs: number): boolean {
  const filedAtMs = state.agenda.filedAtMs(item);
  return filedAtMs < dueAtMs + 100 || filedAtMs <= state.nowMs;
}

function checkJob(state: State, job: Job, counted: Counted): void {
  const { same, holds, claims } = counted;
  const what = `job ${job.no}`;
  same(`bytes of ${what}`, job.bytes, bytesOfJob(job));
  same(
    `claims of ${what}`,
    job.claims,
    count(claims, (claim) => claim.task.stage.job === job),
  );
  same(
    `open stages of ${what}`,
    job.stagesOpen,
    count(job.stages, (stage) => !isStageOver(stage)),
  );
  if (isJobOver(job))
    holds(
      `${what} ended with all of it`,
      job.stages.every(isStageOver) && tasksOf(job).every((task) => isTaskOver(task.phase)),
    );
  else {
    holds(`${what} is not all over`, job.stagesOpen > 0 || job.outbox !== undefined);
    // K9: the agenda returns it by its deadline; a cancelled job waits for its claims only.
    const dueAtMs = Math.min(job.audience?.abandonedAtMs || job.deadlineAtMs, job.deadlineAtMs);
    holds(`${what} is looked at by its deadline`, job.cancelled !== undefined || isFiledBy(state, job, dueAtMs));
    holds(`${what} waits for something`, !job.cancelled || job.claims > 0 || job.graceUntilMs > 0);
    holds(
      `${what} is looked at when its grace ends`,
      job.graceUntilMs === 0 || isFiledBy(state, job, job.graceUntilMs),
    );
  }
  if (job.phase === "SUCCEEDED") holds(`${what} succeeded with all its results published`, !job.outbox);
  if (job.outbox) checkOutbox(state, job, counted);
  for (const stage of job.stages) checkStage(state, stage, counted);
}

function checkOutbox(state: State, job: Job, { holds }: Counted): void {
  holds(`the outbox of job ${job.no} holds something`, (job.outbox?.size ?? 0) > 0);
  for (const [no, waiting] of job.outbox ?? []) {
    const what = `the result of task ${no}`;
    const { publish } = waiting.result;
    holds(`${what} is to be published`, publish !== undefined && waiting.job === job && waiting.task === no);
    holds(`${what} is known to the shard`, state.outbox.get(no) === waiting);
    const task = state.tasks.get(no);
    holds(`${what} still counts`, !task || (task.generation === waiting.generation && task.result === waiting.result));
  }
  const giveUpAtMs = job.endedAtMs + state.limits.publishMsMax;
  if (isJobOver(job)) holds(`job ${job.no} gives up publishing in time`, isFiledBy(state, job, giveUpAtMs));
}

/** How every task of the stage stands, whether it exists as an object or not. */
const phasesOf = (stage: Stage): TaskPhase[] => [
  ...stage.tasks.map(({ phase }) => phase),
  ...(stage.arrays ?? []).flatMap((array) => Array.from({ length: array.plan.count }, (_, i) => array.phaseAt(i))),
];

function checkArray(state: State, array: TaskArray, { same, holds }: Counted): void {
  const what = `array ${array.no}`;
  const live = [...array.live.values()];
  same(
    `queued of ${what}`,
    array.queued,
    count(live, (task) => task.list !== undefined),
  );
  const { arrayAheadMax, arrayLiveMax } = state.limits;
  holds(`${what} exists only as far as it is needed`, live.length <= arrayLiveMax);
  const { stage } = array;
  const parallelMax = parallelMaxOf(stage);
  const mayQueue = parallelMax === 0 || stage.active < parallelMax;
  const isShort = array.queued < arrayAheadMax && array.unborn > 0 && live.length < arrayLiveMax;
  if (stage.phase === "RUNNING" && !stage.cancelled) holds(`${what} queues its next tasks`, !(isShort && mayQueue));
  let resultBytes = 0;
  for (const page of array.pages) for (const one of page?.results ?? []) resultBytes += bytesOfResult(one);
  same(`bytes of results of ${what}`, array.resultBytes, resultBytes);
  same(
    `ended of ${what}`,
    array.ended,
    count(
      Array.from({ length: array.plan.count }, (_, i) => array.phaseAt(i)),
      isTaskOver,
    ),
  );
  holds(`${what} is found by its numbers`, array.plan.count === 0 || state.arrayOf(array.no) === array);
  for (const task of live) {
    holds(`task ${task.no} is in its place`, task.array === array && task.no === array.no + task.index);
    const isEnded = (array.pageOf(task.index)?.phases[task.index % pageTasks] ?? 0) !== 0;
    holds(`task ${task.no} is live or has ended, and was queued`, !isEnded && task.index < array.next);
    holds(`task ${task.no} has not ended`, !isTaskOver(task.phase));
  }
  for (let place = 0; place < array.next; place += 1)
    if (!array.live.has(place)) holds(`task ${array.no + place} has ended`, isTaskOver(array.phaseAt(place)));
}

function checkManifest(state: State, stage: Stage, { same, holds }: Counted): void {
  const { manifest } = stage;
  const what = `the manifest of stage ${stage.job.no}/${stage.shape.name}`;
  const isDue = manifest !== undefined && manifest.no > 0 && manifest.digest === undefined;
  same(`${what} is due`, manifest ? state.manifests.get(manifest.no) === stage : false, isDue);
  if (isDue) holds(`${what} waits for nothing else`, stage.open === 0 && stage.phase === "RUNNING");
  const isWanted = stage.arrays !== undefined || stage.shape.manifest;
  if (stage.phase === "COMPLETED") same(`${what} is there`, manifest?.digest !== undefined, isWanted);
  if (manifest?.digest !== undefined)
    holds(
      `${what} holds the results`,
      (stage.arrays ?? []).every(({ pages }) => pages.every((page) => !page?.results)),
    );
}

function checkStage(state: State, stage: Stage, counted: Counted): void {
  const { same, holds, claims } = counted;
  const isLocking = ({ no }: Task): boolean => (state.locks.tasks.get(no)?.state ?? "held") !== "held";
  const what = `stage ${stage.job.no}/${stage.shape.name}`;
  const tasks = objectsOf(stage);
  const phases = phasesOf(stage);
  for (const array of stage.arrays ?? []) checkArray(state, array, counted);
  checkManifest(state, stage, counted);
  same(
    `open of ${what}`,
    stage.open,
    count(phases, (phase) => !isTaskOver(phase)),
  );
  same(
    `done of ${what}`,
    stage.done,
    count(phases, (phase) => phase === "SUCCEEDED"),
  );
  same(
    `failed of ${what}`,
    stage.failed,
    count(phases, (phase) => phase === "FAILED"),
  );
  same(
    `active of ${what}`,
    stage.active,
    count(tasks, (task) => !isTaskOver(task.phase) && (task.order !== 0 || isLocking(task))),
  );
  const held = stage.tasks.filter((task) => task.phase === "READY" && task.order === 0 && !isLocking(task));
  if (stage.phase === "RUNNING" && !stage.cancelled)
    holds(
      `${what} comes back to what it holds back`,
      held.every(({ index }) => index >= stage.nextHeld),
    );
  const { parallelMax, needs } = stage.shape;
  holds(`${what} keeps to its parallelMax`, parallelMax === 0 || stage.active <= parallelMax);
  same(
    `claims of ${what}`,
    stage.claims,
    count(claims, (claim) => claim.task.stage === stage),
  );
  same(
    `waiting of ${what}`,
    stage.waiting,
    count(needs, (need) => !isStageOver(stage.job.stages[need] as Stage)),
  );
  if (stage.phase === "COMPLETED")
    holds(
      `${what} is complete with every result (K5)`,
      phases.every((phase) => phase === "SUCCEEDED") && stage.tasks.every(({ result }) => result),
    );
  if (isStageOver(stage)) holds(`${what} ended with all of it`, phases.every(isTaskOver));
  for (const task of tasks) checkTask(state, task, counted);
  if (stage.planning) checkTask(state, stage.planning, counted);
}

function checkTask(state: State, task: Task, { holds }: Counted): void {
  const what = `task ${task.no}`;
  const { stage, phase, claim, second } = task;
  const isPlanning = task === stage.planning;
  holds(`${what} is known by its number`, state.tasks.get(task.no) === task && task.no < state.nextTask);
  const isHeldByOne = phase === "CLAIMED" || phase === "RUNNING" || phase === "CANCELLING";
  holds(`${what} is ${phase}, so ${isHeldByOne ? "it has" : "it has not"} a claim (K2)`, isHeldByOne === !!claim);
  holds(`${what} has two attempts only with speculation (K2)`, !second || task.template.speculate);
  holds(`${what} has two attempts only without outside effects`, !second || task.template.effects === "pure");
  holds(`${what} has a second claim only with a first`, !second || !!claim);
  holds(`${what} has its two attempts at two executors`, !second || second.executor !== claim?.executor);
  if (!isPlanning)
    holds(`${what} has a result exactly when it succeeded (K6)`, (phase === "SUCCEEDED") === !!task.result);
  const isRun = isPlanning || stage.phase === "RUNNING";
  const isLetGo = isPlanning || (task.order !== 0 && !isWaitingForLock(state, task));
  if (phase === "READY")
    holds(`${what} is READY, so in line when let go`, (isRun && isLetGo) === (task.list !== undefined));
  else holds(`${what} is ${phase}, so not in line`, !task.list);
  const isOffered = state.ready.isSpare(task);
  holds(`${what} is offered a second time only while it lags`, !isOffered || (task.speculated && !second && !!claim));
  // A planning deadline counts from when its stage became ready, including waits.
  const endAtMs = isPlanning ? stage.startedAtMs + task.template.queueMs : Number.POSITIVE_INFINITY;
  const isLookedAt = (dueAtMs: number): boolean => stage.job.deadlineAtMs <= dueAtMs || isFiledBy(state, task, dueAtMs);
  if (phase === "READY" && task.list)
    holds(`${what} is looked at`, isLookedAt(Math.min(endAtMs, task.queuedAtMs + task.template.queueMs)));
  if (phase === "RETRY_PENDING" || phase === "WAITING")
    holds(`${what} is looked at`, isFiledBy(state, task, Math.min(endAtMs, task.dueAtMs)));
}

const isWaitingForLock = (state: State, { no }: Task): boolean => {
  const lock = state.locks.tasks.get(no);
  return lock !== undefined && lock.state !== "held";
};

function checkTaskLocks(state: State, { holds, same, claims }: Counted): void {
  for (const task of state.tasks.values())
    if (task.claim && task.template.lock)
      holds(`task ${task.no} holds its lock while it runs`, state.locks.tasks.get(task.no)?.state === "held");
  for (const [no, lock] of state.locks.tasks) {
    const spec = must(lock.task.template.lock, "lock of a task");
    const named = state.locks.byKey.get(lockKey(lock.task.stage.job.tenant, spec.name));
    const list = lock.state === "held" ? named?.holders : named?.queue;
    holds(`task ${no} is known to its lock`, list !== undefined && placeIn(list, taskHolder(lock)) !== -1);
    same(
      `claims of task ${no} with a lock`,
      lock.claims,
      count(claims, ({ task }) => task.no === no),
    );
  }
}

function checkLocks(state: State, counted: Counted): void {
  const { holds } = counted;
  checkTaskLocks(state, counted);
  for (const lock of state.locks.byKey.values()) {
    holds(`lock ${lock.key} has someone`, lock.holders.length + lock.queue.length > 0);
    holds(
      `lock ${lock.key} is either held or waited for`,
      lock.holders.every((holder) => placeIn(lock.queue, holder) === -1),
    );
    holds(`lock ${lock.key} is handed on`, lock.queue.length === 0 || lock.holders.length >= lock.limit);
    holds(`lock ${lock.key} is freed`, !lock.holders.some(isOver));
    holds(
      `lock ${lock.key} is not waited for by the dead`,
      lock.queue.every(({ job, stage, task }) =>
        task ? !isTaskOver(task.task.phase) : stage ? !isStageOver(stage) : !isJobOver(job),
      ),
    );
  }
}
