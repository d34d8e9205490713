/**
 * A client with very little overhead: all requests of a connection are encoded beforehand, and one is sent for each
 * answer that arrives. It reads only frame headers. Two profiles of headers:
 * constant the same for every call, so that after the first one everything is indexed;
 * changing like a build client's: grpc-timeout and a value of 170 characters are new in every call, and put into the
 * table by an encoder that indexes everything.
 */
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";
import { Random } from "#base/random.ts";
import { clientPreface, flag, frameHeaderBytes, frameType, writeFrameHeader } from "#h2/frames/frame.ts";
import { huffmanEncode, huffmanLength } from "#h2/hpack/huffman.ts";
import { settings, settingsAck, windowUpdate } from "#h2/testing/rig.ts";

export type Profile = "constant" | "changing";
export type Load = {
  /** Connections go to them in turn. */
  readonly ports: readonly number[];
  readonly profile: Profile;
  readonly connections: number;
  readonly streams: number;
  /** Ends after this many calls, or when the time is up. */
  readonly calls: number;
  readonly forMs?: number;
  /** Of every request: a message with its prefix. */
  readonly body?: Buffer;
  /**
   * Instead of one body for all: the body of a connection's call. The calls in flight must fit into the server's
   * window.
   */
  readonly bodies?: (connection: number, call: number) => Buffer;
  readonly path?: string;
  /** Sends no credentials: for a server that needs none. */
  readonly anonymous?: boolean;
  readonly tls?: boolean;
};

/** The outcome. */
export type Loaded = {
  readonly calls: number;
  readonly seconds: number;
  /** Of each call, in milliseconds. */
  readonly tookMs: Float64Array;
  /** All DATA that came back. */
  readonly dataBytes: number;
};

export const bearer = "Bearer mr-bench-0123456789abcdef0123456789abcdef";

/** Of one call, as gRPC clients send them. */
export const headersOf = (path: string) =>
  [
    [":method", "POST"],
    [":scheme", "http"],
    [":path", path],
    [":authority", "127.0.0.1"],
    ["content-type", "application/grpc"],
    ["te", "trailers"],
    ["authorization", bearer],
  ] as const;
const findMissing = "/build.bazel.remote.execution.v2.ContentAddressableStorage/FindMissingBlobs";
const anyBody = Buffer.alloc(219, 1);
const base64 = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const staticFields = new Map([
  [":method POST", 3],
  [":scheme http", 6],
]);
const staticNames = new Map([
  [":path", 4],
  [":authority", 1],
  ["authorization", 23],
  ["content-type", 31],
  ["user-agent", 58],
]);

/** HPACK as some clients use it: everything that is not in the table is added. */
class IndexAll {
  #table: { readonly name: string; readonly value: string }[] = [];
  #size = 0;

  encode(pairs: readonly (readonly [string, string])[]): Buffer {
    return Buffer.from(pairs.flatMap(([name, value]) => this.#field(name, value)));
  }

  #field(name: string, value: string): number[] {
    const fixed = staticFields.get(`${name} ${value}`);
    if (fixed !== undefined) return [0x80 | fixed];
    const at = this.#table.findIndex((entry) => entry.name === name && entry.value === value);
    if (at >= 0) return integer(62 + at, 0x7f, 0x80);
    const named = this.#table.findIndex((entry) => entry.name === name);
    const nameIndex = staticNames.get(name) ?? (named < 0 ? 0 : 62 + named);
    this.#table.unshift({ name, value });
    this.#size += name.length + value.length + 32;
    while (this.#size > 4096) {
      const gone = this.#table.pop();
      this.#size -= gone === undefined ? 0 : gone.name.length + gone.value.length + 32;
    }
    return [...integer(nameIndex, 0x3f, 0x40), ...(nameIndex === 0 ? string(name) : []), ...string(value)];
  }
}

function integer(value: number, prefix: number, pattern: number): number[] {
  if (value < prefix) return [pattern | value];
  const bytes = [pattern | prefix];
  for (value -= prefix; value >= 128; value >>>= 7) bytes.push((value & 127) | 128);
  return [...bytes, value];
}

function string(text: string): number[] {
  const bytes = Buffer.alloc(huffmanLength(text));
  huffmanEncode(text, bytes, 0);
  return [...integer(bytes.length, 0x7f, 0x80), ...bytes];
}

function frame(type: number, flags: number, id: number, payload: Buffer): Buffer {
  const bytes = Buffer.alloc(frameHeaderBytes + payload.length);
  writeFrameHeader(bytes, 0, payload.length, type, flags, id);
  payload.copy(bytes, frameHeaderBytes);
  return bytes;
}

/** Every request of one connection, and where each of them ends. */
type Laid = { readonly bytes: Buffer; readonly ends: Float64Array };

type Asking = {
  readonly path: string;
  readonly anonymous: boolean;
  readonly bodyOf: (call: number) => Buffer;
};

function layOut(profile: Profile, calls: number, seed: string, { path, anonymous, bodyOf }: Asking): Laid {
  const random = new Random(seed);
  const encoder = new IndexAll();
  const parts: Buffer[] = [];
  const ends = new Float64Array(calls);
  let size = 0;
  for (let call = 0; call < calls; call += 1) {
    const text = profile === "changing" ? Array.from({ length: 170 }, () => base64[random.below(64)]).join("") : "";
    const changing = [
      ["build.bazel.remote.execution.v2.requestmetadata-bin", text],
      ["grpc-timeout", `${59_000_000 + random.below(900_000)}u`],
    ] as const;
    const block = encoder.encode([
      [":method", "POST"],
      [":scheme", "http"],
      [":path", path],
      [":authority", "127.0.0.1:8980"],
      ["content-type", "application/grpc"],
      ["te", "trailers"],
      ["user-agent", "grpc-java-netty/1.66.0"],
      ["grpc-accept-encoding", "gzip"],
      ...(anonymous ? [] : ([["authorization", bearer]] as const)),
      ...(profile === "changing" ? changing : []),
    ]);
    const id = call * 2 + 1;
    const request = Buffer.concat([
      frame(frameType.headers, flag.endHeaders, id, block),
      frame(frameType.data, flag.endStream, id, bodyOf(call)),
    ]);
    parts.push(request);
    size += request.length;
    ends[call] = size;
  }
  return { bytes: Buffer.concat(parts), ends };
}

const laidOut = new Map<string, Laid>();

/** Encoded once, and sent to each contestant. */
function laidFor(profile: Profile, calls: number, at: number, body: Buffer): Laid {
  const key = `${profile}:${at}:${body.length}`;
  let laid = laidOut.get(key);
  if (!laid || laid.ends.length < calls)
    laidOut.set(
      key,
      (laid = layOut(profile, calls, `${profile}:${at}`, { path: findMissing, anonymous: false, bodyOf: () => body })),
    );
  return laid;
}

/** One connection's share of the calls. */
class Lane {
  answered = 0;
  dataBytes = 0;
  readonly tookMs: Float64Array;
  readonly #socket: Socket;
  readonly #laid: Laid;
  readonly #calls: number;
  readonly #streams: number;
  readonly #sentMono: Float64Array;
  readonly #done = Promise.withResolvers<void>();
  #sent = 0;
  #untilMono = 0;
  /** For a frame that ends in another chunk: bytes to come, or the part of its header that is here. */
  #skip = 0;
  #head = Buffer.alloc(0);

  constructor(socket: Socket, laid: Laid, calls: number, streams: number) {
    this.#socket = socket;
    this.#laid = laid;
    this.#calls = calls;
    this.#streams = streams;
    this.tookMs = new Float64Array(calls);
    this.#sentMono = new Float64Array(calls);
    socket.on("error", this.#done.reject);
    socket.on("close", () => this.#done.reject(new Error("the server hung up")));
    socket.on("data", (chunk: Buffer) => this.#read(chunk));
  }

  run(untilMono: number): Promise<void> {
    this.#untilMono = untilMono;
    this.#send(Math.min(this.#streams, this.#calls));
    return this.#done.promise;
  }

  #send(upTo: number): void {
    const { bytes, ends } = this.#laid;
    const from = this.#sent === 0 ? 0 : ends[this.#sent - 1];
    this.#sentMono.fill(performance.now(), this.#sent, upTo);
    this.#socket.write(bytes.subarray(from, ends[upTo - 1]));
    this.#sent = upTo;
  }

  #read(chunk: Buffer): void {
    if (this.#skip >= chunk.length) {
      this.#skip -= chunk.length;
      return;
    }
    const before = this.answered;
    const nowMono = performance.now();
    const rest = this.#skip > 0 ? chunk.subarray(this.#skip) : chunk;
    const all = this.#head.length > 0 ? Buffer.concat([this.#head, rest]) : rest;
    let at = 0;
    for (; all.length - at >= frameHeaderBytes; at += this.#frame(all, at, nowMono));
    this.#skip = Math.max(0, at - all.length);
    this.#head = at < all.length ? Buffer.from(all.subarray(at)) : Buffer.alloc(0);
    const mayGoOn = nowMono < this.#untilMono;
    if (this.answered === this.#calls || (!mayGoOn && this.answered === this.#sent)) return this.#end();
    const upTo = Math.min(this.#calls, this.#sent + this.answered - before);
    if (mayGoOn && upTo > this.#sent) this.#send(upTo);
  }

  #frame(all: Buffer, at: number, nowMono: number): number {
    const length = all.readUIntBE(at, 3);
    const type = all[at + 3] as number;
    if (type === frameType.data) this.dataBytes += length;
    const isLast = ((all[at + 4] as number) & flag.endStream) !== 0;
    if (isLast && (type === frameType.headers || type === frameType.data)) {
      const call = (all.readUInt32BE(at + 5) - 1) / 2;
      this.tookMs[this.answered] = nowMono - (this.#sentMono[call] ?? 0);
      this.answered += 1;
    }
    return frameHeaderBytes + length;
  }

  #end(): void {
    this.#socket.removeAllListeners("close");
    this.#socket.destroy();
    this.#done.resolve();
  }
}

async function connected(port: number, tls: boolean): Promise<Socket> {
  const to = { port, host: "127.0.0.1", noDelay: true };
  const socket = tls ? connectTls({ ...to, ALPNProtocols: ["h2"], rejectUnauthorized: false }) : connect(to);
  await once(socket, tls ? "secureConnect" : "connect");
  return socket;
}

/** Prepares, then returns the function to run: so that only the run itself is measured. */
export async function prepareLoad(load: Load): Promise<() => Promise<Loaded>> {
  const { ports, profile, connections, streams, calls, forMs = Number.POSITIVE_INFINITY, body = anyBody } = load;
  const { path = findMissing, anonymous = false, bodies } = load;
  const each = Math.floor(calls / connections);
  const lanes = await Promise.all(
    Array.from({ length: connections }, async (_, at) => {
      const laid = bodies
        ? layOut(profile, each, `${profile}:${at}`, { path, anonymous, bodyOf: (call) => bodies(at, call) })
        : laidFor(profile, each, at, body);
      const socket = await connected(ports[at % ports.length] as number, load.tls ?? false);
      socket.write(Buffer.concat([clientPreface, settings(), settingsAck, windowUpdate(0, 0x7fff0000 - 65_535)]));
      return new Lane(socket, laid, each, streams);
    }),
  );
  return async () => {
    const startedMono = performance.now();
    await Promise.all(lanes.map((lane) => lane.run(startedMono + forMs)));
    const seconds = (performance.now() - startedMono) / 1_000;
    const tookMs = new Float64Array(lanes.reduce((sum, lane) => sum + lane.answered, 0));
    let at = 0;
    for (const { tookMs: some, answered } of lanes) {
      tookMs.set(some.subarray(0, answered), at);
      at += answered;
    }
    const dataBytes = lanes.reduce((sum, lane) => sum + lane.dataBytes, 0);
    return { calls: at, seconds, tookMs, dataBytes };
  };
}
