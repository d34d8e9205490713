/**
 * One stream, as the layer above sees it: headers, data and trailers in both directions, with backpressure in both.
 *
 * Receiving: `handler` is called as frames arrive. Data stays on the account of the peer until `consume` says that it
 * has been dealt with; what was never consumed is given back to the connection when the stream ends.
 * Sending: `write` takes everything and answers whether there is room for more; when it said no, `onWritable` tells
 * when to go on. Both ends of a connection use the same class.
 */
import type { HeaderList } from "#h2/hpack/header-list.ts";
import type { OutgoingHeaders } from "#h2/hpack/hpack-encoder.ts";
import { errorCode } from "#h2/frames/error-codes.ts";
import type { Release } from "./output.ts";
import type { ReceiveWindow } from "./receive-window.ts";

/**
 * What happens on a stream. One object may serve many streams: each call names its stream. The `bytes` of onData are
 * lent: they lie where the socket was read into, and are overwritten by its next read, or another's, as soon as the
 * call has returned. Whoever keeps them copies them.
 */
export type StreamHandler = {
  /** Client: the response has begun. Also called for 1xx responses, which may come before it. */
  onHeaders?(stream: Stream, headers: HeaderList, ended: boolean): void;
  onData(stream: Stream, bytes: Buffer, ended: boolean): void;
  /** The peer has ended its side with trailers. */
  onTrailers?(stream: Stream, trailers: HeaderList): void;
  /** There is room to write again, after `write` said that there was none. */
  onWritable?(stream: Stream): void;
  /** Cancelled: reset by the peer or by us, or the connection is gone. Nothing else is called afterwards. */
  onReset(stream: Stream, code: number): void;
};

/** How far one direction of a stream has come. */
export const phase = { waiting: 0, open: 1, ended: 2 } as const;

/** Something to be sent when windows and turns allow. `start` moves as pieces of it leave. */
export type Queued = {
  readonly bytes: Uint8Array;
  start: number;
  readonly headroom: boolean;
  readonly ends: boolean;
  readonly release: Release | undefined;
};

export type WriteOptions = {
  /** This is the last of the stream: END_STREAM. */
  readonly end?: boolean;
  /** Called when the bytes are no longer needed here; until then nobody may change them. */
  readonly release?: Release;
  /** At least 9 bytes before `bytes` in its ArrayBuffer may be overwritten: the frame's header goes there. */
  readonly headroom?: boolean;
};

/** What a stream asks of its connection. */
export type StreamOwner = {
  sendHeaders(stream: Stream, headers: OutgoingHeaders, end: boolean): void;
  sendTrailers(stream: Stream, trailers: OutgoingHeaders): void;
  write(stream: Stream, bytes: Uint8Array, options: WriteOptions): boolean;
  beginUnary(stream: Stream, headers: OutgoingHeaders, bodyBytes: number): number;
  endUnary(stream: Stream, trailers: OutgoingHeaders): void;
  consume(stream: Stream, bytes: number): void;
  resetByUs(stream: Stream, code: number): void;
  readonly outputBuffer: Buffer;
};

const noOptions: WriteOptions = {};

export class Stream {
  /** 0 while a client's request waits for a free stream. */
  id: number;
  handler: StreamHandler;
  /** The layer above keeps here what belongs to the stream. */
  tag: unknown = undefined;

  // What follows is the connection's, and nobody else's.
  readonly owner: StreamOwner;
  local: number = phase.waiting;
  remote: number = phase.waiting;
  closed = false;
  /** The stream ended because its connection did. */
  lost = false;
  sendWindow: number;
  readonly receiveWindow: ReceiveWindow;
  /** Received and not yet consumed. */
  unconsumed = 0;
  /** Announced by content-length and still to come, or -1. */
  bodyBytesLeft = -1;
  /** Client: the answer to HEAD has a content-length and no content. */
  headOnly = false;
  queue: Queued[] = [];
  queuedBytes = 0;
  trailers: OutgoingHeaders | undefined;
  /** `write` said no, and onWritable is owed. */
  wantsRoom = false;
  /** In the ring of streams that have something to send. */
  scheduled = false;
  /** Since when there is something to send and no window; -1 when that is not so. */
  stalledSinceMs = -1;

  constructor(id: number, owner: StreamOwner, handler: StreamHandler, sendWindow: number, window: ReceiveWindow) {
    this.id = id;
    this.owner = owner;
    this.handler = handler;
    this.sendWindow = sendWindow;
    this.receiveWindow = window;
  }

  /** False once the stream has been reset, lost, or ended by both sides. */
  get isOpen(): boolean {
    return !this.closed;
  }

  /** Bytes that wait here, for windows and for turns. */
  get unsentBytes(): number {
    return this.queuedBytes;
  }

  /** Server: the response's headers, once; 1xx may come before. Without effect on a stream that is closed. */
  sendHeaders(headers: OutgoingHeaders, end = false): void {
    this.owner.sendHeaders(this, headers, end);
  }

  /**
   * Answers false when the caller should wait for `onWritable`. Takes the bytes in any case, and does not copy them:
   * until `release` is called nobody may change them.
   */
  write(bytes: Uint8Array, options: WriteOptions = noOptions): boolean {
    return this.owner.write(this, bytes, options);
  }

  /** Ends our side, behind whatever still waits. */
  sendTrailers(trailers: OutgoingHeaders): void {
    this.owner.sendTrailers(this, trailers);
  }

  /** A whole response in one go: the way of most calls. The body is copied, so its memory is the caller's again. */
  sendUnary(headers: OutgoingHeaders, body: Uint8Array, trailers: OutgoingHeaders): void {
    const at = this.owner.beginUnary(this, headers, body.length);
    if (at >= 0) {
      this.owner.outputBuffer.set(body, at);
      this.owner.endUnary(this, trailers);
      return;
    }
    this.sendHeaders(headers);
    this.write(Buffer.from(body));
    this.sendTrailers(trailers);
  }

  /**
   * The same without a body to copy: lays HEADERS and an empty-handed DATA frame and answers where in `outputBuffer`
   * its `bodyBytes` bytes are to be written, at once, before anything else is called but `endUnary`.
   * Answers -1, with nothing sent, when windows are short, the socket is behind, or the body is empty or larger than
   * 8 KiB: then take the long way.
   */
  beginUnary(headers: OutgoingHeaders, bodyBytes: number): number {
    return this.owner.beginUnary(this, headers, bodyBytes);
  }

  endUnary(trailers: OutgoingHeaders): void {
    this.owner.endUnary(this, trailers);
  }

  get outputBuffer(): Buffer {
    return this.owner.outputBuffer;
  }

  /** So many of the received bytes have been dealt with; the peer may send as many more. */
  consume(bytes: number): void {
    this.owner.consume(this, bytes);
  }

  /** Gives the stream up, at once; what waits is dropped. `onReset` is not called: the caller knows. */
  reset(code: number = errorCode.cancel): void {
    this.owner.resetByUs(this, code);
  }
}
