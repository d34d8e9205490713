/**
 * A client that costs next to nothing: all requests of a connection are laid out as bytes beforehand, and as many are
 * sent as answers came in. It looks at frame headers only. Two profiles of headers:
 *   constant    the same for every call, so that after the first one all is indexed;
 *   changing    as a build client's: grpc-timeout and a value of 170 characters are new in every call, and put into the
 *               table by an encoder that indexes everything.
 */
import { once } from "node:events";
import { connect } from "node:net";
import { Random } from "#base/random.ts";
import { flag, frameType, writeFrameHeader } from "#h2/frame.ts";
import { huffmanEncode, huffmanLength } from "#h2/huffman.ts";
import { clientPreface } from "#h2/frame.ts";
import { settings, settingsAck, windowUpdate } from "#h2/rig.ts";

export type Profile = "constant" | "changing";
export type Load = {
  readonly port: number;
  readonly profile: Profile;
  readonly connections: number;
  readonly streams: number;
  readonly calls: number;
};

const body = Buffer.alloc(219, 1);
const base64 = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const staticFields = new Map([
  [":method POST", 3],
  [":scheme http", 6],
]);
const staticNames = new Map([
  [":path", 4],
  [":authority", 1],
  ["content-type", 31],
  ["user-agent", 58],
]);

/** HPACK as some clients speak it: whatever is not in the table is put there. */
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
  const bytes = Buffer.alloc(9 + payload.length);
  writeFrameHeader(bytes, 0, payload.length, type, flags, id);
  payload.copy(bytes, 9);
  return bytes;
}

/** Every request of one connection, and where each of them ends. */
function layOut(profile: Profile, calls: number, seed: string): { bytes: Buffer; ends: Float64Array } {
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
      [":path", "/build.bazel.remote.execution.v2.ContentAddressableStorage/FindMissingBlobs"],
      [":authority", "127.0.0.1:8980"],
      ["content-type", "application/grpc"],
      ["te", "trailers"],
      ["user-agent", "grpc-java-netty/1.66.0"],
      ["grpc-accept-encoding", "gzip"],
      ...(profile === "changing" ? changing : []),
    ]);
    const id = call * 2 + 1;
    const request = Buffer.concat([
      frame(frameType.headers, flag.endHeaders, id, block),
      frame(frameType.data, flag.endStream, id, body),
    ]);
    parts.push(request);
    size += request.length;
    ends[call] = size;
  }
  return { bytes: Buffer.concat(parts), ends };
}

/** Prepares, then answers how to run: so that only the run itself is measured. */
export async function prepareLoad({ port, profile, connections, streams, calls }: Load): Promise<() => Promise<void>> {
  const each = Math.floor(calls / connections);
  const runs = await Promise.all(
    Array.from({ length: connections }, async (_, at) => {
      const { bytes, ends } = layOut(profile, each, `${profile}:${at}`);
      const socket = connect({ port, host: "127.0.0.1", noDelay: true });
      await once(socket, "connect");
      socket.write(Buffer.concat([clientPreface, settings(), settingsAck, windowUpdate(0, 0x7fff0000 - 65_535)]));
      return async (): Promise<void> => {
        const done = Promise.withResolvers<void>();
        let sent = Math.min(streams, each);
        let answered = 0;
        let skip = 0;
        let head = Buffer.alloc(0);
        socket.on("error", done.reject);
        socket.on("close", () => done.reject(new Error("the server hung up")));
        socket.on("data", (chunk: Buffer) => {
          const before = answered;
          let from = 0;
          if (skip >= chunk.length) {
            skip -= chunk.length;
            return;
          }
          from = skip;
          skip = 0;
          const all = head.length > 0 ? Buffer.concat([head, chunk.subarray(from)]) : chunk.subarray(from);
          let place = 0;
          while (all.length - place >= 9) {
            const length = all.readUIntBE(place, 3);
            if (all[place + 3] === frameType.headers && (all[place + 4]! & flag.endStream) !== 0) answered += 1;
            place += 9 + length;
          }
          if (place > all.length) skip = place - all.length;
          head = place < all.length ? Buffer.from(all.subarray(place)) : Buffer.alloc(0);
          if (answered === each) {
            socket.removeAllListeners("close");
            socket.destroy();
            return done.resolve();
          }
          const next = Math.min(each, sent + answered - before);
          if (next > sent) socket.write(bytes.subarray(ends[sent - 1], ends[next - 1]));
          sent = next;
        });
        socket.write(bytes.subarray(0, ends[sent - 1]));
        await done.promise;
      };
    }),
  );
  return async () => void (await Promise.all(runs.map((run) => run())));
}
