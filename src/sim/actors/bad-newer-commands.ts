/** More hostile input: wrong tags, series, notices, arrays, checkpoints, plans and results, each in its own way. */
import type { Command, Submit } from "#kernel/model/command.ts";
import type { LockSpec, StageSpec, TaskTemplate } from "#kernel/model/model.ts";
import type { Bad, BadContext } from "./bad-commands.ts";

const twisted = (value: object): Command => value as Command;
const long = (length: number): string => "x".repeat(length);
const evidence = { digests: [], pinnedForMs: 0 };
const held = { executor: "nobody", task: 1, token: 1 } as const;
const lock: LockSpec = { name: "one", limit: 1, queueMax: 1, cancelInProgress: false };

const changed = ({ submit }: BadContext, change: object): Command =>
  twisted({ ...submit, requestKey: undefined, ...change });

const firstSet = ({ submit }: BadContext): { readonly template: TaskTemplate } | undefined =>
  submit.stages.find(({ tasks }) => tasks)?.tasks;

const withStage = (context: BadContext, change: object): Command =>
  changed(context, { stages: [{ ...(context.submit.stages[0] as StageSpec), plan: undefined, ...change }] });

const withTemplate = (context: BadContext, change: object): Command =>
  withStage(context, {
    tasks: { template: { ...firstSet(context)?.template, ...change }, tasks: [{ key: "k", spec: "" }] },
  });

const withArray = (context: BadContext, array: unknown, more: object = {}): Command =>
  withStage(context, { tasks: { template: firstSet(context)?.template, array, ...more } });

const withNotice = (context: BadContext, notify: unknown): Command => changed(context, { notify });

const plan = (given: object): Command => twisted({ kind: "record-plan", ...held, plan: given });

const sets = (context: BadContext, list: readonly object[], more: object = {}): Command =>
  plan({ kind: "tasks", sets: list.map((set) => ({ template: firstSet(context)?.template, ...set })), ...more });

const one = { tasks: [{ key: "k", spec: "" }] };
/** More than a stage may have, where that is little: two such sets. */
const three = (name: string): object => ({ tasks: [1, 2, 3].map((i) => ({ key: `${name}${i}`, spec: "" })) });
const digest = `${"0".repeat(64)}/1`;

export const badNewerCommands: readonly Bad[] = [
  (c) => changed(c, { tags: "all" }),
  (c) => changed(c, { tags: [{ name: "", value: "x" }] }),
  (c) => changed(c, { tags: [{ name: "-a", value: "x" }] }),
  (c) => changed(c, { tags: [{ name: "a", value: "\u0007" }] }),
  (c) =>
    changed(c, {
      tags: [
        { name: "b", value: "x" },
        { name: "a", value: "x" },
      ],
    }),
  (c) => changed(c, { tracked: "maybe" }),
  (c) => changed(c, { series: "" }),
  (c) => changed(c, { series: `series-${c.random.below(1_000)}` }),
  (c) => changed(c, { cancelGraceMs: -1 }),
  (c) => withNotice(c, 7),
  (c) => withNotice(c, [null]),
  (c) => withNotice(c, [{ shard: -1, job: 1, stage: 0, name: "x" }]),
  (c) => withStage(c, { tasks: { template: firstSet(c)?.template, ...one }, manifest: "yes" }),
  (c) => withStage(c, { tasks: { template: firstSet(c)?.template, tasks: 7 } }),
  (c) => withStage(c, { tasks: { template: firstSet(c)?.template, ...one }, lock: null }),
  (c) => withArray(c, null),
  (c) => withArray(c, { count: 3, spec: "" }, { tasks: [] }),
  (c) => withArray(c, { count: 1e12, spec: "" }),
  (c) => withArray(c, { count: 3, spec: "", first: -1 }),
  (c) => withStage(c, { tasks: { template: { ...firstSet(c)?.template, lock }, array: { count: 2, spec: "" } } }),
  (c) => changed(c, { lock, stages: [lockedStage(c)] }),
  (c) => withTemplate(c, { stopMs: -1 }),
  (c) => withTemplate(c, { lossesMax: -1 }),
  (c) => withTemplate(c, { retries: { "user-failure": -1 } }),
  (c) => withTemplate(c, { retries: { bored: 1 } }),
  (c) => withTemplate(c, { speculation: 7 }),
  (c) => withTemplate(c, { speculation: { percentile: 0, factorPercent: 150, slots: 1 } }),
  (c) => withTemplate(c, { lock: null }),
  (c) => withTemplate(c, { requires: Array.from({ length: 60 }, (_, i) => `${100 + i}=${long(150)}`) }),
  () => twisted({ kind: "checkpoint", ...held, checkpoint: null, evidence }),
  () => twisted({ kind: "checkpoint", ...held, checkpoint: { payload: 7, digests: [] }, evidence }),
  () => twisted({ kind: "release", ...held, checkpoint: { payload: 7, digests: [] }, evidence }),
  () =>
    twisted({
      kind: "fail",
      ...held,
      reason: "user-failure",
      message: "",
      result: { payload: "", digests: [], publish: "x" },
      evidence,
    }),
  ({ job }) => twisted({ kind: "cancel", job, reason: "", stage: 99 }),
  ({ job }) => twisted({ kind: "signal", job, stage: 0, signal: { id: "x", name: "y", payload: "", by: 7 } }),
  ({ job }) => ({ kind: "signal", job, stage: 0, signal: { id: "told", name: "news", payload: "", by: "somebody" } }),
  (c) => sets(c, []),
  (c) => sets(c, [one], { set: { template: firstSet(c)?.template, ...one } }),
  (c) => sets(c, [{ tasks: [{ key: "", spec: "" }] }]),
  (c) => sets(c, [one, one]),
  (c) => sets(c, [three("a"), three("b")]),
  (c) => sets(c, [{ array: { count: 900_000, spec: "" } }, { array: { count: 900_000, spec: "" } }]),
  (c) => sets(c, [one], { decides: 7 }),
  (c) => sets(c, [one], { decides: { lock: null } }),
  (c) => sets(c, [one], { decides: { parallelMax: -1 } }),
  () => plan({ kind: "tasks", sets: 7 }),
  () => twisted({ kind: "published", task: 0, generation: 1 }),
  () => twisted({ kind: "notified", job: 1, notice: 0, outcome: "heard" }),
  ({ job }) => ({ kind: "notified", job, notice: 1_000_000, outcome: "delivered" }),
  ({ random }) => twisted({ kind: "record-manifest", no: random.between(1, 4), digest, evidence }),
  ({ random }) => twisted({ kind: "record-manifest", no: random.between(1, 4), digest: "x", evidence }),
  (c) => ({ ...unkeyed(c.submit), trace: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01" }),
];

function lockedStage(c: BadContext): object {
  const template = { ...firstSet(c)?.template, lock };
  return { ...(c.submit.stages[0] as StageSpec), plan: undefined, lock: undefined, tasks: { template, ...one } };
}

const unkeyed = ({ requestKey: _used, ...submit }: Submit): Submit => submit;
