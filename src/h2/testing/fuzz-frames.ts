/**
 * Frames of a broken peer: mostly well-formed and often meaningful, so that they get deep into the machine, and now and
 * then damaged. Everything is drawn from one generator: the same seed gives the same bytes.
 */
import type { Random } from "#base/random.ts";
import { flag, frameType, writeFrameHeader, writeUint32 } from "#h2/frames/frame.ts";
import { encodedBytesMax, HpackEncoder, type HeaderPairs } from "#h2/hpack/hpack-encoder.ts";

const requests: readonly HeaderPairs[] = [
  [
    [":method", "POST"],
    [":scheme", "http"],
    [":path", "/a.b.C/D"],
    [":authority", "x"],
    ["te", "trailers"],
  ],
  [
    [":method", "GET"],
    [":scheme", "https"],
    [":path", "/"],
    [":authority", "example.org"],
    ["grpc-timeout", "10S"],
  ],
  [
    [":method", "POST"],
    [":scheme", "http"],
    [":path", "/up"],
    ["content-length", "10"],
  ],
  [
    [":method", "CONNECT"],
    [":authority", "a:1"],
  ],
];
const responses: readonly HeaderPairs[] = [
  [
    [":status", "200"],
    ["content-type", "application/grpc"],
  ],
  [
    [":status", "103"],
    ["link", "</x>"],
  ],
  [
    [":status", "404"],
    ["content-length", "3"],
  ],
];
const trailers: readonly HeaderPairs[] = [
  [["grpc-status", "0"]],
  [
    ["grpc-message", "no%20way"],
    ["x-bin", "AAEC"],
  ],
];
const oddities: HeaderPairs = [
  ["Bad", "1"],
  ["connection", "x"],
  [":late", "1"],
  ["x", "a\r\nb"],
  ["", ""],
];
const interesting = [0, 1, 2, 9, 16_383, 16_384, 65_535, 0x7fffffff, 0x80000000, 0xffffffff];
const noise = Buffer.alloc(20_000, "The quick brown fox jumps over the lazy dog. 0123456789");

type Kind =
  | "headers"
  | "data"
  | "window"
  | "reset"
  | "settings"
  | "ping"
  | "priority"
  | "goaway"
  | "continuation"
  | "odd";
/** By weight: the most frequent are those of real traffic. */
const kinds: readonly Kind[] = [
  ..."hhhhhhhhdddddddddwwwww"
    .split("")
    .map((letter): Kind => (letter === "h" ? "headers" : letter === "d" ? "data" : "window")),
  "reset",
  "settings",
  "ping",
  "priority",
  "continuation",
];

export class FuzzFrames {
  readonly #random: Random;
  readonly #encoder = new HpackEncoder();
  readonly #toServer: boolean;
  #nextId = 1;
  /** Streams that this side has not ended yet, as far as it knows. */
  #open: number[] = [];

  constructor(random: Random, toServer: boolean) {
    this.#random = random;
    this.#toServer = toServer;
  }

  /** The client under test has opened a stream. */
  opened(id: number): void {
    this.#nextId = id + 2;
    this.#open.push(id);
  }

  next(): Buffer {
    const random = this.#random;
    const rare = random.below(1_000);
    const kind = rare === 0 ? "goaway" : rare < 4 ? "odd" : random.pick(kinds);
    const tooEarly = this.#nextId === 1 && kind !== "settings";
    const bytes = this.#frame(tooEarly ? (this.#toServer ? "headers" : "ping") : kind);
    return random.below(200) < 1 ? this.#damage(bytes) : bytes;
  }

  #frame(kind: Kind): Buffer {
    const random = this.#random;
    switch (kind) {
      case "headers":
        return this.#headers();
      case "data":
        return this.#data();
      case "window":
        return this.#number(frameType.windowUpdate, random.chance(0.5) ? 0 : this.#id(), this.#increment());
      case "reset":
        return this.#reset();
      case "settings":
        return this.#settings();
      case "ping":
        return build(frameType.ping, random.chance(0.3) ? flag.ack : 0, 0, noise.subarray(0, 8));
      case "priority":
        return build(frameType.priority, 0, this.#id(), noise.subarray(3, 8));
      case "goaway":
        return build(frameType.goaway, 0, 0, Buffer.alloc(8 + random.below(20)));
      case "continuation":
        return this.#splitHeaders();
      case "odd":
        return build(random.below(256), random.below(256), random.pick(interesting), this.#some(random.below(60)));
    }
  }

  /** Mostly an open stream; now and then any, old or new. */
  #id(): number {
    if (this.#open.length > 0 && this.#random.chance(0.98)) return this.#random.pick(this.#open);
    const back = this.#random.below(this.#random.chance(0.9) ? 6 : 40) * 2;
    return Math.max(1, this.#nextId - 2 - back);
  }

  #ends(id: number): void {
    this.#open = this.#open.filter((other) => other !== id);
  }

  #increment(): number {
    return this.#random.chance(0.02) ? this.#random.pick(interesting) : 1 + this.#random.below(40_000);
  }

  #some(length: number): Buffer {
    const at = this.#random.below(100);
    return noise.subarray(at, at + length);
  }

  #pairs(): { id: number; pairs: HeaderPairs; ends: boolean } {
    const random = this.#random;
    const fresh = this.#toServer && (this.#open.length === 0 || random.chance(0.75));
    const id = fresh ? this.#nextId : this.#id();
    const ends = fresh ? random.chance(0.4) : this.#toServer ? random.chance(0.99) : random.chance(0.5);
    if (fresh && !ends) this.#open.push(id);
    if (fresh) this.#nextId += 2;
    if (!fresh && ends) this.#ends(id);
    const base = fresh
      ? random.pick(requests)
      : this.#toServer || random.chance(0.4)
        ? random.pick(trailers)
        : random.pick(responses);
    const changing: HeaderPairs = [
      ["x-request", String(random.below(1e6))],
      ["x-meta-bin", "QUJD".repeat(random.below(50))],
    ];
    const odd: HeaderPairs = random.chance(0.01) ? [random.pick(oddities)] : [];
    return { id, pairs: [...base, ...(random.chance(0.3) ? changing : []), ...odd], ends };
  }

  #block(pairs: HeaderPairs): Buffer {
    const target = Buffer.allocUnsafe(encodedBytesMax(pairs));
    return target.subarray(0, this.#encoder.encode(pairs, target, 0));
  }

  #headers(): Buffer {
    const { id, pairs, ends } = this.#pairs();
    const block = this.#block(pairs);
    const flags = flag.endHeaders | (ends ? flag.endStream : 0);
    if (!this.#random.chance(0.1)) return build(frameType.headers, flags, id, block);
    const padding = this.#random.below(20);
    const payload = Buffer.concat([Buffer.from([padding, 0, 0, 0, 0, 15]), block, Buffer.alloc(padding)]);
    return build(frameType.headers, flags | flag.padded | flag.priority, id, payload);
  }

  #splitHeaders(): Buffer {
    const { id, pairs, ends } = this.#pairs();
    const block = this.#block(pairs);
    const cut = this.#random.below(block.length + 1);
    return Buffer.concat([
      build(frameType.headers, ends ? flag.endStream : 0, id, block.subarray(0, cut)),
      build(frameType.continuation, flag.endHeaders, id, block.subarray(cut)),
    ]);
  }

  #data(): Buffer {
    const random = this.#random;
    const length = random.chance(0.8) ? random.below(300) : random.below(16_385);
    const flags = random.chance(0.2) ? flag.endStream : 0;
    const id = this.#id();
    if (flags !== 0) this.#ends(id);
    if (random.chance(0.9)) return build(frameType.data, flags, id, this.#some(length));
    const padding = Math.min(random.below(256), 16_383 - Math.min(length, 16_000));
    const payload = Buffer.concat([
      Buffer.from([padding]),
      this.#some(Math.min(length, 16_000)),
      Buffer.alloc(padding),
    ]);
    return build(frameType.data, flags | flag.padded, id, payload);
  }

  #settings(): Buffer {
    const random = this.#random;
    if (random.chance(0.3)) return build(frameType.settings, flag.ack, 0, noise.subarray(0, 0));
    const payload = Buffer.alloc(6 * random.below(4));
    for (let at = 0; at < payload.length; at += 6) {
      payload[at + 1] = random.pick([1, 3, 4, 4, 5, 6, 99]);
      const usual = payload[at + 1] === 5 ? 16_384 + random.below(50_000) : random.below(100_000);
      writeUint32(payload, at + 2, random.chance(0.03) ? random.pick(interesting) : usual);
    }
    return build(frameType.settings, 0, 0, payload);
  }

  #reset(): Buffer {
    const id = this.#id();
    this.#ends(id);
    return this.#number(frameType.rstStream, id, this.#random.below(14));
  }

  #number(type: number, id: number, value: number): Buffer {
    const payload = Buffer.allocUnsafe(4);
    writeUint32(payload, 0, value);
    return build(type, 0, id, payload);
  }

  #damage(bytes: Buffer): Buffer {
    const random = this.#random;
    const hurt = Buffer.from(bytes);
    switch (random.below(5)) {
      case 0: // a bit anywhere
        flip(hurt, random.below(hurt.length), random);
        return hurt;
      case 1: // a bit in the frame's header
        flip(hurt, random.below(9), random);
        return hurt;
      case 2: // several bytes of the payload
        for (let i = 0; i < 4; i += 1) if (hurt.length > 9) hurt[9 + random.below(hurt.length - 9)] = random.below(256);
        return hurt;
      case 3: // cut off, with a length that agrees
        return build(hurt[3]!, hurt[4]!, hurt.readUInt32BE(5), hurt.subarray(9, 9 + random.below(hurt.length - 8)));
      default: // twice
        return Buffer.concat([hurt, hurt]);
    }
  }
}

function flip(bytes: Buffer, at: number, random: Random): void {
  bytes[at] = bytes[at]! ^ (1 << random.below(8));
}

function build(type: number, flags: number, id: number, payload: Uint8Array): Buffer {
  const bytes = Buffer.allocUnsafe(9 + payload.length);
  writeFrameHeader(bytes, 0, payload.length, type, flags, id);
  bytes.set(payload, 9);
  return bytes;
}
