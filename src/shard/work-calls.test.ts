import { deepEqual, equal, throws } from "node:assert/strict";
import { describe, test } from "node:test";
import fc, { type Arbitrary } from "fast-check";
import { Fault, isFault } from "#base/fault.ts";
import type { CommandOf } from "#kernel/command.ts";
import { type Event, featureOf } from "#kernel/event.ts";
import type * as model from "#kernel/model.ts";
import type { Answers, JobView, Query, TaskView, Why } from "#kernel/query.ts";
import type { Rejection, RejectionKind } from "#kernel/rejection.ts";
import type { Replies } from "#kernel/reply.ts";
import { decode, encode, type Message } from "#wire/message.ts";
import { BadRequest, PreconditionFailure, RetryInfo } from "#wire/generated/google/rpc/error_details.ts";
import { Status } from "#wire/generated/google/rpc/status.ts";
import { BatchRequest, CommitRequest, SubmitRequest } from "#wire/generated/millrace/work/v1/commands.ts";
import {
  GetPartitionMapResponse,
  WatchRequest as WatchRequestMessage,
  WatchResponse,
} from "#wire/generated/millrace/work/v1/queries.ts";
import { internalKinds, type Said, type ShardRequest, type ShardResponse, type WatchMessage } from "./protocol.ts";
import { callOf, workCalls } from "./work-calls.ts";
import type { ClientKind } from "./work-commands.ts";
import { readMap, writeMap, type PartitionMap } from "./work-map.ts";
import { errorInfoOf, rejectionTable, responseOfStatus, statusOfFault, statusOfRejection } from "./work-rejections.ts";
import { readWatch, readWatched, writeWatch, writeWatched } from "./work-watch.ts";

// Everything that may be said, at random.

const text = fc.string({ unit: "grapheme", maxLength: 40 });
const texts = fc.array(text, { maxLength: 4 });
const id = fc.maxSafeNat();
const ms = fc.maxSafeInteger();
const small = fc.integer({ min: -(2 ** 31), max: 2 ** 31 - 1 });
const yes = fc.boolean();
const shard = fc.nat({ max: 65_535 });
const digest = fc.stringMatching(/^[0-9a-f]{64}\/[1-9][0-9]{0,9}$/);
const list = <T>(item: Arbitrary<T>): Arbitrary<T[]> => fc.array(item, { maxLength: 4 });
const maybe = <T>(item: Arbitrary<T>): Arbitrary<T | undefined> => fc.option(item, { nil: undefined });

const record = <T>(fields: { [F in keyof T]: Arbitrary<T[F]> }): Arbitrary<T> =>
  fc.record<T>(fields, { noNullPrototype: true });

const stamp = record({ epoch: id, seq: id });

/** Fields that may not be left out, and fields that may. */
const shape = <T extends object, O extends object = object>(
  required: { [F in keyof T]: Arbitrary<T[F]> },
  optional: { [F in keyof O]: Arbitrary<O[F]> } = {} as { [F in keyof O]: Arbitrary<O[F]> },
): Arbitrary<T & Partial<O>> =>
  fc.record<Record<string, unknown>>(
    { ...required, ...optional },
    {
      requiredKeys: Object.keys(required),
      noNullPrototype: true,
    },
  ) as unknown as Arbitrary<T & Partial<O>>;

const jobPhase = fc.constantFrom<model.JobPhase>(
  ...(["WAITING", "RUNNING", "CANCELLING", "SUCCEEDED", "FAILED", "CANCELLED"] as const),
);
const stagePhase = fc.constantFrom<model.StagePhase>(
  ...(["BLOCKED", "READY", "RUNNING", "COMPLETED", "FAILED", "SKIPPED", "CANCELLED"] as const),
);
const taskPhase = fc.constantFrom<model.TaskPhase>(
  ...(["READY", "CLAIMED", "RUNNING", "RETRY_PENDING", "WAITING"] as const),
  ...(["CANCELLING", "SUCCEEDED", "FAILED", "CANCELLED"] as const),
);
const failReason = fc.constantFrom<model.FailReason>(
  ...(["executor-lost", "preempted", "timed-out", "out-of-memory", "input-lost"] as const),
  ...(["user-failure", "cancelled"] as const),
);
const result = shape({ payload: text, digests: list(digest) }, { publish: text });
const effects = fc.constantFrom("pure" as const, "outside" as const);
const template: Arbitrary<model.TaskTemplate> = record({
  kind: text,
  requires: texts,
  leaseMs: ms,
  attemptsMax: small,
  retryOn: fc.constantFrom("infrastructure" as const, "any" as const),
  backoffMs: ms,
  backoffMsMax: ms,
  queueMs: ms,
  attemptMs: ms,
  effects,
  speculate: yes,
  graceMs: ms,
});
const taskSet: Arbitrary<model.TaskSet> = record({
  template,
  tasks: list(
    shape<{ key: string; spec: string }, { affinity: string }>({ key: text, spec: text }, { affinity: text }),
  ),
});
const lock: Arbitrary<model.LockSpec> = record({ name: text, limit: small, queueMax: small, cancelInProgress: yes });
const stage: Arbitrary<model.StageSpec> = shape(
  {
    name: text,
    needs: list(small),
    after: fc.constantFrom("success" as const, "end" as const),
    failFast: yes,
    mayFail: yes,
    parallelMax: small,
  },
  {
    tasks: taskSet,
    plan: record({ kind: text, requires: texts, leaseMs: ms, attemptsMax: small, deadlineMs: ms }),
    lock,
  },
);
const plan: Arbitrary<model.Plan> = fc.oneof(
  record({ kind: fc.constant("tasks" as const), set: taskSet }),
  record({ kind: fc.constantFrom("skip" as const, "fail" as const), reason: text }),
  record({ kind: fc.constant("wait" as const), forMs: ms, signals: texts }),
);
const signal = record({ id: text, name: text, payload: text });
const steps: Arbitrary<model.Step[]> = list(
  record({
    step: small,
    name: text,
    status: fc.constantFrom<model.StepStatus>("started", "succeeded", "failed", "skipped", "progress"),
  }),
);
const claims = list(record({ task: id, token: id }));
const held = { executor: text, task: id, token: id };

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
      subscriber: text,
      leaveGraceMs: ms,
      lock,
      reuse: fc.array(record({ stage: text, key: text, spec: text, result }), { minLength: 1, maxLength: 3 }),
    },
  ),
  leave: record({ job: id, subscriber: text }),
  cancel: shape({ job: id, reason: text }, { tenant: text }),
  signal: shape({ job: id, stage: small, signal }, { tenant: text }),
  reserve: shape(
    { executor: text, offers: texts, prefer: texts, count: small, start: yes, nonce: text },
    { tenant: text },
  ),
  start: record(held),
  renew: record({ executor: text, claims }),
  report: record({ ...held, steps }),
  commit: record({ ...held, result, evidence: fc.constant({ digests: [], pinnedForMs: 0 }) }),
  "record-plan": record({ ...held, plan }),
  fail: record({ ...held, reason: failReason, message: text }),
  release: record(held),
  invalidate: record({ task: id, generation: small, reason: text }),
  drain: record({ executor: text, reason: text }),
  resume: record({ executor: text }),
  "set-tenant": record({ tenant: text, weight: small, runningMax: small, queuedMax: small, home: small }),
  "lend-quota": record({ tenant: text, borrower: small, want: small, running: small, forMs: ms }),
};

const grant: Arbitrary<model.Grant> = record({
  task: id,
  token: id,
  job: id,
  stage: small,
  stageName: text,
  tenant: text,
  door: text,
  kind: text,
  key: text,
  spec: text,
  planning: yes,
  generation: small,
  attempt: small,
  leaseMs: ms,
  graceMs: ms,
  attemptMs: ms,
  effects,
});

const replies: { readonly [K in ClientKind]: Arbitrary<Replies[K]> } = {
  submit: record({ job: id, created: yes, merged: yes }),
  leave: record({ left: yes }),
  cancel: record({ phase: jobPhase }),
  signal: record({ recorded: yes }),
  reserve: record({ grants: list(grant) }),
  start: record({ leaseMs: ms }),
  renew: record({
    held: list(record({ task: id, token: id, leaseMs: ms, started: yes, cancelling: yes })),
    lost: claims,
  }),
  report: record({ steps: small }),
  commit: record({ committed: yes, generation: small }),
  "record-plan": record({
    recorded: yes,
    plan: fc.constantFrom<model.Plan["kind"]>("tasks", "skip", "fail", "wait"),
  }),
  fail: record({ retryInMs: maybe(ms) }),
  release: record({ released: yes }),
  invalidate: record({ generation: small }),
  drain: record({ draining: yes }),
  resume: record({ resumed: yes }),
  "set-tenant": record({ changed: yes }),
  "lend-quota": record({ slots: small, forMs: ms }),
};

const taskView: Arbitrary<TaskView> = record({
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
  lastFailure: maybe(record({ reason: failReason, message: text })),
  steps,
  retryInMs: maybe(ms),
});
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
const jobView: Arbitrary<JobView> = record({
  ...line,
  reason: text,
  spec: text,
  subscribers: small,
  stages: list(
    record({
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
    }),
  ),
  tasks: list(taskView),
});
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
);
const place = record({ stage: small, index: small });

type QueryKind = Query["kind"];
const queryBodies: { readonly [K in QueryKind]: Arbitrary<Omit<Extract<Query, { kind: K }>, "kind">> } = {
  job: shape({ job: id }, { tenant: text, tasksMax: small }),
  jobs: shape({ limit: small }, { tenant: text, door: text, before: id }),
  task: shape({ task: id }, { tenant: text }),
  why: shape({ job: id }, { tenant: text }),
  "plan-inputs": shape({ task: id, token: id, limit: small }, { from: place }),
  executors: fc.constant({}),
  stats: fc.constant({}),
};
const answers: { readonly [K in QueryKind]: Arbitrary<Answers[K]> } = {
  job: jobView,
  jobs: record({ jobs: list(record({ ...line, tasks: small, done: small })) }),
  task: taskView,
  why: record({ why: list(record({ task: id, stage: small, key: text, phase: text, because })) }),
  "plan-inputs": record({
    spec: text,
    stage: text,
    generation: small,
    needs: list(record({ stage: small, name: text, phase: stagePhase, generation: small })),
    signals: list(signal),
    results: list(record({ stage: small, key: text, generation: small, phase: taskPhase, result: maybe(result) })),
    next: maybe(place),
  }),
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
const rejected = record({ kind: fc.constant("rejected" as const), stamp, rejection });
const notDone: Arbitrary<ShardResponse> = fc.oneof(
  record({ kind: fc.constant("not-owner" as const), shard, hint: maybe(text) }),
  record({ kind: fc.constant("overloaded" as const), retryAfterMs: id }),
  record({ kind: fc.constant("interrupted" as const), why: text }),
);

const clientKinds = Object.keys(commandBodies) as ClientKind[];
const queryKinds = Object.keys(queryBodies) as QueryKind[];
const commandOf = (kind: ClientKind) =>
  (commandBodies[kind] as Arbitrary<object>).map((body) => ({ kind, ...body }) as CommandOf<ClientKind>);
const replyTo = (kind: ClientKind): Arbitrary<Said> =>
  fc.oneof(
    { arbitrary: record({ kind: fc.constant("reply" as const), stamp, reply: replies[kind] }), weight: 3 },
    rejected,
  );

type Exchange = { readonly request: ShardRequest; readonly response: ShardResponse };
const commandExchange: Arbitrary<Exchange> = fc.constantFrom(...clientKinds).chain((kind) =>
  record({
    request: shape<{ kind: "command"; shard: number; command: CommandOf<ClientKind> }, { waitMs: number }>(
      { kind: fc.constant("command" as const), shard, command: commandOf(kind) },
      kind === "reserve" ? { waitMs: ms } : ({} as never),
    ),
    response: fc.oneof(replyTo(kind), notDone),
  }),
);
const batchExchange: Arbitrary<Exchange> = list(fc.constantFrom(...clientKinds)).chain((kinds) =>
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
const queryExchange: Arbitrary<Exchange> = fc.constantFrom(...queryKinds).chain((kind) =>
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
const takeExchange: Arbitrary<Exchange> = record({
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

/** There and back, over bytes. */
const carried = <T>(type: Message<T>, message: T): T => decode(type, encode(type, message));

function checkExchange({ request, response }: Exchange): void {
  const call = callOf(request);
  deepEqual(call.readRequest(carried(call.method.request, call.writeRequest(request))), request);
  const answered = call.writeResponse(request, response);
  if (answered.ok) deepEqual(call.readResponse(request, carried(call.method.response, answered.message)), response);
  else deepEqual(responseOfStatus(carried(Status, answered.status)), response);
}

describe("the work protocol", () => {
  for (const [what, exchange] of Object.entries({ commandExchange, batchExchange, queryExchange, takeExchange }))
    test(`carries whatever may be said, there and back: ${what}`, () => {
      fc.assert(fc.property(exchange, checkExchange), { numRuns: 400 });
    });

  test("carries watches, there and back", () => {
    const request = shape<{ shard: number; job: number }, { tenant: string; after: { epoch: number; seq: number } }>(
      { shard, job: id },
      { tenant: text, after: stamp },
    );
    const event = fc
      .constantFrom(...(Object.keys(featureOf) as Event["kind"][]))
      .chain((kind) => record({ kind: fc.constant(kind), job: id, at: id, reason: text }))
      .map((some) => some as unknown as Event);
    const message: Arbitrary<WatchMessage> = fc.oneof(
      record({ kind: fc.constant("snapshot" as const), stamp, view: jobView }),
      record({ kind: fc.constant("events" as const), stamp, events: list(event) }),
      record({ kind: fc.constantFrom("heartbeat" as const, "end" as const), stamp }),
      record({ kind: fc.constant("moved" as const), hint: maybe(text) }),
      rejected,
    );
    fc.assert(
      fc.property(request, message, (asked, told) => {
        deepEqual(readWatch(carried(WatchRequestMessage, writeWatch(asked))), asked);
        const watched = writeWatched(asked, told);
        if (watched.ok) deepEqual(readWatched(carried(WatchResponse, watched.message)), told);
        else deepEqual(responseOfStatus(carried(Status, watched.status)), told);
      }),
      { numRuns: 300 },
    );
  });

  test("carries the partition map, there and back", () => {
    const map: Arbitrary<PartitionMap> = record({
      cluster: record({ clusterId: text, shards: shard }),
      ownerships: list(
        record({ shard, epoch: id, owner: maybe(text), address: maybe(text), remainingMs: fc.maxSafeInteger() }),
      ),
      nodes: list(
        record({
          node: text,
          address: text,
          state: fc.constantFrom("up" as const, "leaving" as const),
          alive: yes,
          seenAgoMs: ms,
        }),
      ),
    });
    fc.assert(fc.property(map, (one) => deepEqual(readMap(carried(GetPartitionMapResponse, writeMap(one))), one)));
  });

  test("has a method for everything that may be asked of a shard, and each only once", () => {
    const paths = workCalls.map(({ method }) => method.path);
    equal(new Set(paths).size, paths.length);
    equal(paths.length, clientKinds.length + queryKinds.length + 2);
  });

  test("carries nothing that only a shard's own host may say", () => {
    for (const kind of internalKinds) {
      const command = { kind } as unknown as CommandOf<"tick">;
      throws(() => callOf({ kind: "command", shard: 0, command }), isInvalidAt("command.kind"));
      const batch = { kind: "commands", shard: 0, commands: [command] } as const;
      throws(() => callOf(batch).writeRequest(batch), isInvalidAt("command.kind"));
    }
  });

  test("carries nobody's own word for pins and keys (K1, K3)", () => {
    const evidence = { digests: ["x"], pinnedForMs: 9 };
    const commit = {
      kind: "commit",
      executor: "e",
      task: 1,
      token: 1,
      result: { payload: "", digests: ["x"] },
      evidence,
    };
    const request = { kind: "command", shard: 0, command: commit as CommandOf<"commit"> } as const;
    const call = callOf(request);
    const read = call.readRequest(carried(call.method.request, call.writeRequest(request)));
    deepEqual(read, { ...request, command: { ...commit, evidence: { digests: [], pinnedForMs: 0 } } });
  });
});

const isInvalidAt = (path: string) => (error: unknown) => {
  if (!isFault(error, "invalid")) throw error;
  equal(error.facts["path"], path);
  return true;
};

describe("a message that makes no sense is refused with the path of the field", () => {
  const callBy = (name: string) => {
    const call = workCalls.find(({ method }) => method.name === name);
    if (!call) throw new Error(`no method ${name}`);
    return call;
  };
  const stageMessage = {
    name: "s",
    needs: [],
    after: 1,
    tasks: { template: undefined, tasks: [] },
    failFast: false,
    mayFail: false,
    parallelMax: 0,
  };
  const submit = (stages: SubmitRequest["stages"]): SubmitRequest => ({
    shard: 0,
    tenant: "t",
    door: "d",
    name: "",
    payloadHash: "",
    priority: 0,
    spec: "",
    stages,
    deadlineMs: 1,
    reuse: [],
  });
  const commit = { shard: 0, executor: "e", task: 1, token: 1 };

  const cases: readonly (readonly [string, string, Message<never>, unknown])[] = [
    ["shard", "Commit", CommitRequest as Message<never>, { ...commit, shard: -1 }],
    ["result", "Commit", CommitRequest as Message<never>, commit],
    ["stages[0].tasks.template", "Submit", SubmitRequest as Message<never>, submit([stageMessage])],
    [
      "stages[1].after",
      "Submit",
      SubmitRequest as Message<never>,
      submit([
        { ...stageMessage, tasks: undefined },
        { ...stageMessage, after: 77 },
      ]),
    ],
    ["commands[0].command", "Batch", BatchRequest as Message<never>, { shard: 0, commands: [{}] }],
    [
      "commands[1].commit.result",
      "Batch",
      BatchRequest as Message<never>,
      {
        shard: 3,
        commands: [
          { command: { kind: "commit", value: { ...commit, shard: 3, result: { payload: "", digests: [] } } } },
          { command: { kind: "commit", value: commit } },
        ],
      },
    ],
    [
      "commands[0].commit.shard",
      "Batch",
      BatchRequest as Message<never>,
      { shard: 3, commands: [{ command: { kind: "commit", value: { ...commit, shard: 4 } } }] },
    ],
  ];
  for (const [path, name, type, message] of cases)
    test(`${name}: ${path}`, () => {
      const bytes = encode(type as Message<unknown>, message);
      const call = callBy(name);
      throws(() => call.readRequest(decode(call.method.request, bytes)), isInvalidAt(path));
    });

  test("and the status says so to clients that know only Google's words", () => {
    const status = statusOfFault(
      new Fault("invalid", "read message", { path: "stages[0].after", why: "must be there" }),
    );
    equal(status.code, 3);
    deepEqual(
      detail(status, BadRequest)?.fieldViolations.map(({ field }) => field),
      ["stages[0].after"],
    );
  });
});

describe("a refusal as a status", () => {
  const stampOne = { epoch: 3, seq: 4 };

  test("has its kind as the reason and its facts as metadata", () => {
    const status = statusOfRejection(1, { kind: "token-stale", task: 5, offered: 1, current: 2 }, stampOne);
    equal(status.code, 9);
    const { reason, domain, metadata } = errorInfoOf(status) ?? {};
    deepEqual([reason, domain], ["token-stale", "millrace"]);
    deepEqual(Object.fromEntries(metadata ?? []), { epoch: "3", seq: "4", task: "5", offered: "1", current: "2" });
  });

  test("says when to try again, and which blob is missing, in Google's words too", () => {
    const full = statusOfRejection(1, { kind: "shard-full", what: "jobs", retryAfterMs: 1_250 }, stampOne);
    deepEqual(detail(full, RetryInfo)?.retryDelay, { seconds: 1, nanos: 250_000_000 });
    const missing = statusOfRejection(1, { kind: "evidence-missing", digest: "aa/1" }, stampOne);
    deepEqual(detail(missing, PreconditionFailure)?.violations, [
      { type: "MISSING", subject: "blobs/aa/1", description: "not in the store" },
    ]);
  });

  test("a status of anybody else's becomes a Fault by its number", () => {
    throws(
      () => responseOfStatus({ code: 8, message: "no", details: [] }),
      (error) => isFault(error, "exhausted"),
    );
    throws(
      () => responseOfStatus({ code: 14, message: "gone", details: [] }),
      (error) => isFault(error, "unknown-outcome"),
    );
  });

  test("a Fault stays the Fault that it was", () => {
    const fault = new Fault("unavailable", "reach shard", { shard: 7, why: "down" });
    throws(
      () => responseOfStatus(carried(Status, statusOfFault(fault))),
      (error) => isFault(error, "unavailable") && error.doing === "reach shard" && Number(error.facts["shard"]) === 7,
    );
  });

  test("fits into a header however long its words are", () => {
    const status = statusOfRejection(
      0,
      { kind: "executor-drained", executor: "e", reason: "x".repeat(60_000) },
      stampOne,
    );
    equal(encode(Status, status).length < 4_096, true);
  });
});

function detail<T>({ details }: Status, type: Message<T>): T | undefined {
  const found = details.find(({ typeUrl }) => typeUrl.endsWith(`/${type.typeName}`));
  return found && decode(type, found.value);
}
