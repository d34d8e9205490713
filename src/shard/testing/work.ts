/** Random requests and responses of the work protocol: for the tests of its translation. */
import fc, { type Arbitrary } from "fast-check";
import type { CommandOf } from "#kernel/model/command.ts";
import type * as model from "#kernel/model/model.ts";
import type { Answers, JobView, Query, TaskView, Why } from "#kernel/read/query.ts";
import type { Rejection, RejectionKind } from "#kernel/model/rejection.ts";
import type { Replies } from "#kernel/model/reply.ts";
import type { CommandOutcome, ShardRequest, ShardResponse } from "#shard/transport/protocol.ts";
import type { ClientKind } from "#shard/work/commands.ts";
import { rejectionTable } from "#shard/work/rejections.ts";
import {
  checkpoint,
  claims,
  failure,
  failReason,
  grant,
  held,
  id,
  jobPhase,
  list,
  lock,
  maybe,
  ms,
  plan,
  numberedSignal,
  record,
  renewed,
  result,
  shape,
  shard,
  signal,
  small,
  stage,
  stagePhase,
  stamp,
  steps,
  tags,
  taskPhase,
  text,
  texts,
  yes,
} from "./work-messages.ts";

type Body<K extends ClientKind> = Omit<CommandOf<K>, "kind">;

const commandBodies: { readonly [K in ClientKind]: Arbitrary<Body<K>> } = {
  submit: shape(
    {
      tenant: text,
      door: text,
      name: text,
      payloadHash: text,
      priority: small,
      spec: text,
      stages: list(stage),
      deadlineMs: ms,
    },
    {
      requestKey: text,
      mergeKey: text,
      joinOnly: fc.constant(true),
      subscriber: text,
      trace: text,
      cancelGraceMs: ms,
      tags,
      series: text,
      tracked: fc.constant(true),
      notify: fc.array(record({ shard: small, job: id, stage: small, name: text }), { minLength: 1, maxLength: 2 }),
      leaveGraceMs: ms,
      lock,
      reuse: fc.array(record({ stage: text, key: text, spec: text, result }), { minLength: 1, maxLength: 3 }),
    },
  ),
  leave: record({ job: id, subscriber: text }),
  cancel: shape({ job: id, reason: text }, { tenant: text, hard: fc.constant(true), stage: small, graceMs: ms }),
  signal: shape({ job: id, stage: small, signal }, { tenant: text }),
  reserve: shape(
    {
      executor: text,
      offers: texts,
      prefer: texts,
      count: small,
      start: fc.oneof(yes, fc.constant("pure" as const)),
      nonce: text,
    },
    { tenant: text },
  ),
  start: record(held),
  renew: record({ executor: text, claims: renewed }),
  report: record({ ...held, steps }),
  commit: record({ ...held, result, evidence: fc.constant({ digests: [], pinnedForMs: 0 }) }),
  "record-plan": record({ ...held, plan }),
  fail: shape({ ...held, reason: failReason, message: text }, { result }),
  checkpoint: record({ ...held, checkpoint, evidence: fc.constant({ digests: [], pinnedForMs: 0 }) }),
  release: shape(held, { checkpoint }),
  invalidate: record({ task: id, generation: small, reason: text }),
  drain: record({ executor: text, reason: text }),
  resume: record({ executor: text }),
  "set-tenant": record({ tenant: text, weight: small, runningMax: small, queuedMax: small, home: small }),
  "lend-quota": record({
    tenant: text,
    borrower: small,
    want: small,
    running: small,
    forMs: ms,
    holds: fc.option(id, { nil: undefined }),
  }),
};

const replies: { readonly [K in ClientKind]: Arbitrary<Replies[K]> } = {
  submit: shape({ job: id, created: yes, merged: yes }, { number: id }),
  leave: record({ left: yes }),
  cancel: record({ phase: jobPhase }),
  signal: record({ recorded: yes }),
  reserve: record({ grants: list(grant) }),
  start: record({ leaseMs: ms }),
  renew: record({
    held: list(
      shape(
        { task: id, token: id, leaseMs: ms, started: yes, cancelling: yes },
        { signals: fc.array(numberedSignal, { minLength: 1, maxLength: 2 }) },
      ),
    ),
    lost: claims,
  }),
  report: record({ steps: small }),
  commit: record({ committed: yes, generation: small }),
  "record-plan": record({
    recorded: yes,
    plan: fc.constantFrom<model.Plan["kind"]>("tasks", "skip", "fail", "wait"),
  }),
  fail: record({ retryInMs: maybe(ms) }),
  checkpoint: record({ recorded: yes }),
  release: record({ released: yes }),
  invalidate: record({ generation: small }),
  drain: record({ draining: yes }),
  resume: record({ resumed: yes }),
  "set-tenant": record({ changed: yes }),
  "lend-quota": record({ slots: small, forMs: ms, slice: fc.option(id, { nil: undefined }) }),
};

const taskView: Arbitrary<TaskView> = shape(
  {
    task: id,
    job: id,
    stage: small,
    key: text,
    kind: text,
    phase: taskPhase,
    planning: yes,
    generation: small,
    attempts: small,
    claims: list(record({ token: id, executor: text, expiresInMs: ms, started: yes })),
    result: maybe(result),
    lastFailure: maybe(failure),
    steps,
    retryInMs: maybe(ms),
  },
  { checkpoint: record({ token: id, agoMs: ms }) },
);
const extras = { tags, series: record({ name: text, number: id }) };
const line = {
  job: id,
  tenant: text,
  door: text,
  name: text,
  phase: jobPhase,
  priority: small,
  submittedAtMs: id,
  endedAtMs: maybe(id),
};
export const jobView: Arbitrary<JobView> = shape(
  {
    ...line,
    reason: text,
    spec: text,
    subscribers: small,
    stages: list(
      shape(
        {
          stage: small,
          name: text,
          needs: list(small),
          phase: stagePhase,
          reason: text,
          generation: small,
          tasks: small,
          done: small,
          failed: small,
          running: small,
          waitsForSignals: texts,
        },
        {
          arrays: fc.array(record({ task: id, count: small, first: id }), { minLength: 1, maxLength: 2 }),
          manifest: text,
          signals: fc.array(signal, { minLength: 1, maxLength: 2 }),
        },
      ),
    ),
    tasks: list(taskView),
  },
  extras,
);
const because: Arbitrary<Why["because"]> = fc.oneof(
  record({ kind: fc.constant("running" as const), executor: text }),
  record({ kind: fc.constant("ended" as const), phase: text }),
  record({ kind: fc.constant("needs" as const), stages: texts }),
  record({ kind: fc.constant("lock" as const), name: text, heldBy: list(id), ahead: small }),
  record({ kind: fc.constant("signal" as const), names: texts, forMs: ms }),
  record({ kind: fc.constant("back-off" as const), forMs: ms, lastFailure: text }),
  record({ kind: fc.constant("parallel-max" as const), limit: small }),
  record({ kind: fc.constant("quota" as const), running: small, runningMax: small }),
  record({ kind: fc.constant("no-executor" as const), nearest: maybe(text), missing: texts }),
  record({ kind: fc.constant("drained" as const), executors: texts }),
  record({ kind: fc.constant("queued" as const), position: small, executors: small, tenantsAhead: small }),
  record({ kind: fc.constant("publishing" as const), results: small, forMs: ms }),
  record({ kind: fc.constant("cleaning-up" as const), stages: texts, forMs: ms }),
  record({ kind: fc.constant("notices" as const), notices: small, forMs: ms }),
  record({ kind: fc.constant("array" as const), count: id, ended: id, running: small, queued: small, ahead: id }),
);
const place = record({ stage: small, index: small });

type QueryKind = Query["kind"];
const queryBodies: { readonly [K in QueryKind]: Arbitrary<Omit<Extract<Query, { kind: K }>, "kind">> } = {
  job: shape({ job: id }, { tenant: text, tasksMax: small }),
  jobs: shape({ limit: small }, { tenant: text, door: text, before: id, phase: jobPhase, tags, fromMs: ms, toMs: ms }),
  count: shape({}, { tenant: text, door: text, tags, fromMs: ms, toMs: ms }),
  task: shape({ task: id }, { tenant: text }),
  why: shape({ job: id }, { tenant: text }),
  "plan-inputs": shape({ task: id, token: id, limit: small }, { from: place }),
  executors: shape({}, { tenant: text }),
  stats: fc.constant({}),
};
const answers: { readonly [K in QueryKind]: Arbitrary<Answers[K]> } = {
  job: jobView,
  jobs: record({ jobs: list(shape({ ...line, tasks: small, done: small }, extras)) }),
  count: record({ phases: list(record({ phase: jobPhase, jobs: id })), capped: yes }),
  task: taskView,
  why: record({
    why: list(
      shape(
        { task: id, stage: small, key: text, phase: text, because },
        {
          checkpoint: record({ token: id, agoMs: ms }),
          failures: record({ preempted: small, "out-of-memory": small }),
          pending: fc.array(text, { minLength: 1, maxLength: 3 }),
          second: fc.string({ minLength: 1 }),
        },
      ),
    ),
  }),
  "plan-inputs": shape(
    {
      spec: text,
      stage: text,
      generation: small,
      needs: list(shape({ stage: small, name: text, phase: stagePhase, generation: small }, { manifest: text })),
      signals: list(signal),
      results: list(
        shape({ stage: small, key: text, generation: small, phase: taskPhase, result: maybe(result) }, { failure }),
      ),
      next: maybe(place),
    },
    { cancelled: record({ reason: text, forMs: ms }) },
  ),
  executors: record({
    executors: list(
      record({
        executor: text,
        offers: texts,
        claims: small,
        drained: maybe(text),
        failures: small,
        seenAgoMs: ms,
      }),
    ),
  }),
  stats: record({
    shard: small,
    jobs: id,
    liveJobs: id,
    tasks: id,
    ready: id,
    claims: id,
    unpublished: id,
    tenants: id,
    executors: id,
    stateBytes: id,
    nowMs: id,
    readyWeight: id,
  }),
};

const factValues = { text, number: ms, list: texts };
const rejection: Arbitrary<Rejection> = fc.oneof(
  ...(Object.keys(rejectionTable) as RejectionKind[]).map((kind) => {
    const facts = Object.entries(rejectionTable[kind].facts).map(([name, form]) => [
      name,
      kind.endsWith("-full") && form === "number" ? id : factValues[form],
    ]);
    return record({ kind: fc.constant(kind), ...Object.fromEntries(facts) }) as unknown as Arbitrary<Rejection>;
  }),
);
export const rejected = record({ kind: fc.constant("rejected" as const), stamp, rejection });
const notDone: Arbitrary<ShardResponse> = fc.oneof(
  record({ kind: fc.constant("not-owner" as const), shard, hint: maybe(text) }),
  record({ kind: fc.constant("overloaded" as const), retryAfterMs: id }),
  record({ kind: fc.constant("interrupted" as const), why: text }),
);

export const clientKinds = Object.keys(commandBodies) as ClientKind[];
export const queryKinds = Object.keys(queryBodies) as QueryKind[];
export const commandOf = (kind: ClientKind) =>
  (commandBodies[kind] as Arbitrary<object>).map((body) => ({ kind, ...body }) as CommandOf<ClientKind>);
export const replyTo = (kind: ClientKind): Arbitrary<CommandOutcome> =>
  fc.oneof(
    { arbitrary: record({ kind: fc.constant("reply" as const), stamp, reply: replies[kind] }), weight: 3 },
    rejected,
  );

export type Exchange = { readonly request: ShardRequest; readonly response: ShardResponse };
export const commandExchange: Arbitrary<Exchange> = fc.constantFrom(...clientKinds).chain((kind) =>
  record({
    request: shape<{ kind: "command"; shard: number; command: CommandOf<ClientKind> }, { waitMs: number }>(
      { kind: fc.constant("command" as const), shard, command: commandOf(kind) },
      kind === "reserve" ? { waitMs: ms } : ({} as never),
    ),
    response: fc.oneof(replyTo(kind), notDone),
  }),
);
export const batchExchange: Arbitrary<Exchange> = list(fc.constantFrom(...clientKinds)).chain((kinds) =>
  record({
    request: record({
      kind: fc.constant("commands" as const),
      shard,
      commands: fc.tuple(...kinds.map(commandOf)),
    }),
    response: fc.oneof(
      {
        arbitrary: record({ kind: fc.constant("said" as const), stamp, said: fc.tuple(...kinds.map(replyTo)) }),
        weight: 5,
      },
      notDone,
    ),
  }),
);
export const queryExchange: Arbitrary<Exchange> = fc.constantFrom(...queryKinds).chain((kind) =>
  record({
    request: record({
      kind: fc.constant("query" as const),
      shard,
      query: (queryBodies[kind] as Arbitrary<object>).map((body) => ({ kind, ...body }) as Query),
    }),
    response: fc.oneof(
      {
        arbitrary: record({ kind: fc.constant("answer" as const), stamp, answer: answers[kind] }),
        weight: 3,
      },
      rejected,
      notDone,
    ),
  }),
);
export const takeExchange: Arbitrary<Exchange> = record({
  request: record({
    kind: fc.constant("take" as const),
    shard,
    when: fc.constantFrom("prepare" as const, "now" as const),
  }),
  response: fc.oneof(
    record({ kind: fc.constant("reply" as const), stamp, reply: record({ claims: id }) }),
    rejected,
    notDone,
  ),
});
