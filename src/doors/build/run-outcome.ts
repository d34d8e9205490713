/** What a worker records of an action: small enough for the kernel; the rest is a blob that it names. */
import type { Digest } from "#base/digest.ts";
import type { Result } from "#kernel/model.ts";

export type ActionOutcome = {
  readonly instance: string;
  readonly action: Digest;
  /** The ExecuteResponse, whole. */
  readonly response: Digest;
  /** Of its status; 0 is well. */
  readonly code: number;
  readonly exitCode: number;
};

export const outcomeText = (outcome: ActionOutcome): string => JSON.stringify(outcome);

/** Undefined for what this door has not written. */
export function readOutcome(result: Result | undefined): ActionOutcome | undefined {
  if (!result) return undefined;
  try {
    const outcome = JSON.parse(result.payload) as Partial<ActionOutcome>;
    return typeof outcome.response === "string" ? (outcome as ActionOutcome) : undefined;
  } catch {
    return undefined;
  }
}
