/** Stages that wait to be let in: what a planner asks, and what people are shown and say. */
import { Fault } from "#base/fault.ts";
import { Problem } from "#http/problem.ts";
import type { Clock } from "#base/clock.ts";
import type { BlobStore } from "#blobs/store.ts";
import type { Plan } from "#kernel/model/model.ts";
import type { JobView, PlanInputs } from "#kernel/read/query.ts";
import type { WorkClient } from "#shard/client/client.ts";
import { environmentsOfStage, type PlanRules } from "#doors/ci/plan.ts";
import { readRun, type RunRecord, type StoredRun } from "#doors/ci/runs/record.ts";
import { inputsOf, withNeeds } from "#doors/ci/runs/stage-inputs.ts";
import { shortRef } from "#doors/ci/runs/tags.ts";
import type { Deployments } from "./deployments.ts";
import type { Environments } from "./environments.ts";
import {
  approvedBy,
  gateOf,
  mayReview,
  type Review,
  reviewId,
  reviewsIn,
  type Rules,
  signals,
  wholeRun,
} from "./gate.ts";

export type GatePorts = {
  readonly client: Pick<WorkClient, "signal">;
  readonly clock: Pick<Clock, "wallMs">;
  readonly environments: Pick<Environments, "rulesOf">;
  readonly deployments: Pick<Deployments, "begin">;
};

export type Stage = {
  readonly tenant: string;
  readonly jobId: string;
  readonly inputs: PlanInputs;
  readonly record: RunRecord;
  readonly about: StoredRun["about"];
};

type Known = Rules & { readonly exclusive: boolean };

/** "open", with what the plan has to know, or the plan of a stage that must not begin, or not yet (GA1). */
export async function gate(ports: GatePorts, stage: Stage): Promise<Plan | ({ readonly kind: "open" } & PlanRules)> {
  const { client, clock } = ports;
  const { jobId, inputs, record } = stage;
  const rules = await rulesOf(ports.environments, stage);
  if (rules.length === 0) return { kind: "open", exclusive: new Set() };
  const asked = inputs.signals.find(({ name }) => name === signals.asked);
  const nowMs = clock.wallMs();
  const facts = { rules, reviews: reviewsIn(inputs.signals), ...factsOf(record), nowMs };
  const found = gateOf({ ...facts, sinceMs: asked?.atMs ?? nowMs });
  if (found.kind === "refused") return { kind: "fail", reason: found.reason };
  if (found.kind === "wait" && inputs.cancelled)
    return { kind: "skip", reason: `it waited to be let in when the run was cancelled: ${inputs.cancelled.reason}` };
  if (found.kind === "wait") {
    // its time counts from the first time that it asked, whichever nodes plan it later
    if (!asked) await client.signal(jobId, inputs.stage, { id: signals.asked, name: signals.asked, payload: "{}" });
    return { kind: "wait", forMs: found.forMs, signals: [signals.review] };
  }
  await begin(ports, stage);
  return {
    kind: "open",
    exclusive: new Set(rules.flatMap((one) => (one.exclusive ? one.environment.toLowerCase() : []))),
  };
}

async function begin(
  { deployments, clock }: GatePorts,
  { tenant, jobId, inputs, record, about }: Stage,
): Promise<void> {
  if (!record.source) return;
  for (const { name: environment, isDeployment } of environmentsOfStage(inputs, record))
    if (isDeployment)
      await deployments.begin(tenant, {
        repository: record.source.repository,
        environment,
        run: jobId,
        stage: inputs.stage,
        ref: about.ref,
        sha: about.sha,
        by: about.actor,
        atMs: clock.wallMs(),
      });
}

async function rulesOf(
  environments: Pick<Environments, "rulesOf">,
  { tenant, inputs, record }: Pick<Stage, "tenant" | "inputs" | "record">,
): Promise<readonly Known[]> {
  const repository = record.source?.repository;
  if (repository === undefined) return [];
  const named = environmentsOfStage(inputs, record);
  const rules = await Promise.all(named.map(({ name }) => environments.rulesOf(tenant, repository, name)));
  return record.waitsFor === undefined ? rules : [forAll, ...rules];
}

/** A run of a stranger's: anyone who may approve lets it in, but not the stranger. */
const forAll: Known = {
  environment: wholeRun,
  reviewers: [],
  approvals: 1,
  waitMs: 0,
  branches: [],
  preventsSelfReview: true,
  exclusive: false,
};

function factsOf({ github }: RunRecord): { readonly ref: string; readonly actor: string } {
  const { ref = "", actor = "" } = github as { readonly ref?: string; readonly actor?: string };
  return { ref: shortRef(ref), actor };
}

/** One thing that people are asked about, in one stage. */
export type Pending = {
  readonly stage: string;
  readonly rules: Rules;
  readonly approvedBy: readonly string[];
  readonly sinceMs: number | undefined;
};

export type Looking = {
  readonly environments: Pick<Environments, "rulesOf">;
  readonly blobs: BlobStore;
};

/** `view` and `stored` are those of the run. */
export async function pendingIn(
  { environments, blobs }: Looking,
  view: JobView,
  stored: StoredRun,
): Promise<readonly Pending[]> {
  const waiting = view.stages.filter(({ waitsForSignals }) => waitsForSignals.includes(signals.review));
  if (waiting.length === 0) return [];
  const record = await readRun(blobs, stored);
  const whole = withNeeds(view, record);
  const found = await Promise.all(
    whole.stages.map(async (stage) => {
      if (!waiting.some((one) => one.stage === stage.stage)) return [];
      const inputs = await inputsOf(stage, { view: whole, stored }, blobs);
      const reviews = reviewsIn(stage.signals ?? []);
      const sinceMs = stage.signals?.find(({ name }) => name === signals.asked)?.atMs;
      const { actor } = factsOf(record);
      const rules = await rulesOf(environments, { tenant: view.tenant, inputs, record });
      return rules.map((rule) => ({
        stage: stage.name,
        rules: rule,
        approvedBy: approvedBy(rule, reviews, actor),
        sinceMs,
      }));
    }),
  );
  return found.flat();
}

/** GA2: what is not this person's to say is refused before it is recorded. */
export async function review(
  client: Pick<WorkClient, "signal">,
  {
    run,
    view,
    pending,
    actor,
  }: { readonly run: string; readonly view: JobView; readonly pending: readonly Pending[]; readonly actor: string },
  said: Omit<Review, "environment" | "atMs"> & { readonly environments: readonly string[] | undefined },
): Promise<readonly string[]> {
  const { environments, person, ...rest } = said;
  const wanted = environments?.map((one) => one.toLowerCase());
  const meant = pending.filter(({ rules }) => wanted?.includes(rules.environment.toLowerCase()) ?? true);
  const asks = meant.filter(({ rules }) => rules.approvals > 0 || rules.waitMs > 0);
  if (asks.length === 0)
    throw new Fault("not-found", "review the run", {
      run,
      waiting: [...new Set(pending.map(({ rules }) => rules.environment || "the run"))].join(", ") || "nothing",
    });
  const own = asks.filter(({ rules }) => mayReview(rules, { person }, actor));
  if (own.length === 0)
    throw new Problem(403, `the rules of ${asks[0]?.rules.environment || "the run"} do not let ${person} review it`);
  for (const { stage, rules } of own) {
    const payload = JSON.stringify({ ...rest, person, environment: rules.environment });
    const signal = {
      id: reviewId({ environment: rules.environment, person }),
      name: signals.review,
      payload,
      by: person,
    };
    // who lets a run in lets in all of it, also what is planned later
    const stages = rules.environment === wholeRun ? view.stages.map(({ name }) => name) : [stage];
    for (const one of stages) await client.signal(run, one, signal);
  }
  return [...new Set(own.map(({ rules }) => rules.environment))];
}
