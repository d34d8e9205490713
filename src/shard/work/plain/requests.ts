/**
 * Requests of the work protocol as a server decodes them: the most frequent commands go from the wire directly to the
 * kernel's types. An unusual or invalid request is decoded again through the generated messages
 * (`WorkCall.readRequest`), which say what it means, or what is wrong with it.
 */
import { isFault } from "#base/fault.ts";
import type { Command } from "#kernel/model/command.ts";
import { BatchRequest, Command as CommandMessage } from "#wire/generated/millrace/work/v1/commands.ts";
import type { Message } from "#wire/message.ts";
import type { Reader } from "#wire/reader.ts";
import type { ShardRequest } from "#shard/transport/protocol.ts";
import { readCommand, type WorkCall } from "#shard/work/calls.ts";
import { commandTable, type ClientKind } from "#shard/work/commands.ts";
import { readCommit, readRenew, readReport, readReserve, readStart, type RequestFields } from "./claims.ts";
import { readSubmit } from "./submit.ts";
import { unusual } from "#shard/work/unusual.ts";

type ReadPlain = (from: Reader, end: number, beside: RequestFields) => Command;

const plainKinds: Readonly<Partial<Record<ClientKind, ReadPlain>>> = {
  submit: readSubmit,
  reserve: readReserve,
  start: readStart,
  renew: readRenew,
  report: readReport,
  commit: readCommit,
};

/** By the tag of the field of `Command` that carries it. */
const plainTags: readonly (ReadPlain | undefined)[] = Object.assign([], {
  10: readSubmit,
  42: readReserve,
  50: readStart,
  58: readRenew,
  66: readReport,
  74: readCommit,
});

/** What the server reads for the call. `refused` makes the error for a message that can be decoded but is invalid. */
export function requestMessage(call: WorkCall, refused: (error: unknown) => unknown): Message<ShardRequest> {
  const { request } = call.method;
  const plain = plainRequests.get(request.typeName);
  return {
    typeName: request.typeName,
    write: (message, to) => request.write(call.writeRequest(message), to),
    read(from, end) {
      const read = plain && orUnusual(plain, from, end);
      if (read !== undefined) return read;
      from.restart();
      const message = request.read(from, end);
      if (from.pos !== end) from.fail("a field goes beyond its message");
      try {
        return call.readRequest(message);
      } catch (error) {
        throw refused(error);
      }
    },
  };
}

function orUnusual(plain: ReadRequest, from: Reader, end: number): ShardRequest | undefined {
  try {
    return plain(from, end);
  } catch (error) {
    if (isFault(error, "invalid")) return undefined;
    throw error;
  }
}

type ReadRequest = (from: Reader, end: number) => ShardRequest;

/** By the type of the message. */
const plainRequests: ReadonlyMap<string, ReadRequest> = new Map([
  [BatchRequest.typeName, readBatch],
  ...Object.entries(plainKinds).map(([kind, read]): [string, ReadRequest] => [
    commandTable[kind as ClientKind].method.request.typeName,
    commandRequest(read),
  ]),
]);

function commandRequest(read: ReadPlain): ReadRequest {
  return (from, end) => {
    const beside: RequestFields = { shard: 0, waitMs: undefined };
    const command = read(from, end, beside);
    const { shard, waitMs } = beside;
    if (shard < 0) return unusual();
    return waitMs === undefined ? { kind: "command", shard, command } : { kind: "command", shard, command, waitMs };
  };
}

function readBatch(from: Reader, end: number): ShardRequest {
  const commands: Command[] = [];
  const beside: RequestFields = { shard: 0, waitMs: undefined };
  let shard = 0;
  while (from.pos < end) {
    const tag = from.tag();
    if (tag === 18) {
      const stop = from.enter();
      commands.push(readOne(from, stop, beside));
      from.leave(stop);
    } else if (tag === 8) shard = from.int32();
    else from.skip(tag);
  }
  return shard < 0 ? unusual() : { kind: "commands", shard, commands };
}

/** One command of a batch. It may repeat the batch's shard; the caller, which knows the shard, checks that. */
function readOne(from: Reader, end: number, beside: RequestFields): Command {
  const start = from.pos;
  const read = start < end ? plainTags[from.tag()] : undefined;
  if (read === undefined) {
    from.pos = start;
    return readCommand(0, CommandMessage.read(from, end));
  }
  const stop = from.enter();
  const command = read(from, stop, beside);
  from.leave(stop);
  // If more bytes follow, the end of the message is missed, and that is unusual too.
  return beside.shard === 0 ? command : unusual();
}
