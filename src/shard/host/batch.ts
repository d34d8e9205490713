/** What a shard decided between two appends, and the answers that wait for the append. */
import type { Event } from "#kernel/model/event.ts";
import type { FeedItem } from "#kernel/read/feed.ts";
import { noRows, type Rows } from "#kernel/read/history.ts";
import type { Answer } from "#kernel/read/query.ts";
import type { Rejection } from "#kernel/model/rejection.ts";
import type { Reply } from "#kernel/model/reply.ts";
import type { RequestKey } from "#journal/journal.ts";
import type { Requester } from "./pending-request.ts";
import type { Stamp } from "#shard/transport/protocol.ts";

/** An answer that is known but must wait until its batch is durable. */
export type ParkedAnswer = {
  readonly asker: Requester;
  readonly said: UnstampedAnswer;
  /** Whether this request itself led to events; if not, it changed nothing. */
  readonly changed: boolean;
  /** One of its events cannot be encoded. */
  readonly spoilt: boolean;
};

/** A complete answer except for its stamp, which is set when the answer is sent. */
export type UnstampedAnswer =
  | { readonly kind: "reply"; stamp: Stamp; readonly reply: Reply }
  | { readonly kind: "answer"; stamp: Stamp; readonly answer: Answer }
  | { readonly kind: "rejected"; stamp: Stamp; readonly rejection: Rejection };

export const unstamped: Stamp = { epoch: 0, seq: 0 };

export class OpenBatch {
  readonly events: Event[] = [];
  /** The job that each event belongs to; undefined for events without a job. */
  readonly jobs: (number | undefined)[] = [];
  readonly keys: RequestKey[] = [];
  readonly rows: Rows = noRows();
  /** What the event feed says of the events; undefined while it has no reader. */
  feed: FeedItem[] | undefined;
  readonly parked: ParkedAnswer[] = [];
  /** Run when the batch is closed: the state then equals the log up to this batch. */
  readonly atSeal: ((stamp: Stamp) => void)[] = [];
  /** Run when the batch is durable and may be made known. */
  readonly atRelease: ((stamp: Stamp) => void)[] = [];
  /** Run instead when the batch is lost. */
  readonly atLoss: (() => void)[] = [];
  /** A caller is about to hear that something does not exist: the epoch must be confirmed first (K8). */
  needsConfirm = false;

  constructor(feed?: FeedItem[]) {
    this.feed = feed;
  }

  get isEmpty(): boolean {
    return (
      this.events.length === 0 && this.parked.length === 0 && this.atSeal.length === 0 && this.atRelease.length === 0
    );
  }
}

/** A closed batch: with a seq of its own if it has events, else with the seq of the batch before. */
export type SealedBatch = {
  readonly stamp: Stamp;
  readonly payload: Uint8Array | undefined;
  /** Estimated memory to keep its events, or to read them back. */
  readonly weightBytes: number;
  readonly sealedMono: number;
} & Pick<OpenBatch, "events" | "jobs" | "keys" | "rows" | "feed" | "parked" | "atRelease" | "atLoss" | "needsConfirm">;

export function sendAnswer({ asker, said }: ParkedAnswer, stamp: Stamp): void {
  said.stamp = stamp;
  asker.settle(said);
}

/** Rejections that say that something does not exist: only the shard's true owner may send them. */
export function saysNotFound(rejection: Rejection): boolean {
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
