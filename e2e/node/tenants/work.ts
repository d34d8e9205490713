/** For tests: the work protocol's methods, called with names of things. */
import { formatTask } from "#base/ids.ts";
import type { Command } from "#wire/generated/millrace/work/v1/commands.ts";
import { Events } from "#wire/generated/millrace/work/v1/events.ts";
import { Streams } from "#wire/generated/millrace/work/v1/streams.ts";
import { Tasks } from "#wire/generated/millrace/work/v1/tasks.ts";
import { Admin, Peer, Work } from "#wire/generated/millrace/work/v1/work.ts";
import { oneTask, submission, type Names } from "./names.ts";
import { clusterOnly, row, type GrpcCaller, type GrpcRows } from "./row.ts";

const signal = { id: "1", name: "go", payload: "" };
const claim = (task: keyof Names["tasks"]) => (named: Names, as: GrpcCaller) => ({
  shard: 0,
  executor: as.executor,
  ...named.tasks[task],
});
const stream = ({ tasks }: Names, { executor }: GrpcCaller) => {
  const { task, token } = tasks.report;
  return { executor, task: formatTask(0, task), token, name: "output" };
};
const reserving = { shard: 0, prefer: [], count: 5, start: false, startPure: false };
const operatorsOnly = clusterOnly("operators");

const batched = (named: Names, as: GrpcCaller): readonly Command[] => [
  { command: { kind: "signal", value: { shard: 0, job: named.job, stage: 1, signal: { ...signal, id: "2" } } } },
  { command: { kind: "leave", value: { shard: 0, job: named.job, subscriber: "somebody" } } },
  { command: { kind: "report", value: { ...claim("read")(named, as), steps: [] } } },
];

export const workRows: GrpcRows = {
  reads: [
    row(Work.methods.getJob, ({ job }) => ({ shard: 0, job })),
    row(Work.methods.getJob, ({ job, tenant }) => ({ shard: 0, job, tenant })),
    row(Work.methods.listJobs, ({ job }) => ({ shard: 0, limit: 10, before: job + 1, tags: [] }), {
      alike: "all of its jobs have smaller numbers than either",
    }),
    row(Work.methods.listJobs, ({ tenant }) => ({ shard: 0, limit: 10, tenant, tags: [] })),
    row(Work.methods.listJobs, () => ({ shard: 0, limit: 1, tags: [] }), { alike: "it names nothing", empty: true }),
    row(Work.methods.countJobs, ({ tenant }) => ({ shard: 0, tenant, tags: [] })),
    row(Work.methods.countJobs, () => ({ shard: 0, tags: [] }), { alike: "it names nothing", empty: true }),
    row(Work.methods.getTask, ({ tasks }) => ({ shard: 0, task: tasks.read.task })),
    row(Work.methods.why, ({ job }) => ({ shard: 0, job })),
    row(Work.methods.why, ({ job, tasks }) => ({ shard: 0, job, task: tasks.start.task })),
    row(Work.methods.planInputs, ({ tasks }) => ({ shard: 0, ...tasks.plan, limit: 10 })),
    {
      method: Work.methods.listExecutors,
      cases: [
        {
          ...clusterOnly("cluster.read"),
          run: async ({ grpc }) =>
            (await grpc.unary(Work.methods.listExecutors, { shard: 0 })).executors.map(({ executor }) => executor),
        },
      ],
    },
    {
      method: Work.methods.getStats,
      cases: [
        {
          ...clusterOnly("cluster.map"), // its numbers change all the time
          run: async ({ grpc }) => Object.keys((await grpc.unary(Work.methods.getStats, { shard: 0 })).stats ?? {}),
        },
      ],
    },
    row(Work.methods.getPartitionMap, () => ({}), clusterOnly("cluster.map")),
    row(Work.methods.watch, ({ job }) => ({ shard: 0, job })),
    row(Work.methods.watch, ({ job }) => ({ shard: 0, job, after: { epoch: 1, seq: 1 } })),
    row(Work.methods.watch, ({ job, tenant }) => ({ shard: 0, job, tenant })),
  ],
  changes: [
    row(Work.methods.leave, ({ job, subscriber }) => ({ shard: 0, job, subscriber })),
    row(Work.methods.signal, ({ job }) => ({ shard: 0, job, stage: 1, signal })),
    row(Work.methods.signal, ({ job, tenant }) => ({ shard: 0, job, stage: 1, signal, tenant })),
    row(Work.methods.reserve, ({ label }, { executor }) => ({ ...reserving, executor, offers: [label], nonce: "" })),
    row(Work.methods.reserve, ({ label, tenant }, { executor }) => {
      return { ...reserving, executor, offers: [label], nonce: "", tenant };
    }),
    row(Work.methods.start, claim("start")),
    row(Work.methods.renew, (named, as) => ({ shard: 0, executor: as.executor, claims: [named.tasks.renew] })),
    row(Work.methods.report, (named, as) => ({ ...claim("report")(named, as), steps: [] })),
    row(Work.methods.commit, (named, as) => ({
      ...claim("commit")(named, as),
      result: { payload: "forged", digests: [`${named.blob.hash}/${named.blob.sizeBytes}`] },
    })),
    row(Work.methods.recordPlan, (named, as) => ({
      ...claim("plan")(named, as),
      plan: { plan: { kind: "wait" as const, value: { forMs: 60_000, signals: ["go"] } } },
    })),
    row(Work.methods.fail, (named, as) => ({ ...claim("fail")(named, as), reason: 2, message: "" })),
    row(Work.methods.release, claim("release")),
    row(Work.methods.checkpoint, (named, as) => ({
      ...claim("report")(named, as),
      checkpoint: { payload: "forged", digests: [`${named.blob.hash}/${named.blob.sizeBytes}`], token: 0 },
    })),
    row(Work.methods.invalidate, ({ tasks }) => ({ shard: 0, task: tasks.invalidate.task, generation: 1, reason: "" })),
    row(Streams.methods.append, (named, as) => ({ stream: stream(named, as), offset: 0, data: Buffer.from("forged") })),
    row(Streams.methods.seal, (named, as) => ({ stream: stream(named, as) })),
    row(Streams.methods.drop, (named, as) => ({ stream: stream(named, as) })),
    row(Tasks.methods.ask, (named, as) => {
      const { name: _name, ...claim } = stream(named, as);
      return { ...claim, question: "access", body: "" };
    }),
    row(Events.methods.read, ({ tenant }) => ({
      tenant,
      cursor: "",
      fromOldest: true,
      kinds: [],
      doors: [],
      tags: [],
      job: "",
    })),
    row(Work.methods.batch, (named, as) => ({ shard: 0, commands: batched(named, as) })),
    row(Admin.methods.drain, ({ executor }) => ({ shard: 0, executor, reason: "" }), operatorsOnly),
    row(Admin.methods.resume, ({ executor }) => ({ shard: 0, executor }), operatorsOnly),
    row(
      Admin.methods.setTenant,
      ({ tenant }) => ({ shard: 0, tenant, weight: 1, runningMax: 1, queuedMax: 1, home: 0 }),
      operatorsOnly,
    ),
    row(
      Peer.methods.lendQuota,
      ({ tenant }) => ({ shard: 0, tenant, borrower: 0, want: 1, running: 0, forMs: 1_000 }),
      operatorsOnly,
    ),
    row(Peer.methods.take, () => ({ shard: 0, now: false }), operatorsOnly),
    row(Work.methods.cancel, ({ job, tenant }) => ({ shard: 0, job, reason: "mine now", tenant, hard: true })),
    row(Work.methods.cancel, ({ job }) => ({ shard: 0, job, reason: "mine now", hard: false })),
  ],
  own: [
    row(Work.methods.submit, ({ tenant, label }) => submission(tenant, oneTask(label))),
    row(Work.methods.submit, ({ requestKey }, { tenant }) => submission(tenant, oneTask("own=x"), { requestKey })),
    row(Work.methods.submit, ({ mergeKey }, { tenant }) => submission(tenant, oneTask("own=x"), { mergeKey })),
    row(
      Work.methods.submit,
      ({ mergeKey }, { tenant }) => {
        return submission(tenant, [], { mergeKey: `${mergeKey}!`, joinOnly: true, deadlineMs: 0 });
      },
      { alike: "nobody uses that key" },
    ),
    row(Work.methods.submit, ({ blob }, { tenant }) => {
      const result = { payload: "", digests: [`${blob.hash}/${blob.sizeBytes}`] };
      return submission(tenant, oneTask("own=x"), { reuse: [{ stage: "only", key: "1", spec: "", result }] });
    }),
  ],
};
