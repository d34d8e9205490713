/**
 * Rejections and failures as google.rpc.Status, and back without loss. A rejection's ErrorInfo has the domain
 * "millrace", its kind as the reason and its facts as metadata; a Fault's has the domain "fault.millrace".
 */
import { Fault, type FaultCode } from "#base/fault.ts";
import type { ShardId } from "#base/ids.ts";
import { unreachable } from "#base/assert.ts";
import { codeOfFault } from "#grpc/status.ts";
import type { Rejection, RejectionKind } from "#kernel/model/rejection.ts";
import { decode, encode, type Message } from "#wire/message.ts";
import type { Any } from "#wire/generated/google/protobuf/any.ts";
import { Code } from "#wire/generated/google/rpc/code.ts";
import { BadRequest, ErrorInfo, PreconditionFailure, RetryInfo } from "#wire/generated/google/rpc/error_details.ts";
import type { Status } from "#wire/generated/google/rpc/status.ts";
import type { ShardResponse, Stamp } from "#shard/transport/protocol.ts";
import { sayRejection } from "./rejected.ts";

export type { Status };

/** A status is sent in a header field, and headers are often limited to 8 KiB in total. */
const textLengthMax = 1_000;
const short = (text: string): string => text.slice(0, textLengthMax).toWellFormed();

const domain = "millrace";
const faultDomain = "fault.millrace";
const typePrefix = "type.googleapis.com/";

type FactsOf<K extends RejectionKind> = Exclude<keyof Extract<Rejection, { kind: K }>, "kind">;

type Entry<K extends RejectionKind> = {
  readonly code: number;
  /** How each of its facts is written as text. */
  readonly facts: { readonly [F in FactsOf<K>]: "text" | "number" | "list" };
};

/** The one table that maps each rejection to gRPC. */
export const rejectionTable: { readonly [K in RejectionKind]: Entry<K> } = {
  invalid: { code: Code.INVALID_ARGUMENT, facts: { path: "text", why: "text" } },
  limit: { code: Code.INVALID_ARGUMENT, facts: { what: "text", limit: "number", got: "number" } },
  cycle: { code: Code.INVALID_ARGUMENT, facts: { stages: "list" } },
  "job-unknown": { code: Code.NOT_FOUND, facts: { job: "number" } },
  "stage-unknown": { code: Code.NOT_FOUND, facts: { job: "number", stage: "number" } },
  "task-unknown": { code: Code.NOT_FOUND, facts: { task: "number" } },
  "job-ended": { code: Code.FAILED_PRECONDITION, facts: { job: "number", phase: "text" } },
  "token-stale": { code: Code.FAILED_PRECONDITION, facts: { task: "number", offered: "number", current: "number" } },
  "task-phase": { code: Code.FAILED_PRECONDITION, facts: { task: "number", phase: "text", wanted: "text" } },
  "key-reused": { code: Code.ALREADY_EXISTS, facts: { key: "text", job: "number" } },
  "nothing-to-join": { code: Code.NOT_FOUND, facts: { mergeKey: "text" } },
  "evidence-missing": { code: Code.FAILED_PRECONDITION, facts: { digest: "text" } },
  "evidence-expired": { code: Code.ABORTED, facts: { pinnedForMs: "number" } },
  "generation-stale": {
    code: Code.FAILED_PRECONDITION,
    facts: { task: "number", offered: "number", current: "number" },
  },
  "executor-drained": { code: Code.FAILED_PRECONDITION, facts: { executor: "text", reason: "text" } },
  "queue-full": {
    code: Code.RESOURCE_EXHAUSTED,
    facts: { tenant: "text", queuedMax: "number", retryAfterMs: "number" },
  },
  "shard-full": { code: Code.RESOURCE_EXHAUSTED, facts: { what: "text", retryAfterMs: "number" } },
  broken: { code: Code.INTERNAL, facts: { why: "text" } },
};

export function statusOfRejection(shard: ShardId, rejection: Rejection, stamp: Stamp): Status {
  const { code, facts } = rejectionTable[rejection.kind];
  const values = rejection as unknown as Readonly<Record<string, unknown>>;
  const metadata = new Map<string, string>([
    ["epoch", String(stamp.epoch)],
    ["seq", String(stamp.seq)],
  ]);
  for (const [fact, form] of Object.entries(facts))
    metadata.set(fact, form === "list" ? JSON.stringify(values[fact]) : short(String(values[fact])));
  return {
    code,
    message: short(sayRejection(shard, rejection)),
    details: [pack(ErrorInfo, { reason: rejection.kind, domain, metadata }), ...moreAbout(rejection)],
  };
}

/** For clients that know Google's error details and not ours. */
function moreAbout(rejection: Rejection): readonly Any[] {
  switch (rejection.kind) {
    case "invalid":
      return [badRequest(rejection.path, rejection.why)];
    case "limit":
      return [badRequest(rejection.what, `at most ${rejection.limit}, and this is ${rejection.got}`)];
    case "evidence-missing": {
      const subject = `blobs/${rejection.digest}`;
      const violations = [{ type: "MISSING", subject, description: "not in the store" }];
      return [pack(PreconditionFailure, { violations })];
    }
    case "queue-full":
    case "shard-full":
      return [retryInfo(rejection.retryAfterMs)];
    default:
      return [];
  }
}

type NotDone = Extract<ShardResponse, { kind: "not-owner" | "overloaded" | "interrupted" }>;

/** Answers of a node that did not ask the kernel, or lost the shard before its answer was safe. */
export function statusOfNotDone(response: NotDone): Status {
  const info = (facts: readonly (readonly [string, string | undefined])[]): Any =>
    pack(ErrorInfo, {
      reason: response.kind,
      domain,
      metadata: new Map(facts.flatMap(([name, value]) => (value === undefined ? [] : [[name, value]]))),
    });
  switch (response.kind) {
    case "not-owner": {
      const { shard, hint } = response;
      const details = [
        info([
          ["shard", String(shard)],
          ["hint", hint],
        ]),
      ];
      return { code: Code.UNAVAILABLE, message: `this node does not own shard ${shard}`, details };
    }
    case "overloaded": {
      const retryAfterMs = Math.ceil(response.retryAfterMs);
      const details = [info([["retryAfterMs", String(retryAfterMs)]]), retryInfo(retryAfterMs)];
      return { code: Code.UNAVAILABLE, message: "this node is overloaded", details };
    }
    case "interrupted": {
      const message = `it may or may not have been done: ${response.why}`;
      return { code: Code.ABORTED, message, details: [info([["why", short(response.why)]])] };
    }
    default:
      return unreachable(response);
  }
}

/** A failure of the system. Causes and stacks are not sent. */
export function statusOfFault({ code, doing, facts, message }: Fault): Status {
  const metadata = new Map([["doing", doing]]);
  for (const [name, value] of Object.entries(facts))
    if (value !== undefined && name !== "doing") metadata.set(name, short(String(value)));
  const { path, why } = facts;
  return {
    code: codeOfFault[code],
    message,
    details: [
      pack(ErrorInfo, { reason: code, domain: faultDomain, metadata }),
      ...(code === "invalid" && path !== undefined ? [badRequest(String(path), String(why))] : []),
    ],
  };
}

/**
 * Decodes the other side's status. Throws a Fault if it is not a shard's answer: the sent Fault if there is one, else
 * one derived from the code.
 */
export function responseOfStatus(status: Status): ShardResponse {
  const info = errorInfoOf(status);
  if (info?.domain === domain) {
    const response = refusalOf(info) ?? notDoneOf(info);
    if (response) return response;
  }
  if (info?.domain === faultDomain && Object.hasOwn(codeOfFault, info.reason)) {
    const { doing = "call", ...facts } = Object.fromEntries(info.metadata);
    const asTold = Object.entries(facts).map(([name, text]) => [name, isNumber(text) ? Number(text) : text] as const);
    throw new Fault(info.reason as FaultCode, doing, Object.fromEntries(asTold));
  }
  throw new Fault(faultOfCode(status.code), "call", { status: status.code, message: status.message });
}

/** Facts are for people: a text that looks like a number may come back as a number. */
const isNumber = (text: string): boolean => /^-?(0|[1-9]\d{0,14})(\.\d+)?$/.test(text);

export function errorInfoOf({ details }: Status): ErrorInfo | undefined {
  const found = details.find(({ typeUrl }) => typeUrl.endsWith(`/${ErrorInfo.typeName}`));
  return found && decode(ErrorInfo, found.value);
}

function refusalOf({ reason, metadata }: ErrorInfo): ShardResponse | undefined {
  if (!Object.hasOwn(rejectionTable, reason)) return undefined;
  const facts = Object.entries(rejectionTable[reason as RejectionKind].facts).map(([fact, form]) => {
    const text = metadata.get(fact) ?? "";
    return [fact, form === "text" ? text : form === "number" ? Number(text) : listOf(text)];
  });
  return {
    kind: "rejected",
    stamp: { epoch: Number(metadata.get("epoch") ?? 0), seq: Number(metadata.get("seq") ?? 0) },
    rejection: { kind: reason, ...Object.fromEntries(facts) } as Rejection,
  };
}

function notDoneOf({ reason, metadata }: ErrorInfo): NotDone | undefined {
  switch (reason) {
    case "not-owner":
      return { kind: "not-owner", shard: Number(metadata.get("shard") ?? 0), hint: metadata.get("hint") };
    case "overloaded":
      return { kind: "overloaded", retryAfterMs: Number(metadata.get("retryAfterMs") ?? 0) };
    case "interrupted":
      return { kind: "interrupted", why: metadata.get("why") ?? "" };
    default:
      return undefined;
  }
}

function listOf(json: string): readonly string[] {
  try {
    const list: unknown = JSON.parse(json);
    return Array.isArray(list) ? list.map(String) : [];
  } catch {
    return [];
  }
}

/** By the code alone: was it surely not done, or is the outcome unknown? */
function faultOfCode(code: number): FaultCode {
  switch (code) {
    case Code.NOT_FOUND:
      return "not-found";
    case Code.INVALID_ARGUMENT:
    case Code.OUT_OF_RANGE:
    case Code.UNIMPLEMENTED:
    case Code.UNAUTHENTICATED:
    case Code.PERMISSION_DENIED:
      return "invalid";
    case Code.RESOURCE_EXHAUSTED:
      return "exhausted";
    case Code.FAILED_PRECONDITION:
    case Code.ALREADY_EXISTS:
      return "stale";
    case Code.DATA_LOSS:
      return "corrupt";
    case Code.INTERNAL:
      return "internal";
    default:
      return "unknown-outcome";
  }
}

const pack = <T>(type: Message<T>, message: T): Any => ({
  typeUrl: `${typePrefix}${type.typeName}`,
  value: encode(type, message),
});

const badRequest = (field: string, description: string): Any =>
  pack(BadRequest, { fieldViolations: [{ field, description }] });

function retryInfo(afterMs: number): Any {
  const seconds = Math.floor(afterMs / 1_000);
  return pack(RetryInfo, { retryDelay: { seconds, nanos: Math.round(afterMs - seconds * 1_000) * 1_000_000 } });
}
