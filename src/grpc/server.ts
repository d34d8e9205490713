/**
 * The server's side of gRPC over HTTP/2 streams. It is told of streams by whoever owns the port (`open`), and handles
 * them to their end.
 *
 * A unary call whose handler answers at once, the way of nearly all small calls, is answered in the very turn in which
 * its last byte was read: no promise, no timer, no copy but one out of the socket's memory and one into the
 * connection's output.
 *
 * Messages belong to their handler: it may keep them, and what is in them, for as long as it likes.
 *
 * **Uploads.** A method whose request type has `inParts` (wire/write-request.ts: ByteStream.Write) is the exception:
 *
 *     const methods = { ...ByteStream.methods, write: { ...ByteStream.methods.write, request: writeRequest } };
 *     server.add({ ...ByteStream, methods }, {
 *       async write(requests) {
 *         for await (const { resourceName, writeOffset, finishWrite, data } of requests) {
 *           hash.update(data);
 *           await file.write(data);
 *         }
 *       },
 *     });
 *
 * A long request comes as several, while it arrives: each has the `resourceName` of the whole, a `writeOffset` that
 * goes on from the one before, at most 64 KiB of `data`, and only the last has `finishWrite`. `data` is a view of
 * memory that is used again. It stays as it is until the handler asks for the next request (the next turn of
 * `for await`), or until it ends; also when the call is called off meanwhile. Whoever needs it longer copies it. The
 * caller may send as much more as has been dealt with, so a handler that waits for its disk slows its caller down, and
 * no more than a window's worth of bytes lies here. From socket to handler every byte is copied once.
 *
 * When the caller leaves, the deadline passes or the connection is lost, the iteration throws a GrpcError.
 *
 * **Downloads.** A handler that answers with a stream may yield, instead of messages,
 * - what `fileMessages` (file-messages.ts) makes of a range of a file: read into memory that is sent as it is;
 * - a `LentMessage` (outgoing.ts) around bytes that are somebody else's, such as those of a store that wants them back
 *   before it gives more: the handler goes on when they have left;
 * - a `LaidMessage` around memory of its own with room before it, and be told when it is free.
 * Where there is but one small message and it is at hand, it may answer with an `OnlyMessage` instead of a stream.
 * None of the bulk is copied. When the caller leaves, the handler's generator is ended where it is: its `finally` runs.
 */
import type { Clock } from "#base/clock.ts";
import type { HeaderList } from "#h2/hpack/header-list.ts";
import type { Stream, StreamHandler } from "#h2/connection/stream.ts";
import type { Method, Service } from "#wire/message.ts";
import { answerFields } from "./answer-headers.ts";
import { BodyMemory } from "./body/body-memory.ts";
import { isGrpcType } from "./content-type.ts";
import { Incoming, type CallOwner } from "./server-incoming.ts";
import { bind, type AnyHandler, type Bound, type Handlers, type RefusalOf } from "./service.ts";
import { errorOf, grpcCode, GrpcError, statusFields } from "./status.ts";
import { parseTimeoutMs } from "./timeout.ts";

export type GrpcServerOptions<P> = {
  readonly clock: Clock;
  /**
   * Who calls, and whether they may call this: throws a GrpcError for those who may not. `peer` is what the owner of
   * the port knows of the connection.
   */
  readonly admit: (path: string, headers: HeaderList, peer: unknown) => P | Promise<P>;
  /** Of one message, packed or not. */
  readonly messageBytesMax?: number;
  /** Of all messages that are still coming in. */
  readonly bodyBytesMax?: number;
  /** Hears of every call when it has ended; for metrics. */
  readonly ended?: (call: EndedCall) => void;
  /** Hears of what went wrong in our own code; for the log. */
  readonly report?: (doing: string, error: unknown) => void;
};

/** Reused for every call: whoever hears of it keeps nothing of it. */
export type EndedCall = {
  /** "unknown" for a method that is not served: a caller cannot make up labels for our metrics. */
  path: string;
  code: number;
  tookMs: number;
  bytesIn: number;
  bytesOut: number;
};

const messageBytesMaxDefault = 4 * 1024 * 1024;
const bodyBytesMaxDefault = 512 * 1024 * 1024;

export class GrpcServer<P> implements StreamHandler, CallOwner {
  readonly clock: Clock;
  readonly messageBytesMax: number;
  readonly bodies: BodyMemory;
  readonly #options: GrpcServerOptions<P>;
  readonly #methods = new Map<string, Bound<P>>();
  readonly #endedCall: EndedCall = { path: "", code: 0, tookMs: 0, bytesIn: 0, bytesOut: 0 };

  constructor(options: GrpcServerOptions<P>) {
    this.#options = options;
    this.clock = options.clock;
    this.messageBytesMax = options.messageBytesMax ?? messageBytesMaxDefault;
    this.bodies = new BodyMemory(options.bodyBytesMax ?? bodyBytesMaxDefault);
  }

  /** `messageBytesMax`: of this service's requests, where they are small. */
  add<S extends Service>(service: S, handlers: Handlers<S, P>, messageBytesMax?: number): this {
    for (const bound of bind<S, P>(service, handlers))
      this.#methods.set(bound.method.path, messageBytesMax === undefined ? bound : { ...bound, messageBytesMax });
    return this;
  }

  /** One method by itself, its handler's types unchecked: for services that are tables. */
  addMethod(method: Method<unknown, unknown>, handler: AnyHandler<P>, refusalOf?: RefusalOf): this {
    this.#methods.set(method.path, { method, handler, refusalOf });
    return this;
  }

  get paths(): readonly string[] {
    return [...this.#methods.keys()];
  }

  /** A stream whose request headers have come. `ended`: there is nothing after them. Handles it from here on. */
  open(stream: Stream, headers: HeaderList, ended: boolean, peer?: unknown): StreamHandler {
    this.#open(stream, headers, ended, peer);
    return this;
  }

  #open(stream: Stream, headers: HeaderList, ended: boolean, peer: unknown): void {
    if (headers.method !== "POST") return this.#refuseHttp(stream, "405");
    if (!isGrpcType(headers.get("content-type"))) return this.#refuseHttp(stream, "415");
    const path = headers.path ?? "";
    const bound = this.#methods.get(path);
    if (!bound) return this.#refuse(stream, new GrpcError(grpcCode.unimplemented, `there is no method ${path}`));
    const timeout = headers.get("grpc-timeout");
    const timeoutMs = timeout === undefined ? Number.POSITIVE_INFINITY : parseTimeoutMs(timeout);
    if (timeoutMs === undefined)
      return this.#refuse(stream, new GrpcError(grpcCode.internal, "grpc-timeout cannot be read"), path);
    const of = typeof peer === "object" && peer !== null ? peer : this;
    const incoming = new Incoming<P>(this, bound, stream, { headers, timeoutMs, peer: of });
    stream.tag = incoming;
    try {
      const principal = this.#options.admit(path, headers, peer);
      if (principal instanceof Promise) incoming.admitLater(principal);
      else incoming.admitted(principal);
    } catch (error) {
      return incoming.fail(error);
    }
    if (ended) incoming.inputEnded();
  }

  onData(stream: Stream, bytes: Buffer, ended: boolean): void {
    if (stream.tag instanceof Incoming) stream.tag.data(bytes, ended);
    else stream.consume(bytes.length);
  }

  onTrailers(stream: Stream): void {
    if (stream.tag instanceof Incoming) stream.tag.inputEnded();
  }

  onWritable(stream: Stream): void {
    if (stream.tag instanceof Incoming) stream.tag.writable();
  }

  onReset(stream: Stream, _code: number): void {
    if (stream.tag instanceof Incoming) stream.tag.cancelled();
  }

  /** For `Incoming`: a call has ended. */
  ended(path: string, code: number, tookMs: number, bytesIn: number, bytesOut: number): void {
    const { ended } = this.#options;
    if (!ended) return;
    const call = this.#endedCall;
    call.path = path;
    call.code = code;
    call.tookMs = tookMs;
    call.bytesIn = bytesIn;
    call.bytesOut = bytesOut;
    ended(call);
  }

  report(path: string, error: GrpcError): void {
    if (error.code === grpcCode.internal && error.cause !== undefined) this.#options.report?.(path, error.cause);
  }

  /** Before there is a call: an answer of trailers alone. */
  #refuse(stream: Stream, thrown: unknown, path = "unknown"): void {
    const error = errorOf(thrown);
    stream.sendHeaders([...answerFields, ...statusFields(error)], true);
    this.ended(path, error.code, 0, 0, 0);
  }

  /** No gRPC at all: said in HTTP's own words. */
  #refuseHttp(stream: Stream, status: string): void {
    stream.sendHeaders([[":status", status]], true);
    this.ended("unknown", grpcCode.unknown, 0, 0, 0);
  }
}
