/** What a pod says of itself: its phase and its problem, named as such. Pure. */
import { z } from "zod";
import type { Problem, ProblemReason, SeenMachine } from "#pools/machine.ts";
import { annotations, labels } from "./manifest.ts";

const State = z.looseObject({
  waiting: z.looseObject({ reason: z.string().optional(), message: z.string().optional() }).optional(),
  terminated: z
    .looseObject({ reason: z.string().optional(), message: z.string().optional(), exitCode: z.number().optional() })
    .optional(),
});
const ContainerStatus = z.looseObject({ name: z.string(), state: State.optional(), lastState: State.optional() });
const Condition = z.looseObject({
  type: z.string(),
  status: z.string(),
  reason: z.string().optional(),
  message: z.string().optional(),
});

export const Pod = z.looseObject({
  metadata: z.looseObject({
    name: z.string(),
    uid: z.string(),
    resourceVersion: z.string().optional(),
    creationTimestamp: z.string().optional(),
    deletionTimestamp: z.string().nullish(),
    labels: z.record(z.string(), z.string()).default({}),
    annotations: z.record(z.string(), z.string()).default({}),
  }),
  status: z
    .looseObject({
      phase: z.string().optional(),
      reason: z.string().optional(),
      message: z.string().optional(),
      conditions: z.array(Condition).optional(),
      containerStatuses: z.array(ContainerStatus).optional(),
    })
    .default({}),
});
export type Pod = z.output<typeof Pod>;

type Status = Pod["status"];

/** Undefined: no pod that a node made. `ageMs` and `hasToken` are the caller's to know. */
export function machineOf(pod: Pod): Omit<SeenMachine, "ageMs" | "hasToken"> | undefined {
  const { name, uid, deletionTimestamp } = pod.metadata;
  const slot = Number(pod.metadata.labels[labels.slot]);
  const worker = pod.metadata.annotations[annotations.worker];
  const template = pod.metadata.labels[labels.template];
  if (!Number.isInteger(slot) || slot < 0 || worker === undefined || template === undefined) return undefined;
  const registration = pod.metadata.annotations[annotations.registration] ?? "";
  const problem = problemOf(pod.status);
  const phase = phaseOf(pod.status, typeof deletionTimestamp === "string");
  return { slot, id: uid, name, worker, template, registration, phase, ...(problem && { problem }) };
}

/** A pod whose containers have all ended is over, even while it is still listed as being deleted. */
function phaseOf({ phase }: Status, isLeaving: boolean): SeenMachine["phase"] {
  if (isLeaving) return "leaving";
  if (phase === "Succeeded" || phase === "Failed") return "ended";
  return phase === "Running" ? "up" : "starting";
}

/** Whether nothing of it can be running any more. */
export const isOver = ({ status: { phase } }: Pod): boolean => phase === "Succeeded" || phase === "Failed";

const pullReasons = new Set([
  "ErrImagePull",
  "ImagePullBackOff",
  "InvalidImageName",
  "ErrImageNeverPull",
  "RegistryUnavailable",
  "ImageInspectError",
]);
const configurationReasons = new Set([
  "CreateContainerConfigError",
  "CreateContainerError",
  "RunContainerError",
  "StartError",
  "ContainerCannotRun",
]);
/** Reasons of a pod that its machine, or the scheduler, ended. */
const podReasons: Readonly<Record<string, ProblemReason>> = {
  Evicted: "evicted",
  Preempting: "preempted",
  Preempted: "preempted",
  Shutdown: "preempted",
  NodeShutdown: "preempted",
  Terminated: "preempted",
  NodeLost: "preempted",
  DeadlineExceeded: "deadline",
  UnexpectedAdmissionError: "unschedulable",
  OutOfcpu: "unschedulable",
  OutOfmemory: "unschedulable",
  OutOfpods: "unschedulable",
  NodeAffinity: "unschedulable",
};
/** Of the condition DisruptionTarget. */
const disruptions: Readonly<Record<string, ProblemReason>> = {
  PreemptionByScheduler: "preempted",
  DeletionByTaintManager: "preempted",
  DeletionByPodGC: "preempted",
  EvictionByEvictionAPI: "evicted",
  TerminationByKubelet: "evicted",
};

export function problemOf(status: Status): Problem | undefined {
  const { reason = "", message = "", conditions = [], containerStatuses = [], phase } = status;
  const killed = containerStatuses.find(({ state, lastState }) =>
    [state, lastState].some((one) => one?.terminated?.reason === "OOMKilled"),
  );
  if (killed) return { reason: "out-of-memory", message: `container ${killed.name} used more memory than it may` };
  const ofPod = podReasons[reason];
  if (ofPod) return { reason: ofPod, message: message === "" ? reason : message };
  const disrupted = conditions.find(({ type, status: is }) => type === "DisruptionTarget" && is === "True");
  const because = disruptions[disrupted?.reason ?? ""];
  if (disrupted && because) return { reason: because, message: disrupted.message ?? disrupted.reason ?? "" };
  const scheduled = conditions.find(({ type }) => type === "PodScheduled");
  if (scheduled?.status === "False" && scheduled.reason === "Unschedulable")
    return { reason: "unschedulable", message: scheduled.message ?? "" };
  for (const { state } of containerStatuses) {
    const { reason: waits = "", message: said = "" } = state?.waiting ?? {};
    if (pullReasons.has(waits)) return { reason: "image-pull", message: said === "" ? waits : said };
    if (configurationReasons.has(waits)) return { reason: "configuration", message: said === "" ? waits : said };
  }
  if (phase !== "Failed") return undefined;
  const ended = containerStatuses.find(({ state }) => state?.terminated);
  const { reason: why = reason, exitCode, message: said = "" } = ended?.state?.terminated ?? {};
  if (configurationReasons.has(why)) return { reason: "configuration", message: said === "" ? why : said };
  const code = exitCode === undefined ? "" : ` with exit code ${exitCode}`;
  return { reason: "failed", message: said === "" ? `the runner ended${code}` : said };
}
