/** Pure: what a shard says of a job becomes lines for people. */
import { formatTask } from "#base/ids.ts";
import { formatDuration } from "#base/units.ts";
import type { Event } from "#kernel/model/event.ts";
import type { JobView, StageView, TaskView, WhyBesides, WhyReason } from "#kernel/read/query.ts";
import type { Watched } from "#shard/router/router.ts";
import { withoutOutput } from "#worker/printed/failure-output.ts";
import { countTasks, placedTasks } from "#kernel/model/task-set.ts";
import { ArrayNames } from "#kernel/read/array-names.ts";

/** A whole job, as `job show` prints it. */
export function viewJob(jobId: string, view: JobView, nowMs: number): readonly string[] {
  const tookMs = (view.endedAtMs ?? nowMs) - view.submittedAtMs;
  const reason = view.reason === "" ? "" : `: ${view.reason}`;
  const facts = `${formatDuration(Math.max(0, tookMs))}, tenant ${view.tenant}`;
  const head = `${jobId}  ${view.phase}${reason}  ${view.name}  (${facts})`;
  return [head, ...view.stages.flatMap((stage) => viewStage(jobId, stage, view.tasks))];
}

function viewStage(jobId: string, stage: StageView, tasks: readonly TaskView[]): readonly string[] {
  const counts = stage.tasks > 0 ? `  ${stage.done}/${stage.tasks} done` : "";
  const running = stage.running > 0 ? `, ${stage.running} running` : "";
  const failed = stage.failed > 0 ? `, ${stage.failed} failed` : "";
  const waits = stage.waitsForSignals.length > 0 ? `  waits for: ${stage.waitsForSignals.join(" or ")}` : "";
  const reason = stage.reason === "" ? "" : `  ${firstLine(stage.reason)}`;
  const line = `  ${stage.name}  ${stage.phase}${counts}${running}${failed}${waits}${reason}`;
  const telling = tasks.filter((task) => task.stage === stage.stage && !task.planning && isTelling(task));
  return [line, ...telling.slice(0, 20).map((task) => `    ${viewTask(jobId, task)}`)];
}

/** What ran without trouble is in the counts already. */
const isTelling = ({ phase, lastFailure, claims }: TaskView): boolean =>
  lastFailure !== undefined || claims.length > 0 || phase === "FAILED";

function viewTask(jobId: string, task: TaskView): string {
  const attempts = task.attempts > 1 ? `  attempt ${task.attempts}` : "";
  const on = task.claims.map(({ executor }) => `  on ${executor}`).join("");
  const failure = task.lastFailure
    ? `  last failure: ${task.lastFailure.reason}: ${firstLine(task.lastFailure.message)}`
    : "";
  const retry = task.retryInMs === undefined ? "" : `  again in ${formatDuration(task.retryInMs)}`;
  return `${taskIdIn(jobId, task.task)}  ${task.key}  ${task.phase}${attempts}${on}${failure}${retry}`;
}

/** Ids carry their shard; a job's tasks are in the job's own. */
const taskIdIn = (jobId: string, task: number): string => formatTask(Number.parseInt(jobId.slice(1), 36), task);

export function viewWhy(because: WhyReason): string {
  switch (because.kind) {
    case "running":
      return `it runs on ${because.executor}`;
    case "ended":
      return `it has ended: ${because.phase}`;
    case "needs":
      return `it waits for ${because.stages.join(", ")}`;
    case "lock":
      return `it waits for the lock ${because.name}, with ${because.ahead} ahead of it`;
    case "signal":
      return `it waits for a signal (${because.names.join(" or ")}) for at most ${formatDuration(because.forMs)}`;
    case "back-off":
      return `it is tried again in ${formatDuration(because.forMs)}; it failed with ${firstLine(because.lastFailure)}`;
    case "parallel-max":
      return `its stage runs at most ${because.limit} at once`;
    case "quota":
      return `its tenant runs ${because.running} of at most ${because.runningMax} tasks`;
    case "no-executor":
      return because.nearest === undefined
        ? "there is no worker"
        : `no worker can run it; the nearest, ${because.nearest}, lacks ${because.missing.join(", ")}`;
    case "drained":
      return `the workers that could run it are drained: ${because.executors.join(", ")}`;
    case "queued":
      return (
        `it is number ${because.position} in line for ${because.executors} workers, ` +
        `among ${because.tenantsAhead + 1} tenants`
      );
    case "publishing":
      return `it is done; ${because.results} results are being published, for ${formatDuration(because.forMs)}`;
    case "cleaning-up":
      return `it was cancelled; ${because.stages.join(", ")} may still clean up, for ${formatDuration(because.forMs)}`;
    case "array":
      return viewArray(because);
    case "notices":
      return viewNotices(because);
    default:
      return because satisfies never;
  }
}

export function viewArray({ count, ended, running, queued, ahead }: Extract<WhyReason, { kind: "array" }>): string {
  const done = `${ended} of ${count} tasks have ended, ${running} run, ${queued} are queued`;
  return ahead === 0 ? done : `${ahead} tasks of its array are queued before it; ${done}`;
}

export const viewNotices = ({ notices, forMs }: Extract<WhyReason, { kind: "notices" }>): string =>
  `it ended ${formatDuration(forMs)} ago; ${plural(notices, "end notice")} not delivered yet`;

/** What else is known of a task that is explained: a sentence for each, none for most. */
export function viewBesides({ checkpoint, failures, pending, second }: WhyBesides): readonly string[] {
  const counts = Object.entries(failures ?? {}).map(([reason, count]) => `${reason} ${plural(count, "time")}`);
  return [
    ...(counts.length > 0 ? [`it failed before: ${counts.join(", ")}`] : []),
    ...(checkpoint ? [`it goes on from a checkpoint, recorded ${formatDuration(checkpoint.agoMs)} ago`] : []),
    ...(pending ? [`it has not received these signals yet: ${pending.join(", ")}`] : []),
    ...(second === undefined ? [] : [`it takes long, so ${second} makes a second attempt: the first to end counts`]),
  ];
}

/** What the door of a job says of a result, if anything. */
export type ResultWords = (door: string, payload: string) => string | undefined;

/** Follows a watch: each message becomes the lines worth printing, and `progress` sums up. */
export class JobFollower {
  readonly #jobId: string;
  readonly #resultWords: ResultWords;
  readonly #names = new Map<number, string>();
  readonly #arrays = new ArrayNames();
  /** Planning is work too, but it is not counted. */
  readonly #planning = new Set<number>();
  readonly #running = new Set<number>();
  readonly #done = new Set<number>();
  #stages: readonly string[] = [];
  #stagePhases: string[] = [];
  #total = 0;
  #doneBefore = 0;
  #phase = "";
  #door = "";
  readonly #isBesideOutput: boolean;

  /** Results are put into a few words; or left out, with what is plain, where tasks' output is shown as well. */
  constructor(jobId: string, results: ResultWords | "beside-output" = () => undefined) {
    this.#jobId = jobId;
    this.#isBesideOutput = results === "beside-output";
    this.#resultWords = results === "beside-output" ? () => undefined : results;
  }

  /** As far as was heard. */
  get phase(): string {
    return this.#phase;
  }

  get progress(): string {
    const done = this.#doneBefore + this.#done.size;
    return `${this.#jobId}  ${this.#phase}  ${done}/${this.#total} done, ${this.#running.size} running`;
  }

  lines(message: Watched): readonly string[] {
    if (message.kind === "snapshot") return this.#snapshot(message.view);
    return message.kind === "events" ? message.events.flatMap((event) => this.#said(event)) : [];
  }

  #said(event: Event): readonly string[] {
    const lines = this.#event(event);
    const isPlain = event.kind === "claimed" || event.kind === "committed" || event.kind === "stage-ended";
    return isPlain && this.#isBesideOutput && this.#total <= 1 ? [] : lines;
  }

  #snapshot(view: JobView): readonly string[] {
    this.#door = view.door;
    const before = { done: new Set(this.#done), stages: this.#stagePhases, phase: this.#phase };
    this.#stages = view.stages.map(({ name }) => name);
    this.#stagePhases = view.stages.map(({ phase }) => phase);
    this.#total = view.stages.reduce((sum, { tasks }) => sum + tasks, 0);
    this.#running.clear();
    this.#done.clear();
    this.#arrays.see(view.stages);
    for (const task of view.tasks) {
      this.#name(task.task, task.stage, task.planning ? "plan" : task.key);
      if (task.planning) this.#planning.add(task.task);
      else if (task.phase === "RUNNING" || task.phase === "CLAIMED") this.#running.add(task.task);
      else if (task.phase === "SUCCEEDED") this.#done.add(task.task);
    }
    // A large job shows only the first of its tasks; the rest is in the counts.
    this.#doneBefore = view.stages.reduce((sum, { done }) => sum + done, 0) - this.#done.size;
    this.#phase = view.phase;
    const reason = view.reason === "" ? "" : `: ${firstLine(view.reason)}`;
    const head = `${this.#jobId}  ${view.phase}  ${view.name}${reason}`;
    if (before.phase === "") return [head];
    return [...this.#missed(view, before), ...(before.phase === view.phase ? [] : [head])];
  }

  /** What a snapshot in the middle makes up for: the watch was cut off for a while. */
  #missed(view: JobView, before: { readonly done: ReadonlySet<number>; readonly stages: readonly string[] }): string[] {
    const tasks = view.tasks.filter(({ task }) => this.#done.has(task) && !before.done.has(task));
    const stages = view.stages.filter(({ phase, stage }) => phase !== before.stages[stage] && stageEnds.has(phase));
    return [
      ...tasks.map(({ task, result }) => `  ${this.#of(task)}: done${this.#summaryOf(result?.payload ?? "")}`),
      ...stages.map(({ name, phase, reason }) => `  ${name}: ${phase}${inBrackets(reason)}`),
    ];
  }

  #name(task: number, stage: number, key: string): void {
    this.#names.set(task, `${this.#stages[stage] ?? stage}/${key}`);
  }

  #event(event: Event): readonly string[] {
    switch (event.kind) {
      case "stage-ready":
        if (event.planTask === undefined) return [];
        this.#planning.add(event.planTask);
        this.#name(event.planTask, event.stage, "plan");
        return [];
      case "stage-planned":
        this.#total += countTasks(event);
        for (const { place, key } of placedTasks(event)) this.#name(event.firstTask + place, event.stage, key);
        this.#arrays.planned(event);
        return [`  ${this.#stages[event.stage] ?? event.stage}: ${plural(countTasks(event), "task")}`];
      case "claimed":
        if (!this.#planning.has(event.task)) this.#running.add(event.task);
        if (this.#arrays.find(event.task)) return [];
        return [`  ${this.#of(event.task)}: on ${event.executor}`];
      case "committed":
      case "reused":
        this.#running.delete(event.task);
        if (this.#arrays.find(event.task)) return this.#ofArray(event.task);
        this.#done.add(event.task);
        return [`  ${this.#of(event.task)}: done${this.#summaryOf(event.result.payload)}`];
      case "attempt-ended":
        this.#running.delete(event.task);
        return [
          `  ${this.#of(event.task)}: ${event.outcome} (${event.reason}: ${firstLine(event.message)})${nextOf(event)}`,
        ];
      case "plan-waiting":
        return event.signals.length > 0 ? [`  ${this.#of(event.task)}: waits for ${event.signals.join(" or ")}`] : [];
      case "signalled":
        return [`  ${this.#stages[event.stage] ?? event.stage}: signal ${event.name}`];
      case "stage-ended":
        this.#stagePhases[event.stage] = event.phase;
        return [`  ${this.#stages[event.stage] ?? event.stage}: ${event.phase}${inBrackets(event.reason)}`];
      case "job-cancelling":
        this.#phase = "CANCELLING";
        return [`${this.#jobId}  CANCELLING${event.reason === "" ? "" : `: ${event.reason}`}`];
      case "job-ended":
        this.#phase = event.phase;
        return [`${this.#jobId}  ${event.phase}${event.reason === "" ? "" : `: ${firstLine(event.reason)}`}`];
      default:
        return [];
    }
  }

  /** One of an array is done: a line for each tenth of them, not for each. */
  #ofArray(task: number): readonly string[] {
    const { array, stage } = this.#arrays.find(task) ?? {};
    if (!array || stage === undefined) return [];
    this.#doneBefore += 1;
    array.done += 1;
    const tenths = (done: number): number => Math.floor((10 * done) / array.count);
    if (tenths(array.done) === tenths(array.done - 1)) return [];
    return [`  ${this.#stages[stage] ?? stage}: ${array.done}/${array.count} done`];
  }

  #summaryOf(payload: string): string {
    const words = this.#resultWords(this.#door, payload);
    return words === undefined ? "" : `: ${words}`;
  }

  #of(task: number): string {
    const known = this.#names.get(task);
    if (known !== undefined) return known;
    const found = this.#arrays.find(task);
    return found ? `${this.#stages[found.stage] ?? found.stage}/${found.key}` : taskIdIn(this.#jobId, task);
  }
}

const stageEnds: ReadonlySet<string> = new Set(["COMPLETED", "FAILED", "SKIPPED", "CANCELLED"]);

const inBrackets = (reason: string): string => (reason === "" ? "" : ` (${firstLine(reason)})`);

const plural = (count: number, what: string): string => `${count} ${what}${count === 1 ? "" : "s"}`;

const firstLine = (text: string): string => {
  const [first = "", ...rest] = withoutOutput(text.trim()).split("\n");
  return rest.length > 0 || first.length > 200 ? `${first.slice(0, 200)} ...` : first;
};

function nextOf({ next, at }: Extract<Event, { kind: "attempt-ended" }>): string {
  if (next.do === "retry") return `, again in ${formatDuration(Math.max(0, next.atMs - at))}`;
  return next.do === "ready" ? ", queued again" : "";
}
