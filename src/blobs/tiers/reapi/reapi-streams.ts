/** Large blobs to and from a REAPI server, by ByteStream. */
import { randomUUID } from "node:crypto";
import type { Clock } from "#base/clock.ts";
import type { Digest } from "#base/digest.ts";
import { Fault, isFault } from "#base/fault.ts";
import { partsOf } from "#blobs/hashing.ts";
import { packed, unpacked } from "#blobs/zstd.ts";
import type { GrpcClient } from "#grpc/client.ts";
import { ByteStream, type WriteRequest } from "#wire/generated/google/bytestream/bytestream.ts";
import { asFault } from "./reapi-fault.ts";
import type { Offer } from "./reapi-offer.ts";

export type StreamOptions = {
  readonly clock: Clock;
  readonly client: GrpcClient;
  readonly instance: string;
  /** A stream without progress for this long is aborted. */
  readonly callMs: number;
  readonly again: <T>(doing: string, attempt: () => Promise<T>) => Promise<T>;
  readonly offer: () => Promise<Offer>;
};

export type ReapiStreams = {
  read(digest: Digest): AsyncGenerator<Uint8Array>;
  /** Not verified by anybody. */
  part(digest: Digest, offset: number, length: number): AsyncGenerator<Uint8Array>;
  /** The caller verifies the bytes. They can be read only once, so a failed write is not retried. */
  write(digest: Digest, bytes: AsyncIterable<Uint8Array>): Promise<void>;
};

const breaksMax = 5;
const partBytes = 256 * 1024;

export function reapiStreams({ clock, client, instance, callMs, again, offer }: StreamOptions): ReapiStreams {
  const nameOf = (digest: Digest, kind: string): string => {
    const { fn, hash, sizeBytes } = partsOf(digest);
    return [instance, kind, fn === "blake3" ? fn : "", hash, String(sizeBytes)].filter((part) => part !== "").join("/");
  };
  const idle = (): { readonly signal: AbortSignal; readonly beat: () => void; readonly stop: () => void } => {
    const quiet = new AbortController();
    const silent = (): void => quiet.abort(new Fault("unavailable", "stream a blob", { callMs, why: "silent" }));
    let cancel = (): void => {};
    const beat = (): void => {
      cancel();
      cancel = clock.after(callMs, silent);
    };
    beat();
    return { signal: quiet.signal, beat, stop: () => cancel() };
  };

  async function* readFrom(resourceName: string, readOffset: number, readLimit: number): AsyncGenerator<Uint8Array> {
    const { signal, beat, stop } = idle();
    try {
      const request = { resourceName, readOffset, readLimit };
      for await (const { data } of client.serverStream(ByteStream.methods.read, request, { signal })) {
        beat();
        yield data;
      }
    } catch (error) {
      throw asFault(error, "read blob");
    } finally {
      stop();
    }
  }

  /**
   * Resumes where the stream broke; bytes that were already yielded are not requested again. A length of 0: to the end.
   */
  async function* readPlain(digest: Digest, from = 0, length = 0): AsyncGenerator<Uint8Array> {
    let read = 0;
    for (let breaks = 0; ; breaks += 1)
      try {
        const left = length === 0 ? 0 : length - read;
        if (length > 0 && left <= 0) return;
        for await (const part of readFrom(nameOf(digest, "blobs"), from + read, left)) {
          read += part.length;
          yield part;
        }
        return;
      } catch (error) {
        if (!isFault(error, "unavailable") || breaks >= breaksMax) throw error;
      }
  }

  return {
    part: readPlain,
    async *read(digest) {
      const { zstd } = await again("ask a server what it can", offer);
      if (!zstd) return yield* readPlain(digest);
      const frames = readFrom(nameOf(digest, "compressed-blobs/zstd"), 0, 0);
      try {
        yield* unpacked(frames, partsOf(digest).sizeBytes);
      } catch (error) {
        // Undecodable bytes are the server's error here, not the caller's.
        const isBroken = isFault(error, "invalid") && error.doing === "unpack zstd";
        throw isBroken ? new Fault("corrupt", "read blob", { digest, ...error.facts }, error) : error;
      }
    },
    async write(digest, bytes) {
      const { zstd } = await again("ask a server what it can", offer);
      const { signal, beat, stop } = idle();
      const kind = `uploads/${randomUUID()}/${zstd ? "compressed-blobs/zstd" : "blobs"}`;
      const sent = { bytes: 0 };
      const requests = writeRequests(nameOf(digest, kind), zstd ? packed(bytes) : bytes, (length) => {
        sent.bytes += length;
        beat();
      });
      try {
        const { committedSize } = await client.clientStream(ByteStream.methods.write, requests, { signal });
        const { sizeBytes } = partsOf(digest);
        // Servers report the plain size, the compressed size, or -1 for "already there".
        if (committedSize !== sizeBytes && committedSize !== -1 && !(zstd && committedSize === sent.bytes))
          throw new Fault("unavailable", "write blob", {
            digest,
            committedSize,
            why: "the server did not take all bytes",
          });
      } catch (error) {
        throw asFault(error, "write blob");
      } finally {
        stop();
      }
    },
  };
}

async function* writeRequests(
  resourceName: string,
  bytes: AsyncIterable<Uint8Array>,
  sent: (length: number) => void,
): AsyncGenerator<WriteRequest> {
  let writeOffset = 0;
  let name = resourceName; // only the first message needs the name
  for await (const part of bytes)
    for (let at = 0; at < part.length; at += partBytes) {
      const data = Uint8Array.from(part.subarray(at, at + partBytes));
      yield { resourceName: name, writeOffset, finishWrite: false, data };
      name = "";
      writeOffset += data.length;
      sent(data.length);
    }
  yield { resourceName: name, writeOffset, finishWrite: true, data: new Uint8Array() };
}
