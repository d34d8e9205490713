/**
 * Answers of the work protocol as a server writes them: directly from the shard's response, without the generated
 * messages in between. Byte for byte what `WorkCall.writeResponse` and the generated messages write.
 */
import type { Grant } from "#kernel/model/model.ts";
import type { Replies } from "#kernel/model/reply.ts";
import { Status } from "#wire/generated/google/rpc/status.ts";
import { Checkpoint, Grant_Need as NeedMessage, ReasonCount } from "#wire/generated/millrace/work/v1/model.ts";
import { Stamp as StampMessage } from "#wire/generated/millrace/work/v1/model.ts";
import type { Message } from "#wire/message.ts";
import type { Writer } from "#wire/writer.ts";
import type { CommandOutcome, ShardRequest, ShardResponse, Stamp } from "#shard/transport/protocol.ts";
import type { WorkCall } from "#shard/work/calls.ts";
import { commandTable, type ClientKind } from "#shard/work/commands.ts";
import { statusOfRejection } from "#shard/work/rejections.ts";
import { writeCounts } from "#shard/work/model.ts";
import { replyTable } from "#shard/work/replies.ts";
import { effects } from "#shard/work/enums.ts";

/** What the server writes for the call: the shard's response, or a generated message. */
export const responseMessage = ({ method: { response } }: WorkCall): Message<unknown> => ({
  ...response,
  write: (message, to) => (message instanceof PlainAnswer ? message.write(to) : response.write(message, to)),
});

/** The shard's response if it can be written directly; undefined if it needs a generated message. */
export function plainAnswer(request: ShardRequest, response: ShardResponse): PlainAnswer | undefined {
  if (request.kind === "command") return response.kind === "reply" ? new ReplyAnswer(request, response) : undefined;
  return request.kind === "commands" && response.kind === "said" ? new BatchAnswer(request, response) : undefined;
}

abstract class PlainAnswer {
  abstract write(to: Writer): void;
}

type Reply = Extract<CommandOutcome, { kind: "reply" }>;

class ReplyAnswer extends PlainAnswer {
  readonly #kind: ClientKind;
  readonly #reply: Reply;

  constructor({ command }: Extract<ShardRequest, { kind: "command" }>, reply: Reply) {
    super();
    this.#kind = command.kind as ClientKind;
    this.#reply = reply;
  }

  override write(to: Writer): void {
    writeReply(this.#kind, this.#reply, to);
  }
}

class BatchAnswer extends PlainAnswer {
  readonly #sent: Extract<ShardRequest, { kind: "commands" }>;
  readonly #answer: Extract<ShardResponse, { kind: "said" }>;
  /** In order. Made before anything is written, because they contain messages that are encoded already. */
  readonly #refusals: readonly Status[];

  constructor(sent: Extract<ShardRequest, { kind: "commands" }>, answer: Extract<ShardResponse, { kind: "said" }>) {
    super();
    this.#sent = sent;
    this.#answer = answer;
    this.#refusals = refusalsOf(sent.shard, answer.said);
  }

  override write(to: Writer): void {
    const { commands } = this.#sent;
    const { said, stamp } = this.#answer;
    let refused = 0;
    writeStamp(stamp, to);
    for (let i = 0; i < said.length; i += 1) {
      const one = said[i] as CommandOutcome;
      const start = to.open(18);
      if (one.kind === "reply") writeOutcome(commands[i]?.kind as ClientKind, one, to);
      else writeRefused(this.#refusals[refused++] as Status, to);
      to.close(start);
    }
  }
}

const none: readonly Status[] = [];
const noCounts: readonly ReasonCount[] = [];

function refusalsOf(shard: number, said: readonly CommandOutcome[]): readonly Status[] {
  let refusals: Status[] | undefined;
  for (const one of said)
    if (one.kind === "rejected") (refusals ??= []).push(statusOfRejection(shard, one.rejection, one.stamp));
  return refusals ?? none;
}

function writeOutcome(kind: ClientKind, reply: Reply, to: Writer): void {
  const start = to.open(outcomeTags[kind]);
  writeReply(kind, reply, to);
  to.close(start);
}

function writeRefused(status: Status, to: Writer): void {
  const start = to.open(242);
  Status.write(status, to);
  to.close(start);
}

/** Tags of the fields of `Outcome`. */
const outcomeTags: Readonly<Record<ClientKind, number>> = {
  submit: 10,
  leave: 18,
  cancel: 26,
  signal: 34,
  reserve: 42,
  start: 50,
  renew: 58,
  report: 66,
  commit: 74,
  "record-plan": 82,
  fail: 90,
  checkpoint: 322,
  release: 98,
  invalidate: 106,
  drain: 114,
  resume: 122,
  "set-tenant": 130,
  "lend-quota": 138,
};

/** Every response begins with its stamp; the rest is the reply. */
function writeReply(kind: ClientKind, { stamp, reply }: Reply, to: Writer): void {
  writeStamp(stamp, to);
  if (kind === "reserve") return writeGrants(reply as Replies["reserve"], to);
  // The tables are typed entry by entry; which entry is looked up is known only at run time.
  const response = commandTable[kind].method.response as Message<unknown>;
  response.write((replyTable[kind].write as (reply: unknown) => unknown)(reply), to);
}

function writeStamp(stamp: Stamp, to: Writer): void {
  const start = to.open(10);
  StampMessage.write(stamp, to);
  to.close(start);
}

function writeGrants({ grants }: Replies["reserve"], to: Writer): void {
  for (const grant of grants) {
    // A good guess at its length: then the bytes need not be moved to fit the length in.
    const sizeHint = grant.spec.length + 80;
    const start = to.open(18, sizeHint);
    writeGrant(grant, to);
    to.close(start, sizeHint);
  }
}

function writeManifests(manifests: NonNullable<Grant["manifests"]>, to: Writer): void {
  for (const manifest of manifests) {
    const start = to.open(490);
    NeedMessage.write(manifest, to);
    to.close(start);
  }
}

function writeGrant(grant: Grant, to: Writer): void {
  if (grant.task !== 0) to.int64(8, grant.task);
  if (grant.token !== 0) to.int64(16, grant.token);
  if (grant.job !== 0) to.int64(24, grant.job);
  if (grant.stage !== 0) to.int32(32, grant.stage);
  if (grant.stageName !== "") to.string(42, grant.stageName);
  if (grant.tenant !== "") to.string(50, grant.tenant);
  if (grant.door !== "") to.string(58, grant.door);
  if (grant.kind !== "") to.string(66, grant.kind);
  if (grant.key !== "") to.string(74, grant.key);
  if (grant.spec !== "") to.string(82, grant.spec);
  if (grant.planning) to.bool(88, true);
  if (grant.generation !== 0) to.int32(96, grant.generation);
  if (grant.attempt !== 0) to.int32(104, grant.attempt);
  if (grant.leaseMs !== 0) to.int64(112, grant.leaseMs);
  if (grant.graceMs !== 0) to.int64(120, grant.graceMs);
  if (grant.attemptMs !== 0) to.int64(128, grant.attemptMs);
  const effect = effects.numberOf(grant.effects);
  if (effect !== 0) to.int32(136, effect);
  if (grant.outOfMemory !== undefined) to.int32(144, grant.outOfMemory);
  if (grant.trace !== undefined) to.string(154, grant.trace);
  if (grant.stopMs !== undefined) to.int64(320, grant.stopMs);
  if (grant.checkpoint !== undefined) {
    const start = to.open(330);
    Checkpoint.write(grant.checkpoint, to);
    to.close(start);
  }
  for (const count of grant.failures ? writeCounts(grant.failures) : noCounts) {
    const start = to.open(338);
    ReasonCount.write(count, to);
    to.close(start);
  }
  if (grant.index !== undefined) to.int64(480, grant.index);
  if (grant.manifests) writeManifests(grant.manifests, to);
}
