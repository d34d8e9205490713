/** A worker's notes about a failed run: for people, sent with the answer as one of its logs. Pure. */
import type {
  ActionResult,
  ExecutedActionMetadata,
} from "#wire/generated/build/bazel/remote/execution/v2/remote_execution.ts";
import type { Timestamp } from "#wire/generated/google/protobuf/timestamp.ts";
import { StringValue } from "#wire/generated/google/protobuf/wrappers.ts";
import type { Status } from "#wire/generated/google/rpc/status.ts";
import { decode } from "#wire/message.ts";
import type { ActionSpec } from "#doors/build/plan.ts";

/** The name under which clients store it. */
export const runLogName = "run.txt";

export type RunFacts = {
  readonly task: { readonly jobId: string; readonly taskId: string; readonly attempt: number };
  readonly spec: Pick<
    ActionSpec,
    "action" | "instance" | "timeoutMs" | "memoryBytes" | "cpus" | "network" | "requires"
  >;
  readonly status: Status | undefined;
  readonly message: string;
  readonly result: ActionResult;
};

export function runLog({ task, spec, status, message, result }: RunFacts): string {
  const { executionMetadata: metadata, exitCode } = result;
  const lines: readonly (readonly [string, string])[] = [
    ["action", spec.action],
    ["instance", spec.instance],
    ["job", `${task.jobId}, task ${task.taskId}, attempt ${task.attempt}`],
    ["worker", metadata?.worker ?? ""],
    ["ended", `exit code ${exitCode}${status ? `, status ${status.code}: ${status.message}` : ""}`],
    ["because", message],
    ["limits", limitsOf(spec)],
    ["asked for", spec.requires.join(", ")],
    ...phases.map(([name, from, to]) => [name, between(metadata?.[from], metadata?.[to])] as const),
    ["used", usageIn(metadata)],
    ["made", `${result.outputFiles.length} files, ${result.outputDirectories.length} directories`],
  ];
  return lines
    .filter(([, value]) => value !== "")
    .map(([name, value]) => `${`${name}:`.padEnd(11)} ${value}\n`)
    .join("");
}

type Mark = Extract<keyof ExecutedActionMetadata, `${string}Timestamp`>;

const phases: readonly (readonly [name: string, from: Mark, to: Mark])[] = [
  ["queued", "queuedTimestamp", "workerStartTimestamp"],
  ["inputs", "inputFetchStartTimestamp", "inputFetchCompletedTimestamp"],
  ["command", "executionStartTimestamp", "executionCompletedTimestamp"],
  ["outputs", "outputUploadStartTimestamp", "outputUploadCompletedTimestamp"],
];

const msOf = ({ seconds, nanos }: Timestamp): number => seconds * 1_000 + nanos / 1e6;

const between = (from: Timestamp | undefined, to: Timestamp | undefined): string =>
  from && to ? `${Math.round(msOf(to) - msOf(from))} ms, from ${new Date(msOf(from)).toISOString()}` : "";

function limitsOf({ timeoutMs, memoryBytes, cpus, network }: RunFacts["spec"]): string {
  const memory = memoryBytes === 0 ? "any memory" : `${memoryBytes} bytes of memory`;
  const processors = cpus === 0 ? "any processors" : `${cpus} processors`;
  return `${timeoutMs} ms, ${memory}, ${processors}, ${network ? "the network" : "no network"}`;
}

/** As run/usage.ts wrote it. */
function usageIn(metadata: ExecutedActionMetadata | undefined): string {
  const [usage] = metadata?.auxiliaryMetadata ?? [];
  return usage ? decode(StringValue, usage.value).value : "";
}
