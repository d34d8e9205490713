/**
 * An HTTP/2 connection as a state machine without I/O: bytes go in by `receive`, time by `tick`, frames come out in
 * `output`, and the handlers are called at once and in order. Server and client are the same machine; they differ in
 * who opens streams. The owner of the socket writes what `takeOutput` returns after every call, and closes the socket
 * once the machine is closed and everything is written. connection-streams.ts handles single streams.
 *
 * C1 A handler is told exactly once that a stream is over: by its end, its trailers, or onReset.
 * C2 Whatever the peer does, the memory held for it is bounded by the limits.
 * C3 An exception of a handler costs its stream, not the connection.
 */
import { assert } from "#base/assert.ts";
import { Fault } from "#base/fault.ts";
import type { ClosedWhy, ConnectionHandler } from "./connection-handler.ts";
import { ConnectionStreams, type StreamsOwner } from "./connection-streams.ts";
import { layGoaway, layGreeting, layPing, pingPurpose } from "#h2/frames/control-frames.ts";
import { ConnectionError, errorCode, errorCodeName, type ErrorCode } from "#h2/frames/error-codes.ts";
import { flag, frameType, streamIdLimit } from "#h2/frames/frame.ts";
import { calm, FloodGuard } from "./flood-guard.ts";
import { FrameReader } from "#h2/frames/frame-reader.ts";
import { checkSendable, type OutgoingHeaders } from "#h2/hpack/hpack-encoder.ts";
import { h2LimitsDefault, type H2Limits } from "./limits.ts";
import type { Batch } from "./output.ts";
import type { PeerSettings } from "./peer-settings.ts";
import { Receiver, type ReceiverOwner } from "./receiver.ts";
import type { Sender } from "./sender.ts";
import type { Stream, StreamHandler } from "./stream.ts";
import type { StreamTable } from "./stream-table.ts";
import { Watch } from "./watch.ts";

export type ConnectionOptions = {
  readonly role: "server" | "client";
  readonly handler: ConnectionHandler;
  readonly limits?: Partial<H2Limits>;
  readonly nowMs: number;
  /** Server: takes CONNECT with a :protocol (RFC 8441) and says so; left out: such requests are malformed. */
  readonly takesProtocols?: boolean;
};

export class Connection implements ReceiverOwner, StreamsOwner {
  readonly limits: H2Limits;
  readonly isServer: boolean;
  readonly takesProtocols: boolean;
  readonly #handler: ConnectionHandler;
  readonly #streams: ConnectionStreams;
  readonly #table: StreamTable;
  readonly #sender: Sender;
  readonly #receiver: Receiver;
  readonly #reader: FrameReader;
  readonly #watch: Watch;
  readonly #guard: FloodGuard;
  nowMs: number;
  #closed: ClosedWhy | undefined;
  #draining = false;
  /** The last stream that our final GOAWAY accepted. */
  #lastTakenId = streamIdLimit;
  #settingsAcked = false;
  #peerGone = false;
  /** Inside a call by the socket's owner, who checks for output when it returns. */
  #inside = false;

  constructor({ role, handler, limits = {}, nowMs, takesProtocols = false }: ConnectionOptions) {
    this.limits = { ...h2LimitsDefault, ...limits };
    this.isServer = role === "server";
    this.takesProtocols = this.isServer && takesProtocols;
    this.#handler = handler;
    this.nowMs = nowMs;
    this.#guard = new FloodGuard(this.limits, nowMs);
    this.#watch = new Watch(this.limits, nowMs);
    this.#streams = new ConnectionStreams(this, handler, this.#guard, this.#watch);
    this.#table = this.#streams.table;
    this.#sender = this.#streams.sender;
    this.#receiver = new Receiver(this, this.#streams, this.#guard);
    this.#reader = new FrameReader(this.#receiver, this.limits.frameBytesMax, this.isServer);
    layGreeting(this.#sender, this.limits, this, this.#receiver.window.size);
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

  /** The peer sends requests faster than it reads the answers: do not read from it for a while. */
  get wantsReadPause(): boolean {
    return this.#sender.output.controlBytesUnsent > this.limits.controlBytesHigh;
  }

  /** Bytes from the peer, split in any way. */
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

  /** Everything to be written now, as one batch; undefined if there is nothing. */
  takeOutput(): Batch | undefined {
    return this.#sender.output.take();
  }

  /** The batch was written (or never will be): more output may be produced. */
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

  /** Lets time pass: call it about once a second. All time limits are checked here. */
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
      this.#streams.resetStalled();
      this.#streams.stopOverdue(nowMs);
    }
    this.#inside = false;
  }

  /** Accepts no new streams; ends when the open ones have ended. A slow peer is disconnected after `drainMs`. */
  drain(): void {
    if (this.#closed || this.#draining) return;
    this.#draining = true;
    this.#watch.drainBegins(this.nowMs);
    this.#streams.stopOverdue(Number.POSITIVE_INFINITY);
    if (this.isServer) {
      // Two steps (RFC 9113 section 6.8): streams that are on their way to us are still served.
      layGoaway(this.#sender, streamIdLimit, errorCode.noError, "draining");
      layPing(this.#sender, pingPurpose.drain);
    } else {
      this.#watch.drainAnnounced();
      layGoaway(this.#sender, 0, errorCode.noError, "draining");
      this.#closeWhenDrained();
    }
    this.wroteSomething();
  }

  /** At once: GOAWAY, and every stream is lost. */
  close(code: ErrorCode = errorCode.noError, why = "closed"): void {
    if (!this.#closed) this.#fail(code, why);
    this.wroteSomething();
  }

  /** The socket has ended. */
  socketClosed(why: string): void {
    if (!this.#closed) this.#end({ by: "peer", code: errorCode.noError, why });
  }

  // ---- for the client

  /** Whether requests may be made: neither side is going away. */
  get takesRequests(): boolean {
    return !this.#closed && !this.#draining && !this.#peerGone;
  }

  /** Opens a stream, at once or as soon as the peer allows another. */
  request(headers: OutgoingHeaders, handler: StreamHandler, end = false): Stream {
    assert(!this.isServer, "only a client opens streams");
    checkSendable(headers);
    if (!this.takesRequests || this.#table.lastOwnId >= streamIdLimit - 2)
      throw new Fault("unavailable", "open stream", { why: this.#closed?.why ?? "the connection is going away" });
    const stream = this.#streams.request(headers, handler, end);
    this.wroteSomething();
    return stream;
  }

  // ---- called by the receiver

  takesStream(id: number): boolean {
    return id <= this.#lastTakenId;
  }

  settingsCame(settings: PeerSettings): void {
    const first = !this.#watch.isReady;
    this.#watch.ready();
    if (settings.headerTableSize !== undefined) this.#sender.encoder.peerAllows(settings.headerTableSize);
    if (settings.maxFrameSize !== undefined) this.#sender.peerFrameBytesMax = settings.maxFrameSize;
    if (settings.maxConcurrentStreams !== undefined) this.#streams.openMax = settings.maxConcurrentStreams;
    else if (first) this.#streams.openMax = Number.POSITIVE_INFINITY;
    if (settings.initialWindowSize !== undefined) this.#streams.changeInitialWindow(settings.initialWindowSize);
    this.#sender.layControl(frameType.settings, flag.ack, 0, 0);
    if (first) this.#handler.onReady?.();
    this.#streams.openWaiting();
  }

  settingsAcked(): void {
    this.#settingsAcked = true;
    this.#streams.settingsAcked();
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
    this.#streams.refuseAbove(lastId);
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

  // ---- called by the streams

  get draining(): boolean {
    return this.#draining;
  }

  wroteSomething(): void {
    if (!this.#inside) this.#handler.onOutput?.();
  }

  streamClosed(): void {
    if (!this.isServer && this.#peerGone && this.#table.open.size === 0)
      this.#end({ by: "peer", code: errorCode.noError, why: "GOAWAY" });
    if (this.#draining) this.#closeWhenDrained();
  }

  // ---- private

  #finalGoaway(): void {
    if (this.#closed || this.#lastTakenId !== streamIdLimit) return;
    this.#lastTakenId = this.#table.lastPeerId;
    this.#watch.drainAnnounced();
    layGoaway(this.#sender, this.#lastTakenId, errorCode.noError, "draining");
    this.#closeWhenDrained();
  }

  #closeWhenDrained(): void {
    const announced = !this.isServer || this.#lastTakenId !== streamIdLimit;
    if (!this.#draining || !announced || !this.#streams.noneLeft) return;
    this.#end({ by: "us", code: errorCode.noError, why: "drained" });
  }

  /** A protocol error, or a bug of ours: either way only this connection ends. */
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
    this.#streams.loseAll(why.code === errorCode.noError ? errorCode.cancel : why.code);
    this.#handler.onClosed?.(why);
  }
}
