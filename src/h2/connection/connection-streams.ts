/**
 * The streams of a connection: how they begin, what goes through them in both directions, and how they end. The
 * connection as a whole (its settings, GOAWAY, its end) is handled elsewhere.
 */
import { assert } from "#base/assert.ts";
import type { ConnectionHandler } from "./connection-handler.ts";
import { ConnectionError, errorCode, type ErrorCode } from "#h2/frames/error-codes.ts";
import { frameType, windowBytesDefault } from "#h2/frames/frame.ts";
import type { FloodGuard } from "./flood-guard.ts";
import type { HeaderList } from "#h2/hpack/header-list.ts";
import { ConstantHeaders, type OutgoingHeaders } from "#h2/hpack/hpack-encoder.ts";
import type { H2Limits } from "./limits.ts";
import { ReceiveWindow } from "./receive-window.ts";
import { hasSomething, Sender, type SenderOwner } from "./sender.ts";
import { phase, Stream, type StreamHandler, type StreamOwner, type WriteOptions } from "./stream.ts";
import { StreamCalls } from "./stream-calls.ts";
import { StreamTable } from "./stream-table.ts";
import { WaitingRequests } from "./waiting-requests.ts";
import type { Watch } from "./watch.ts";

/** What the streams need from their connection. */
export type StreamsOwner = {
  readonly limits: H2Limits;
  readonly isServer: boolean;
  readonly nowMs: number;
  readonly closed: boolean;
  readonly draining: boolean;
  readonly takesRequests: boolean;
  /** This many bytes of the connection's window are free again. */
  giveBack(bytes: number): void;
  /** Output was added. */
  wroteSomething(): void;
  /** A stream has closed: the connection may have waited for it to end. */
  streamClosed(): void;
};

/** How many streams a client opens before it knows the server's limit. */
const streamsBeforeSettings = 100;

/** Until a handler is known, and for refused requests. */
const ignoreAll: StreamHandler = { onData() {}, onReset() {} };

export class ConnectionStreams implements StreamOwner, SenderOwner {
  readonly table: StreamTable;
  readonly sender: Sender;
  readonly #owner: StreamsOwner;
  readonly #limits: H2Limits;
  readonly #isServer: boolean;
  readonly #handler: ConnectionHandler;
  readonly #guard: FloodGuard;
  readonly #watch: Watch;
  readonly #calls = new StreamCalls((stream, error) => this.#handlerFailed(stream, error));
  readonly #waiting: WaitingRequests;
  /** How many streams the peer allows us. */
  openMax = streamsBeforeSettings;
  /** The initial windows of a new stream, for sending and receiving. */
  #sendWindowBytes = windowBytesDefault;
  #receiveWindowBytes: number;

  constructor(owner: StreamsOwner, handler: ConnectionHandler, guard: FloodGuard, watch: Watch) {
    this.#owner = owner;
    this.#limits = owner.limits;
    this.#isServer = owner.isServer;
    this.#handler = handler;
    this.#guard = guard;
    this.#watch = watch;
    this.table = new StreamTable(owner.limits);
    this.sender = new Sender(owner.limits, this);
    this.#waiting = new WaitingRequests(owner.limits.streamsWaitingMax);
    // Until the peer has acknowledged our setting, it may still use the default.
    this.#receiveWindowBytes = Math.max(owner.limits.streamWindowBytes, windowBytesDefault);
  }

  // ---- called by the connection

  /** No stream is open or waiting to be opened. */
  get noneLeft(): boolean {
    return this.table.open.size === 0 && this.#waiting.count === 0;
  }

  /** Opens a stream, at once or as soon as the peer allows another. */
  request(headers: OutgoingHeaders, handler: StreamHandler, end: boolean): Stream {
    const stream = new Stream(0, this, handler, this.#sendWindowBytes, this.#newWindow());
    stream.headOnly = methodOf(headers) === "HEAD";
    if (this.#mayOpen()) this.#open(stream, headers, end);
    else {
      this.#waiting.add({ stream, headers, end });
      stream.local = end ? phase.ended : phase.open;
    }
    return stream;
  }

  #mayOpen(): boolean {
    return this.table.open.size < this.openMax;
  }

  #open(stream: Stream, headers: OutgoingHeaders, end: boolean): void {
    this.table.lastOwnId += this.table.lastOwnId === 0 ? 1 : 2;
    stream.id = this.table.lastOwnId;
    stream.sendWindow = this.#sendWindowBytes;
    this.table.open.set(stream.id, stream);
    this.#watch.busy();
    stream.local = phase.open;
    this.sender.layHeaders(stream.id, headers, end);
    if (end) {
      stream.local = phase.ended;
      return;
    }
    this.sender.opened(stream);
  }

  openWaiting(): void {
    while (this.#waiting.count > 0 && this.#owner.takesRequests && this.#mayOpen()) {
      const waited = this.#waiting.next();
      if (waited !== undefined) this.#open(waited.stream, waited.headers, waited.end);
    }
  }

  /** The peer's setting for the initial send window of streams. */
  changeInitialWindow(size: number): void {
    const change = size - this.#sendWindowBytes;
    this.#sendWindowBytes = size;
    for (const stream of this.table.open.values())
      if (!this.sender.widenStream(stream, change))
        throw new ConnectionError(errorCode.flowControlError, "an initial window that makes a stream's too large");
  }

  /** The peer has acknowledged our settings: it uses our window size. */
  settingsAcked(): void {
    this.#receiveWindowBytes = this.#limits.streamWindowBytes;
  }

  /** Resets streams that have data for a peer that opens no window. */
  resetStalled(): void {
    for (const stream of this.table.open.values()) {
      const stalled = hasSomething(stream) && (stream.sendWindow <= 0 || this.sender.window <= 0);
      if (!stalled) stream.stalledSinceMs = -1;
      else if (stream.stalledSinceMs < 0) stream.stalledSinceMs = this.#owner.nowMs;
      else if (this.#owner.nowMs - stream.stalledSinceMs >= this.#limits.sendStallMs) {
        this.#layReset(stream.id, errorCode.enhanceYourCalm);
        this.#closeStream(stream, errorCode.enhanceYourCalm);
      }
    }
  }

  stopOverdue(nowMs: number): void {
    for (const id of this.table.late.overdue(nowMs)) this.stopLate(id);
  }

  /** Client: the peer has not processed streams above this one, and accepts no more. */
  refuseAbove(lastId: number): void {
    for (const stream of this.table.open.values())
      if (stream.id > lastId) {
        this.#closeStream(stream, errorCode.refusedStream);
      }
    this.#refuseWaiting();
  }

  /** The connection has ended, and every stream with it. */
  loseAll(code: number): void {
    this.#refuseWaiting();
    for (const stream of this.table.open.values()) {
      stream.lost = true;
      this.#closeStream(stream, code);
    }
  }

  #refuseWaiting(): void {
    for (let waited = this.#waiting.next(); waited !== undefined; waited = this.#waiting.next()) {
      this.#closeStream(waited.stream, errorCode.refusedStream);
    }
  }

  // ---- called by streams

  get outputBuffer(): Buffer {
    return this.sender.output.buffer;
  }

  sendHeaders(stream: Stream, headers: OutgoingHeaders, end: boolean): void {
    if (stream.closed) return;
    this.sender.sendHeaders(stream, headers, end);
    this.#owner.wroteSomething();
  }

  sendTrailers(stream: Stream, trailers: OutgoingHeaders): void {
    if (stream.closed) return;
    this.sender.sendTrailers(stream, trailers);
    this.#owner.wroteSomething();
  }

  write(stream: Stream, bytes: Uint8Array, options: WriteOptions): boolean {
    if (stream.closed) {
      options.release?.();
      return true;
    }
    const room = this.sender.write(stream, bytes, options);
    this.#owner.wroteSomething();
    return room;
  }

  beginUnary(stream: Stream, headers: OutgoingHeaders, bodyBytes: number): number {
    return stream.closed ? -1 : this.sender.beginUnary(stream, headers, bodyBytes);
  }

  endUnary(stream: Stream, trailers: OutgoingHeaders): void {
    this.sender.endUnary(stream, trailers);
    this.#owner.wroteSomething();
  }

  consume(stream: Stream, bytes: number): void {
    if (stream.closed) return; // all of it was returned when the stream closed (R3)
    assert(bytes <= stream.unconsumed, "no more is consumed than was received");
    stream.unconsumed -= bytes;
    this.#owner.giveBack(bytes);
    if (stream.remote === phase.ended) return;
    const increment = stream.receiveWindow.consume(bytes, this.#owner.nowMs, this.#limits);
    if (increment > 0) this.sender.layNumber(frameType.windowUpdate, stream.id, increment);
    this.#owner.wroteSomething();
  }

  resetByUs(stream: Stream, code: number): void {
    if (stream.closed) return;
    if (stream.id !== 0) this.#layReset(stream.id, code);
    this.#closeStream(stream);
    this.#owner.wroteSomething();
  }

  // ---- called by the sender

  localEnded(stream: Stream): void {
    if (stream.remote === phase.ended) this.#closeStream(stream);
    else if (this.#isServer) {
      // The answer is complete, and the rest of the request will not be read.
      const { id, bodyBytesLeft } = stream;
      if (this.#owner.draining || !this.table.late.add(id, bodyBytesLeft, this.#owner.nowMs)) this.stopLate(id);
      this.#closeStream(stream);
    }
  }

  writableAgain(stream: Stream): void {
    this.#calls.writable(stream);
  }

  // ---- called by the receiver

  /** Server: a well-formed request. */
  requestCame(id: number, headers: HeaderList, ended: boolean): void {
    if (this.table.open.size >= this.#limits.streamsMax) return this.streamFailed(id, errorCode.refusedStream);
    const stream = new Stream(id, this, ignoreAll, this.#sendWindowBytes, this.#newWindow());
    stream.remote = ended ? phase.ended : phase.open;
    stream.bodyBytesLeft = headers.contentLength;
    this.table.open.set(id, stream);
    this.#watch.busy();
    try {
      const handler = this.#handler.onRequest?.(stream, headers, ended);
      if (handler !== undefined) stream.handler = handler;
    } catch (error) {
      this.#handlerFailed(stream, error);
    }
  }

  responseCame(stream: Stream, headers: HeaderList, ended: boolean): void {
    this.#calls.headers(stream, headers, ended);
    if (ended) this.#remoteEnded(stream);
  }

  trailersCame(stream: Stream, trailers: HeaderList): void {
    this.#calls.trailers(stream, trailers);
    this.#remoteEnded(stream);
  }

  dataCame(stream: Stream, bytes: Buffer, ended: boolean): void {
    this.#calls.data(stream, bytes, ended);
    if (ended) this.#remoteEnded(stream);
  }

  #remoteEnded(stream: Stream): void {
    if (!stream.closed && stream.local === phase.ended) this.#closeStream(stream);
  }

  resetCame(stream: Stream, code: number): void {
    const complete = !this.#isServer && stream.remote === phase.ended && code === errorCode.noError;
    this.#closeStream(stream, complete ? undefined : code);
  }

  /** Stops the rest of a request that was answered: RST_STREAM without error. */
  stopLate(id: number): void {
    this.#layReset(id, errorCode.noError);
  }

  /** A stream error: RST_STREAM, and the handler is told. */
  streamFailed(id: number, code: ErrorCode): void {
    this.#guard.count("provokedResets", this.#owner.nowMs);
    this.#layReset(id, code);
    this.table.late.drop(id);
    const stream = this.table.open.get(id);
    if (stream === undefined) return;
    this.#closeStream(stream, code);
  }

  // ---- private

  #newWindow(): ReceiveWindow {
    return new ReceiveWindow(this.#receiveWindowBytes, this.#limits.streamWindowBytesMax, this.#owner.nowMs);
  }

  #layReset(id: number, code: number): void {
    this.sender.layNumber(frameType.rstStream, id, code);
    this.table.resetByUs.add(id);
  }

  /** With a code, its handler gets the reset first, before any other consequence of its end. */
  #closeStream(stream: Stream, resetCode?: number): void {
    stream.closed = true;
    if (stream.id === 0) this.#waiting.remove(stream);
    else if (this.table.open.delete(stream.id)) this.table.ended.addWith(stream.id, stream.sendWindow);
    this.sender.drop(stream);
    const { unconsumed } = stream;
    stream.unconsumed = 0;
    if (resetCode !== undefined) this.#calls.reset(stream, resetCode);
    if (this.#owner.closed) return;
    this.#owner.giveBack(unconsumed);
    if (this.table.open.size === 0) this.#watch.idle(this.#owner.nowMs);
    if (!this.#isServer) this.openWaiting();
    this.#owner.streamClosed();
  }

  #handlerFailed(stream: Stream, error: unknown): void {
    if (!stream.closed) {
      this.#layReset(stream.id, errorCode.internalError);
      this.#closeStream(stream, errorCode.internalError);
    }
    this.#handler.onHandlerFailed?.(error, stream);
  }
}

function methodOf(headers: OutgoingHeaders): string | undefined {
  if (headers instanceof ConstantHeaders) return headers.fields.find(({ name }) => name === ":method")?.value;
  return headers.find(([name]) => name === ":method")?.[1];
}
