/**
 * The sending half of a connection: writes frames into the output, DATA as the peer's windows allow and fairly between
 * streams. Independent of what is received.
 *
 * S1 DATA never exceeds the stream's window, the connection's window, or the peer's frame size.
 * S2 One stream's headers, data and trailers are sent in the order in which they were given.
 * S3 Streams with something to send take turns; one turn is one frame of at most a quantum. While there is a backlog,
 * no stream bypasses the queue.
 * S4 DATA is put into the output only while less than `outputBytesHigh` waits for the socket; the rest waits in its
 * stream.
 */
import { assert } from "#base/assert.ts";
import {
  flag,
  frameBytesDefault,
  frameHeaderBytes,
  frameType,
  windowBytesDefault,
  windowBytesLimit,
  writeFrameHeader,
  writeUint32,
} from "#h2/frames/frame.ts";
import { checkSendable, encodedBytesMax, HpackEncoder, type OutgoingHeaders } from "#h2/hpack/hpack-encoder.ts";
import type { H2Limits } from "./limits.ts";
import { Output } from "./output.ts";
import { phase, type Queued, type Stream, type WriteOptions } from "./stream.ts";

/** Below this, copying into the output costs less than a separate segment. */
const copiedBytesMax = 2_048;
/** A unary answer is copied into the output up to this size. */
const unaryBytesMax = 8_192;
/** The largest frame that we send, whatever the peer accepts. */
const sentFrameBytesMax = 64 * 1024;

export type SenderOwner = {
  /** The stream's last frame is in the output. */
  localEnded(stream: Stream): void;
  /** A stream whose `write` returned false accepts more again. */
  writableAgain(stream: Stream): void;
};

export class Sender {
  readonly output = new Output();
  readonly encoder: HpackEncoder;
  readonly #limits: H2Limits;
  #window = windowBytesDefault;
  #frameBytesMax = frameBytesDefault;
  /** Streams with something to send, in the order of their turns. */
  #ring: Stream[] = [];
  #ringAt = 0;
  /** DATA bytes and HEADERS frames sent so far: a peer may answer them with window updates and pings. */
  dataBytesLaid = 0;
  headersLaid = 0;
  #pumping = false;
  /** The stream whose unary answer has begun: its body is not written yet. */
  #unary: Stream | undefined;
  #unaryBuffer: Buffer = this.output.buffer;
  #unaryAt = 0;
  #unaryBytes = 0;
  readonly #owner: SenderOwner;

  constructor(limits: H2Limits, owner: SenderOwner) {
    this.#limits = limits;
    this.encoder = new HpackEncoder(limits.headerTableBytesMax);
    this.#owner = owner;
  }

  get window(): number {
    return this.#window;
  }

  set peerFrameBytesMax(bytes: number) {
    this.#frameBytesMax = Math.min(bytes, sentFrameBytesMax);
  }

  /** False if the window would exceed the largest allowed. */
  widenConnection(increment: number): boolean {
    this.#window += increment;
    return this.#window <= windowBytesLimit;
  }

  /** The same for a stream; the increment is negative when a setting reduced the window. */
  widenStream(stream: Stream, increment: number): boolean {
    stream.sendWindow += increment;
    if (stream.sendWindow > windowBytesLimit) return false;
    if (stream.sendWindow > 0) stream.stalledSinceMs = -1;
    if (hasSomething(stream)) this.#schedule(stream);
    return true;
  }

  layControl(type: number, flags: number, streamId: number, payloadBytes: number): number {
    const { output } = this;
    output.reserve(frameHeaderBytes + payloadBytes);
    const at = output.end;
    writeFrameHeader(output.buffer, at, payloadBytes, type, flags, streamId);
    output.end = at + frameHeaderBytes + payloadBytes;
    output.controlBytes += frameHeaderBytes + payloadBytes;
    return at + frameHeaderBytes;
  }

  /** A frame whose payload is one number: RST_STREAM and WINDOW_UPDATE. */
  layNumber(type: number, streamId: number, value: number): void {
    const at = this.layControl(type, 0, streamId, 4);
    writeUint32(this.output.buffer, at, value);
  }

  layHeaders(streamId: number, headers: OutgoingHeaders, endStream: boolean): void {
    checkSendable(headers);
    const room = encodedBytesMax(headers);
    this.headersLaid += 1;
    const endFlag = endStream ? flag.endStream : 0;
    if (room > frameBytesDefault) return this.#layLongHeaders(streamId, headers, endFlag, room);
    const { output } = this;
    output.reserve(frameHeaderBytes + room);
    const at = output.end;
    const end = this.encoder.encode(headers, output.buffer, at + frameHeaderBytes);
    const length = end - at - frameHeaderBytes;
    writeFrameHeader(output.buffer, at, length, frameType.headers, flag.endHeaders | endFlag, streamId);
    output.end = end;
    output.controlBytes += end - at;
  }

  #layLongHeaders(streamId: number, headers: OutgoingHeaders, endFlag: number, room: number): void {
    const block = Buffer.allocUnsafe(room);
    const end = this.encoder.encode(headers, block, 0);
    let at = 0;
    do {
      const length = Math.min(end - at, this.#frameBytesMax);
      const type = at === 0 ? frameType.headers : frameType.continuation;
      const flags = (at === 0 ? endFlag : 0) | (at + length === end ? flag.endHeaders : 0);
      const payload = this.layControl(type, flags, streamId, length);
      this.output.buffer.set(block.subarray(at, at + length), payload);
      at += length;
    } while (at < end);
  }

  sendHeaders(stream: Stream, headers: OutgoingHeaders, end: boolean): void {
    assert(stream.local !== phase.ended && !hasSomething(stream), "headers come before data");
    this.layHeaders(stream.id, headers, end);
    stream.local = phase.open;
    if (end) this.#ended(stream);
  }

  sendTrailers(stream: Stream, trailers: OutgoingHeaders): void {
    assert(stream.local === phase.open && stream.trailers === undefined, "trailers come last, and once");
    if (stream.queue.length > 0 || stream.id === 0) {
      stream.trailers = trailers;
      return;
    }
    this.layHeaders(stream.id, trailers, true);
    this.#ended(stream);
  }

  /** S3: a stream may bypass the queue only if it is empty. */
  #mayGoAhead(stream: Stream, bytes: number): boolean {
    return (
      this.#ring.length === this.#ringAt &&
      stream.queue.length === 0 &&
      stream.id !== 0 &&
      bytes <= this.#frameBytesMax &&
      bytes <= stream.sendWindow &&
      bytes <= this.#window &&
      this.output.bytesUnsent < this.#limits.outputBytesHigh
    );
  }

  write(stream: Stream, bytes: Uint8Array, { end = false, release, headroom = false }: WriteOptions): boolean {
    assert(stream.local === phase.open && stream.trailers === undefined, "data comes between headers and end");
    assert(stream.queue.at(-1)?.ends !== true, "nothing comes behind the end");
    if (bytes.length === 0 && !end) {
      if (release !== undefined) this.output.addRelease(release);
    } else if (this.#mayGoAhead(stream, bytes.length)) {
      this.#layData(stream, bytes, 0, bytes.length, end, headroom);
      if (release !== undefined) this.output.addRelease(release);
      if (end) this.#ended(stream);
    } else {
      stream.queue.push({ bytes, start: 0, headroom, ends: end, release });
      stream.queuedBytes += bytes.length;
      this.#schedule(stream);
      this.pump();
    }
    const room = stream.queuedBytes < this.#limits.streamSendBytesHigh;
    if (!room) stream.owesWritable = true;
    return room;
  }

  beginUnary(stream: Stream, headers: OutgoingHeaders, bodyBytes: number): number {
    if (bodyBytes === 0 || bodyBytes > unaryBytesMax || !this.#mayGoAhead(stream, bodyBytes)) return -1;
    assert(stream.local === phase.waiting, "a unary response is the whole response");
    this.layHeaders(stream.id, headers, false);
    stream.local = phase.open;
    const { output } = this;
    output.reserve(frameHeaderBytes + bodyBytes);
    const at = output.end;
    writeFrameHeader(output.buffer, at, bodyBytes, frameType.data, 0, stream.id);
    output.end = at + frameHeaderBytes + bodyBytes;
    stream.sendWindow -= bodyBytes;
    this.#window -= bodyBytes;
    this.dataBytesLaid += bodyBytes;
    this.#unary = stream;
    this.#unaryBuffer = output.buffer;
    this.#unaryAt = at + frameHeaderBytes;
    this.#unaryBytes = bodyBytes;
    return at + frameHeaderBytes;
  }

  endUnary(stream: Stream, trailers: OutgoingHeaders): void {
    assert(this.#unary === stream, "endUnary comes right behind beginUnary");
    this.layHeaders(stream.id, trailers, true);
    this.#unary = undefined;
    this.#ended(stream);
  }

  #layData(stream: Stream, bytes: Uint8Array, start: number, length: number, end: boolean, headroom: boolean): void {
    const { output } = this;
    const flags = end ? flag.endStream : 0;
    if (length <= copiedBytesMax) {
      output.reserve(frameHeaderBytes + length);
      const at = output.end;
      writeFrameHeader(output.buffer, at, length, frameType.data, flags, stream.id);
      output.buffer.set(start === 0 && length === bytes.length ? bytes : bytes.subarray(start, start + length), at + 9);
      output.end = at + frameHeaderBytes + length;
    } else if (headroom && start === 0) {
      assert(bytes.byteOffset >= frameHeaderBytes, "head-room is there");
      const framed = new Uint8Array(bytes.buffer, bytes.byteOffset - frameHeaderBytes, frameHeaderBytes + length);
      writeFrameHeader(framed, 0, length, frameType.data, flags, stream.id);
      output.addSegment(framed, 0, framed.length);
    } else {
      output.reserve(frameHeaderBytes);
      writeFrameHeader(output.buffer, output.end, length, frameType.data, flags, stream.id);
      output.end += frameHeaderBytes;
      output.addSegment(bytes, start, start + length);
    }
    stream.sendWindow -= length;
    this.#window -= length;
    this.dataBytesLaid += length;
  }

  #schedule(stream: Stream): void {
    if (stream.scheduled || stream.id === 0) return;
    stream.scheduled = true;
    this.#ring.push(stream);
  }

  /** A request that waited for a stream has one now. */
  opened(stream: Stream): void {
    if (hasSomething(stream)) this.#schedule(stream);
  }

  /** Sends what windows and the output's limit allow (S3, S4). */
  pump(): void {
    // an onWritable handler may write from inside of it
    if (this.#pumping || this.#ringAt === this.#ring.length) return;
    this.#pumping = true;
    let fruitless = 0;
    while (this.#ringAt < this.#ring.length && this.output.bytesUnsent < this.#limits.outputBytesHigh) {
      const waiting = this.#ring.length - this.#ringAt;
      if (fruitless >= waiting) break; // a whole round, and all wait for the connection's window
      const stream = this.#nextInRing();
      if (stream.closed) continue;
      const before = this.dataBytesLaid + this.headersLaid;
      const again = this.#turn(stream, waiting === 1);
      if (again) this.#schedule(stream);
      fruitless = again && this.dataBytesLaid + this.headersLaid === before ? fruitless + 1 : 0;
      if (stream.owesWritable && stream.queuedBytes * 2 <= this.#limits.streamSendBytesHigh) {
        stream.owesWritable = false;
        if (!stream.closed) this.#owner.writableAgain(stream);
      }
    }
    this.#pumping = false;
  }

  #nextInRing(): Stream {
    const stream = this.#ring[this.#ringAt] as Stream;
    this.#ringAt += 1;
    stream.scheduled = false;
    if (this.#ringAt === this.#ring.length) {
      this.#ring.length = 0;
      this.#ringAt = 0;
    } else if (this.#ringAt > 64 && this.#ringAt * 2 > this.#ring.length) {
      this.#ring.splice(0, this.#ringAt);
      this.#ringAt = 0;
    }
    return stream;
  }

  /** One frame of one stream; returns whether it has more that only needs its turn. */
  #turn(stream: Stream, alone: boolean): boolean {
    const item = stream.queue[0];
    if (item === undefined) {
      this.#layTrailers(stream);
      return false;
    }
    const left = item.bytes.length - item.start;
    const turnBytes = alone ? this.#frameBytesMax : Math.min(this.#frameBytesMax, this.#limits.quantumBytes);
    if (left > 0 && stream.sendWindow <= 0) return false; // continues when its window opens
    const length = Math.min(left, turnBytes, stream.sendWindow, this.#window);
    if (left > 0 && length <= 0) return true;
    const whole = length === left || left === 0;
    this.#layData(stream, item.bytes, item.start, left === 0 ? 0 : length, whole && item.ends, item.headroom);
    item.start += left === 0 ? 0 : length;
    stream.queuedBytes -= left === 0 ? 0 : length;
    if (whole) this.#finishItem(stream, item);
    if (stream.closed) return false;
    return hasSomething(stream);
  }

  #finishItem(stream: Stream, item: Queued): void {
    if (item.release !== undefined) this.output.addRelease(item.release);
    if (stream.queue.length === 1) stream.queue = [];
    else stream.queue.shift();
    if (item.ends) this.#ended(stream);
    else if (stream.queue.length === 0) this.#layTrailers(stream);
  }

  #layTrailers(stream: Stream): void {
    if (stream.trailers === undefined) return;
    this.layHeaders(stream.id, stream.trailers, true);
    stream.trailers = undefined;
    this.#ended(stream);
  }

  #ended(stream: Stream): void {
    stream.local = phase.ended;
    this.#owner.localEnded(stream);
  }

  /** The stream is closed: nothing of it will be sent any more. */
  drop(stream: Stream): void {
    if (this.#unary === stream) {
      // Its writer failed. The buffer was used before: bytes of other peers must not go to this one.
      this.#unaryBuffer.fill(0, this.#unaryAt, this.#unaryAt + this.#unaryBytes);
      this.#unary = undefined;
    }
    if (!hasSomething(stream)) return;
    for (const { release } of stream.queue) if (release !== undefined) this.output.addRelease(release);
    stream.queue = [];
    stream.queuedBytes = 0;
    stream.trailers = undefined;
  }
}

export const hasSomething = (stream: Stream): boolean => stream.queue.length > 0 || stream.trailers !== undefined;
