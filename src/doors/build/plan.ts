/** Pure: an action to be executed becomes a job of one task. */
import { hash } from "node:crypto";
import type { Digest, DigestFunction } from "#base/digest.ts";
import type { TaskTemplate } from "#kernel/model/model.ts";
import type { Joining, Order } from "#shard/client/client.ts";
import type {
  Action,
  Command,
  RequestMetadata,
} from "#wire/generated/build/bazel/remote/execution/v2/remote_execution.ts";
import type { Duration } from "#wire/generated/google/protobuf/duration.ts";
import type { ExecutionSettings } from "./execute/execution-settings.ts";
import { byCode, demandsOf, platformOf, type ToolDemand } from "./execute/plan-platform.ts";
import { invalid } from "./refusals.ts";
import type { RanBecause } from "./run/outcome.ts";

export const door = "build";
export const actionKind = "build.action";
/** A worker that runs this door's tasks offers it. */
export const taskLabel = "door=build";

/** What a worker has to know besides the action itself, and whoever waits for the job besides its state. */
export type ActionSpec = {
  readonly instance: string;
  readonly fn: DigestFunction;
  readonly action: Digest;
  /** Equal ones are one job while it lives. */
  readonly merge: string;
  readonly doNotCache: boolean;
  readonly timeoutMs: number;
  readonly requires: readonly string[];
  readonly network: boolean;
  readonly memoryBytes: number;
  readonly cpus: number;
  /** The tool that it runs can stay for other actions. */
  readonly tool?: ToolDemand;
  readonly queueMs: number;
  readonly leaveGraceMs: number;
  /** By the clock of the node that took it in. */
  readonly queuedAtMs: number;
  /** For the record of who had it executed. */
  readonly principal: string;
  readonly target: string;
  readonly mnemonic: string;
  /** The trace that it is recorded in, as W3C Trace Context has it. */
  readonly trace?: string;
  /** Why it is run at all. */
  readonly because?: RanBecause;
};

export type Asked = {
  readonly instance: string;
  readonly fn: DigestFunction;
  readonly action: Digest;
  readonly principal: string;
  readonly metadata: RequestMetadata | undefined;
  readonly nowMs: number;
  /** Chosen by the caller: keeps apart what is not to be merged. */
  readonly unique: string;
  readonly because?: RanBecause | undefined;
  readonly trace?: string | undefined;
};

/** Throws for what cannot be executed here. */
export function planAction(asked: Asked, action: Action, command: Command, settings: ExecutionSettings): ActionSpec {
  const { instance, fn, principal, metadata } = asked;
  checkCommand(command);
  const because = action.doNotCache ? ({ kind: "do-not-cache" } as const) : asked.because;
  const { labels, network, memoryBytes, cpus, tool } = demandsOf(platformOf(action, command), settings);
  return {
    instance,
    fn,
    action: asked.action,
    merge: mergeKeyOf(asked, action),
    doNotCache: action.doNotCache,
    timeoutMs: timeoutOf(action.timeout, settings),
    requires: [...new Set([taskLabel, ...labels])].toSorted(byCode),
    network,
    memoryBytes,
    cpus,
    ...(tool && { tool }),
    queueMs: settings.queueMs,
    leaveGraceMs: settings.leaveGraceMs,
    queuedAtMs: asked.nowMs,
    principal,
    target: (metadata?.targetId ?? "").slice(0, textLengthMax),
    mnemonic: (metadata?.actionMnemonic ?? "").slice(0, textLengthMax),
    ...(because && { because }),
    ...(asked.trace !== undefined && { trace: asked.trace }),
  };
}

const textLengthMax = 300;

/** 62: what is not to be cached is not shared either. 63: tenant and door are part of the key in the kernel. */
function mergeKeyOf({ instance, action, unique }: Asked, { doNotCache }: Action): string {
  const parts = doNotCache ? ["alone", unique] : ["shared", instance, action];
  return hash("sha256", parts.join("\0"));
}

/** 54 */
function timeoutOf(timeout: Duration | undefined, { timeoutMsDefault, timeoutMsMax }: ExecutionSettings): number {
  if (!timeout) return timeoutMsDefault;
  const ms = timeout.seconds * 1_000 + timeout.nanos / 1e6;
  if (ms < 0) throw invalid(`the action's timeout is negative: ${ms} ms`);
  if (ms > timeoutMsMax) throw invalid(`the action's timeout of ${ms} ms is more than the ${timeoutMsMax} ms allowed`);
  return ms === 0 ? timeoutMsDefault : Math.max(1, Math.round(ms));
}

/** 83: what no shell could start is refused before anybody waits for it. */
function checkCommand({ arguments: words, environmentVariables }: Command): void {
  if (words.length === 0 || words[0] === "") throw invalid("the command has no arguments: no program is named");
  if (words.some((word) => word.includes("\0"))) throw invalid("an argument of the command contains NUL");
  const names = new Set<string>();
  for (const { name, value } of environmentVariables) {
    if (name === "" || name.includes("=") || name.includes("\0") || value.includes("\0"))
      throw invalid(`the command's variable ${JSON.stringify(name.slice(0, 100))} cannot be set`);
    if (names.has(name)) throw invalid(`the command sets ${name.slice(0, 100)} twice`);
    names.add(name);
  }
}

const attemptsMax = 5;
/** For inputs to come and outputs to go; the timeout of the action does not count them (56). */
const aroundMs = 30 * 60_000;

export type Wishes = { readonly tenant: string; readonly priority: number; readonly subscriber: string };
/** Where it had better run, besides. */
export type OrderWishes = Wishes & { readonly here?: string | undefined };

/** The same spec gives the same order, and who waits for its job can join that again. */
export function planOrder(spec: ActionSpec, { tenant, priority, subscriber, here }: OrderWishes): Order {
  const { action, target, mnemonic, leaveGraceMs } = spec;
  const template = templateOf(spec);
  const text = JSON.stringify(spec);
  return {
    ...sharedBy(spec, tenant),
    name: [action, mnemonic, target]
      .filter((part) => part !== "")
      .join(" ")
      .slice(0, nameLengthMax),
    subscriber,
    leaveGraceMs,
    priority: kernelPriority(priority),
    spec: text,
    deadlineMs: Math.min(deadlineMsMax, template.queueMs + attemptsMax * (template.attemptMs + template.backoffMsMax)),
    stages: [
      {
        name: "action",
        needs: [],
        after: "success",
        failFast: false,
        mayFail: false,
        parallelMax: 0,
        tasks: { template, tasks: [{ key: "action", spec: text, ...(here !== undefined && { affinity: here }) }] },
      },
    ],
  };
}

/** Joins the spec's job where it runs, in the hurry that the kernel knows it to have, and begins none. */
export const planJoin = (spec: ActionSpec, { tenant, priority, subscriber }: Wishes): Joining => ({
  ...sharedBy(spec, tenant),
  subscriber,
  priority,
});

/** What all have in common who want the same action run. */
const sharedBy = ({ merge }: ActionSpec, tenant: string) => ({
  shardKey: `${tenant}/${merge}`,
  tenant,
  door,
  payloadHash: merge,
  mergeKey: merge,
});

const nameLengthMax = 250;
/** No job is kept for longer than five weeks. */
const deadlineMsMax = 30 * 24 * 3_600_000;

export const templateOf = ({
  requires,
  queueMs,
  timeoutMs,
}: Pick<ActionSpec, "requires" | "queueMs" | "timeoutMs">): TaskTemplate => ({
  kind: actionKind,
  requires,
  leaseMs: 10_000,
  attemptsMax,
  retryOn: "infrastructure",
  backoffMs: 200,
  backoffMsMax: 5_000,
  queueMs,
  attemptMs: timeoutMs + aroundMs,
  effects: "pure",
  speculate: false,
  graceMs: 60_000,
});

/** What clients may ask for. */
export const priorityRange = { min: -100, max: 100 } as const;

/** 64: with clients the lower comes first, in the kernel the higher. */
export function kernelPriority(priority: number): number {
  const clamped = Math.min(priorityRange.max, Math.max(priorityRange.min, priority));
  return clamped === 0 ? 0 : -clamped;
}

/** Undefined for what this door has not written. */
export function readSpec(text: string): ActionSpec | undefined {
  try {
    const spec = JSON.parse(text) as Partial<ActionSpec>;
    return typeof spec.action === "string" && typeof spec.merge === "string" ? (spec as ActionSpec) : undefined;
  } catch {
    return undefined;
  }
}

/** Jobs that were recorded before submissions named their trace have it in here. */
export const traceIn = (spec: string): string | undefined =>
  spec.includes('"trace":') ? readSpec(spec)?.trace : undefined;
