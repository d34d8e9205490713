/**
 * One stream, as the layer above sees it: headers, data and trailers in both directions, with backpressure in both.
 *
 * Receiving: `handler` is called as frames arrive. Data counts against the peer's window until `consume` is called;
 * what was never consumed is returned to the connection when the stream ends.
 * Sending: `write` accepts everything and returns whether it accepts more; if not, `onWritable` tells when to continue.
 * Both ends of a connection use the same class.
 */
import type { HeaderList } from "#h2/hpack/header-list.ts";
import type { OutgoingHeaders } from "#h2/hpack/hpack-encoder.ts";
import { errorCode } from "#h2/frames/error-codes.ts";
import type { Release } from "./output.ts";
import type { ReceiveWindow } from "./receive-window.ts";

/**
 * Callbacks of a stream. One object may serve many streams: each call names its stream. The `bytes` of onData are
 * borrowed: they are in the socket's read buffer, and are overwritten by the next read of this or another socket as
 * soon as the call has returned. To keep them, copy them.
 */
export type StreamHandler = {
  /** Client: the response has begun. Also called for 1xx responses, which may come before it. */
  onHeaders?(stream: Stream, headers: HeaderList, ended: boolean): void;
  onData(stream: Stream, bytes: Buffer, ended: boolean): void;
  /** The peer has ended its side with trailers. */
  onTrailers?(stream: Stream, trailers: HeaderList): void;
  /** The stream accepts data again, after `write` returned false. */
  onWritable?(stream: Stream): void;
  /** Cancelled: reset by the peer or by us, or the connection is gone. Nothing else is called afterwards. */
  onReset(stream: Stream, code: number): void;
};

/** The state of one direction of a stream. */
export const phase = { waiting: 0, open: 1, ended: 2 } as const;

/** Something to be sent when windows and turns allow. `start` moves as parts of it are sent. */
export type Queued = {
  readonly bytes: Uint8Array;
  start: number;
  readonly headroom: boolean;
  readonly ends: boolean;
  readonly release: Release | undefined;
};

export type WriteOptions = {
  /** This is the end of the stream: END_STREAM. */
  readonly end?: boolean;
  /** Called when the bytes are no longer needed here; until then they must not be changed. */
  readonly release?: Release;
  /** At least 9 bytes before `bytes` in its ArrayBuffer may be overwritten: the frame's header goes there. */
  readonly headroom?: boolean;
};

/** What a stream needs from its connection. */
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
  /** For the layer above: data that belongs to the stream. */
  tag: unknown = undefined;

  // Only the connection reads and writes the fields below; handlers of the stream must not.
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
  /** `write` returned false, and onWritable must be called. */
  owesWritable = false;
  /** In the ring of streams that have something to send. */
  scheduled = false;
  /** Since when there is something to send and no window; -1 if not. */
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

  /** Bytes that wait here for windows and turns. */
  get unsentBytes(): number {
    return this.queuedBytes;
  }

  /** Server: the response's headers, once; 1xx may come before. Does nothing on a closed stream. */
  sendHeaders(headers: OutgoingHeaders, end = false): void {
    this.owner.sendHeaders(this, headers, end);
  }

  /**
   * Returns false when the caller should wait for `onWritable`. Accepts the bytes in any case, and does not copy them:
   * until `release` is called they must not be changed.
   */
  write(bytes: Uint8Array, options: WriteOptions = noOptions): boolean {
    return this.owner.write(this, bytes, options);
  }

  /** Ends our side, after everything that still waits. */
  sendTrailers(trailers: OutgoingHeaders): void {
    this.owner.sendTrailers(this, trailers);
  }

  /** A whole response at once, as for most calls. The body is copied, so the caller may reuse its memory. */
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
   * The same without copying a body: writes HEADERS and the header of a DATA frame, and returns where in `outputBuffer`
   * its `bodyBytes` bytes must be written, at once, before anything but `endUnary` is called. Returns -1, with nothing
   * sent, if a window is too small, the socket is behind, or the body is empty or larger than 8 KiB: then use
   * `sendUnary`.
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

  /** This many of the received bytes have been processed; the peer may send as many more. */
  consume(bytes: number): void {
    this.owner.consume(this, bytes);
  }

  /** Resets the stream at once; waiting data is dropped. `onReset` is not called: the caller knows. */
  reset(code: number = errorCode.cancel): void {
    this.owner.resetByUs(this, code);
  }
}
