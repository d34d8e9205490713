/** One call from the client's side: from the request's headers to the status at its end. */
import type { Clock } from "#base/clock.ts";
import { Fault } from "#base/fault.ts";
import { errorCode, errorCodeName } from "#h2/frames/error-codes.ts";
import type { HeaderList } from "#h2/hpack/header-list.ts";
import type { Stream, StreamHandler } from "#h2/connection/stream.ts";
import { unpack } from "./compression.ts";
import { isGrpcType } from "./content-type.ts";
import { Inbox } from "./body/inbox.ts";
import { MessageReader, type Framed } from "./body/message-reader.ts";
import { codeOfHttp, grpcCode, GrpcError, statusOf } from "./status.ts";

export type ClientCallOptions = {
  readonly clock: Clock;
  readonly messageBytesMax: number;
  readonly deadlineMs: number | undefined;
  readonly signal: AbortSignal | undefined;
};

export class ClientCall implements StreamHandler {
  readonly inbox: Inbox;
  readonly #options: ClientCallOptions;
  readonly #reader: MessageReader;
  #stream: Stream | undefined;
  #encoding: string | undefined;
  #answered = false;
  #over = false;
  #wake: (() => void) | undefined;
  #cancelTimer: (() => void) | undefined;

  constructor(options: ClientCallOptions) {
    this.#options = options;
    this.#reader = new MessageReader(options.messageBytesMax);
    this.inbox = new Inbox((bytes) => {
      if (this.#stream?.isOpen) this.#stream.consume(bytes);
    });
  }

  /** The stream that the call runs on. */
  begin(stream: Stream): void {
    this.#stream = stream;
    const { clock, deadlineMs, signal } = this.#options;
    if (deadlineMs !== undefined && Number.isFinite(deadlineMs))
      this.#cancelTimer = clock.after(Math.max(0, deadlineMs), () =>
        this.#leave(new GrpcError(grpcCode.deadlineExceeded, `no answer within ${Math.round(deadlineMs)} ms`)),
      );
    if (signal?.aborted) return this.#aborted();
    signal?.addEventListener("abort", this.#aborted, { once: true });
  }

  readonly #aborted = (): void =>
    this.#leave(new GrpcError(grpcCode.cancelled, "called off", [], [], this.#options.signal?.reason));

  /** The next message; undefined when the call has ended successfully. */
  async next(): Promise<Buffer | undefined> {
    const message = await this.inbox.next();
    if (!message?.compressed) return message?.bytes;
    if (this.#encoding === "gzip") return await unpack(message.bytes, this.#options.messageBytesMax);
    throw new GrpcError(grpcCode.internal, `the server compresses with ${this.#encoding ?? "an unnamed encoding"}`);
  }

  /** False: the call is over, and the server does not read what is sent. */
  async send(framed: Buffer): Promise<boolean> {
    if (this.#over || !this.#stream?.isOpen) return false;
    if (!this.#stream.write(framed)) {
      await new Promise<void>((wake) => (this.#wake = wake));
      this.#wake = undefined;
    }
    return !this.#over;
  }

  sendLast(): void {
    if (!this.#over && this.#stream?.isOpen) this.#stream.write(Buffer.alloc(0), { end: true });
  }

  /** The reader stops early. */
  leave(): void {
    if (!this.#over) this.#leave(new GrpcError(grpcCode.cancelled, "called off"));
  }

  onHeaders(stream: Stream, headers: HeaderList, ended: boolean): void {
    if (headers.status < 200) return;
    const type = headers.get("content-type");
    if (headers.status !== 200 || !isGrpcType(type)) {
      const why = `the server answered with HTTP status ${headers.status} and ${type ?? "no content type"}`;
      return this.#leave(new GrpcError(codeOfHttp(headers.status), why));
    }
    this.#answered = true;
    this.#encoding = headers.get("grpc-encoding");
    if (ended) this.#end(statusOf(headers, pairsOf(headers)));
    else if (!stream.isOpen) this.#end(noStatus());
  }

  onData(stream: Stream, bytes: Buffer, ended: boolean): void {
    if (this.#over) return stream.consume(bytes.length);
    if (!this.#answered) return this.#leave(new GrpcError(grpcCode.internal, "data before the answer's headers"));
    try {
      this.#reader.read(bytes, this);
      this.inbox.came(bytes.length);
    } catch (error) {
      return this.#leave(error as GrpcError);
    }
    if (ended) this.#end(noStatus());
  }

  /** From the reader. */
  take(message: Framed): void {
    this.inbox.push(message);
  }

  onTrailers(_stream: Stream, trailers: HeaderList): void {
    const error = statusOf(trailers, pairsOf(trailers));
    const isCut = error === undefined && !this.#reader.isBetween;
    this.#end(isCut ? new GrpcError(grpcCode.internal, "the answer ends inside a message") : error);
  }

  onWritable(): void {
    this.#wake?.();
  }

  onReset(stream: Stream, code: number): void {
    this.#end(resetError(stream, code));
  }

  #leave(error: GrpcError): void {
    if (this.#over) return;
    if (this.#stream?.isOpen) this.#stream.reset(errorCode.cancel);
    this.#end(error);
  }

  #end(error: Error | undefined): void {
    if (this.#over) return;
    this.#over = true;
    this.#cancelTimer?.();
    this.#options.signal?.removeEventListener("abort", this.#aborted);
    if (error) this.inbox.fail(error);
    else this.inbox.end();
    this.#wake?.();
  }
}

const noStatus = (): GrpcError => new GrpcError(grpcCode.unknown, "the answer ended without a status");

const pairsOf = (list: HeaderList): readonly (readonly [string, string])[] =>
  list.fields.map(({ name, value }) => [name, value] as const);

/** A stream that the server never handled may be tried elsewhere; for any other the progress is unknown. */
function resetError(stream: Stream, code: number): GrpcError {
  const why = `the stream was reset: ${errorCodeName(code)}`;
  if (code === errorCode.refusedStream)
    return new GrpcError(grpcCode.unavailable, why, [], [], new Fault("unavailable", "call", { why: "refused" }));
  if (stream.lost) return new GrpcError(grpcCode.unavailable, "the connection was lost");
  if (code === errorCode.cancel) return new GrpcError(grpcCode.cancelled, why);
  if (code === errorCode.enhanceYourCalm) return new GrpcError(grpcCode.resourceExhausted, why);
  if (code === errorCode.inadequateSecurity) return new GrpcError(grpcCode.permissionDenied, why);
  return new GrpcError(grpcCode.internal, why);
}

/** Whether the server surely did nothing: it refused the stream before handling it, or was not reached. */
export const wasNotBegun = (error: unknown): boolean =>
  error instanceof GrpcError && error.cause instanceof Fault && error.cause.code === "unavailable";
