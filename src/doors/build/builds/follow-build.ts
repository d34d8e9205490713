/** Pure: turns a shard's messages about a job into changes of a build. */
import type { Event, EventOf } from "#kernel/model/event.ts";
import type { JobPhase, StagePhase } from "#kernel/model/model.ts";
import type { JobView } from "#kernel/read/query.ts";
import { ActionState as State, type ActionStatus, type BuildStatus } from "#wire/generated/millrace/build/v1/builds.ts";
import { readOutcome } from "#doors/build/run/outcome.ts";
import { readFailure } from "./failure-text.ts";
import type { Recorded } from "./recorded.ts";
import { readStep } from "./step.ts";
import {
  countsIn,
  notAtIt,
  operationOf,
  phaseOf,
  streamsOf,
  unplanned,
  untouched,
  viewActions,
  viewLine,
} from "./view-build.ts";
import { placedTasks } from "#kernel/model/task-set.ts";

/** "look": the event does not contain everything that changed; read the job again. */
export type Heard = "told" | "look";

export class BuildFollower {
  readonly #buildId: string;
  readonly #recorded: Recorded | undefined;
  readonly #actions = new Map<string, ActionStatus>();
  readonly #keys = new Map<number, string>();
  readonly #counts = new Map<number, number>();
  readonly #operation: string;
  #changed = new Set<string>();
  #line: BuildStatus;

  constructor(buildId: string, view: JobView, recorded: Recorded | undefined) {
    this.#buildId = buildId;
    this.#recorded = recorded;
    this.#operation = operationOf(buildId, view);
    this.#line = viewLine(buildId, view);
    this.look(view);
  }

  /** The present state, without its actions. */
  get build(): BuildStatus {
    return { ...this.#line, counts: countsIn(this.#counts) };
  }

  get hasEnded(): boolean {
    return this.#line.endedAtMs !== undefined;
  }

  /** The actions that changed since the last call. */
  takeChanged(): readonly ActionStatus[] {
    const changed = [...this.#changed].flatMap((key) => this.#actions.get(key) ?? []);
    this.#changed = new Set();
    return changed;
  }

  /** The whole job, with all of its tasks. */
  look(view: JobView): void {
    this.#line = viewLine(this.#buildId, view);
    for (const { task, key, planning } of view.tasks) if (!planning) this.#keys.set(task, key);
    for (const action of viewActions(this.#buildId, view, this.#recorded)) {
      const before = this.#actions.get(action.key);
      if (!before || !isSame(before, action)) this.#set(action);
    }
  }

  hear(event: Event): Heard {
    switch (event.kind) {
      case "stage-planned":
        return this.#planned(event);
      case "claimed":
        return this.#update(event.task, ({ attempts }) => ({
          state: State.ACTION_STATE_RUNNING,
          worker: event.executor,
          attempts: attempts + 1,
          ...(event.started && streamsOf(this.#operation, event.token)),
        }));
      case "started":
        return this.#update(event.task, () => streamsOf(this.#operation, event.token));
      case "committed":
        return this.#update(event.task, () => committed(event));
      case "attempt-ended":
        return this.#update(event.task, () => attemptEnded(event));
      case "task-failed":
        return this.#update(event.task, () => ({
          state: State.ACTION_STATE_FAILED,
          ...notAtIt,
          message: event.reason,
        }));
      case "stage-ended":
        return this.#stageEnded(event.stage, event.phase, event.reason);
      case "job-cancelling":
        return this.#phase("CANCELLING", event.reason);
      case "job-ended":
        this.#line = { ...this.#line, endedAtMs: event.at };
        return this.#phase(event.phase, event.reason);
      // Done work runs again, or its result came from an earlier job.
      case "invalidated":
      case "stage-reopened":
      case "reused":
      case "stage-cancelling":
        return "look";
      default:
        return "told";
    }
  }

  #planned(event: EventOf<"stage-planned">): Heard {
    const { firstTask } = event;
    for (const { place, key, spec } of placedTasks(event)) {
      this.#keys.set(firstTask + place, key);
      const step = readStep(spec);
      const actionDigest = step && "action" in step ? step.action : "";
      this.#set({ ...untouched(key), state: State.ACTION_STATE_QUEUED, actionDigest });
    }
    return "told";
  }

  #stageEnded(stage: number, phase: StagePhase, reason: string): Heard {
    for (const place of this.#recorded?.groups[stage]?.actions ?? []) {
      const action = this.#actions.get(this.#recorded?.build.actions[place]?.key ?? "");
      if (action?.state === State.ACTION_STATE_WAITING)
        this.#set({ ...action, state: unplanned(phase, true), message: reason });
      else if (phase === "CANCELLED" && action && isOpen(action))
        this.#set({ ...action, state: State.ACTION_STATE_CANCELLED, ...notAtIt });
    }
    return "told";
  }

  #phase(phase: JobPhase, reason: string): Heard {
    this.#line = { ...this.#line, phase: phaseOf[phase], reason };
    return "told";
  }

  /** Planning is a task too, but has no key: it is not an action of the build. */
  #update(task: number, change: (before: ActionStatus) => Partial<ActionStatus>): Heard {
    const before = this.#actions.get(this.#keys.get(task) ?? "");
    if (before) this.#set({ ...before, ...change(before) });
    return "told";
  }

  /** Counted incrementally: a large build has thousands of actions, and they change all the time. */
  #set(action: ActionStatus): void {
    const before = this.#actions.get(action.key);
    if (before) this.#counts.set(before.state, (this.#counts.get(before.state) ?? 0) - 1);
    this.#counts.set(action.state, (this.#counts.get(action.state) ?? 0) + 1);
    this.#actions.set(action.key, action);
    this.#changed.add(action.key);
  }
}

const isOpen = ({ state }: ActionStatus): boolean =>
  state === State.ACTION_STATE_QUEUED || state === State.ACTION_STATE_RUNNING;

const isSame = (a: ActionStatus, b: ActionStatus): boolean =>
  a.state === b.state &&
  a.worker === b.worker &&
  a.attempts === b.attempts &&
  a.message === b.message &&
  a.stdoutStreamName === b.stdoutStreamName;

function committed({ result }: EventOf<"committed">): Partial<ActionStatus> {
  const outcome = readOutcome(result);
  const state = outcome?.cached === true ? State.ACTION_STATE_CACHED : State.ACTION_STATE_SUCCEEDED;
  return { state, ...notAtIt, message: "", ...(outcome && { actionDigest: outcome.action }) };
}

function attemptEnded({ next, message }: EventOf<"attempt-ended">): Partial<ActionStatus> {
  const state = ended[next.do];
  return { ...notAtIt, message: readFailure(message).text, ...(state !== undefined && { state }) };
}

/** Nothing: another attempt goes on. */
const ended: Readonly<Record<EventOf<"attempt-ended">["next"]["do"], number | undefined>> = {
  nothing: undefined,
  ready: State.ACTION_STATE_QUEUED,
  retry: State.ACTION_STATE_QUEUED,
  fail: State.ACTION_STATE_FAILED,
  cancel: State.ACTION_STATE_CANCELLED,
};
