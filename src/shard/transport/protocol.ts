/**
 * The messages that nodes, workers and tools send to a shard's owner, over any transport (simulated network, framed
 * socket, gRPC). All of it is plain data that survives JSON.
 */
import type { ShardId } from "#base/ids.ts";
import type { Command, CommandKind } from "#kernel/model/command.ts";
import type { Event } from "#kernel/model/event.ts";
import type { Answer, JobView, Query } from "#kernel/read/query.ts";
import type { Rejection } from "#kernel/model/rejection.ts";
import type { Reply } from "#kernel/model/reply.ts";

/** How fresh an answer is. A router drops answers older than what it has seen from the shard. */
export type Stamp = { readonly epoch: number; readonly seq: number };

/** Kinds that only a shard's own host may issue. */
export const internalKinds = [
  "take-over",
  "tick",
  "forget",
  "take-quota",
  "published",
  "record-manifest",
  "notified",
] as const satisfies readonly CommandKind[];

export const isInternal = (kind: CommandKind): boolean => (internalKinds as readonly CommandKind[]).includes(kind);

export type ShardRequest =
  | {
      readonly kind: "command";
      readonly shard: ShardId;
      readonly command: Command;
      /** For `reserve`: how long to hold the request when there is nothing to grant. */
      readonly waitMs?: number;
    }
  /** Each command is decided and answered separately, in this order. None of them is held. */
  | { readonly kind: "commands"; readonly shard: ShardId; readonly commands: readonly Command[] }
  | { readonly kind: "query"; readonly shard: ShardId; readonly query: Query }
  /**
   * From an owner to the node that it hands the shard to. "prepare": read its log ahead of time; "now": the lease was
   * released for you, take it. Answered with a take-over's reply when done. Only a hint: the journal decides who owns
   * the shard.
   */
  | { readonly kind: "take"; readonly shard: ShardId; readonly when: "prepare" | "now" };

/** The outcome of one command. */
export type CommandOutcome =
  | { readonly kind: "reply"; readonly stamp: Stamp; readonly reply: Reply }
  | { readonly kind: "rejected"; readonly stamp: Stamp; readonly rejection: Rejection };

export type ShardResponse =
  | CommandOutcome
  | { readonly kind: "answer"; readonly stamp: Stamp; readonly answer: Answer }
  /** The outcomes of several commands, one for each; with the oldest stamp of them. */
  | { readonly kind: "said"; readonly stamp: Stamp; readonly said: readonly CommandOutcome[] }
  /** Ask another node: `hint` is where this node believes the owner to be. Nothing was done. */
  | { readonly kind: "not-owner"; readonly shard: ShardId; readonly hint: string | undefined }
  /** Nothing was done; try again after the time. */
  | { readonly kind: "overloaded"; readonly retryAfterMs: number }
  /** The owner lost the shard before the answer could be sent: the command may or may not have been done. */
  | { readonly kind: "interrupted"; readonly why: string };

export type WatchRequest = {
  readonly shard: ShardId;
  readonly job: number;
  readonly tenant?: string;
  /** The newest stamp seen: the watch continues from there if it can, else starts with a snapshot. */
  readonly after?: Stamp;
};

export type WatchMessage =
  | { readonly kind: "snapshot"; readonly stamp: Stamp; readonly view: JobView }
  | { readonly kind: "events"; readonly stamp: Stamp; readonly events: readonly Event[] }
  | { readonly kind: "heartbeat"; readonly stamp: Stamp }
  /** The job has ended and all events have been delivered. */
  | { readonly kind: "end"; readonly stamp: Stamp }
  /** Resume elsewhere or later, from the newest stamp. */
  | { readonly kind: "moved"; readonly hint: string | undefined }
  | { readonly kind: "rejected"; readonly stamp: Stamp; readonly rejection: Rejection };

/** One node's side of the protocol: transports serve it, and the node's own router calls it directly. */
export type ShardService = {
  request(request: ShardRequest, signal?: AbortSignal): Promise<ShardResponse>;
  watch(request: WatchRequest, signal: AbortSignal): AsyncIterable<WatchMessage>;
};
