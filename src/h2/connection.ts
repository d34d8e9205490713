/**
 * An HTTP/2 connection as a machine without I/O: bytes go in by `receive`, time by `tick`, frames come out in `output`,
 * and the handlers hear what happened, at once and in order. Server and client are the same machine; what differs is
 * who opens streams. Whoever owns the socket writes what `takeOutput` gives after every call, and closes the socket
 * once the machine is closed and all is written.
 *
 * C1  A handler hears of a stream exactly once that it is over: by its end, its trailers, or onReset.
 * C2  Whatever the peer does, what is held for it is bounded by the limits.
 * C3  An exception of a handler costs its stream, not the connection.
 */
import { assert } from "#base/assert.ts";
import { Fault } from "#base/fault.ts";
import { layGoaway, layGreeting, layPing, pingPurpose } from "./control-frames.ts";
import { ConnectionError, errorCode, errorCodeName, type ErrorCode } from "./error-codes.ts";
import { flag, frameType, streamIdLimit, windowBytesDefault } from "./frame.ts";
import { calm, FloodGuard } from "./flood-guard.ts";
import { FrameReader } from "./frame-reader.ts";
import type { HeaderList } from "./header-list.ts";
import { checkSendable, ConstantHeaders, type OutgoingHeaders } from "./hpack-encoder.ts";
import { h2LimitsDefault, type H2Limits } from "./limits.ts";
import type { Batch } from "./output.ts";
import type { PeerSettings } from "./peer-settings.ts";
import { Receiver, type ReceiverOwner } from "./receiver.ts";
import { ReceiveWindow } from "./receive-window.ts";
import { hasSomething, Sender, type SenderOwner } from "./sender.ts";
import { phase, Stream, type StreamHandler, type StreamOwner, type WriteOptions } from "./stream.ts";
import { StreamCalls } from "./stream-calls.ts";
import { StreamTable } from "./stream-table.ts";
import { WaitingRequests } from "./waiting-requests.ts";
import { Watch } from "./watch.ts";

export type ConnectionHandler = {
  /** Server: a request has begun; answers who handles the rest of it. */
  onRequest?(stream: Stream, headers: HeaderList, ended: boolean): StreamHandler;
  /** The peer's SETTINGS have come: it speaks HTTP/2. */
  onReady?(): void;
  /** The peer takes no new streams; those above `lastStreamId` were not touched and may be tried elsewhere. */
  onGoaway?(lastStreamId: number, code: number): void;
  /** The machine has stopped. What is in the output is still to be written. */
  onClosed?(why: ClosedWhy): void;
  onHandlerFailed?(error: unknown, stream: Stream): void;
  /** Something was laid into the output outside of `receive`, `tick` and `outputDone`, after which one looks anyway. */
  onOutput?(): void;
};

/** `by` the peer's GOAWAY or the socket's end, or by ourselves; with the `error` when it was a bug of our own. */
export type ClosedWhy = {
  readonly by: "us" | "peer";
  readonly code: number;
  readonly why: string;
  readonly error?: unknown;
};

export type ConnectionOptions = {
  readonly role: "server" | "client";
  readonly handler: ConnectionHandler;
  readonly limits?: Partial<H2Limits>;
  readonly nowMs: number;
};

/** What a client opens before it has heard how many streams the server allows. */
const streamsBeforeSettings = 100;

/** Until a handler is known, and for requests that were refused. */
const nobody: StreamHandler = { onData() {}, onReset() {} };

export class Connection implements StreamOwner, SenderOwner, ReceiverOwner {
  readonly limits: H2Limits;
  readonly isServer: boolean;
  readonly #handler: ConnectionHandler;
  readonly #table: StreamTable;
  readonly #sender: Sender;
  readonly #receiver: Receiver;
  readonly #reader: FrameReader;
  readonly #watch: Watch;
  readonly #guard: FloodGuard;
  readonly #calls = new StreamCalls((stream, error) => this.#handlerFailed(stream, error));
  nowMs: number;
  #closed: ClosedWhy | undefined;
  #draining = false;
  /** The last stream that our final GOAWAY let in. */
  #lastTakenId = streamIdLimit;
  #peerSettings = { maxConcurrentStreams: streamsBeforeSettings, initialWindowSize: windowBytesDefault };
  #settingsAcked = false;
  #peerGone = false;
  readonly #waiting: WaitingRequests;
  /** Inside of a call of the socket's owner, who will look at the output when it returns. */
  #inside = false;

  constructor({ role, handler, limits = {}, nowMs }: ConnectionOptions) {
    this.limits = { ...h2LimitsDefault, ...limits };
    this.isServer = role === "server";
    this.#handler = handler;
    this.nowMs = nowMs;
    this.#table = new StreamTable(this.limits);
    this.#sender = new Sender(this.limits, this);
    this.#guard = new FloodGuard(this.limits, nowMs);
    this.#receiver = new Receiver(this, this.#table, this.#guard, this.limits, this.isServer);
    this.#reader = new FrameReader(this.#receiver, this.limits.frameBytesMax, this.isServer);
    this.#watch = new Watch(this.limits, nowMs);
    this.#waiting = new WaitingRequests(this.limits.streamsWaitingMax);
    layGreeting(this.#sender, this.limits, this.isServer, this.#receiver.window.size);
  }

  // ---- for the socket's owner

  get closed(): boolean {
    return this.#closed !== undefined;
  }

  get closedWhy(): ClosedWhy | undefined {
    return this.#closed;
  }

  get streamCount(): number {
    return this.#table.open.size;
  }

  /** Bytes that wait for the socket. */
  get outputBytes(): number {
    return this.#sender.output.bytes;
  }

  /** The peer asks faster than it reads the answers: it should not be read for a while. */
  get wantsReadPause(): boolean {
    return this.#sender.output.controlBytesUnsent > this.limits.controlBytesHigh;
  }

  /** Bytes from the peer, in whatever pieces. */
  receive(bytes: Uint8Array, nowMs: number): void {
    if (this.#closed) return;
    this.nowMs = nowMs;
    this.#inside = true;
    this.#watch.heard(nowMs);
    this.#guard.sent(this.#sender.dataBytesLaid, this.#sender.headersLaid);
    const buffer = Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
    try {
      this.#reader.read(buffer);
      if (this.#sender.output.controlBytesUnsent > this.limits.controlBytesMax)
        throw calm("the peer does not read what it asks for");
      this.#watch.midFrame(this.#reader.isMidFrame || this.#receiver.isMidBlock, nowMs);
      this.#sender.pump();
    } catch (error) {
      this.#caught(error);
    }
    this.#inside = false;
  }

  /** Everything that is to be written now, as one batch; undefined when there is nothing. */
  takeOutput(): Batch | undefined {
    return this.#sender.output.take();
  }

  /** The batch was written (or never will be): there is room for more. */
  outputDone(batch: Batch, nowMs: number): void {
    this.nowMs = nowMs;
    this.#inside = true;
    this.#watch.wrote(nowMs);
    try {
      this.#sender.output.done(batch);
      if (!this.#closed) this.#sender.pump();
    } catch (error) {
      this.#caught(error);
    }
    this.#inside = false;
  }

  /** Time passes: to be called about once a second. Everything that has a time limit is looked at here. */
  tick(nowMs: number): void {
    if (this.#closed) return;
    this.nowMs = nowMs;
    this.#inside = true;
    const verdict = this.#watch.look(nowMs, {
      ready: this.#receiver.settingsSeen,
      settingsAcked: this.#settingsAcked,
      streams: this.#table.open.size,
      unsentBytes: this.#sender.output.bytesUnsent,
    });
    if (verdict.kind === "close") this.#fail(verdict.code, verdict.why);
    else if (verdict.kind === "ping") layPing(this.#sender, pingPurpose.keepalive);
    else if (verdict.kind === "final-goaway") this.#finalGoaway();
    if (!this.#closed) {
      this.#resetStalled();
      for (const id of this.#table.late.overdue(nowMs)) this.stopLate(id);
    }
    this.#inside = false;
  }

  /** No new streams; ends when those that are open have. A peer that takes its time is cut off after `drainMs`. */
  drain(): void {
    if (this.#closed || this.#draining) return;
    this.#draining = true;
    this.#watch.drainBegins(this.nowMs);
    for (const id of this.#table.late.overdue(Number.POSITIVE_INFINITY)) this.stopLate(id);
    if (this.isServer) {
      // Two steps (RFC 9113 section 6.8): streams that are on their way to us are still served.
      layGoaway(this.#sender, streamIdLimit, errorCode.noError, "draining");
      layPing(this.#sender, pingPurpose.drain);
    } else {
      this.#watch.drainAnnounced();
      layGoaway(this.#sender, 0, errorCode.noError, "draining");
      this.#closeWhenDrained();
    }
    this.#wroteSomething();
  }

  /** At once: GOAWAY, and every stream is lost. */
  close(code: ErrorCode = errorCode.noError, why = "closed"): void {
    if (!this.#closed) this.#fail(code, why);
    this.#wroteSomething();
  }

  /** The socket has ended. */
  socketClosed(why: string): void {
    if (!this.#closed) this.#end({ by: "peer", code: errorCode.noError, why });
  }

  // ---- for the client

  /** Requests may be made: neither side is going away. */
  get takesRequests(): boolean {
    return !this.#closed && !this.#draining && !this.#peerGone;
  }

  /** Opens a stream, at once or as soon as the peer allows another. */
  request(headers: OutgoingHeaders, handler: StreamHandler, end = false): Stream {
    assert(!this.isServer, "only a client opens streams");
    checkSendable(headers);
    if (!this.takesRequests || this.#table.lastOwnId >= streamIdLimit - 2)
      throw new Fault("unavailable", "open stream", { why: this.#closed?.why ?? "the connection is going away" });
    const window = this.#newWindow();
    const stream = new Stream(0, this, handler, this.#peerSettings.initialWindowSize, window);
    stream.headOnly = methodOf(headers) === "HEAD";
    if (this.#mayOpen()) this.#open(stream, headers, end);
    else {
      this.#waiting.add({ stream, headers, end });
      stream.local = end ? phase.ended : phase.open;
    }
    this.#wroteSomething();
    return stream;
  }

  #mayOpen(): boolean {
    return this.#table.open.size < this.#peerSettings.maxConcurrentStreams;
  }

  #open(stream: Stream, headers: OutgoingHeaders, end: boolean): void {
    this.#table.lastOwnId += this.#table.lastOwnId === 0 ? 1 : 2;
    stream.id = this.#table.lastOwnId;
    stream.sendWindow = this.#peerSettings.initialWindowSize;
    this.#table.open.set(stream.id, stream);
    this.#watch.busy();
    stream.local = phase.open;
    this.#sender.layHeaders(stream.id, headers, end);
    if (end) {
      stream.local = phase.ended;
      return;
    }
    this.#sender.opened(stream);
  }

  #openWaiting(): void {
    while (this.#waiting.count > 0 && this.takesRequests && this.#mayOpen()) {
      const waited = this.#waiting.next();
      if (waited !== undefined) this.#open(waited.stream, waited.headers, waited.end);
    }
  }

  // ---- what streams ask for

  get outputBuffer(): Buffer {
    return this.#sender.output.buffer;
  }

  sendHeaders(stream: Stream, headers: OutgoingHeaders, end: boolean): void {
    if (stream.closed) return;
    this.#sender.sendHeaders(stream, headers, end);
    this.#wroteSomething();
  }

  sendTrailers(stream: Stream, trailers: OutgoingHeaders): void {
    if (stream.closed) return;
    this.#sender.sendTrailers(stream, trailers);
    this.#wroteSomething();
  }

  write(stream: Stream, bytes: Uint8Array, options: WriteOptions): boolean {
    if (stream.closed) {
      options.release?.();
      return true;
    }
    const room = this.#sender.write(stream, bytes, options);
    this.#wroteSomething();
    return room;
  }

  beginUnary(stream: Stream, headers: OutgoingHeaders, bodyBytes: number): number {
    return stream.closed ? -1 : this.#sender.beginUnary(stream, headers, bodyBytes);
  }

  endUnary(stream: Stream, trailers: OutgoingHeaders): void {
    this.#sender.endUnary(stream, trailers);
    this.#wroteSomething();
  }

  consume(stream: Stream, bytes: number): void {
    if (stream.closed) return; // all of it was given back when the stream closed (R3)
    assert(bytes <= stream.unconsumed, "no more is consumed than was received");
    stream.unconsumed -= bytes;
    this.giveBack(bytes);
    if (stream.remote === phase.ended) return;
    const increment = stream.receiveWindow.consume(bytes, this.nowMs, this.limits);
    if (increment > 0) this.#sender.layNumber(frameType.windowUpdate, stream.id, increment);
    this.#wroteSomething();
  }

  resetByUs(stream: Stream, code: number): void {
    if (stream.closed) return;
    if (stream.id !== 0) this.#layReset(stream.id, code);
    this.#closeStream(stream);
    this.#wroteSomething();
  }

  // ---- what the sender tells

  localEnded(stream: Stream): void {
    if (stream.remote === phase.ended) this.#closeStream(stream);
    else if (this.isServer) {
      // The answer is complete, and nobody will look at the rest of the question.
      const { id, bodyBytesLeft } = stream;
      if (this.#draining || !this.#table.late.add(id, bodyBytesLeft, this.nowMs)) this.stopLate(id);
      this.#closeStream(stream);
    }
  }

  roomAgain(stream: Stream): void {
    this.#calls.writable(stream);
  }

  // ---- what the receiver tells

  takesStream(id: number): boolean {
    return id <= this.#lastTakenId;
  }

  requestCame(id: number, headers: HeaderList, ended: boolean): void {
    if (this.#table.open.size >= this.limits.streamsMax) return this.streamFailed(id, errorCode.refusedStream);
    const stream = new Stream(id, this, nobody, this.#peerSettings.initialWindowSize, this.#newWindow());
    stream.remote = ended ? phase.ended : phase.open;
    stream.bodyBytesLeft = headers.contentLength;
    this.#table.open.set(id, stream);
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
    const complete = !this.isServer && stream.remote === phase.ended && code === errorCode.noError;
    this.#closeStream(stream, complete ? undefined : code);
  }

  stopLate(id: number): void {
    this.#layReset(id, errorCode.noError);
  }

  streamFailed(id: number, code: ErrorCode): void {
    this.#guard.count("provokedResets", this.nowMs);
    this.#layReset(id, code);
    this.#table.late.drop(id);
    const stream = this.#table.open.get(id);
    if (stream === undefined) return;
    this.#closeStream(stream, code);
  }

  settingsCame(settings: PeerSettings): void {
    const first = !this.#watch.isReady;
    this.#watch.ready();
    if (settings.headerTableSize !== undefined) this.#sender.encoder.peerAllows(settings.headerTableSize);
    if (settings.maxFrameSize !== undefined) this.#sender.peerFrameBytesMax = settings.maxFrameSize;
    if (settings.maxConcurrentStreams !== undefined)
      this.#peerSettings.maxConcurrentStreams = settings.maxConcurrentStreams;
    else if (first) this.#peerSettings.maxConcurrentStreams = Number.POSITIVE_INFINITY;
    if (settings.initialWindowSize !== undefined) this.#changeInitialWindow(settings.initialWindowSize);
    this.#sender.layControl(frameType.settings, flag.ack, 0, 0);
    if (first) this.#handler.onReady?.();
    this.#openWaiting();
  }

  #changeInitialWindow(size: number): void {
    const change = size - this.#peerSettings.initialWindowSize;
    this.#peerSettings.initialWindowSize = size;
    for (const stream of this.#table.open.values())
      if (!this.#sender.widenStream(stream, change))
        throw new ConnectionError(errorCode.flowControlError, "an initial window that makes a stream's too large");
  }

  settingsAcked(): void {
    this.#settingsAcked = true;
  }

  pingCame(bytes: Buffer, at: number): void {
    const target = this.#sender.layControl(frameType.ping, flag.ack, 0, 8);
    bytes.copy(this.#sender.output.buffer, target, at, at + 8);
  }

  pingAcked(bytes: Buffer, at: number): void {
    if (bytes[at + 7] === pingPurpose.drain && this.#draining) this.#finalGoaway();
  }

  goawayCame(lastId: number, code: number): void {
    this.#peerGone = true;
    this.#handler.onGoaway?.(lastId, code);
    if (this.isServer) return;
    for (const stream of this.#table.open.values())
      if (stream.id > lastId) {
        this.#closeStream(stream, errorCode.refusedStream);
      }
    this.#refuseWaiting();
    if (this.#table.open.size === 0) this.#end({ by: "peer", code, why: `GOAWAY ${errorCodeName(code)}` });
  }

  windowCame(stream: Stream | undefined, increment: number): boolean {
    return stream === undefined ? this.#sender.widenConnection(increment) : this.#sender.widenStream(stream, increment);
  }

  giveBack(bytes: number): void {
    if (bytes === 0) return;
    const increment = this.#receiver.window.consume(bytes, this.nowMs, this.limits);
    if (increment > 0) this.#sender.layNumber(frameType.windowUpdate, 0, increment);
  }

  // ---- inside

  #wroteSomething(): void {
    if (!this.#inside) this.#handler.onOutput?.();
  }

  /** Until the peer has acknowledged our setting, it may still count with the default. */
  #newWindow(): ReceiveWindow {
    const { streamWindowBytes, streamWindowBytesMax } = this.limits;
    const size = this.#settingsAcked ? streamWindowBytes : Math.max(streamWindowBytes, windowBytesDefault);
    return new ReceiveWindow(size, streamWindowBytesMax, this.nowMs);
  }

  #layReset(id: number, code: number): void {
    this.#sender.layNumber(frameType.rstStream, id, code);
    this.#table.resetByUs.add(id);
  }

  #finalGoaway(): void {
    if (this.#closed || this.#lastTakenId !== streamIdLimit) return;
    this.#lastTakenId = this.#table.lastPeerId;
    this.#watch.drainAnnounced();
    layGoaway(this.#sender, this.#lastTakenId, errorCode.noError, "draining");
    this.#closeWhenDrained();
  }

  #closeWhenDrained(): void {
    const announced = !this.isServer || this.#lastTakenId !== streamIdLimit;
    if (!this.#draining || !announced || this.#table.open.size > 0 || this.#waiting.count > 0) return;
    this.#end({ by: "us", code: errorCode.noError, why: "drained" });
  }

  /** With a code, its handler hears that it was reset: before anything that follows from its end. */
  #closeStream(stream: Stream, resetCode?: number): void {
    stream.closed = true;
    if (stream.id === 0) this.#waiting.remove(stream);
    else if (this.#table.open.delete(stream.id)) this.#table.ended.addWith(stream.id, stream.sendWindow);
    this.#sender.drop(stream);
    const { unconsumed } = stream;
    stream.unconsumed = 0;
    if (resetCode !== undefined) this.#calls.reset(stream, resetCode);
    if (this.#closed) return;
    this.giveBack(unconsumed);
    if (this.#table.open.size === 0) this.#watch.idle(this.nowMs);
    if (!this.isServer) {
      this.#openWaiting();
      if (this.#peerGone && this.#table.open.size === 0)
        this.#end({ by: "peer", code: errorCode.noError, why: "GOAWAY" });
    }
    if (this.#draining) this.#closeWhenDrained();
  }

  #handlerFailed(stream: Stream, error: unknown): void {
    if (!stream.closed) {
      this.#layReset(stream.id, errorCode.internalError);
      this.#closeStream(stream, errorCode.internalError);
    }
    this.#handler.onHandlerFailed?.(error, stream);
  }

  /** Streams that have something to send to a peer that opens no window. */
  #resetStalled(): void {
    for (const stream of this.#table.open.values()) {
      const stalled = hasSomething(stream) && (stream.sendWindow <= 0 || this.#sender.window <= 0);
      if (!stalled) stream.stalledSinceMs = -1;
      else if (stream.stalledSinceMs < 0) stream.stalledSinceMs = this.nowMs;
      else if (this.nowMs - stream.stalledSinceMs >= this.limits.sendStallMs) {
        this.#layReset(stream.id, errorCode.enhanceYourCalm);
        this.#closeStream(stream, errorCode.enhanceYourCalm);
      }
    }
  }

  #refuseWaiting(): void {
    for (let waited = this.#waiting.next(); waited !== undefined; waited = this.#waiting.next()) {
      this.#closeStream(waited.stream, errorCode.refusedStream);
    }
  }

  /** A broken rule, or a bug of ours: that, too, costs this connection and no other. */
  #caught(error: unknown): void {
    if (error instanceof ConnectionError) this.#fail(error.code, error.message);
    else this.#fail(errorCode.internalError, "a bug of ours", error);
  }

  #fail(code: ErrorCode, why: string, error?: unknown): void {
    if (this.#closed) return;
    layGoaway(this.#sender, this.#table.lastPeerId, code, why);
    this.#end(error === undefined ? { by: "us", code, why } : { by: "us", code, why, error });
  }

  #end(why: ClosedWhy): void {
    if (this.#closed) return;
    this.#closed = why;
    this.#refuseWaiting();
    const code = why.code === errorCode.noError ? errorCode.cancel : why.code;
    for (const stream of this.#table.open.values()) {
      stream.lost = true;
      this.#closeStream(stream, code);
    }
    this.#handler.onClosed?.(why);
  }
}

function methodOf(headers: OutgoingHeaders): string | undefined {
  if (headers instanceof ConstantHeaders) return headers.fields.find(({ name }) => name === ":method")?.value;
  return headers.find(([name]) => name === ":method")?.[1];
}
