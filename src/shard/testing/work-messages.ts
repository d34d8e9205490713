/** Random messages of the work protocol: for `testing/work.ts`. */
import fc, { type Arbitrary } from "fast-check";
import type * as model from "#kernel/model/model.ts";

export const text = fc.string({ unit: "grapheme", maxLength: 40 });
export const texts = fc.array(text, { maxLength: 4 });
export const id = fc.maxSafeNat();
export const ms = fc.maxSafeInteger();
export const small = fc.integer({ min: -(2 ** 31), max: 2 ** 31 - 1 });
export const yes = fc.boolean();
export const shard = fc.nat({ max: 65_535 });
export const digest = fc.stringMatching(/^[0-9a-f]{64}\/[1-9][0-9]{0,9}$/);
export const list = <T>(item: Arbitrary<T>): Arbitrary<T[]> => fc.array(item, { maxLength: 4 });
export const maybe = <T>(item: Arbitrary<T>): Arbitrary<T | undefined> => fc.option(item, { nil: undefined });

export const record = <T>(fields: { [F in keyof T]: Arbitrary<T[F]> }): Arbitrary<T> =>
  fc.record<T>(fields, { noNullPrototype: true });

export const stamp = record({ epoch: id, seq: id });

/** Required fields, and optional ones. */
export const shape = <T extends object, O extends object = object>(
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

export const jobPhase = fc.constantFrom<model.JobPhase>(
  ...(["WAITING", "RUNNING", "CANCELLING", "SUCCEEDED", "FAILED", "CANCELLED"] as const),
);
export const stagePhase = fc.constantFrom<model.StagePhase>(
  ...(["BLOCKED", "READY", "RUNNING", "COMPLETED", "FAILED", "SKIPPED", "CANCELLED"] as const),
);
export const taskPhase = fc.constantFrom<model.TaskPhase>(
  ...(["READY", "CLAIMED", "RUNNING", "RETRY_PENDING", "WAITING"] as const),
  ...(["CANCELLING", "SUCCEEDED", "FAILED", "CANCELLED"] as const),
);
export const failReason = fc.constantFrom<model.FailReason>(
  ...(["executor-lost", "preempted", "timed-out", "out-of-memory", "input-lost"] as const),
  ...(["user-failure", "cancelled"] as const),
);
export const result = shape({ payload: text, digests: list(digest) }, { publish: text });
export const effects = fc.constantFrom("pure" as const, "outside" as const);
export const template: Arbitrary<model.TaskTemplate> = shape(
  {
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
  },
  { stopMs: ms, lossesMax: small, speculation: record({ percentile: small, factorPercent: small, slots: small }) },
);
export const taskSet: Arbitrary<model.TaskSet> = fc.oneof(
  record({
    template,
    tasks: list(
      shape<{ key: string; spec: string }, { affinity: string }>({ key: text, spec: text }, { affinity: text }),
    ),
  }),
  record({ template, array: shape({ count: small, spec: text }, { first: id }) }),
);
export const lock: Arbitrary<model.LockSpec> = record({
  name: text,
  limit: small,
  queueMax: small,
  cancelInProgress: yes,
});
export const stage: Arbitrary<model.StageSpec> = shape(
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
    manifest: yes,
  },
);
export const plan: Arbitrary<model.Plan> = fc.oneof(
  record({ kind: fc.constant("tasks" as const), set: taskSet }),
  shape(
    { kind: fc.constant("tasks" as const), sets: fc.array(taskSet, { minLength: 1, maxLength: 3 }) },
    { decides: shape({}, { lock, failFast: yes, mayFail: yes, parallelMax: small }) },
  ),
  record({ kind: fc.constantFrom("skip" as const, "fail" as const), reason: text }),
  record({ kind: fc.constant("wait" as const), forMs: ms, signals: texts }),
);
export const tags = fc.array(record({ name: text, value: text }), { minLength: 1, maxLength: 3 });
export const signal: Arbitrary<model.Signal> = shape({ id: text, name: text, payload: text }, { by: text, atMs: id });
export const numberedSignal: Arbitrary<model.NumberedSignal> = shape(
  { id: text, name: text, payload: text, number: id },
  { by: text, atMs: id },
);
export const steps: Arbitrary<model.Step[]> = list(
  record({
    step: small,
    name: text,
    status: fc.constantFrom<model.StepStatus>("started", "succeeded", "failed", "skipped", "progress"),
  }),
);
export const checkpoint = record({ payload: text, digests: list(digest) });
export const failure: Arbitrary<model.Failure> = shape({ reason: failReason, message: text }, { result });
export const claims = list(record({ task: id, token: id }));
export const renewed = list(
  shape<{ task: number; token: number }, { heard: number }>({ task: id, token: id }, { heard: id }),
);
export const held = { executor: text, task: id, token: id };

export const grant: Arbitrary<model.Grant> = shape(
  {
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
    outOfMemory: fc.option(small, { nil: undefined }),
    trace: fc.option(text, { nil: undefined }),
    stopMs: fc.option(ms, { nil: undefined }),
    checkpoint: fc.option(record({ payload: text, digests: list(digest), token: id }), { nil: undefined }),
    index: fc.option(id, { nil: undefined }),
  },
  {
    manifests: fc.array(record({ stage: text, generation: small, digest }), { minLength: 1, maxLength: 2 }),
    failures: shape({ "timed-out": small }, { preempted: small, "user-failure": small }),
  },
);
