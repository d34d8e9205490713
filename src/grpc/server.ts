/**
 * The server's side of gRPC over HTTP/2 streams. The owner of the port passes streams to `open`, and the server handles
 * them to their end.
 *
 * A unary call whose handler answers at once, as nearly all small calls do, is answered in the same turn of the event
 * loop in which its last byte was read: no promise, no timer, no copy except one out of the socket's memory and one
 * into the connection's output.
 *
 * Messages belong to their handler: it may keep them and their contents for as long as it likes.
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
 * A long request arrives as several, while it is received: each has the `resourceName` of the whole, a `writeOffset`
 * that continues from the one before, at most 64 KiB of `data`, and only the last has `finishWrite`. `data` is a view
 * of memory that is reused. It stays unchanged until the handler asks for the next request (the next turn of `for
 * await`), or until it ends; also when the call is cancelled in the meantime. To keep it longer, copy it. The caller
 * may send as much more as has been processed, so a handler that waits for its disk slows its caller down, and the
 * server never holds more than a window of bytes. From socket to handler every byte is copied once.
 *
 * When the caller disconnects, the deadline passes or the connection is lost, the iteration throws a GrpcError.
 *
 * **Downloads.** A handler that answers with a stream may yield, instead of messages,
 * - what `fileMessages` (file-messages.ts) makes of a range of a file: read into the memory that is sent;
 * - a `LentMessage` (outgoing.ts) around bytes that belong to another owner, such as a store that wants them back
 * before it gives more: the handler continues when they have been sent;
 * - a `LaidMessage` around memory of its own with space before it, and a callback when it is free.
 * A handler with only one small message at hand may return an `OnlyMessage` instead of a stream. None of the bulk data
 * is copied. When the caller disconnects, the handler's generator is ended where it is: its `finally` runs.
 */
import type { Clock } from "#base/clock.ts";
import type { HeaderList } from "#h2/hpack/header-list.ts";
import type { Stream, StreamHandler } from "#h2/connection/stream.ts";
import type { Method, Service } from "#wire/message.ts";
import { answerFields } from "./answer-headers.ts";
import { BodyMemory } from "./body/body-memory.ts";
import { isGrpcType } from "./content-type.ts";
import { Incoming, type CallOwner } from "./server-incoming.ts";
import { bind, type AnyHandler, type BoundMethod, type Handlers, type RefusalOf } from "./service.ts";
import { errorOf, grpcCode, GrpcError, statusFields } from "./status.ts";
import { parseTimeoutMs } from "./timeout.ts";

export type GrpcServerOptions<P> = {
  readonly clock: Clock;
  /**
   * Authenticates the caller and checks whether it may call this: throws a GrpcError if not. `peer` is what the owner
   * of the port knows of the connection.
   */
  readonly admit: (path: string, headers: HeaderList, peer: unknown) => P | Promise<P>;
  /** For one message, compressed or not. */
  readonly messageBytesMax?: number;
  /** For all incomplete messages together. */
  readonly bodyBytesMax?: number;
  /** Called when a call has ended; for metrics. */
  readonly ended?: (call: EndedCall) => void;
  /** Called with errors in our own code; for the log. */
  readonly report?: (doing: string, error: unknown) => void;
};

/** Reused for every call: callbacks must not keep it. */
export type EndedCall = {
  /** "unknown" for a method that is not served: a caller must not be able to invent labels for our metrics. */
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
  readonly #methods = new Map<string, BoundMethod<P>>();
  readonly #endedCall: EndedCall = { path: "", code: 0, tookMs: 0, bytesIn: 0, bytesOut: 0 };

  constructor(options: GrpcServerOptions<P>) {
    this.#options = options;
    this.clock = options.clock;
    this.messageBytesMax = options.messageBytesMax ?? messageBytesMaxDefault;
    this.bodies = new BodyMemory(options.bodyBytesMax ?? bodyBytesMaxDefault);
  }

  /** `messageBytesMax`: for this service's requests, if they are small. */
  add<S extends Service>(service: S, handlers: Handlers<S, P>, messageBytesMax?: number): this {
    for (const bound of bind<S, P>(service, handlers))
      this.#methods.set(bound.method.path, messageBytesMax === undefined ? bound : { ...bound, messageBytesMax });
    return this;
  }

  /** Adds one method, without checking its handler's types: for services that are tables. */
  addMethod(method: Method<unknown, unknown>, handler: AnyHandler<P>, refusalOf?: RefusalOf): this {
    this.#methods.set(method.path, { method, handler, refusalOf });
    return this;
  }

  get paths(): readonly string[] {
    return [...this.#methods.keys()];
  }

  /** Handles a stream whose request headers have arrived. `ended`: nothing follows them. */
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
      const caller = this.#options.admit(path, headers, peer);
      if (caller instanceof Promise) incoming.admitLater(caller);
      else incoming.admitted(caller);
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

  /** Not gRPC at all: answered with an HTTP status. */
  #refuseHttp(stream: Stream, status: string): void {
    stream.sendHeaders([[":status", status]], true);
    this.ended("unknown", grpcCode.unknown, 0, 0, 0);
  }
}
