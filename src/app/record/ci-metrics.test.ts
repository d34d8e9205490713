import { equal, ok } from "node:assert/strict";
import { test } from "node:test";
import { MetricsRegistry } from "#edge/metrics/registry.ts";
import type { StageSpec } from "#kernel/model/model.ts";
import { commit, reserve, Rig, submit, template } from "#shard/testing/host.ts";
import { kinds, taskLabel } from "#doors/ci/plan.ts";
import { CiMetrics } from "#doors/ci/metrics/ci-metrics.ts";
import { DrainEstimate } from "#doors/ci/metrics/drain.ts";

const valueOf = (registry: MetricsRegistry, start: string): number =>
  registry
    .text()
    .split("\n")
    .filter((line) => line.startsWith(start))
    .reduce((sum, line) => sum + Number(line.split(" ").at(-1)), 0);

const offers = [taskLabel, "runner=arm", "runner=big"];
const tasks = { template: { ...template, kind: kinds.job, requires: offers }, tasks: [{ key: "0 a", spec: "" }] };
const stage: StageSpec = {
  name: "a",
  needs: [],
  after: "end",
  tasks,
  failFast: false,
  mayFail: false,
  parallelMax: 0,
};
type Granted = { readonly grants: readonly { readonly task: number; readonly token: number }[] };

test("jobs are counted by the labels that they ask for: queued, running, lost, and how long they took", async () => {
  const rig = new Rig();
  const metrics = new CiMetrics();
  const registry = new MetricsRegistry();
  metrics.bind(registry);
  const a = await (await rig.node("a", { observers: [metrics] })).serving();
  await a.reply(submit({ stages: [stage] }));
  await a.reply(submit({ requires: ["pool=slow"] }));
  equal(valueOf(registry, 'cicd_queue_depth{runs_on="arm,big"}'), 1);
  equal(valueOf(registry, "cicd_queue_depth"), 1, "work of other doors is not counted");
  await rig.clock.advance(2_000);
  await a.reply(reserve({ executor: "dead", offers }));
  equal(valueOf(registry, "cicd_jobs_running_gauge{"), 1);
  equal(valueOf(registry, 'cicd_queue_depth{runs_on="arm,big"}'), 0);
  equal(valueOf(registry, 'cicd_job_wait_time_seconds_sum{runs_on="arm,big"}'), 2);
  await rig.clock.advance(60_000);
  equal(valueOf(registry, "cicd_lease_expirations_total{"), 1);
  equal(valueOf(registry, 'cicd_job_duration_seconds_count{runs_on="arm,big",conclusion="lost"}'), 1);
  const { grants } = await a.reply<Granted>(reserve({ offers, nonce: "n2" }));
  ok(grants[0]);
  await rig.clock.advance(3_000);
  await a.reply(commit(grants[0]));
  equal(valueOf(registry, 'cicd_job_duration_seconds_sum{runs_on="arm,big",conclusion="failure"}'), 3);
  equal(valueOf(registry, "cicd_jobs_running_gauge{"), 0);
  equal(
    valueOf(registry, "cicd_scheduler_cdc_lag_seconds"),
    0,
    "the clock stands still between a decision and its end",
  );
});

test("the drain time follows what the last jobs took and how many run at once", () => {
  const drain = new DrainEstimate();
  equal(drain.seconds("x", 100, 4), 0, "nothing is known yet");
  drain.ended("x", 60_000);
  equal(drain.seconds("x", 100, 4), 1_500);
  equal(drain.seconds("x", 100, 0), 6_000);
  for (let n = 0; n < 200; n += 1) drain.ended("x", 1_000);
  ok(Math.abs(drain.seconds("x", 10, 1) - 10) < 0.1);
});
