import { equal, match } from "node:assert/strict";
import { describe, test } from "node:test";
import { KindTable } from "#shard/door-kinds.ts";
import { batchDoorKinds } from "./kinds.ts";
import { kinds, partTemplate, planSubmit, template, type BatchJob } from "./plan.ts";
import { cutDefaults } from "./plan/settings.ts";

const table = new KindTable([batchDoorKinds], []);
const job: BatchJob = { sql: "select 1", folder: "/", settings: cutDefaults, isExplained: false };
const tenant = { name: "ada", isOperator: false };
const operator = { name: "root", isOperator: true };
const order = (given: BatchJob) => planSubmit(given, { tenant: "acme", unique: "1" });

describe("work of the batch door", () => {
  test("reads as the node for operators only", () => {
    equal(table.refuseJob(order(job), operator), undefined);
    match(table.refuseJob(order(job), tenant) ?? "", /is for operators/);
    equal(table.refuseJob(order({ ...job, isGranted: true }), tenant), undefined);
  });

  test("is planned by nodes: a tenant cannot submit tasks, nor have others plan or read for it", () => {
    const [plan, wave] = order({ ...job, isGranted: true }).stages;
    if (!plan?.tasks?.tasks || !wave?.plan) throw new Error("no plan");
    const refused = (stage: object): string | undefined =>
      table.refuseJob({ door: "batch", stages: [{ ...plan, tasks: undefined, ...stage } as never] }, tenant);
    const spec = JSON.stringify({ ...job, isGranted: true });
    for (const kind of [kinds.part, kinds.commit])
      match(refused({ tasks: { template: template(kind), tasks: [{ key: "a", spec }] } }) ?? "", /planned by nodes/);
    const unlabelled = { ...plan.tasks.template, requires: [] };
    match(refused({ tasks: { ...plan.tasks, template: unlabelled } }) ?? "", /requires door=batch/);
    const array = { template: plan.tasks.template, array: { count: 2, spec } };
    match(refused({ tasks: array }) ?? "", /one task/);
    const mixed = [...plan.tasks.tasks, { key: "b", spec: JSON.stringify(job) }];
    match(refused({ tasks: { ...plan.tasks, tasks: mixed } }) ?? "", /is for operators/);
    match(refused({ plan: { ...wave.plan, requires: [] } }) ?? "", /require plan=batch/);
    match(table.refusePlanned({ template: partTemplate, tasks: [] }, tenant) ?? "", /planned by nodes/);
  });
});
