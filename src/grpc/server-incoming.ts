/** One call on its way through the server: from the request's headers to the answer's trailers. */
import { afterAwake, type Clock } from "#base/clock.ts";
import type { HeaderList } from "#h2/hpack/header-list.ts";
import { errorCode } from "#h2/frames/error-codes.ts";
import type { Stream, WriteOptions } from "#h2/connection/stream.ts";
import { answerFields, okHeaders, okTrailers } from "./answer-headers.ts";
import { HeldBodies, type BodyMemory } from "./body/body-memory.ts";
import { giveBody, takeBody } from "./body/body-pool.ts";
import { gzipBytesMin, pack, packsFor } from "./compression.ts";
import { Inbox } from "./body/inbox.ts";
import { PartInbox } from "./body/part-inbox.ts";
import { MessageReader, prefixBytes, type Framed } from "./body/message-reader.ts";
import { EarlyBytes } from "./body/early-bytes.ts";
import { frame, frameBriefly, frameBytes, LaidMessage, LentMessage, OnlyMessage } from "./outgoing.ts";
import { ServerCall } from "./server-call.ts";
import { decodeRequest, readRequest, requestsOf } from "./server-requests.ts";
import type { BoundMethod } from "./service.ts";
import { errorOf, grpcCode, GrpcError, statusFields } from "./status.ts";

/** What a call needs from its server. */
export type CallOwner = {
  readonly clock: Clock;
  readonly messageBytesMax: number;
  readonly bodies: BodyMemory;
  ended(path: string, code: number, tookMs: number, bytesIn: number, bytesOut: number): void;
  report(path: string, error: GrpcError): void;
};

const none = Buffer.alloc(0);
const headroom: WriteOptions = { headroom: true };

/** Created once: nearly every upload ends with an empty inbox and no reader. */
const callIsOver = new GrpcError(grpcCode.cancelled, "the call is over");

export class Incoming<P> {
  readonly #server: CallOwner;
  readonly #bound: BoundMethod<P>;
  readonly #stream: Stream;
  readonly #headers: HeaderList;
  readonly #beganMono: number;
  readonly #deadlineMono: number;
  readonly #reader: MessageReader;
  #call: ServerCall<P> | undefined;
  /** The one message of a unary call; for others, the messages that were not requested yet. */
  #only: Framed | undefined;
  #inbox: Inbox | PartInbox | undefined;
  /** What arrived before the caller was authenticated. */
  #early: EarlyBytes | undefined;
  #inputEnded = false;
  #running = false;
  #over = false;
  #headersSent = false;
  #cancelTimer: (() => void) | undefined;
  #wake: (() => void) | undefined;
  /** The connection that incomplete messages are counted for; few calls have any. */
  readonly #peer: object;
  #held: HeldBodies | undefined;
  #bytesIn = 0;
  #bytesOut = 0;

  constructor(
    server: CallOwner,
    bound: BoundMethod<P>,
    stream: Stream,
    { headers, timeoutMs, peer }: { headers: HeaderList; timeoutMs: number; peer: object },
  ) {
    this.#server = server;
    this.#bound = bound;
    this.#stream = stream;
    this.#headers = headers;
    this.#beganMono = server.clock.monotonicMs();
    this.#deadlineMono = this.#beganMono + timeoutMs;
    this.#peer = peer;
    this.#reader = new MessageReader(bound.messageBytesMax ?? server.messageBytesMax, this);
    const { streams, request } = bound.method;
    if (streams !== "client" && streams !== "both") return;
    const consume = (bytes: number): void => this.#consume(bytes);
    if (request.inParts) this.#inbox = new PartInbox(request.inParts, consume);
    else this.#inbox = new Inbox(consume);
  }

  /** The caller is authenticated: from here on there is a call. */
  admitted(caller: P): void {
    if (this.#over) return;
    this.#call = new ServerCall(this.#bound.method.path, this.#headers, caller, this.#deadlineMono);
    if (this.#inbox) this.#run();
    else if (this.#inputEnded) this.#begin();
    const early = this.#early;
    this.#early = undefined;
    if (early) this.data(early.bytes, early.hasEnded);
  }

  admitLater(caller: Promise<P>): void {
    this.#armDeadline();
    caller.then(
      (known) => this.admitted(known),
      (error: unknown) => this.fail(error),
    );
  }

  data(bytes: Buffer, ended: boolean): void {
    if (!this.#call && !this.#over) return (this.#early ??= new EarlyBytes()).add(bytes, ended);
    this.#bytesIn += bytes.length;
    if (this.#over) return this.#consume(bytes.length);
    try {
      this.#reader.read(bytes, this.#inbox instanceof PartInbox ? this.#inbox : this);
    } catch (error) {
      return this.fail(error);
    }
    // A single message is limited by its size; for a stream of them the window opens as they are requested.
    if (this.#inbox) {
      // Messages that wait to be requested are limited by the window.
      if (this.#held && this.#reader.isBetween) this.#release();
      this.#inbox.came(bytes.length);
    } else this.#consume(bytes.length);
    if (ended) this.inputEnded();
  }

  /** From the reader. */
  take(message: Framed): void {
    if (this.#inbox instanceof Inbox) return this.#inbox.push(message);
    if (this.#only) throw new GrpcError(grpcCode.internal, "a call that takes one message got more");
    this.#only = message;
  }

  inputEnded(): void {
    if (this.#inputEnded || this.#over) return;
    if (this.#early) return this.#early.add(none, true);
    this.#inputEnded = true;
    this.#held?.whole();
    if (!this.#reader.isBetween)
      return this.fail(new GrpcError(grpcCode.internal, "the request ends inside a message"));
    this.#inbox?.end();
    if (!this.#inbox && this.#call) this.#begin();
  }

  /** The stream accepts more data again. */
  writable(): void {
    this.#wake?.();
  }

  /** The caller or the connection is gone: an answer cannot be delivered. */
  cancelled(): void {
    if (this.#over) return;
    this.#end(grpcCode.cancelled);
    this.#stop(new GrpcError(grpcCode.cancelled, "the caller has gone"));
  }

  fail(thrown: unknown): void {
    if (this.#over) return;
    const error = errorOf(thrown);
    this.#server.report(this.#bound.method.path, error);
    const fields = [...statusFields(error), ...(this.#call?.trailerFields ?? [])];
    if (this.#headersSent) this.#stream.sendTrailers(fields);
    else this.#stream.sendHeaders([...answerFields, ...(this.#call?.responseFields ?? []), ...fields], true);
    this.#end(error.code);
    this.#stop(error);
    this.#sayEnough();
  }

  /** The handler, or the stream it returned, has thrown. */
  #refuse(thrown: unknown): void {
    if (!this.#over) this.fail(this.#bound.refusalOf ? this.#bound.refusalOf(thrown) : thrown);
  }

  /** The rest of the request is not needed. A reset would also drop what is still to be sent. */
  #sayEnough(): void {
    if (!this.#inputEnded && this.#stream.isOpen && this.#stream.unsentBytes === 0)
      this.#stream.reset(errorCode.noError);
  }

  #stop(why: GrpcError): void {
    this.#call?.cancel(why);
    this.#inbox?.fail(why);
    this.#wake?.();
  }

  #end(code: number): void {
    this.#over = true;
    this.#early = undefined;
    this.#cancelTimer?.();
    this.#release();
    this.#inbox?.fail(callIsOver);
    const tookMs = this.#server.clock.monotonicMs() - this.#beganMono;
    this.#server.ended(this.#bound.method.path, code, tookMs, this.#bytesIn, this.#bytesOut);
  }

  /** From the reader: a message begins that arrives in several pieces. */
  hold(bytes: number): void {
    const { bodies, clock } = this.#server;
    this.#held ??= new HeldBodies(bodies, this.#peer, clock, (why) => this.fail(why));
    this.#held.take(bytes);
  }

  #release(): void {
    this.#held?.give();
    this.#held = undefined;
  }

  #consume(bytes: number): void {
    if (this.#stream.isOpen) this.#stream.consume(bytes);
  }

  #armDeadline(): void {
    if (this.#cancelTimer || this.#deadlineMono === Number.POSITIVE_INFINITY || this.#over) return;
    const leftMs = Math.max(0, this.#deadlineMono - this.#server.clock.monotonicMs());
    // Time awake is enough: a machine that slept has lost its callers anyway, and every call pays for this timer.
    this.#cancelTimer = afterAwake(this.#server.clock, leftMs, () =>
      this.fail(new GrpcError(grpcCode.deadlineExceeded, "the caller's deadline has passed")),
    );
  }

  /** A call with one request, which has arrived completely. */
  #begin(): void {
    const message = this.#only;
    if (this.#running || !this.#call) return;
    if (!message) return this.fail(new GrpcError(grpcCode.internal, "the request ended without a message"));
    if (this.#deadlineMono <= this.#beganMono) return this.fail(new GrpcError(grpcCode.deadlineExceeded, "too late"));
    this.#only = undefined;
    if (message.compressed) return this.#run(message);
    this.#running = true;
    try {
      const answer = this.#bound.handler(decodeRequest(this.#bound.method.request, message.bytes), this.#call);
      if (answer instanceof OnlyMessage) return this.#answer(answer.message);
      if (this.#bound.method.streams === "server") return this.#answerAll(answer as AsyncIterable<unknown>);
      if (!(answer instanceof Promise)) return this.#answer(answer);
      this.#armDeadline();
      answer.then(
        (later: unknown) => this.#answer(later),
        (error: unknown) => this.#refuse(error),
      );
    } catch (error) {
      this.#refuse(error);
    } finally {
      if (this.#bound.method.request.isBrief) giveBody(message.bytes);
    }
  }

  /** The whole answer in one write, if it is small and nothing was sent before. */
  #answer(message: unknown): void {
    if (this.#over) return;
    const { response } = this.#bound.method;
    const call = this.#call as ServerCall<P>;
    try {
      if (call.responseFields || call.trailerFields || packsFor(this.#headers)) return void this.#answerLong(message);
      const framed = frameBriefly(response, message);
      this.#bytesOut = framed.length;
      const stream = this.#stream;
      const at = stream.beginUnary(okHeaders, framed.length);
      if (at >= 0) {
        framed.copy(stream.outputBuffer, at);
        stream.endUnary(okTrailers);
      } else {
        stream.sendHeaders(okHeaders);
        const bytes = takeBody(framed.length);
        framed.copy(bytes);
        stream.write(bytes, { release: () => giveBody(bytes) });
        stream.sendTrailers(okTrailers);
      }
      this.#end(grpcCode.ok);
    } catch (error) {
      this.#refuse(error);
    }
  }

  async #answerLong(message: unknown): Promise<void> {
    try {
      await this.#send(message);
      this.#finish();
    } catch (error) {
      this.#refuse(error);
    }
  }

  /** Everything except one message in and one out at once. */
  #run(packed?: Framed): void {
    if (this.#running) return;
    this.#running = true;
    this.#armDeadline();
    this.#work(packed).then(
      () => this.#finish(),
      (error: unknown) => this.#refuse(error),
    );
  }

  #answerAll(answers: AsyncIterable<unknown>): void {
    this.#armDeadline();
    this.#sendAll(answers).then(
      () => this.#finish(),
      (error: unknown) => this.#refuse(error),
    );
  }

  async #sendAll(answers: AsyncIterable<unknown>): Promise<void> {
    for await (const message of answers) {
      await this.#send(message);
      if (this.#over) return;
    }
  }

  async #work(packed: Framed | undefined): Promise<void> {
    const call = this.#call as ServerCall<P>;
    const { method, handler } = this.#bound;
    const messageBytesMax = this.#bound.messageBytesMax ?? this.#server.messageBytesMax;
    const input = packed
      ? await readRequest(method.request, packed, call, messageBytesMax)
      : requestsOf(method.request, this.#inbox as Inbox | PartInbox, call, messageBytesMax);
    const answer = handler(input, call);
    if (method.streams === "none" || method.streams === "client") return await this.#send(await answer);
    if (answer instanceof OnlyMessage) return await this.#send(answer.message);
    await this.#sendAll(answer as AsyncIterable<unknown>);
  }

  async #send(message: unknown): Promise<void> {
    const isBulk = message instanceof LaidMessage || message instanceof LentMessage;
    if (isBulk && !packsFor(this.#headers))
      return await (message instanceof LaidMessage ? this.#lay(message) : this.#lend(message));
    let framed = isBulk ? message.whole() : frame(this.#bound.method.response, message);
    if (message instanceof LaidMessage) message.release?.();
    if (packsFor(this.#headers) && framed.length >= gzipBytesMin)
      framed = frameBytes(await pack(framed.subarray(prefixBytes)), true);
    if (this.#over) return;
    this.#sendHeaders();
    this.#bytesOut += framed.length;
    if (!this.#stream.write(framed)) await this.#room();
  }

  async #room(): Promise<void> {
    await new Promise<void>((wake) => (this.#wake = wake));
    this.#wake = undefined;
  }

  async #lay(message: LaidMessage): Promise<void> {
    const { more, release } = message;
    if (this.#over) return release?.();
    this.#sendHeaders();
    const stream = this.#stream;
    const first = message.framed();
    this.#bytesOut += first.length;
    const options = release ? { headroom: true, release } : headroom;
    let isWritable = stream.write(first, more.length === 0 ? options : headroom);
    for (let i = 0; i < more.length; i += 1) {
      const piece = more[i] as Buffer;
      this.#bytesOut += piece.length;
      isWritable = stream.write(piece, i === more.length - 1 ? options : headroom);
    }
    if (!isWritable) await this.#room();
  }

  /** Waits until the memory belongs to its owner again. */
  async #lend(message: LentMessage): Promise<void> {
    if (this.#over) return;
    this.#sendHeaders();
    const beginning = message.beginning();
    this.#bytesOut += beginning.length + message.data.length;
    this.#stream.write(beginning);
    await new Promise<void>((release) => this.#stream.write(message.data, { release }));
  }

  #sendHeaders(): void {
    if (this.#headersSent) return;
    this.#headersSent = true;
    const more: [string, string][] = packsFor(this.#headers) ? [["grpc-encoding", "gzip"]] : [];
    const { responseFields } = this.#call as ServerCall<P>;
    this.#stream.sendHeaders(
      responseFields || more.length > 0 ? [...answerFields, ...more, ...(responseFields ?? [])] : okHeaders,
    );
  }

  #finish(): void {
    if (this.#over) return;
    this.#sendHeaders();
    const { trailerFields } = this.#call as ServerCall<P>;
    this.#stream.sendTrailers(trailerFields ? [["grpc-status", "0"], ...trailerFields] : okTrailers);
    this.#end(grpcCode.ok);
    this.#sayEnough();
  }
}
