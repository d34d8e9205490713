/** How a call ended: a code, a message for developers, and details for programs. */
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

/** Thrown by handlers to end their call this way, and by the client for a call that ended this way. */
export class GrpcError extends Error {
  readonly code: number;
  readonly details: readonly Any[];
  /** Other trailers that came with the end of the call. */
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

/** A detail on the wire: the type's name in a URL that is never fetched, and its bytes. */
export const detail = <T>(type: Message<T>, message: T): Any => ({
  typeUrl: `type.googleapis.com/${type.typeName}`,
  value: encode(type, message),
});

/** The details of one type, as far as they can be decoded. */
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

/** The one table that maps each Fault to gRPC. */
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

/** What the caller gets for whatever a handler threw. The message of a foreign error is never sent. */
export function errorOf(thrown: unknown): GrpcError {
  if (thrown instanceof GrpcError) return thrown;
  if (isFault(thrown)) return new GrpcError(codeOfFault[thrown.code], thrown.message, [], [], thrown);
  return new GrpcError(grpcCode.internal, "internal error; see the server's log", [], [], thrown);
}

/** The fields that end a call. The details repeat code and message, as the protocol requires. */
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

/** Peers often limit all fields together to 8 KiB: the message must leave space for the rest. */
const messageLengthMax = 2_000;
const shortened = (message: string): string => message.slice(0, messageLengthMax);

/**
 * Printable ASCII except "%" stays; the rest becomes %XX of its UTF-8 bytes. So does a blank at either end: no field
 * may begin or end with one.
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

/** Never fails: an invalid escape stays as it is, invalid UTF-8 becomes U+FFFD. */
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

/** How the call ended by these trailers; undefined for success. */
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

/** For an answer that is not gRPC: what a proxy's HTTP status means for a call. */
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
