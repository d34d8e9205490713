/**
 * A test bench for one connection without a socket: frames go in as bytes, frames come out as readable lines
 * ("RST_STREAM 1 protocolError"), and so do the handler calls ("request 1 POST /").
 */
import { Connection } from "#h2/connection/connection.ts";
import type { ConnectionHandler } from "#h2/connection/connection-handler.ts";
import { errorCodeName } from "#h2/frames/error-codes.ts";
import {
  clientPreface,
  flag,
  frameType,
  readUint31,
  readUint32,
  writeFrameHeader,
  writeUint32,
} from "#h2/frames/frame.ts";
import type { HeaderList } from "#h2/hpack/header-list.ts";
import { HpackDecoder } from "#h2/hpack/hpack-decoder.ts";
import { encodedBytesMax, HpackEncoder, type HeaderPairs } from "#h2/hpack/hpack-encoder.ts";
import type { H2Limits } from "#h2/connection/limits.ts";
import type { Stream, StreamHandler } from "#h2/connection/stream.ts";

export function frame(type: number, flags: number, streamId: number, payload: Uint8Array = Buffer.alloc(0)): Buffer {
  const bytes = Buffer.alloc(9 + payload.length);
  writeFrameHeader(bytes, 0, payload.length, type, flags, streamId);
  bytes.set(payload, 9);
  return bytes;
}

export const data = (id: number, payload: string | Uint8Array, flags = 0): Buffer =>
  frame(frameType.data, flags, id, Buffer.from(payload));
export const dataEnd = (id: number, payload: string | Uint8Array = ""): Buffer => data(id, payload, flag.endStream);

const number = (value: number): Buffer => {
  const bytes = Buffer.alloc(4);
  writeUint32(bytes, 0, value);
  return bytes;
};
export const rst = (id: number, code = 8): Buffer => frame(frameType.rstStream, 0, id, number(code));
export const windowUpdate = (id: number, increment: number): Buffer =>
  frame(frameType.windowUpdate, 0, id, number(increment));
export const ping = (flags = 0, payload: Uint8Array = Buffer.alloc(8, 7)): Buffer =>
  frame(frameType.ping, flags, 0, payload);
export const goaway = (lastId: number, code = 0): Buffer =>
  frame(frameType.goaway, 0, 0, Buffer.concat([number(lastId), number(code)]));
export const priority = (id: number, dependsOn = 0): Buffer =>
  frame(frameType.priority, 0, id, Buffer.concat([number(dependsOn), Buffer.from([15])]));
export function settings(pairs: readonly (readonly [number, number])[] = []): Buffer {
  const payload = pairs.map(([id, value]) => Buffer.concat([Buffer.from([0, id]), number(value)]));
  return frame(frameType.settings, 0, 0, Buffer.concat(payload));
}
export const settingsAck: Buffer = frame(frameType.settings, flag.ack, 0);

export const request: HeaderPairs = [
  [":method", "POST"],
  [":scheme", "http"],
  [":path", "/"],
  [":authority", "example.org"],
];

export type RigOptions = {
  readonly role?: "server" | "client";
  readonly limits?: Partial<H2Limits>;
  readonly takesProtocols?: boolean;
  /** Server: what to do with a request, besides recording it. */
  readonly onRequest?: (stream: Stream, headers: HeaderList, ended: boolean) => void;
  readonly onData?: (stream: Stream, bytes: Buffer, ended: boolean) => void;
  readonly onWritable?: (stream: Stream) => void;
  /** False to begin with the very first byte. */
  readonly greeted?: boolean;
};

export class Rig {
  readonly connection: Connection;
  /** The recorded handler calls. */
  readonly heard: string[] = [];
  readonly streams = new Map<number, Stream>();
  readonly encoder = new HpackEncoder();
  readonly decoder = new HpackDecoder({ tableBytesMax: 4096, headerListBytesMax: 1e6, headerCountMax: 1e4 });
  nowMs = 1_000;
  readonly #options: RigOptions;

  constructor(options: RigOptions = {}) {
    const { role = "server", limits = {}, greeted = true, takesProtocols = false } = options;
    this.#options = options;
    this.connection = new Connection({ role, limits, takesProtocols, handler: this.#handler(), nowMs: this.nowMs });
    if (!greeted) return;
    if (role === "server") this.connection.receive(clientPreface, this.nowMs);
    this.connection.receive(Buffer.concat([settings(), settingsAck]), this.nowMs);
    this.sent();
  }

  #handler(): ConnectionHandler {
    return {
      onRequest: (stream, headers, ended) => {
        this.streams.set(stream.id, stream);
        this.heard.push(`request ${stream.id} ${headers.method} ${headers.path ?? ""}${ended ? " end" : ""}`);
        this.#options.onRequest?.(stream, headers, ended);
        return this.streamHandler;
      },
      onGoaway: (lastId, code) => this.heard.push(`goaway ${lastId} ${errorCodeName(code)}`),
      onClosed: ({ by, code, why }) => this.heard.push(`closed by ${by} ${errorCodeName(code)}: ${why}`),
      onHandlerFailed: (error) => this.heard.push(`failed ${error instanceof Error ? error.message : String(error)}`),
    };
  }

  readonly streamHandler: StreamHandler = {
    onHeaders: (stream, headers, ended) =>
      this.heard.push(`response ${stream.id} ${headers.status}${ended ? " end" : ""}`),
    onData: (stream, bytes, ended) => {
      this.heard.push(`data ${stream.id} ${bytes.length}${ended ? " end" : ""}`);
      this.#options.onData?.(stream, bytes, ended);
    },
    onTrailers: (stream, trailers) =>
      this.heard.push(
        `trailers ${stream.id} ${trailers.fields.map(({ name, value }) => `${name}=${value}`).join(" ")}`,
      ),
    onWritable: (stream) => {
      this.heard.push(`writable ${stream.id}`);
      this.#options.onWritable?.(stream);
    },
    onReset: (stream, code) => this.heard.push(`reset ${stream.id} ${errorCodeName(code)}`),
  };

  /** A header block as the peer would send it: one encoder for all, as on a real connection. */
  block(pairs: HeaderPairs): Buffer {
    const target = Buffer.alloc(encodedBytesMax(pairs));
    return target.subarray(0, this.encoder.encode(pairs, target, 0));
  }

  headers(id: number, pairs: HeaderPairs = request, flags: number = flag.endHeaders): Buffer {
    return frame(frameType.headers, flags, id, this.block(pairs));
  }

  headersEnd(id: number, pairs: HeaderPairs = request): Buffer {
    return this.headers(id, pairs, flag.endHeaders | flag.endStream);
  }

  /** Receives the frames; returns what was sent back. */
  give(...frames: readonly Uint8Array[]): readonly string[] {
    for (const one of frames) this.connection.receive(one, this.nowMs);
    return this.sent();
  }

  after(ms: number): readonly string[] {
    this.nowMs += ms;
    this.connection.tick(this.nowMs);
    return this.sent();
  }

  /** Takes all output, like a socket that is always ready. */
  sent(): readonly string[] {
    return this.sentBytes().flatMap((bytes) => this.#describe(bytes));
  }

  sentBytes(): Buffer[] {
    const all: Buffer[] = [];
    for (;;) {
      const batch = this.connection.takeOutput();
      if (batch === undefined) return all.length === 0 ? [] : [Buffer.concat(all)];
      all.push(...batch.chunks.map((chunk) => Buffer.from(chunk)));
      this.connection.outputDone(batch, this.nowMs);
    }
  }

  #describe(bytes: Buffer): string[] {
    const lines: string[] = [];
    let at = bytes.subarray(0, clientPreface.length).equals(clientPreface) ? clientPreface.length : 0;
    while (at < bytes.length) {
      const end = at + 9 + bytes.readUIntBE(at, 3);
      lines.push(this.#describeFrame(bytes.subarray(at, end)));
      at = end;
    }
    return lines;
  }

  #describeFrame(bytes: Buffer): string {
    const type = Object.entries(frameType).find(([, value]) => value === bytes[3])?.[0] ?? `type-${bytes[3]}`;
    const name = type.replaceAll(/[A-Z]/g, (letter) => `_${letter}`).toUpperCase();
    const id = readUint31(bytes, 5);
    const payload = bytes.subarray(9);
    const end = (bytes[4]! & flag.endStream) !== 0 ? " end" : "";
    switch (bytes[3]) {
      case frameType.data:
        return `DATA ${id} ${payload.length}${end}`;
      case frameType.headers: {
        const fields = this.decoder.decode(payload, 0, payload.length);
        return `HEADERS ${id} ${fields.map((field) => `${field.name}=${field.value}`).join(" ")}${end}`;
      }
      case frameType.rstStream:
        return `RST_STREAM ${id} ${errorCodeName(readUint32(payload, 0))}`;
      case frameType.windowUpdate:
        return `WINDOW_UPDATE ${id} ${readUint32(payload, 0)}`;
      case frameType.goaway:
        return `GOAWAY ${readUint31(payload, 0)} ${errorCodeName(readUint32(payload, 4))}`;
      case frameType.ping:
        return `PING${end === "" ? "" : " ack"} ${payload.toString("hex")}`;
      case frameType.settings:
        return `SETTINGS${end === "" ? ` ${payload.toString("hex")}` : " ack"}`;
      default:
        return `${name} ${id} ${payload.length}`;
    }
  }
}
