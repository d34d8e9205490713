/** How a call ended: a code, words for developers, and details that programs can read. */
import { isFault, type FaultCode } from "#base/fault.ts";
import { decode, encode, type Message } from "#wire/message.ts";
import type { Any } from "#wire/generated/google/protobuf/any.ts";
import { Status } from "#wire/generated/google/rpc/status.ts";
import { decodeBinary, encodeBinary } from "./metadata.ts";

export const grpcCode = {
  ok: 0,
  cancelled: 1,
  unknown: 2,
  invalidArgument: 3,
  deadlineExceeded: 4,
  notFound: 5,
  alreadyExists: 6,
  permissionDenied: 7,
  resourceExhausted: 8,
  failedPrecondition: 9,
  aborted: 10,
  outOfRange: 11,
  unimplemented: 12,
  internal: 13,
  unavailable: 14,
  dataLoss: 15,
  unauthenticated: 16,
} as const;

export type GrpcCode = (typeof grpcCode)[keyof typeof grpcCode];

/** Thrown by handlers to end their call so, and by the client for a call that ended so. */
export class GrpcError extends Error {
  readonly code: number;
  readonly details: readonly Any[];
  /** What came with the end of the call besides. */
  readonly trailers: readonly (readonly [string, string])[];

  constructor(
    code: number,
    message: string,
    details: readonly Any[] = [],
    trailers: readonly (readonly [string, string])[] = [],
    cause?: unknown,
  ) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = "GrpcError";
    this.code = code;
    this.details = details;
    this.trailers = trailers;
  }
}

export const isGrpcError = (error: unknown, code?: GrpcCode): error is GrpcError =>
  error instanceof GrpcError && (code === undefined || error.code === code);

/** A detail as it travels: the type's name in a URL that nobody looks up, and its bytes. */
export const detail = <T>(type: Message<T>, message: T): Any => ({
  typeUrl: `type.googleapis.com/${type.typeName}`,
  value: encode(type, message),
});

/** The details of one type, as far as they can be read. */
export function detailsOf<T>({ details }: GrpcError, type: Message<T>): readonly T[] {
  return details.flatMap(({ typeUrl, value }) => {
    if (typeUrl.slice(typeUrl.lastIndexOf("/") + 1) !== type.typeName) return [];
    try {
      return [decode(type, value)];
    } catch {
      return [];
    }
  });
}

/** The one table of what each Fault is in gRPC. */
export const codeOfFault = {
  "not-found": grpcCode.notFound,
  stale: grpcCode.failedPrecondition,
  invalid: grpcCode.invalidArgument,
  exhausted: grpcCode.resourceExhausted,
  unavailable: grpcCode.unavailable,
  "unknown-outcome": grpcCode.unknown,
  corrupt: grpcCode.dataLoss,
  internal: grpcCode.internal,
} as const satisfies Record<FaultCode, GrpcCode>;

/** What is told of whatever a handler threw. Nobody outside hears the words of an error that is none of ours. */
export function errorOf(thrown: unknown): GrpcError {
  if (thrown instanceof GrpcError) return thrown;
  if (isFault(thrown)) return new GrpcError(codeOfFault[thrown.code], thrown.message, [], [], thrown);
  return new GrpcError(grpcCode.internal, "something went wrong here; the server's log says what", [], [], thrown);
}

/** The fields that end a call. The details repeat code and message, as the protocol wants it. */
export function statusFields({ code, message, details, trailers }: GrpcError): [string, string][] {
  const fields: [string, string][] = [["grpc-status", String(code)]];
  if (message !== "") fields.push(["grpc-message", percentEncode(message)]);
  if (details.length > 0) {
    const status = encode(Status, { code, message: shortened(message), details });
    fields.push(["grpc-status-details-bin", encodeBinary(status)]);
  }
  for (const [name, value] of trailers) fields.push([name, value]);
  return fields;
}

/** A peer's limit for all fields together is often 8 KiB: the words must leave room for the rest. */
const messageLengthMax = 2_000;
const shortened = (message: string): string => message.slice(0, messageLengthMax);

/**
 * Printable ASCII but "%" stays; the rest goes as %XX of its UTF-8 bytes. So does a blank at either end: no field may
 * begin or end with one.
 */
export function percentEncode(message: string): string {
  const short = shortened(message);
  if (/^(?! )[ -$&-~]*(?<! )$/.test(short)) return short;
  const bytes = Buffer.from(short.toWellFormed(), "utf8");
  return Array.from(bytes, (byte, i) =>
    byte >= 0x20 && byte <= 0x7e && byte !== 0x25 && !(byte === 0x20 && (i === 0 || i === bytes.length - 1))
      ? String.fromCharCode(byte)
      : `%${byte.toString(16).toUpperCase().padStart(2, "0")}`,
  ).join("");
}

/** Never fails: what is no proper escape stays as it is, what is no UTF-8 becomes U+FFFD. */
export function percentDecode(text: string): string {
  if (!text.includes("%")) return text;
  const bytes: number[] = [];
  for (let i = 0; i < text.length; i += 1) {
    const hex = text[i] === "%" ? text.slice(i + 1, i + 3) : "";
    if (/^[0-9A-Fa-f]{2}$/.test(hex)) {
      bytes.push(Number.parseInt(hex, 16));
      i += 2;
    } else bytes.push(...Buffer.from(text[i] as string, "utf8"));
  }
  return Buffer.from(bytes).toString("utf8");
}

type Fields = { get(name: string): string | undefined };

/** How the call ended by these trailers; undefined when it went well. */
export function statusOf(trailers: Fields, all: readonly (readonly [string, string])[]): GrpcError | undefined {
  const text = trailers.get("grpc-status");
  if (text === undefined) return new GrpcError(grpcCode.unknown, "the server ended the call without a status", [], all);
  const code = /^\d{1,9}$/.test(text) ? Number(text) : grpcCode.unknown;
  if (code === grpcCode.ok) return undefined;
  const message = percentDecode(trailers.get("grpc-message") ?? "");
  const packed = trailers.get("grpc-status-details-bin");
  return new GrpcError(code, message, packed === undefined ? [] : readDetails(packed), all);
}

function readDetails(packed: string): readonly Any[] {
  try {
    const bytes = decodeBinary(packed);
    return bytes ? decode(Status, bytes).details : [];
  } catch {
    return [];
  }
}

/** For an answer that is no gRPC at all: what a proxy's HTTP status means to a call. */
export function codeOfHttp(status: number): GrpcCode {
  switch (status) {
    case 400:
      return grpcCode.internal;
    case 401:
      return grpcCode.unauthenticated;
    case 403:
      return grpcCode.permissionDenied;
    case 404:
      return grpcCode.unimplemented;
    case 429:
    case 502:
    case 503:
    case 504:
      return grpcCode.unavailable;
    default:
      return grpcCode.unknown;
  }
}
