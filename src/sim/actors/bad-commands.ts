/**
 * Hostile input, as a table: commands that must be refused, each wrong in its own way, and some that are only unusual.
 */
import type { Random } from "#base/random.ts";
import type { Command, Submit } from "#kernel/model/command.ts";
import type { StageSpec, TaskTemplate } from "#kernel/model/model.ts";
import { joining } from "./workloads.ts";

export type BadContext = { readonly random: Random; readonly job: number; readonly submit: Submit };
export type Bad = (context: BadContext) => Command;

/** For values that no type allows. */
const twisted = (value: object): Command => value as Command;
const evidence = { digests: [], pinnedForMs: 0 };
const long = (length: number): string => "x".repeat(length);

const withStage = ({ submit }: BadContext, change: object): Command =>
  twisted({ ...submit, requestKey: undefined, stages: [{ ...(submit.stages[0] as StageSpec), ...change }] });

const withTemplate = (context: BadContext, change: object): Command => {
  const known = context.submit.stages.find(({ tasks }) => tasks)?.tasks;
  const template = { ...(known?.template as TaskTemplate), ...change };
  return withStage(context, { plan: undefined, tasks: { template, tasks: known?.tasks ?? [] } });
};

const withTasks = (context: BadContext, tasks: readonly unknown[]): Command => {
  const template = context.submit.stages.find((stage) => stage.tasks)?.tasks?.template;
  return withStage(context, { plan: undefined, tasks: { template, tasks } });
};

const withPlan = (context: BadContext, change: object): Command => {
  const plan = { kind: "sim", requires: ["plan=sim-1"], leaseMs: 1_000, attemptsMax: 1, deadlineMs: 1_000, ...change };
  return withStage(context, { tasks: undefined, plan });
};

const withPublish = (publish: unknown): Command =>
  twisted({
    kind: "commit",
    executor: "nobody",
    task: 1,
    token: 1,
    result: { payload: "", digests: [], publish },
    evidence,
  });

export const badCommands: readonly Bad[] = [
  ({ submit }) => twisted({ ...submit, tenant: "" }),
  ({ submit }) => twisted({ ...submit, tenant: 7 }),
  ({ submit }) => ({ ...submit, door: long(1_000) }),
  ({ submit }) => ({ ...submit, name: long(1_000) }),
  ({ submit }) => twisted({ ...submit, payloadHash: null }),
  ({ submit }) => ({ ...submit, spec: long(200_000) }),
  ({ submit }) => ({ ...submit, requestKey: "with\u0000nul" }),
  ({ submit }) => ({ ...submit, mergeKey: "" }),
  ({ submit }) => ({ ...submit, priority: 101 }),
  ({ submit }) => ({ ...submit, priority: 0.5 }),
  ({ submit }) => ({ ...submit, deadlineMs: 0 }),
  ({ submit }) => ({ ...submit, leaveGraceMs: -1 }),
  ({ submit }) => ({ ...submit, stages: [] }),
  ({ submit }) => twisted({ ...submit, stages: "all" }),
  ({ submit }) => twisted({ ...submit, joinOnly: "if you like" }),
  ({ submit }) => twisted({ ...joining(submit, "merge-0"), mergeKey: undefined }),
  ({ submit }) => ({ ...submit, mergeKey: "merge-0", joinOnly: true }),
  ({ submit }) => ({ ...submit, lock: { name: "", limit: 1, queueMax: 1, cancelInProgress: false } }),
  ({ submit }) => ({ ...submit, lock: { name: "l", limit: 0, queueMax: 1, cancelInProgress: false } }),
  ({ submit }) => twisted({ ...submit, lock: { name: "l", limit: 1, queueMax: 1, cancelInProgress: "no" } }),
  ({ submit }) => twisted({ ...submit, reuse: "everything" }),
  ({ submit }) =>
    twisted({ ...submit, reuse: [{ stage: "s", key: "k", spec: 1, result: { payload: "", digests: [] } }] }),
  ({ submit }) => ({
    ...submit,
    reuse: [{ stage: "s", key: "k", spec: "", result: { payload: "", digests: [`${"0".repeat(64)}/1`] } }],
  }),
  (c) => withStage(c, { name: "" }),
  (c) => withStage(c, { needs: [0] }),
  (c) => withStage(c, { needs: [5] }),
  (c) => withStage(c, { needs: [0, 0] }),
  (c) => withStage(c, { after: "never" }),
  (c) => withStage(c, { failFast: 1 }),
  (c) => withStage(c, { mayFail: null }),
  (c) => withStage(c, { parallelMax: -1 }),
  (c) => withStage(c, { tasks: undefined, plan: undefined }),
  (c) => withStage(c, { plan: undefined, tasks: { template: null, tasks: [] } }),
  (c) => withTasks(c, [null]),
  (c) => withTasks(c, [{ key: "", spec: "" }]),
  (c) => withTasks(c, [{ key: "k", spec: "", affinity: 7 }]),
  (c) =>
    withTasks(c, [
      { key: "k", spec: "" },
      { key: "k", spec: "" },
    ]),
  ({ submit }) => ({
    ...submit,
    lock: { name: "one", limit: 1, queueMax: 1, cancelInProgress: false },
    stages: submit.stages.map((stage) => ({
      ...stage,
      lock: { name: "one", limit: 1, queueMax: 1, cancelInProgress: false },
    })),
  }),
  (c) => withTemplate(c, { kind: "" }),
  (c) => withTemplate(c, { requires: ["b", "a"] }),
  (c) => withTemplate(c, { requires: ["a\u0000b"] }),
  (c) => withTemplate(c, { requires: [7] }),
  (c) => withTemplate(c, { leaseMs: 1 }),
  (c) => withTemplate(c, { attemptsMax: 0 }),
  (c) => withTemplate(c, { retryOn: "always" }),
  (c) => withTemplate(c, { backoffMs: -1 }),
  (c) => withTemplate(c, { queueMs: 0 }),
  (c) => withTemplate(c, { attemptMs: 0 }),
  (c) => withTemplate(c, { effects: "some" }),
  (c) => withTemplate(c, { effects: "outside", speculate: true, graceMs: 0 }),
  (c) => withTemplate(c, { graceMs: -1 }),
  (c) => withPlan(c, { kind: "" }),
  (c) => withPlan(c, { leaseMs: 1e12 }),
  (c) => withPlan(c, { attemptsMax: 1_000 }),
  (c) => withPlan(c, { deadlineMs: 0 }),
  ({ job }) => ({ kind: "cancel", job: job + 1_000_000, reason: "" }),
  ({ job }) => ({ kind: "cancel", job, reason: "", tenant: "someone else" }),
  ({ job }) => ({ kind: "cancel", job, reason: long(100_000) }),
  ({ job }) => ({ kind: "leave", job: job + 1_000_000, subscriber: "x" }),
  ({ job }) => signal(job + 1_000_000, 0, "a"),
  ({ job }) => signal(job, 99, "a"),
  ({ job }) => signal(job, 0, ""),
  ({ job }) => ({ ...signal(job, 0, "a"), tenant: "someone else" }),
  ({ job }) => twisted({ kind: "signal", job, stage: 0 }),
  () => ({ kind: "start", executor: "nobody", task: 1_000_000, token: 1 }),
  () => ({ kind: "release", executor: "nobody", task: 1_000_000, token: 1 }),
  () => ({ kind: "release", executor: "nobody", task: 1, token: 1 }),
  () => ({ kind: "start", executor: "nobody", task: 1, token: 1, tenant: "someone else" }),
  () => ({ kind: "invalidate", task: 1, generation: 1, reason: "", tenant: "someone else" }),
  ({ job }) => ({ kind: "leave", job, subscriber: "x", tenant: "someone else" }),
  () => ({ kind: "renew", executor: "nobody", claims: [{ task: 1, token: 1 }] }),
  () => twisted({ kind: "renew", executor: "nobody", claims: 1 }),
  () => ({ kind: "report", executor: "nobody", task: 1, token: 1, steps: [] }),
  () => twisted({ kind: "report", executor: "nobody", task: 1, token: 1, steps: [{ step: -1 }] }),
  () => twisted({ kind: "report", executor: "nobody", task: 1, token: 1, steps: "many" }),
  () => ({ kind: "commit", executor: "nobody", task: 1, token: 1, result: { payload: "", digests: ["x"] }, evidence }),
  () => twisted({ kind: "commit", executor: "nobody", task: 1, token: 1, result: null, evidence }),
  () =>
    twisted({ kind: "commit", executor: "nobody", task: 1, token: 1, result: { payload: 7, digests: [] }, evidence }),
  () => ({ kind: "commit", executor: "nobody", task: 1, token: 1, result: { payload: "", digests: [] }, evidence }),
  () => withPublish(""),
  () => withPublish(long(3_000)),
  () => withPublish({ to: "everyone" }),
  () => ({ kind: "record-plan", executor: "nobody", task: 1, token: 1, plan: { kind: "skip", reason: "" } }),
  () => twisted({ kind: "record-plan", executor: "nobody", task: 1, token: 1, plan: { kind: "guess" } }),
  () => ({ kind: "record-plan", executor: "nobody", task: 1, token: 1, plan: { kind: "wait", forMs: 0, signals: [] } }),
  () => twisted({ kind: "fail", executor: "nobody", task: 1, token: 1, reason: "mood", message: "" }),
  () => ({ kind: "fail", executor: "nobody", task: 1, token: 1, reason: "user-failure", message: "" }),
  () => ({ kind: "invalidate", task: 1_000_000, generation: 1, reason: "" }),
  () => ({ kind: "invalidate", task: 1, generation: 77, reason: "" }),
  () => ({ kind: "invalidate", task: 1, generation: 1, reason: long(100_000) }),
  () => twisted({ kind: "signal", job: 1, stage: 0, signal: { id: "x", name: "y", payload: 7 } }),
  () => ({
    kind: "reserve",
    executor: "e",
    offers: Array.from({ length: 100 }, (_, i) => `l=${i + 1_000}`),
    prefer: [],
    count: 1,
    start: false,
    nonce: "",
  }),
  () => ({ kind: "drain", executor: "", reason: "" }),
  () => ({ kind: "resume", executor: "nobody" }),
  () => ({ kind: "set-tenant", tenant: "", weight: 1, runningMax: 0, queuedMax: 0, home: 0 }),
  () => ({ kind: "set-tenant", tenant: "t", weight: 0, runningMax: 0, queuedMax: 0, home: 0 }),
  () => ({ kind: "lend-quota", tenant: "nobody", borrower: 0, want: 1, running: 0, forMs: 1_000 }),
  () => ({ kind: "lend-quota", tenant: "nobody", borrower: -1, want: 1, running: 0, forMs: 1_000 }),
  () => ({ kind: "take-quota", tenant: "nobody", slots: 1, forMs: 1_000 }),
  () => ({ kind: "forget", jobs: [1] }),
  () => ({ kind: "take-over", epoch: 1_000, node: "usurper" }),
  () => ({ kind: "tick" }),
  () => twisted({ kind: "no-such-command" }),
  () => twisted({}),
  // Accepted, as long as the tenant limit is not reached.
  ({ submit }) => unkeyed({ ...submit, tenant: "stranger" }),
  () => ({ kind: "set-tenant", tenant: "guest", weight: 1, runningMax: 0, queuedMax: 0, home: 0 }),
  () => reserve({ executor: "" }),
  () => reserve({ count: 0 }),
  () => reserve({ count: 1e9 }),
  () => reserve({ offers: ["b", "a"] }),
  () => twisted({ ...reserve({}), prefer: "all" }),
  () => reserve({ executor: "stranger", tenant: "nobody" }),
];

const unkeyed = ({ requestKey: _used, ...submit }: Submit): Submit => submit;

const signal = (job: number, stage: number, name: string): Command => ({
  kind: "signal",
  job,
  stage,
  signal: { id: "bad", name, payload: "" },
});

const reserve = (change: Partial<Extract<Command, { kind: "reserve" }>>): Command => ({
  kind: "reserve",
  executor: "stranger",
  offers: ["nothing=at-all"],
  prefer: [],
  count: 1,
  start: false,
  nonce: "",
  ...change,
});
