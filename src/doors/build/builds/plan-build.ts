/** Pure: turns a build into a job. Its stages are planned when what they need has ended: see plan-stage.ts. */
import { createHash } from "node:crypto";
import type { Digest } from "#base/digest.ts";
import type { PlanSpec } from "#kernel/model/model.ts";
import type { Order } from "#shard/client/client.ts";
import { Build, type BuildAction, type RecordedBuild } from "#wire/generated/millrace/build/v1/builds.ts";
import { encode } from "#wire/message.ts";
import type { ExecutionSettings } from "#doors/build/execute/execution-settings.ts";
import { planAction } from "#doors/build/plan.ts";
import { invalid } from "#doors/build/refusals.ts";
import { shown } from "#doors/build/digests.ts";
import { checkBuild } from "./check.ts";
import { askedFor, messagesOf } from "./action-messages.ts";
import { groupActions } from "./groups.ts";
import { buildLimits } from "./limits.ts";

/** Jobs of builds are separate from those of single actions, which clients know as operations. */
export const buildsDoor = "builds";
export const stepKind = "build.step";
export const planKind = "build.stage";
/** The label that workers offer which plan stages of builds. */
export const planLabel = "plan=build/1";

/** What the job itself stores; the rest is a blob. */
export type BuildSpec = {
  /** The digest of the RecordedBuild. */
  readonly recorded: Digest;
  readonly instance: string;
  /** By the clock of the node that accepted it. */
  readonly submittedAtMs: number;
};

export type BuildWishes = {
  readonly tenant: string;
  readonly principal: string;
  readonly mayReadCache: boolean;
};

/** Throws if it is invalid or cannot be executed here. */
export function recordBuild(
  build: Build,
  { principal, mayReadCache }: BuildWishes,
  settings: ExecutionSettings,
): RecordedBuild {
  const needs = checkBuild(build);
  const planned = build.actions.map((action) => demandsOf(action, build, settings));
  const { groupsMax, groupActionsMax: actionsMax } = buildLimits;
  const nodes = planned.map(({ requires }, place) => ({ needs: needs[place] ?? [], class: requires.join("\0") }));
  const grouped = groupActions(nodes, { groupsMax, actionsMax });
  if (grouped.kind === "circle")
    throw invalid(
      `actions need each other: ${grouped.places.map((place) => shown(keyAt(build, place))).join(" needs ")}`,
    );
  if (grouped.kind === "too-deep")
    throw invalid(`actions form a chain of ${grouped.depth}, and at most ${grouped.depthMax} are accepted`);
  const groups = grouped.groups.map(({ actions, needs: before }) => ({
    actions,
    needs: before,
    requires: planned[actions[0] ?? 0]?.requires ?? [],
    timeoutMs: Math.max(...actions.map((place) => planned[place]?.timeoutMs ?? 0)),
  }));
  return { build, groups, principal, mayReadCache };
}

const keyAt = ({ actions }: Build, place: number): string => actions[place]?.key ?? "";

/** Everything about an action that does not depend on its inputs is checked as for any other action. */
function demandsOf(action: BuildAction, build: Build, settings: ExecutionSettings) {
  const nowhere = { action: "", fn: "sha256", nowMs: 0, principal: "", unique: action.key } as const;
  try {
    const { command, action: message } = messagesOf(action);
    return planAction(askedFor(action, build, nowhere), message, command, settings);
  } catch (error) {
    throw error instanceof Error ? invalid(`action ${shown(action.key)}: ${error.message}`) : error;
  }
}

export type OrderWishes = {
  readonly tenant: string;
  readonly requestId: string;
  readonly priority: number;
  readonly nowMs: number;
};

/** `recordedAs` is the digest of the stored build. */
export function planBuild(
  recorded: RecordedBuild & { readonly build: Build },
  recordedAs: Digest,
  { tenant, requestId, priority, nowMs }: OrderWishes,
  { queueMs }: ExecutionSettings,
): Order {
  const { build, groups } = recorded;
  const spec: BuildSpec = { recorded: recordedAs, instance: build.instanceName, submittedAtMs: nowMs };
  const deadlineMs = build.deadlineMs === 0 ? buildLimits.deadlineMsDefault : build.deadlineMs;
  const plan = (requires: readonly string[]): PlanSpec => ({
    kind: planKind,
    requires,
    leaseMs: 10_000,
    attemptsMax: 20,
    deadlineMs: queueMs,
  });
  return {
    shardKey: `${tenant}/build ${requestId}`,
    tenant,
    door: buildsDoor,
    // History keeps the name and not the spec: the name leads to the rest.
    name: `${recordedAs} ${build.name}`,
    payloadHash: createHash("sha256").update(encode(Build, build)).digest("hex"),
    requestKey: requestId,
    priority,
    spec: JSON.stringify(spec),
    deadlineMs,
    stages: groups.map(({ actions, needs }) => ({
      name: nameOf(build, actions),
      needs,
      // In a merged stage some actions may run although another need failed: its planner knows which.
      after: "end",
      failFast: false,
      mayFail: false,
      parallelMax: 0,
      plan: plan([planLabel]),
    })),
  };
}

function nameOf(build: Build, actions: readonly number[]): string {
  const first = keyAt(build, actions[0] ?? 0);
  return actions.length === 1 ? first : `${first} and ${actions.length - 1} more`;
}

/** Undefined if this door did not write it. */
export function readBuildSpec(text: string): BuildSpec | undefined {
  try {
    const spec = JSON.parse(text) as Partial<BuildSpec>;
    return typeof spec.recorded === "string" ? (spec as BuildSpec) : undefined;
  } catch {
    return undefined;
  }
}

/** The digest and the build's own name, from the name of its job. */
export function readJobName(name: string): { readonly recorded: Digest; readonly name: string } {
  const space = name.indexOf(" ");
  return space < 0 ? { recorded: "", name } : { recorded: name.slice(0, space), name: name.slice(space + 1) };
}
