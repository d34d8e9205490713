/** Stages, tasks, plans and results of the kernel as messages of the work protocol, and back. */
import type * as kernel from "#kernel/model/model.ts";
import type * as wire from "#wire/generated/millrace/work/v1/model.ts";
import {
  afters,
  each,
  effects,
  failReasons,
  noSuch,
  readPart,
  refuse,
  retryOns,
  stepStatuses,
  within,
} from "./enums.ts";
import { listedIn } from "#kernel/model/task-set.ts";

export const writeTemplate = (template: kernel.TaskTemplate): wire.TaskTemplate => ({
  ...template,
  retryOn: retryOns.numberOf(template.retryOn),
  effects: effects.numberOf(template.effects),
  retries: writeCounts(template.retries),
});

export const readTemplate = ({
  stopMs,
  lossesMax,
  retries,
  speculation,
  lock,
  ...template
}: wire.TaskTemplate): kernel.TaskTemplate => ({
  ...template,
  retryOn: retryOns.wordOf(template.retryOn) ?? noSuch("retryOn"),
  effects: effects.wordOf(template.effects) ?? noSuch("effects"),
  ...(stopMs === undefined ? {} : { stopMs }),
  ...(lossesMax === undefined ? {} : { lossesMax }),
  ...(retries.length > 0 && { retries: readCounts(retries) }),
  ...(speculation === undefined ? {} : { speculation }),
  ...(lock === undefined ? {} : { lock }),
});

export const writeTaskSet = (set: kernel.TaskSet): wire.TaskSet => ({
  template: writeTemplate(set.template),
  tasks: listedIn(set),
  ...(set.array && { array: set.array }),
});

export const readTaskSet = ({ template, tasks, array }: wire.TaskSet): kernel.TaskSet => {
  const shared = readPart("template", template, readTemplate);
  if (array === undefined)
    return {
      template: shared,
      tasks: tasks.map(({ key, spec, affinity }) => (affinity === undefined ? { key, spec } : { key, spec, affinity })),
    };
  if (tasks.length > 0) return refuse("array", "must not be there together with a list of tasks");
  const { count, first, spec } = array;
  return { template: shared, array: first === undefined ? { count, spec } : { count, first, spec } };
};

export const writeStage = (stage: kernel.StageSpec): wire.StageSpec => ({
  ...stage,
  after: afters.numberOf(stage.after),
  tasks: stage.tasks && writeTaskSet(stage.tasks),
});

export const readStage = ({ tasks, plan, lock, manifest, ...stage }: wire.StageSpec): kernel.StageSpec => ({
  ...stage,
  after: afters.wordOf(stage.after) ?? noSuch("after"),
  ...(tasks === undefined ? {} : { tasks: within("tasks", () => readTaskSet(tasks)) }),
  ...(plan === undefined ? {} : { plan }),
  ...(lock === undefined ? {} : { lock }),
  ...(manifest === undefined ? {} : { manifest }),
});

export const readResult = ({ payload, digests, publish }: wire.Result): kernel.Result =>
  publish === undefined ? { payload, digests } : { payload, digests, publish };

export const writeCheckpoint = ({ payload, digests }: kernel.Checkpoint): wire.Checkpoint => ({
  payload,
  digests,
  token: 0,
});

export const readCheckpoint = ({ payload, digests }: wire.Checkpoint): kernel.Checkpoint => ({ payload, digests });

export const readReuse = ({ result, ...reuse }: wire.Reuse): kernel.Reuse => ({
  ...reuse,
  result: readPart("result", result, readResult),
});

export function writePlan(plan: kernel.Plan): wire.Plan {
  switch (plan.kind) {
    case "tasks": {
      const { sets, decides } = plan;
      if (!sets) return { plan: { kind: "tasks", value: writeTaskSet(plan.set) } };
      return { plan: { kind: "sets", value: { sets: sets.map(writeTaskSet) } }, ...(decides && { decides }) };
    }
    case "skip":
      return { plan: { kind: "skip", value: plan } };
    case "fail":
      return { plan: { kind: "fail", value: plan } };
    case "wait":
      return { plan: { kind: "wait", value: plan } };
    default:
      return {}; // the receiver reports that it is missing
  }
}

export function readPlan({ plan, decides }: wire.Plan): kernel.Plan {
  switch (plan?.kind) {
    case "tasks":
      return { kind: "tasks", set: within("tasks", () => readTaskSet(plan.value)) };
    case "sets": {
      const sets = within("sets", () => each("sets", plan.value.sets, readTaskSet));
      return decides ? { kind: "tasks", sets, decides: readDecides(decides) } : { kind: "tasks", sets };
    }
    case "skip":
    case "fail":
    case "wait":
      return { kind: plan.kind, ...plan.value } as kernel.Plan;
    default:
      return refuse("plan", "must be tasks, sets, skip, fail or wait");
  }
}

const readDecides = ({ lock, failFast, mayFail, parallelMax }: wire.PlanDecides): kernel.PlanDecides => ({
  ...(lock === undefined ? {} : { lock }),
  ...(failFast === undefined ? {} : { failFast }),
  ...(mayFail === undefined ? {} : { mayFail }),
  ...(parallelMax === undefined ? {} : { parallelMax }),
});

export const readSignal = ({ id, name, payload, by, atMs }: wire.Signal): kernel.Signal => ({
  id,
  name,
  payload,
  ...(by === undefined ? {} : { by }),
  ...(atMs === undefined ? {} : { atMs }),
});

export const writeHeld = ({ signals = [], ...held }: kernel.HeldClaim): wire.HeldClaim => ({ ...held, signals });

export const readHeld = ({ signals, ...held }: wire.HeldClaim): kernel.HeldClaim =>
  signals.length === 0
    ? held
    : { ...held, signals: signals.map((one) => ({ ...readSignal(one), number: one.number ?? 0 })) };

export const readClaimRef = ({ task, token, heard }: wire.Claim) =>
  heard === undefined ? { task, token } : { task, token, heard };

export const writeSteps = (steps: readonly kernel.Step[]): wire.Step[] =>
  steps.map(({ step, name, status }) => ({ step, name, status: stepStatuses.numberOf(status) }));

export const readSteps = (steps: readonly wire.Step[]): kernel.Step[] =>
  steps.map(({ step, name, status }, i) => ({
    step,
    name,
    status: stepStatuses.wordOf(status) ?? noSuch(`steps[${i}].status`),
  }));

export const readStages = (stages: readonly wire.StageSpec[]): kernel.StageSpec[] => each("stages", stages, readStage);

export const writeGrant = (grant: kernel.Grant): wire.Grant => ({
  ...grant,
  effects: effects.numberOf(grant.effects),
  failures: writeCounts(grant.failures),
  manifests: grant.manifests ?? [],
});

export const writeCounts = (counts: kernel.FailureCounts | undefined): wire.ReasonCount[] =>
  Object.entries(counts ?? {}).map(([reason, count]) => ({
    reason: failReasons.numberOf(reason as kernel.FailReason),
    count: count ?? 0,
  }));

export const readCounts = (counts: readonly wire.ReasonCount[]): kernel.FailureCounts =>
  Object.fromEntries(counts.map(({ reason, count }) => [failReasons.wordOf(reason) ?? noSuch("failures"), count]));

export const readGrant = ({ failures, manifests, ...grant }: wire.Grant, index: number): kernel.Grant => ({
  ...grant,
  effects: effects.wordOf(grant.effects) ?? noSuch(`grants[${index}].effects`),
  ...(manifests.length > 0 && { manifests }),
  ...(failures.length > 0 && { failures: readCounts(failures) }),
});
