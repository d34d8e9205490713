/** What a shard decided between two appends, and who waits to hear of it. */
import type { Event } from "#kernel/model/event.ts";
import { noRows, type Rows } from "#kernel/read/history.ts";
import type { Answer } from "#kernel/read/query.ts";
import type { Rejection } from "#kernel/model/rejection.ts";
import type { Reply } from "#kernel/model/reply.ts";
import type { RequestKey } from "#journal/journal.ts";
import type { Asker } from "./asking.ts";
import type { Stamp } from "#shard/transport/protocol.ts";

/** An answer that is known and not yet safe to give. */
export type Parked = {
  readonly asker: Asker;
  readonly said: Unsaid;
  /** Whether this very request led to events: without them, nothing was done. */
  readonly changed: boolean;
  /** One of its events cannot be written down. */
  readonly spoilt: boolean;
};

/** An answer as it will be given, all but its stamp, which is put in when it may be. */
export type Unsaid =
  | { readonly kind: "reply"; stamp: Stamp; readonly reply: Reply }
  | { readonly kind: "answer"; stamp: Stamp; readonly answer: Answer }
  | { readonly kind: "rejected"; stamp: Stamp; readonly rejection: Rejection };

export const unstamped: Stamp = { epoch: 0, seq: 0 };

export class OpenBatch {
  readonly events: Event[] = [];
  /** The job that each event belongs to; undefined for those of no job. */
  readonly jobs: (number | undefined)[] = [];
  readonly keys: RequestKey[] = [];
  readonly rows: Rows = noRows();
  readonly parked: Parked[] = [];
  /** Run when the batch is closed: the state then holds exactly what the log will hold up to this batch. */
  readonly atSeal: ((stamp: Stamp) => void)[] = [];
  /** Run when the batch may be spoken of. */
  readonly atRelease: ((stamp: Stamp) => void)[] = [];
  /** Run instead when it never will be. */
  readonly atLoss: (() => void)[] = [];
  /** Someone is to be told that something is not there: the epoch must be confirmed (K8). */
  needsConfirm = false;

  get isEmpty(): boolean {
    return (
      this.events.length === 0 && this.parked.length === 0 && this.atSeal.length === 0 && this.atRelease.length === 0
    );
  }
}

/** A closed batch: with a seq of its own when it holds events, else the seq of the batch before. */
export type SealedBatch = {
  readonly stamp: Stamp;
  readonly payload: Uint8Array | undefined;
  /** What its events take in memory, or to read back. */
  readonly weightBytes: number;
  readonly sealedMono: number;
} & Pick<OpenBatch, "events" | "jobs" | "keys" | "rows" | "parked" | "atRelease" | "atLoss" | "needsConfirm">;

export function speak({ asker, said }: Parked, stamp: Stamp): void {
  said.stamp = stamp;
  asker.settle(said);
}

/** Refusals that say something is not there: only the shard's true owner may say so. */
export function tellsAbsence(rejection: Rejection): boolean {
  switch (rejection.kind) {
    case "job-unknown":
    case "stage-unknown":
    case "task-unknown":
    case "token-stale":
    case "nothing-to-join":
    case "generation-stale":
      return true;
    default:
      return false;
  }
}
