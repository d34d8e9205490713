/**
 * One fuzzed connection: a peer from FuzzFrames, handlers that act at random, a socket that is sometimes slow, and a
 * clock that sometimes jumps. The invariants are checked after every step.
 */
import { assert } from "#base/assert.ts";
import { Random } from "#base/random.ts";
import { Connection } from "#h2/connection/connection.ts";
import { clientPreface, frameType } from "#h2/frames/frame.ts";
import { FuzzFrames } from "./fuzz-frames.ts";
import { ConstantHeaders } from "#h2/hpack/hpack-encoder.ts";
import type { H2Limits } from "#h2/connection/limits.ts";
import type { Batch } from "#h2/connection/output.ts";
import { settings, settingsAck } from "./rig.ts";
import { phase, type Stream, type StreamHandler } from "#h2/connection/stream.ts";

const okHeaders = new ConstantHeaders([
  [":status", "200"],
  ["content-type", "application/grpc"],
]);
const okTrailers = new ConstantHeaders([["grpc-status", "0"]]);
const requestHeaders = new ConstantHeaders([
  [":method", "POST"],
  [":scheme", "http"],
  [":path", "/x"],
  [":authority", "x"],
]);
const body = Buffer.alloc(40_000, "b");

const limits: Partial<H2Limits> = {
  streamsMax: 30,
  streamWindowBytes: 30_000,
  streamWindowBytesMax: 60_000,
  connectionWindowBytes: 70_000,
  connectionWindowBytesMax: 150_000,
  outputBytesHigh: 40_000,
  streamSendBytesHigh: 30_000,
  controlBytesMax: 60_000,
  streamsWaitingMax: 100,
};

export class FuzzRun {
  readonly #random: Random;
  readonly #frames: FuzzFrames;
  readonly #connection: Connection;
  readonly #isServer: boolean;
  readonly #streams: Stream[] = [];
  readonly #over = new Set<Stream>();
  #released = 0;
  #handedOver = 0;
  #inFlight: Batch | undefined;
  #nowMs = 0;
  #failure: unknown;
  framesGiven = 0;

  constructor(seed: string) {
    this.#random = new Random(seed);
    this.#isServer = this.#random.chance(0.7);
    this.#frames = new FuzzFrames(this.#random.fork("frames"), this.#isServer);
    this.#connection = new Connection({
      role: this.#isServer ? "server" : "client",
      limits,
      nowMs: 0,
      handler: {
        onRequest: (stream) => {
          this.#begin(stream);
          return this.#handler;
        },
        onHandlerFailed: (error) => {
          this.#failure = error; // a failed assertion in a handler is what the fuzzer looks for
        },
      },
    });
    if (this.#isServer) this.#connection.receive(clientPreface, 0);
    this.#connection.receive(Buffer.concat([settings(), settingsAck]), 0);
  }

  /** Goes on until the connection ends, or this many frames were sent. */
  run(framesMax: number): void {
    while (this.framesGiven < framesMax && !this.#connection.closed) {
      this.#give();
      this.#do();
      this.#check();
    }
    this.#connection.socketClosed("the run is over");
    this.#drain();
    this.#drain();
    assert(this.#connection.streamCount === 0, "no stream outlives its connection");
    assert(this.#released === this.#handedOver, "everything that was handed over is released, once");
  }

  #give(): void {
    const random = this.#random;
    const count = 1 + random.below(6);
    this.framesGiven += count;
    if (count === 1) return this.#connection.receive(this.#frames.next(), this.#nowMs);
    const bytes = Buffer.concat(Array.from({ length: count }, () => this.#frames.next()));
    if (random.chance(0.7)) return this.#connection.receive(bytes, this.#nowMs);
    for (let at = 0; at < bytes.length;) {
      const piece = 1 + random.below(random.chance(0.2) ? 12 : 3_000);
      this.#connection.receive(bytes.subarray(at, at + piece), this.#nowMs);
      at += piece;
    }
  }

  #do(): void {
    const random = this.#random;
    if (random.chance(0.7)) this.#drain();
    if (random.chance(0.3)) this.#nowMs += random.below(50);
    if (random.chance(0.02)) this.#connection.tick((this.#nowMs += random.below(3_000)));
    if (random.chance(0.002)) this.#connection.drain();
    if (!this.#isServer && random.chance(0.5) && this.#connection.takesRequests && this.#streams.length < 40)
      this.#ask();
    const stream = this.#streams.length > 0 ? random.pick(this.#streams) : undefined;
    if (stream !== undefined) this.#touch(stream);
  }

  #ask(): void {
    const stream = this.#connection.request(requestHeaders, this.#handler, this.#random.chance(0.3));
    this.#streams.push(stream);
    if (stream.id !== 0) this.#frames.opened(stream.id);
  }

  #begin(stream: Stream): void {
    const mood = this.#random.below(10);
    if (mood < 4) {
      stream.sendUnary(okHeaders, body.subarray(0, this.#random.below(300)), okTrailers);
      return;
    }
    if (mood === 4) return stream.reset(this.#random.below(14));
    this.#streams.push(stream);
  }

  /** What the layer above might do with a stream at any time. */
  #touch(stream: Stream): void {
    const random = this.#random;
    if (stream.closed) {
      this.#streams.splice(this.#streams.indexOf(stream), 1);
      return;
    }
    const mood = random.below(8);
    if (mood === 0) stream.reset();
    else if (mood < 3 && this.#owed(stream) > 0) this.#consume(stream, 1 + random.below(this.#owed(stream)));
    else if (stream.local === phase.waiting && this.#isServer) stream.sendHeaders(okHeaders, random.chance(0.2));
    else if (stream.local === phase.open && stream.trailers === undefined && stream.queue.at(-1)?.ends !== true)
      this.#write(stream);
  }

  #write(stream: Stream): void {
    const random = this.#random;
    if (random.chance(0.3)) return stream.sendTrailers(okTrailers);
    if (stream.unsentBytes > 60_000) return;
    this.#handedOver += 1;
    const bytes = body.subarray(0, random.below(random.chance(0.5) ? 200 : 40_000));
    stream.write(bytes, { end: random.chance(0.2), release: () => void (this.#released += 1) });
  }

  readonly #handler: StreamHandler = {
    onHeaders: (stream) => this.#heard(stream),
    onData: (stream, bytes) => {
      this.#heard(stream);
      stream.tag = this.#owed(stream) + bytes.length;
      if (this.#random.chance(0.6)) this.#consume(stream, bytes.length);
    },
    onTrailers: (stream) => this.#heard(stream),
    onWritable: (stream) => this.#heard(stream),
    onReset: (stream) => {
      this.#heard(stream);
      this.#over.add(stream);
    },
  };

  /** Received and not yet consumed. */
  #owed(stream: Stream): number {
    return Number(stream.tag ?? 0);
  }

  #consume(stream: Stream, bytes: number): void {
    stream.tag = this.#owed(stream) - bytes;
    stream.consume(bytes);
  }

  #heard(stream: Stream): void {
    assert(!this.#over.has(stream), "C1: nothing is heard of a stream that is over");
  }

  /** A socket that takes a batch now, and is done with it at the next call. */
  #drain(): void {
    const done = this.#inFlight;
    if (done !== undefined) this.#connection.outputDone(done, this.#nowMs);
    this.#inFlight = this.#connection.takeOutput();
    if (this.#inFlight !== undefined && this.#random.chance(0.02)) checkFrames(this.#inFlight);
  }

  #check(): void {
    const connection = this.#connection;
    if (this.#failure !== undefined) throw new Error("a handler failed", { cause: this.#failure });
    const bug = connection.closedWhy?.error;
    if (bug !== undefined) throw new Error("the machine failed", { cause: bug });
    assert(connection.streamCount <= (this.#isServer ? 30 : 100), "C2: streams are bounded");
    const waiting = connection.outputBytes;
    assert(waiting < 40_000 + 65_536 + 60_000 + 20_000, `C2: ${waiting} bytes wait for the socket`);
    let unconsumed = 0;
    for (const stream of this.#streams) unconsumed += stream.unconsumed;
    assert(unconsumed <= 150_000, "C2: what lies unconsumed is bounded by the connection's window");
  }
}

/** Our output must be whole frames of existing types and allowed lengths. */
function checkFrames(batch: Batch): void {
  const bytes = Buffer.concat(batch.chunks);
  let at = bytes.subarray(0, clientPreface.length).equals(clientPreface) ? clientPreface.length : 0;
  while (at < bytes.length) {
    const length = bytes.readUIntBE(at, 3);
    assert(length <= 65_536 && bytes[at + 3]! <= frameType.continuation, "what we send is frames");
    at += 9 + length;
  }
  assert(at === bytes.length, "what we send is whole frames");
}
