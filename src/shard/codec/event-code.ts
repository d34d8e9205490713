/**
 * The second encoding of a batch, which is the one that is written: definitions that its writer and reader share.
 *
 * A batch: 2 | count | events. An event: its code, then its fields in a fixed order. Numbers are varints (seven bits a
 * byte, the lowest first); numbers that grow from event to event are written as differences to the last one of the
 * batch, with the sign in the lowest bit. A code or a bit never changes its meaning.
 *
 * Only events that happen to every task have a code. Any other event, and any event with an unexpected value, is code 0
 * and the event as JSON; after one of those both sides reset their differences.
 */
import type { JobPhase, StagePhase, StageSpec, StepStatus, TaskTemplate } from "#kernel/model/model.ts";

/** The first byte of a batch. The first encoding begins with a brace. */
export const version = 2;

export const codes = {
  json: 0,
  submitted: 1,
  stageReady: 2,
  claimed: 3,
  started: 4,
  reported: 5,
  committed: 6,
  stageEnded: 7,
  jobEnded: 8,
  forgotten: 9,
  /** A `committed` event with a `publish` text, which follows. */
  committedToPublish: 10,
  published: 11,
} as const;

/** Bits of a `job-submitted`. */
export const submittedBits = {
  key: 1,
  mergeKey: 2,
  subscriber: 4,
  leaveGrace: 8,
  sameTenant: 16,
  sameDoor: 32,
} as const;
/** Bits of a `claimed`. */
export const claimedBits = { started: 1, sameExecutor: 2, sameNonce: 4, sameLease: 8 } as const;
/** Bits of a submitted stage. `affinity`: each of its tasks says whether it has one. */
export const stageBits = {
  sameShape: 1,
  sameTemplate: 2,
  affinity: 4,
  afterEnd: 8,
  failFast: 16,
  mayFail: 32,
} as const;
/** Bits of a template. */
export const templateBits = { retryAny: 1, outside: 2, speculate: 4 } as const;

/** How a text is encoded; combined with its length in bytes into one number. */
export const textKinds = { ascii: 0, utf8: 1, utf16: 2, hex: 3 } as const;

/** Encoded by index: append new entries at the end only. */
export const stagePhases = [
  "BLOCKED",
  "READY",
  "RUNNING",
  "COMPLETED",
  "FAILED",
  "SKIPPED",
  "CANCELLED",
] as const satisfies readonly StagePhase[];
export const jobPhases = [
  "WAITING",
  "RUNNING",
  "CANCELLING",
  "SUCCEEDED",
  "FAILED",
  "CANCELLED",
] as const satisfies readonly JobPhase[];
export const stepStatuses = [
  "started",
  "succeeded",
  "failed",
  "skipped",
  "progress",
] as const satisfies readonly StepStatus[];

/** A stage without the description of its tasks. */
export type Shape = Pick<StageSpec, "name" | "needs" | "after" | "failFast" | "mayFail" | "parallelMax">;

/** The values that the next event's differences refer to. */
export class PreviousValues {
  at = 0;
  job = 0;
  task = 0;
  token = 0;
  leaseMs = 0;
  tenant = "";
  door = "";
  executor = "";
  nonce = "";
  shape: Shape | undefined;
  template: TaskTemplate | undefined;
}
