/** Pure: turns an action to be executed into a job of one task. */
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
import { byCode, demandsOf, platformOf, type Demands, type ToolDemand } from "./execute/plan-platform.ts";
import { invalid } from "./refusals.ts";
import type { RanBecause } from "./run/outcome.ts";

export const door = "build";
export const actionKind = "build.action";
/** The label that workers offer which run this door's tasks. */
export const taskLabel = "door=build";

/** What a worker has to know besides the action, and a waiting client besides the job's state. */
export type ActionSpec = {
  readonly instance: string;
  readonly fn: DigestFunction;
  readonly action: Digest;
  /** Actions with the same key are one job while it is live. */
  readonly merge: string;
  readonly doNotCache: boolean;
  readonly timeoutMs: number;
  readonly requires: readonly string[];
  readonly network: boolean;
  readonly memoryBytes: number;
  readonly cpus: number;
  /** The tool that it runs may be reused for other actions. */
  readonly tool?: ToolDemand;
  /** It gets the node's address and a token of its claim. */
  readonly credential?: true;
  readonly queueMs: number;
  readonly leaveGraceMs: number;
  /** By the clock of the node that accepted it. */
  readonly queuedAtMs: number;
  /** Recorded as the requester. */
  readonly principal: string;
  readonly target: string;
  readonly mnemonic: string;
  /** Why it is run at all. */
  readonly because?: RanBecause;
};

export type ActionOrder = {
  readonly instance: string;
  readonly fn: DigestFunction;
  readonly action: Digest;
  readonly principal: string;
  readonly metadata: RequestMetadata | undefined;
  readonly nowMs: number;
  /** Chosen by the caller: separates actions that must not be merged. */
  readonly unique: string;
  readonly because?: RanBecause | undefined;
};

/** Throws if it cannot be executed here. */
export function planAction(
  request: ActionOrder,
  action: Action,
  command: Command,
  settings: ExecutionSettings,
): ActionSpec {
  const { instance, fn, principal, metadata } = request;
  checkCommand(command);
  const because = action.doNotCache ? ({ kind: "do-not-cache" } as const) : request.because;
  const demands = demandsOf(platformOf(action, command), settings);
  checkCredential(demands, action);
  const { labels, network, memoryBytes, cpus, tool, credential } = demands;
  return {
    instance,
    fn,
    action: request.action,
    merge: mergeKeyOf(request, action),
    doNotCache: action.doNotCache,
    timeoutMs: timeoutOf(action.timeout, settings),
    requires: [...new Set([taskLabel, ...labels])].toSorted(byCode),
    network,
    memoryBytes,
    cpus,
    ...(tool && { tool }),
    ...(credential && { credential }),
    queueMs: settings.queueMs,
    leaveGraceMs: settings.leaveGraceMs,
    queuedAtMs: request.nowMs,
    principal,
    target: (metadata?.targetId ?? "").slice(0, textLengthMax),
    mnemonic: (metadata?.actionMnemonic ?? "").slice(0, textLengthMax),
    ...(because && { because }),
  };
}

/** What an action gets by its token is no part of its digest: its result says nothing about another run. */
function checkCredential({ credential, network }: Demands, { doNotCache }: Action): void {
  if (!credential) return;
  if (!doNotCache) throw invalid("platform property taskCredential: only an action with do_not_cache may have a token");
  if (!network) throw invalid("platform property taskCredential: the action needs network: on to reach its node");
}

const textLengthMax = 300;

/**
 * REAPI-62: an action that is not to be cached is not shared either. REAPI-63: tenant and door are part of the key in
 * the kernel.
 */
function mergeKeyOf({ instance, action, unique }: ActionOrder, { doNotCache }: Action): string {
  const parts = doNotCache ? ["alone", unique] : ["shared", instance, action];
  return hash("sha256", parts.join("\0"));
}

/** REAPI-54: the action's timeout, or the default; refused if it is negative or above the maximum. */
function timeoutOf(timeout: Duration | undefined, { timeoutMsDefault, timeoutMsMax }: ExecutionSettings): number {
  if (!timeout) return timeoutMsDefault;
  const ms = timeout.seconds * 1_000 + timeout.nanos / 1e6;
  if (ms < 0) throw invalid(`the action's timeout is negative: ${ms} ms`);
  if (ms > timeoutMsMax) throw invalid(`the action's timeout of ${ms} ms is more than the ${timeoutMsMax} ms allowed`);
  return ms === 0 ? timeoutMsDefault : Math.max(1, Math.round(ms));
}

/** REAPI-83: a command that cannot be started is refused before the client waits for it. */
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
/** Workers that are lost under it do not use those up, unless it is the action that takes them along. */
const lossesMax = 10;
/** Time for staging inputs and uploading outputs, which the action's timeout does not include (REAPI-56). */
const aroundMs = 30 * 60_000;

export type Wishes = { readonly tenant: string; readonly priority: number; readonly subscriber: string };
/** Where it should preferably run, and the trace that it is recorded in. */
export type OrderWishes = Wishes & { readonly here?: string | undefined; readonly trace?: string | undefined };

const deadlineMsOf = ({ queueMs, attemptMs, backoffMsMax }: TaskTemplate): number =>
  Math.min(deadlineMsMax, queueMs + (attemptsMax + lossesMax) * (attemptMs + backoffMsMax));

/** The same spec gives the same order, and a client of its job can join with it again. */
export function planOrder(spec: ActionSpec, { tenant, priority, subscriber, here, trace }: OrderWishes): Order {
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
    ...(trace !== undefined && { trace }),
    priority: kernelPriority(priority),
    spec: text,
    deadlineMs: deadlineMsOf(template),
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

/** Joins the spec's live job, at its present priority, and starts none. */
export const planJoin = (spec: ActionSpec, { tenant, priority, subscriber }: Wishes): Joining => ({
  ...sharedBy(spec, tenant),
  subscriber,
  priority,
});

/** What all orders for the same action have in common. */
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
  lossesMax,
  retryOn: "infrastructure",
  backoffMs: 200,
  backoffMsMax: 5_000,
  queueMs,
  attemptMs: timeoutMs + aroundMs,
  effects: "pure",
  speculate: false,
  graceMs: 60_000,
});

/** The priorities that clients may use. */
export const priorityRange = { min: -100, max: 100 } as const;

/** REAPI-64: for clients lower comes first, in the kernel higher. */
export function kernelPriority(priority: number): number {
  const clamped = Math.min(priorityRange.max, Math.max(priorityRange.min, priority));
  return clamped === 0 ? 0 : -clamped;
}

/** Undefined if this door did not write it. */
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
  spec.includes('"trace":') ? (readSpec(spec) as { readonly trace?: string } | undefined)?.trace : undefined;
