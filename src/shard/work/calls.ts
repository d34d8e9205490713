/**
 * Requests and responses of `protocol.ts` as calls of the work protocol (`proto/millrace/work/v1`), and back. Pure: a
 * server reads the request, asks the shard, writes the answer; a client writes the call and reads the answer. Invalid
 * messages are a Fault "invalid" with the path of the field.
 */
import { unreachable } from "#base/assert.ts";
import { Fault } from "#base/fault.ts";
import type { Command } from "#kernel/model/command.ts";
import type { Answers } from "#kernel/read/query.ts";
import type { Replies } from "#kernel/model/reply.ts";
import type { Method } from "#wire/message.ts";
import type * as commands from "#wire/generated/millrace/work/v1/commands.ts";
import type { TakeRequest, TakeResponse } from "#wire/generated/millrace/work/v1/queries.ts";
import { Peer, Work } from "#wire/generated/millrace/work/v1/work.ts";
import {
  isInternal,
  type CommandOutcome,
  type ShardRequest,
  type ShardResponse,
  type Stamp,
} from "#shard/transport/protocol.ts";
import { commandTable, type ClientKind, type FieldOf } from "./commands.ts";
import { queryTable, type QueryKind } from "./queries.ts";
import { responseOfStatus, statusOfNotDone, statusOfRejection, type Status } from "./rejections.ts";
import { readStamp, replyTable } from "./replies.ts";
import { each, refuse, within } from "./enums.ts";

/** One method of the protocol that concerns a shard, for servers and clients alike. */
export type WorkCall = {
  readonly method: Method<unknown, unknown>;
  writeRequest(request: ShardRequest): unknown;
  readRequest(message: unknown): ShardRequest;
  /** `request` is needed to understand the response: most responses do not repeat it. */
  writeResponse(request: ShardRequest, response: ShardResponse): Answered;
  readResponse(request: ShardRequest, message: unknown): ShardResponse;
};

/** How a call ends: with a message, or with a status that says why there is none. */
export type Answered =
  | { readonly ok: true; readonly message: unknown }
  | { readonly ok: false; readonly status: Status };

/** The call that carries the request. Throws a Fault "invalid" for commands that only a shard's own host may send. */
export function callOf(request: ShardRequest): WorkCall {
  switch (request.kind) {
    case "command":
      return commandCalls[clientKind(request.command)];
    case "commands":
      return batchCall;
    case "query":
      return queryCalls[request.query.kind] ?? refuse("query.kind", "no such query");
    case "take":
      return takeCall;
    default:
      return unreachable(request);
  }
}

function clientKind({ kind }: Command): ClientKind {
  if (isInternal(kind) || !Object.hasOwn(commandTable, kind))
    throw new Fault("invalid", "write message", { path: "command.kind", why: `${kind} cannot be sent by a client` });
  return kind as ClientKind;
}

type Unknown = Readonly<Record<string, unknown>>;
type AnyEntry = {
  readonly method: Method<unknown, unknown>;
  readonly field: FieldOf;
  readonly write: (given: unknown) => Unknown;
  readonly read: (message: unknown) => object;
};

// The tables are typed entry by entry; which entry is looked up is known only at run time.
const entryOf = (kind: ClientKind): AnyEntry => commandTable[kind] as unknown as AnyEntry;
const repliesOf = (kind: ClientKind): Pick<AnyEntry, "write" | "read"> =>
  replyTable[kind] as unknown as Pick<AnyEntry, "write" | "read">;

const readShard = (message: unknown): number => {
  const { shard } = message as { readonly shard: number };
  return shard >= 0 ? shard : refuse("shard", "must not be negative");
};

const stampOf = (message: unknown): Stamp => readStamp((message as { readonly stamp?: Stamp }).stamp);

function commandCall(kind: ClientKind): WorkCall {
  const { method, write, read } = entryOf(kind);
  return {
    method,
    writeRequest: (request) => {
      const { shard, command, waitMs } = request as Extract<ShardRequest, { kind: "command" }>;
      const message = { ...write(command), shard };
      return kind === "reserve" && waitMs !== undefined ? { ...message, waitMs } : message;
    },
    readRequest: (message) => {
      const shard = readShard(message);
      const command = { kind, ...read(message) } as Command;
      const { waitMs } = message as { readonly waitMs?: number };
      return { kind: "command", shard, command, ...(waitMs === undefined ? {} : { waitMs }) };
    },
    writeResponse: (request, response) =>
      response.kind === "reply" ? said(writeReply(kind, response)) : notSaid(request, response),
    readResponse: (_request, message) => readReply(kind, message),
  };
}

const writeReply = (kind: ClientKind, { stamp, reply }: Extract<CommandOutcome, { kind: "reply" }>): Unknown => ({
  ...repliesOf(kind).write(reply),
  stamp,
});

const readReply = (kind: ClientKind, message: unknown): CommandOutcome => ({
  kind: "reply",
  stamp: stampOf(message),
  reply: repliesOf(kind).read(message) as Replies[ClientKind],
});

const said = (message: unknown): Answered => ({ ok: true, message });

function notSaid({ shard }: ShardRequest, response: ShardResponse): Answered {
  switch (response.kind) {
    case "rejected":
      return { ok: false, status: statusOfRejection(shard, response.rejection, response.stamp) };
    case "not-owner":
    case "overloaded":
    case "interrupted":
      return { ok: false, status: statusOfNotDone(response) };
    default:
      throw new Fault("internal", "answer call", { why: `a ${response.kind} does not answer this request` });
  }
}

const clientKinds = Object.keys(commandTable) as ClientKind[];
const commandCalls = Object.fromEntries(clientKinds.map((kind) => [kind, commandCall(kind)])) as Readonly<
  Record<ClientKind, WorkCall>
>;
const kindOfField = Object.fromEntries(clientKinds.map((kind) => [entryOf(kind).field, kind])) as Readonly<
  Record<FieldOf, ClientKind>
>;

const batchCall: WorkCall = {
  method: Work.methods.batch,
  writeRequest: (request) => {
    const { shard, commands: list } = request as Extract<ShardRequest, { kind: "commands" }>;
    return { shard, commands: list.map(writeCommand) } satisfies commands.BatchRequest;
  },
  readRequest: (message) => {
    const shard = readShard(message);
    const { commands: list } = message as commands.BatchRequest;
    return { kind: "commands", shard, commands: each("commands", list, (one) => readCommand(shard, one)) };
  },
  writeResponse: (request, response) => {
    if (response.kind !== "said" || request.kind !== "commands") return notSaid(request, response);
    const { shard, commands: requested } = request;
    const outcomes = response.said.map((one, i): commands.Outcome => {
      if (one.kind === "rejected")
        return { outcome: { kind: "refused", value: statusOfRejection(shard, one.rejection, one.stamp) } };
      const kind = clientKind(requested[i] as Command);
      return { outcome: { kind: entryOf(kind).field, value: writeReply(kind, one) } as commands.Outcome["outcome"] };
    });
    return said({ stamp: response.stamp, outcomes } satisfies commands.BatchResponse);
  },
  readResponse: (request, message) => {
    const { outcomes } = message as commands.BatchResponse;
    const requested = request.kind === "commands" ? request.commands : [];
    if (outcomes.length !== requested.length)
      return refuse("outcomes", `must be ${requested.length}, one for each command`);
    const answers = each("outcomes", outcomes, (one, i) => readOutcome(requested[i] as Command, one));
    return { kind: "said", stamp: stampOf(message), said: answers };
  },
};

function writeCommand(command: Command): commands.Command {
  const { field, write } = entryOf(clientKind(command));
  return { command: { kind: field, value: { ...write(command), shard: 0 } } as unknown as commands.Command["command"] };
}

export function readCommand(shard: number, { command }: commands.Command): Command {
  if (command === undefined) return refuse("command", "must be there");
  if (command.value.shard !== 0 && command.value.shard !== shard)
    return refuse(`${command.kind}.shard`, "must be that of the batch, or left out");
  const kind = kindOfField[command.kind];
  return { kind, ...within(command.kind, () => entryOf(kind).read(command.value)) } as Command;
}

function readOutcome(requested: Command, { outcome }: commands.Outcome): CommandOutcome {
  const kind = clientKind(requested);
  if (outcome?.kind === "refused") {
    const response = responseOfStatus(outcome.value);
    return response.kind === "rejected" ? response : refuse("refused", "must be a refusal");
  }
  if (outcome?.kind !== entryOf(kind).field) return refuse("outcome", `must be the answer to ${kind}`);
  return within(outcome.kind, () => readReply(kind, outcome.value));
}

type AnyQuery = AnyEntry & {
  readonly writeAnswer: (answer: unknown) => Unknown;
  readonly readAnswer: (message: unknown) => Answers[QueryKind];
};

function queryCall(kind: QueryKind): WorkCall {
  const { method, write, read, writeAnswer, readAnswer } = queryTable[kind] as unknown as AnyQuery;
  return {
    method,
    writeRequest: (request) => ({
      ...write((request as Extract<ShardRequest, { kind: "query" }>).query),
      shard: request.shard,
    }),
    readRequest: (message) =>
      ({ kind: "query", shard: readShard(message), query: { kind, ...read(message) } }) as ShardRequest,
    writeResponse: (request, response) =>
      response.kind === "answer"
        ? said({ ...writeAnswer(response.answer), stamp: response.stamp })
        : notSaid(request, response),
    readResponse: (_request, message) => ({ kind: "answer", stamp: stampOf(message), answer: readAnswer(message) }),
  };
}

const queryKinds = Object.keys(queryTable) as QueryKind[];
const queryCalls = Object.fromEntries(queryKinds.map((kind) => [kind, queryCall(kind)])) as Readonly<
  Record<QueryKind, WorkCall>
>;

const takeCall: WorkCall = {
  method: Peer.methods.take,
  writeRequest: (request): TakeRequest => {
    const { shard, when } = request as Extract<ShardRequest, { kind: "take" }>;
    return { shard, now: when === "now" };
  },
  readRequest: (message) => {
    const { now } = message as TakeRequest;
    return { kind: "take", shard: readShard(message), when: now ? "now" : "prepare" };
  },
  writeResponse: (request, response) => {
    if (response.kind !== "reply") return notSaid(request, response);
    const { claims } = response.reply as Replies["take-over"];
    return said({ claims, stamp: response.stamp } satisfies TakeResponse);
  },
  readResponse: (_request, message) => {
    const { claims } = message as TakeResponse;
    return { kind: "reply", stamp: stampOf(message), reply: { claims } };
  },
};

/** All of them, for servers. `Watch` and `GetPartitionMap` are missing: they do not have one shard's answer. */
export const workCalls: readonly WorkCall[] = [
  ...Object.values(commandCalls),
  batchCall,
  ...Object.values(queryCalls),
  takeCall,
];
