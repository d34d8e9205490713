/** Pure: presents a job, from a shard or from history, as the build that was submitted. */
import type { JobPhase } from "#kernel/model/model.ts";
import type { JobView, StageView, TaskView } from "#kernel/read/query.ts";
import {
  ActionState,
  BuildPhase,
  type ActionCount,
  type ActionStatus,
  type BuildStatus,
} from "#wire/generated/millrace/build/v1/builds.ts";
import { operationName, streamNameOf } from "#doors/build/execute/operation-names.ts";
import { readOutcome } from "#doors/build/run/outcome.ts";
import { readFailure } from "./failure-text.ts";
import { readBuildSpec, readJobName } from "./plan-build.ts";
import type { Recorded } from "./recorded.ts";

export const phaseOf: Readonly<Record<JobPhase, number>> = {
  WAITING: BuildPhase.BUILD_PHASE_RUNNING,
  RUNNING: BuildPhase.BUILD_PHASE_RUNNING,
  CANCELLING: BuildPhase.BUILD_PHASE_CANCELLING,
  SUCCEEDED: BuildPhase.BUILD_PHASE_SUCCEEDED,
  FAILED: BuildPhase.BUILD_PHASE_FAILED,
  CANCELLED: BuildPhase.BUILD_PHASE_CANCELLED,
};

type Line = Pick<JobView, "name" | "phase" | "submittedAtMs" | "endedAtMs"> & { readonly reason?: string };

/** Without counts and actions. */
export const viewLine = (
  buildId: string,
  { name, phase, reason = "", submittedAtMs, endedAtMs }: Line,
): BuildStatus => ({
  buildId,
  name: readJobName(name).name,
  phase: phaseOf[phase],
  reason,
  submittedAtMs,
  ...(endedAtMs !== undefined && { endedAtMs }),
  counts: [],
  actions: [],
});

/** For a build that is no longer kept (`recorded` undefined), only actions with an outcome are shown. */
export function viewActions(buildId: string, view: JobView, recorded: Recorded | undefined): readonly ActionStatus[] {
  const operation = operationOf(buildId, view);
  const tasks = new Map(view.tasks.filter(({ planning }) => !planning).map((task) => [task.key, task]));
  if (!recorded) return [...tasks.values()].map((task) => viewTask(task, operation));
  const stages = new Map<number, StageView>();
  for (const [group, { actions }] of recorded.groups.entries()) {
    const stage = view.stages[group];
    if (stage) for (const place of actions) stages.set(place, stage);
  }
  const isOver = view.endedAtMs !== undefined;
  return recorded.build.actions.map(({ key }, place) => {
    const task = tasks.get(key);
    const stage = stages.get(place);
    if (task) return viewTask(task, operation);
    return { ...untouched(key), state: unplanned(stage?.phase, isOver), message: stage ? planningOf(stage) : "" };
  });
}

/** The stage that an action of the build belongs to, planned or not. */
export function stageOf({ build, groups }: Recorded, key: string): number {
  const place = build.actions.findIndex((action) => action.key === key);
  return groups.findIndex(({ actions }) => actions.includes(place));
}

/** In the form of operation names: output streams are found under it. */
export const operationOf = (buildId: string, { spec }: Pick<JobView, "spec">): string =>
  operationName(readBuildSpec(spec)?.instance ?? "", buildId);

type AtIt = Pick<ActionStatus, "worker" | "stdoutStreamName" | "stderrStreamName">;

/** No worker runs it. */
export const notAtIt: AtIt = { worker: "", stdoutStreamName: "", stderrStreamName: "" };

/** A claim token is unique in its shard, so it identifies the action. */
export const streamsOf = (operation: string, token: number): Omit<AtIt, "worker"> => ({
  stdoutStreamName: streamNameOf(operation, token, "stdout"),
  stderrStreamName: streamNameOf(operation, token, "stderr"),
});

export const untouched = (key: string): ActionStatus => ({
  key,
  state: ActionState.ACTION_STATE_WAITING,
  actionDigest: "",
  attempts: 0,
  message: "",
  ...notAtIt,
});

/** A stage that was planned without the action lacked its inputs. */
export function unplanned(phase: StageView["phase"] | undefined, isOver: boolean): number {
  if (phase === "CANCELLED") return ActionState.ACTION_STATE_CANCELLED;
  if (phase === "BLOCKED" || phase === "READY" || phase === undefined)
    return isOver ? ActionState.ACTION_STATE_CANCELLED : ActionState.ACTION_STATE_WAITING;
  return ActionState.ACTION_STATE_SKIPPED;
}

const planningOf = ({ phase, reason }: StageView): string =>
  phase === "FAILED" || phase === "SKIPPED" || phase === "CANCELLED" ? reason : "";

const states: Readonly<Record<TaskView["phase"], number>> = {
  READY: ActionState.ACTION_STATE_QUEUED,
  CLAIMED: ActionState.ACTION_STATE_RUNNING,
  RUNNING: ActionState.ACTION_STATE_RUNNING,
  RETRY_PENDING: ActionState.ACTION_STATE_QUEUED,
  WAITING: ActionState.ACTION_STATE_WAITING,
  CANCELLING: ActionState.ACTION_STATE_RUNNING,
  SUCCEEDED: ActionState.ACTION_STATE_SUCCEEDED,
  FAILED: ActionState.ACTION_STATE_FAILED,
  CANCELLED: ActionState.ACTION_STATE_CANCELLED,
};

export function viewTask(
  { key, phase, attempts, claims, result, lastFailure }: TaskView,
  operation: string,
): ActionStatus {
  const begun = claims.find(({ started }) => started);
  const outcome = readOutcome(result);
  const failure = lastFailure && phase !== "SUCCEEDED" ? readFailure(lastFailure.message) : undefined;
  return {
    key,
    state: outcome?.cached === true ? ActionState.ACTION_STATE_CACHED : states[phase],
    actionDigest: outcome?.action ?? failure?.action ?? "",
    attempts,
    ...notAtIt,
    worker: claims[0]?.executor ?? "",
    ...(begun && streamsOf(operation, begun.token)),
    // Without a failed attempt: no worker started it in time.
    message: failure?.text ?? (phase === "FAILED" ? "no worker took it in time" : ""),
  };
}

export function countsOf(actions: Iterable<ActionStatus>): readonly ActionCount[] {
  const counts = new Map<number, number>();
  for (const { state } of actions) counts.set(state, (counts.get(state) ?? 0) + 1);
  return countsIn(counts);
}

/** In the order of the states; states without actions are left out. */
export const countsIn = (counts: ReadonlyMap<number, number>): readonly ActionCount[] =>
  [...counts]
    .flatMap(([state, actions]) => (actions === 0 ? [] : [{ state, actions }]))
    .toSorted((a, b) => a.state - b.state);
