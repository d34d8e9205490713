/**
 * Calls to one server over one connection, opened when the first call needs it and again when it is lost. Calls that
 * were in progress then end with UNAVAILABLE: whether to retry is the caller's decision.
 */
import type { Clock } from "#base/clock.ts";
import { Fault, isFault } from "#base/fault.ts";
import { ConstantHeaders, type OutgoingHeaders } from "#h2/hpack/hpack-encoder.ts";
import type { H2Socket } from "#h2/socket.ts";
import { decode, type Method } from "#wire/message.ts";
import { ClientCall } from "./client-call.ts";
import { encodingsTaken } from "./compression.ts";
import { metadataFields, type Metadata } from "./metadata.ts";
import { frame } from "./outgoing.ts";
import { grpcCode, GrpcError } from "./status.ts";
import { formatTimeout } from "./timeout.ts";

export type GrpcClientOptions = {
  readonly clock: Clock;
  /** Opens a connection. */
  readonly connect: () => Promise<H2Socket>;
  readonly authority: string;
  readonly scheme?: "http" | "https";
  /** Sent with every call, such as a bearer token; a function returns the same value until it changes. */
  readonly metadata?: Metadata | (() => Metadata);
  readonly userAgent?: string;
  readonly messageBytesMax?: number;
};

export type CallOptions = {
  readonly deadlineMs?: number;
  readonly signal?: AbortSignal;
  readonly metadata?: Metadata;
};

const noMetadata: Metadata = [];
const messageBytesMaxDefault = 64 * 1024 * 1024;

export class GrpcClient {
  readonly #options: GrpcClientOptions;
  readonly #constant = new Map<string, ConstantHeaders>();
  #lastMetadata: Metadata = noMetadata;
  #socket: H2Socket | undefined;
  #connecting: Promise<H2Socket> | undefined;
  #closed = false;

  constructor(options: GrpcClientOptions) {
    this.#options = options;
  }

  async unary<Q, R>(method: Method<Q, R>, request: Q, options: CallOptions = {}): Promise<R> {
    const call = await this.#begin(method, frame(method.request, request), options);
    return await this.#only(method, call);
  }

  async *serverStream<Q, R>(method: Method<Q, R>, request: Q, options: CallOptions = {}): AsyncGenerator<R> {
    const call = await this.#begin(method, frame(method.request, request), options);
    yield* this.#answers(method, call);
  }

  async clientStream<Q, R>(method: Method<Q, R>, requests: AsyncIterable<Q>, options: CallOptions = {}): Promise<R> {
    const call = await this.#begin(method, undefined, options);
    this.#sendAll(method, requests, call);
    return await this.#only(method, call);
  }

  async *duplex<Q, R>(method: Method<Q, R>, requests: AsyncIterable<Q>, options: CallOptions = {}): AsyncGenerator<R> {
    const call = await this.#begin(method, undefined, options);
    this.#sendAll(method, requests, call);
    yield* this.#answers(method, call);
  }

  /** Closes the connection; calls in progress are cancelled. */
  close(): void {
    this.#closed = true;
    this.#socket?.close();
    this.#socket = undefined;
  }

  async #begin<Q, R>(method: Method<Q, R>, only: Buffer | undefined, options: CallOptions): Promise<ClientCall> {
    const { clock, messageBytesMax = messageBytesMaxDefault } = this.#options;
    const { deadlineMs, signal } = options;
    const begunMono = clock.monotonicMs();
    const socket = this.#live() ?? (await this.#connected(deadlineMs, signal));
    const leftMs = deadlineMs === undefined ? undefined : deadlineMs - (clock.monotonicMs() - begunMono);
    const call = new ClientCall({ clock, messageBytesMax, deadlineMs: leftMs, signal });
    try {
      const stream = socket.request(this.#headers(method.path, leftMs, options.metadata), call);
      call.begin(stream);
      if (only) stream.write(only, { end: true });
    } catch (error) {
      throw isFault(error) ? new GrpcError(grpcCode.unavailable, error.message, [], [], error) : error;
    }
    return call;
  }

  #live(): H2Socket | undefined {
    return this.#socket?.connection.takesRequests === true ? this.#socket : undefined;
  }

  async #connected(deadlineMs: number | undefined, signal: AbortSignal | undefined): Promise<H2Socket> {
    signal?.throwIfAborted();
    if (this.#closed) throw new GrpcError(grpcCode.cancelled, "the client has been closed");
    this.#connecting ??= this.#connect().finally(() => (this.#connecting = undefined));
    const late = Promise.withResolvers<never>();
    const cancel =
      deadlineMs === undefined
        ? () => {}
        : this.#options.clock.after(deadlineMs, () =>
            late.reject(new GrpcError(grpcCode.deadlineExceeded, "no connection in time", [], [], notReached())),
          );
    const aborted = (): void => late.reject(signal?.reason as Error);
    signal?.addEventListener("abort", aborted, { once: true });
    try {
      return await Promise.race([this.#connecting, late.promise]);
    } catch (error) {
      throw isFault(error) ? new GrpcError(grpcCode.unavailable, error.message, [], [], notReached(error)) : error;
    } finally {
      cancel();
      signal?.removeEventListener("abort", aborted);
    }
  }

  async #connect(): Promise<H2Socket> {
    const socket = await this.#options.connect();
    if (this.#closed) {
      socket.close();
      throw new GrpcError(grpcCode.cancelled, "the client has been closed");
    }
    this.#socket = socket;
    return socket;
  }

  #headers(path: string, leftMs: number | undefined, metadata: Metadata | undefined): OutgoingHeaders {
    const { metadata: given = noMetadata } = this.#options;
    const current = typeof given === "function" ? given() : given;
    if (current !== this.#lastMetadata) this.#constant.clear();
    this.#lastMetadata = current;
    if (leftMs === undefined && metadata === undefined) {
      let constant = this.#constant.get(path);
      if (!constant) this.#constant.set(path, (constant = new ConstantHeaders(this.#fields(path))));
      return constant;
    }
    const fields = this.#fields(path);
    if (leftMs !== undefined && Number.isFinite(leftMs)) fields.push(["grpc-timeout", formatTimeout(leftMs)]);
    if (metadata) fields.push(...metadataFields(metadata));
    return fields;
  }

  #fields(path: string): [string, string][] {
    const { authority, scheme = "http", userAgent = "millrace" } = this.#options;
    return [
      [":method", "POST"],
      [":scheme", scheme],
      [":path", path],
      [":authority", authority],
      ["te", "trailers"],
      ["content-type", "application/grpc"],
      ["grpc-accept-encoding", encodingsTaken],
      ["user-agent", userAgent],
      ...metadataFields(this.#lastMetadata),
    ];
  }

  async #only<Q, R>(method: Method<Q, R>, call: ClientCall): Promise<R> {
    const bytes = await call.next();
    if (bytes === undefined) throw new GrpcError(grpcCode.internal, "the answer has no message");
    const more = await call.next();
    if (more !== undefined) {
      call.leave();
      throw new GrpcError(grpcCode.internal, "the answer has more than one message");
    }
    return decode(method.response, bytes);
  }

  async *#answers<Q, R>(method: Method<Q, R>, call: ClientCall): AsyncGenerator<R> {
    try {
      for (let bytes = await call.next(); bytes !== undefined; bytes = await call.next())
        yield decode(method.response, bytes);
    } finally {
      call.leave();
    }
  }

  #sendAll<Q, R>(method: Method<Q, R>, requests: AsyncIterable<Q>, call: ClientCall): void {
    const send = async (): Promise<void> => {
      for await (const request of requests) if (!(await call.send(frame(method.request, request)))) return;
      call.sendLast();
    };
    // The caller's requests failed: the call cannot continue, and its reader gets the error.
    send().catch((error: unknown) => {
      call.inbox.fail(error instanceof Error ? error : new Error(String(error)));
      call.leave();
    });
  }
}

const notReached = (cause?: unknown): Fault => new Fault("unavailable", "connect", {}, cause);
