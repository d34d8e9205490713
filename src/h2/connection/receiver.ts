/**
 * The receiving half of a connection: what each frame means in each state of its stream (RFC 9113 sections 5.1 and 6).
 *
 * R1 Header blocks are always decoded, even those of streams that are refused or gone: the table must stay in step.
 * R2 A violation that leaves both ends with different states of the connection ends it (ConnectionError); any other
 * violation resets its stream.
 * R3 Every received DATA byte is counted against both windows, and returned to the connection's exactly once: when
 * consumed, when there is no consumer, or when its stream closes.
 */
import type { ConnectionStreams } from "./connection-streams.ts";
import { ConnectionError, errorCode, type ErrorCode } from "#h2/frames/error-codes.ts";
import { flag, frameType, readUint31, readUint32, windowBytesDefault } from "#h2/frames/frame.ts";
import { calm, type Flood, type FloodGuard } from "./flood-guard.ts";
import type { FrameSink } from "#h2/frames/frame-reader.ts";
import { type HeaderList, readRequest, readResponse, readTrailers } from "#h2/hpack/header-list.ts";
import { HpackDecoder } from "#h2/hpack/hpack-decoder.ts";
import type { LateVerdict } from "./late-requests.ts";
import type { H2Limits } from "./limits.ts";
import { readPeerSettings, type PeerSettings } from "./peer-settings.ts";
import { ReceiveWindow } from "./receive-window.ts";
import { phase, type Stream } from "./stream.ts";
import type { StreamTable } from "./stream-table.ts";

/** Callbacks for the connection as a whole; events of one stream go to the streams. */
export type ReceiverOwner = {
  readonly limits: H2Limits;
  readonly isServer: boolean;
  /** Whether CONNECT may have a :protocol. */
  readonly takesProtocols: boolean;
  readonly closed: boolean;
  readonly nowMs: number;
  /** May a stream with this id be opened, or is it beyond a GOAWAY? */
  takesStream(id: number): boolean;
  settingsCame(settings: PeerSettings): void;
  settingsAcked(): void;
  pingCame(bytes: Buffer, at: number): void;
  pingAcked(bytes: Buffer, at: number): void;
  goawayCame(lastId: number, code: number): void;
  windowCame(stream: Stream | undefined, increment: number): boolean;
  giveBack(bytes: number): void;
};

export class Receiver implements FrameSink {
  readonly #owner: ReceiverOwner;
  readonly #streams: ConnectionStreams;
  readonly #table: StreamTable;
  readonly #limits: H2Limits;
  readonly #isServer: boolean;
  readonly decoder: HpackDecoder;
  readonly window: ReceiveWindow;
  readonly #guard: FloodGuard;
  #settingsSeen = false;
  /** The stream whose header block is incomplete, or 0. */
  #blockId = 0;
  #blockEnds = false;
  #blockSelfDependent = false;
  #blockParts: Buffer[] = [];
  #blockBytes = 0;
  #continuations = 0;
  /** The stream that receives the current DATA, or undefined if it is dropped. */
  #dataStream: Stream | undefined;
  #dataEnds = false;

  constructor(owner: ReceiverOwner, streams: ConnectionStreams, guard: FloodGuard) {
    const { limits } = owner;
    this.#owner = owner;
    this.#streams = streams;
    this.#table = streams.table;
    this.#limits = limits;
    this.#isServer = owner.isServer;
    this.decoder = new HpackDecoder({ ...limits, tableBytesMax: limits.headerTableBytesMax });
    const windowBytes = Math.max(limits.connectionWindowBytes, windowBytesDefault);
    this.window = new ReceiveWindow(windowBytes, limits.connectionWindowBytesMax, owner.nowMs);
    this.#guard = guard;
  }

  get closed(): boolean {
    return this.#owner.closed;
  }

  get settingsSeen(): boolean {
    return this.#settingsSeen;
  }

  get isMidBlock(): boolean {
    return this.#blockId !== 0;
  }

  frame(type: number, flags: number, id: number, bytes: Buffer, at: number, end: number): void {
    if (this.#blockId !== 0 && (type !== frameType.continuation || id !== this.#blockId))
      throw protocol("a header block was interrupted by another frame");
    if (!this.#settingsSeen && (type !== frameType.settings || (flags & flag.ack) !== 0))
      throw protocol("the first frame is not SETTINGS");
    switch (type) {
      case frameType.headers:
        return this.#headers(flags, id, bytes, at, end);
      case frameType.continuation:
        return this.#continuation(flags, bytes, at, end);
      case frameType.windowUpdate:
        return this.#windowUpdate(id, bytes, at, end);
      case frameType.rstStream:
        return this.#rstStream(id, bytes, at, end);
      case frameType.settings:
        return this.#settings(flags, id, bytes, at, end);
      case frameType.ping:
        return this.#ping(flags, id, bytes, at, end);
      case frameType.priority:
        return this.#priority(id, bytes, at, end);
      case frameType.goaway:
        return this.#goaway(id, bytes, at, end);
      case frameType.pushPromise:
        throw protocol("PUSH_PROMISE, which is not allowed here");
      default:
        this.#count("priorityFrames"); // unknown types are ignored; browsers' PRIORITY_UPDATE is one of them
    }
  }

  #count(flood: Flood): void {
    this.#guard.count(flood, this.#owner.nowMs);
  }

  #headers(flags: number, id: number, bytes: Buffer, at: number, end: number): void {
    if (id === 0) throw protocol("HEADERS on stream 0");
    if ((flags & flag.padded) !== 0) {
      if (at === end) throw frameSize("padded HEADERS without a pad length");
      const padding = bytes[at]!;
      at += 1;
      if (padding > end - at) throw protocol("more padding than HEADERS");
      end -= padding;
    }
    this.#blockSelfDependent = false;
    if ((flags & flag.priority) !== 0) {
      if (end - at < 5) throw frameSize("HEADERS too short for its priority");
      this.#blockSelfDependent = readUint31(bytes, at) === id;
      at += 5;
    }
    this.#checkHeadersStream(id);
    this.#blockEnds = (flags & flag.endStream) !== 0;
    if ((flags & flag.endHeaders) !== 0) return this.#block(id, bytes, at, end);
    this.#blockId = id;
    this.#continuations = 0;
    this.#blockBytes = 0;
    this.#holdBlock(bytes, at, end);
  }

  /** Checks that are possible before the block is complete, and that must end the connection. */
  #checkHeadersStream(id: number): void {
    const table = this.#table;
    if (table.open.has(id) || table.late.has(id)) return;
    if (this.#isServer) {
      if ((id & 1) === 0) throw protocol("a stream with an even id, opened by a client");
      if (id > table.lastPeerId || table.resetByUs.has(id)) return;
    } else if (!table.isIdle(id, false) && table.resetByUs.has(id)) return;
    if (table.ended.has(id)) throw new ConnectionError(errorCode.streamClosed, "HEADERS on a closed stream");
    throw protocol("HEADERS on a stream that cannot be opened");
  }

  #continuation(flags: number, bytes: Buffer, at: number, end: number): void {
    if (this.#blockId === 0) throw protocol("CONTINUATION without HEADERS");
    this.#continuations += 1;
    if (this.#continuations > this.#limits.continuationsMax) throw calm("too many CONTINUATION frames");
    this.#holdBlock(bytes, at, end);
    if ((flags & flag.endHeaders) === 0) return;
    const id = this.#blockId;
    const block = Buffer.concat(this.#blockParts, this.#blockBytes);
    this.#blockId = 0;
    this.#blockParts = [];
    this.#block(id, block, 0, block.length);
  }

  #holdBlock(bytes: Buffer, at: number, end: number): void {
    this.#blockBytes += end - at;
    if (this.#blockBytes > this.#limits.headerBlockBytesMax) throw calm("a header block too large");
    this.#blockParts.push(Buffer.from(bytes.subarray(at, end)));
  }

  /** A complete header block (R1: always decoded). */
  #block(id: number, bytes: Buffer, at: number, end: number): void {
    const fields = this.decoder.decode(bytes, at, end);
    const { overflowed } = this.decoder;
    const table = this.#table;
    const ends = this.#blockEnds;
    const stream = table.open.get(id);
    const isNew = stream === undefined && this.#isServer && id > table.lastPeerId;
    if (isNew) {
      if (!this.#owner.takesStream(id)) return; // beyond our GOAWAY: the client knows to try elsewhere
      table.lastPeerId = id;
    } else if (stream === undefined) {
      // Reset by us before the peer knew; or the rest of a request that was answered.
      return this.#late(id, table.late.trailers(id, ends && !overflowed && readTrailers(fields) !== undefined));
    }
    if (stream !== undefined && stream.remote === phase.ended)
      return this.#streams.streamFailed(id, errorCode.streamClosed);
    if (this.#blockSelfDependent) return this.#streams.streamFailed(id, errorCode.protocolError);
    if (overflowed) return this.#streams.streamFailed(id, errorCode.enhanceYourCalm);
    let headers: HeaderList | undefined;
    if (stream === undefined) {
      headers = readRequest(fields, this.#owner.takesProtocols);
      if (headers !== undefined && ends && headers.contentLength > 0) headers = undefined;
      if (headers === undefined) return this.#streams.streamFailed(id, errorCode.protocolError);
      return this.#streams.requestCame(id, headers, ends);
    }
    if (stream.remote === phase.waiting) return this.#response(stream, readResponse(fields), ends);
    headers = ends ? readTrailers(fields) : undefined;
    if (headers === undefined || stream.bodyBytesLeft > 0)
      return this.#streams.streamFailed(id, errorCode.protocolError);
    stream.remote = phase.ended;
    this.#streams.trailersCame(stream, headers);
  }

  #response(stream: Stream, headers: HeaderList | undefined, ends: boolean): void {
    const informational = headers !== undefined && headers.status < 200;
    if (headers === undefined || (informational && ends))
      return this.#streams.streamFailed(stream.id, errorCode.protocolError);
    if (!informational) {
      const noBody = stream.headOnly || headers.status === 204 || headers.status === 304;
      if (!noBody) stream.bodyBytesLeft = headers.contentLength;
      if (ends && stream.bodyBytesLeft > 0) return this.#streams.streamFailed(stream.id, errorCode.protocolError);
      stream.remote = ends ? phase.ended : phase.open;
    }
    this.#streams.responseCame(stream, headers, ends);
  }

  dataBegins(flags: number, id: number, length: number): void {
    if (this.#blockId !== 0) throw protocol("a header block was interrupted by DATA");
    if (!this.#settingsSeen) throw protocol("the first frame is not SETTINGS");
    if (id === 0) throw protocol("DATA on stream 0");
    this.#dataEnds = (flags & flag.endStream) !== 0;
    if (!this.window.take(length))
      throw new ConnectionError(errorCode.flowControlError, "DATA beyond the connection's window");
    if (length === 0 && !this.#dataEnds) this.#count("emptyFrames");
    this.#dataStream = this.#streamForData(id, length, (flags & flag.padded) !== 0);
    if (this.#dataStream === undefined) this.#owner.giveBack(length);
    else this.#dataStream.unconsumed += length;
  }

  #streamForData(id: number, length: number, isPadded: boolean): Stream | undefined {
    const stream = this.#table.open.get(id);
    if (stream === undefined) {
      if (this.#table.isIdle(id, this.#isServer)) throw protocol("DATA on an idle stream");
      const late = this.#table.late.data(id, length, isPadded, this.#dataEnds);
      if (late !== undefined) this.#late(id, late);
      else if (!this.#table.resetByUs.has(id)) this.#streams.streamFailed(id, errorCode.streamClosed);
      return undefined;
    }
    if (stream.remote === phase.ended) return this.#dataFails(id, errorCode.streamClosed);
    if (stream.remote === phase.waiting) return this.#dataFails(id, errorCode.protocolError); // before any response
    if (!stream.receiveWindow.take(length)) return this.#dataFails(id, errorCode.flowControlError);
    return stream;
  }

  #late(id: number, verdict: LateVerdict | undefined): void {
    if (verdict === "breaks a rule") this.#streams.streamFailed(id, errorCode.protocolError);
    else if (verdict === "is too much") this.#streams.stopLate(id);
  }

  #dataFails(id: number, code: ErrorCode): undefined {
    this.#streams.streamFailed(id, code);
    return undefined;
  }

  dataPadding(bytes: number): void {
    const stream = this.#dataStream;
    if (stream !== undefined && !stream.closed) stream.consume(bytes);
  }

  data(bytes: Buffer, at: number, end: number, last: boolean): void {
    const stream = this.#dataStream;
    if (stream === undefined || stream.closed) return;
    const ended = last && this.#dataEnds;
    if (stream.bodyBytesLeft >= 0) {
      stream.bodyBytesLeft -= end - at;
      const wrong = stream.bodyBytesLeft < 0 || (ended && stream.bodyBytesLeft > 0);
      if (wrong) return this.#streams.streamFailed(stream.id, errorCode.protocolError);
    }
    if (at === end && !ended) return;
    if (ended) stream.remote = phase.ended;
    this.#streams.dataCame(stream, bytes.subarray(at, end), ended);
  }

  #rstStream(id: number, bytes: Buffer, at: number, end: number): void {
    if (id === 0) throw protocol("RST_STREAM on stream 0");
    if (end - at !== 4) throw frameSize("RST_STREAM");
    if (this.#table.isIdle(id, this.#isServer)) throw protocol("RST_STREAM on an idle stream");
    if (this.#isServer) this.#count("peerResets");
    const stream = this.#table.open.get(id);
    if (stream !== undefined) return this.#streams.resetCame(stream, readUint32(bytes, at));
    this.#table.late.drop(id);
    this.#table.resetByUs.forget(id); // frames that were on their way came before this
  }

  #windowUpdate(id: number, bytes: Buffer, at: number, end: number): void {
    if (end - at !== 4) throw frameSize("WINDOW_UPDATE");
    this.#count("windowUpdates");
    const increment = readUint31(bytes, at);
    if (id === 0) {
      if (increment === 0) throw protocol("a window update of 0");
      if (!this.#owner.windowCame(undefined, increment))
        throw new ConnectionError(errorCode.flowControlError, "the connection's window is too large");
      return;
    }
    const stream = this.#table.open.get(id);
    if (stream === undefined) {
      if (this.#table.isIdle(id, this.#isServer)) throw protocol("WINDOW_UPDATE on an idle stream");
      if (this.#table.resetByUs.has(id)) return;
      if (increment === 0) this.#streams.streamFailed(id, errorCode.protocolError);
      else if (!this.#table.ended.widen(id, increment)) this.#streams.streamFailed(id, errorCode.flowControlError);
      return;
    }
    if (increment === 0) this.#streams.streamFailed(id, errorCode.protocolError);
    else if (!this.#owner.windowCame(stream, increment)) this.#streams.streamFailed(id, errorCode.flowControlError);
  }

  #settings(flags: number, id: number, bytes: Buffer, at: number, end: number): void {
    if (id !== 0) throw protocol("SETTINGS on a stream");
    if ((flags & flag.ack) !== 0) {
      if (at !== end) throw frameSize("SETTINGS acknowledgement with a payload");
      return this.#owner.settingsAcked();
    }
    if ((end - at) % 6 !== 0) throw frameSize("SETTINGS");
    this.#count("settingsFrames");
    this.#settingsSeen = true;
    this.#owner.settingsCame(readPeerSettings(bytes, at, end, this.#isServer));
  }

  #ping(flags: number, id: number, bytes: Buffer, at: number, end: number): void {
    if (id !== 0) throw protocol("PING on a stream");
    if (end - at !== 8) throw frameSize("PING");
    if ((flags & flag.ack) !== 0) return this.#owner.pingAcked(bytes, at);
    this.#count("pings");
    this.#owner.pingCame(bytes, at);
  }

  /** Priorities are obsolete (RFC 9113 section 5.3): checked, counted, and ignored. */
  #priority(id: number, bytes: Buffer, at: number, end: number): void {
    if (id === 0) throw protocol("PRIORITY on stream 0");
    this.#count("priorityFrames");
    const idle = this.#table.isIdle(id, this.#isServer);
    if (end - at !== 5) {
      if (idle) throw frameSize("PRIORITY"); // an idle stream cannot be reset
      return this.#streams.streamFailed(id, errorCode.frameSizeError);
    }
    if (readUint31(bytes, at) !== id) return;
    if (idle) throw protocol("a stream that depends on itself");
    this.#streams.streamFailed(id, errorCode.protocolError);
  }

  #goaway(id: number, bytes: Buffer, at: number, end: number): void {
    if (id !== 0) throw protocol("GOAWAY on a stream");
    if (end - at < 8) throw frameSize("GOAWAY");
    this.#owner.goawayCame(readUint31(bytes, at), readUint32(bytes, at + 4));
  }
}

const protocol = (why: string): ConnectionError => new ConnectionError(errorCode.protocolError, why);
const frameSize = (what: string): ConnectionError =>
  new ConnectionError(errorCode.frameSizeError, `${what}: not its length`);
