/** A request's body: read with backpressure, limited in size and time. */
import { Readable } from "node:stream";
import { pipeline } from "node:stream";
import { createGunzip, createZstdDecompress } from "node:zlib";
import type { Clock } from "#base/clock.ts";
import { HttpRefusal } from "./refusal.ts";

export type BodyLimits = {
  readonly bytesMax: number;
  /** A client that sends nothing for this long is disconnected. */
  readonly idleMs: number;
};

export const idleMsDefault = 60_000;

/** The bytes of the body, with the content coding removed. Throws HttpRefusal. */
export function bodyOf(request: Request, limits: BodyLimits, clock: Clock): AsyncGenerator<Uint8Array> {
  const announced = contentLength(request);
  const coding = request.headers.get("content-encoding")?.trim().toLowerCase() ?? "identity";
  if (announced !== undefined && announced > limits.bytesMax) throw tooLarge(limits.bytesMax);
  const raw = rawParts(request, limits.idleMs, clock);
  if (coding === "identity" || coding === "") return counted(raw, limits.bytesMax, announced);
  if (coding === "zstd") return counted(decoded(raw, createZstdDecompress()), limits.bytesMax);
  if (coding === "gzip") return counted(decoded(raw, createGunzip()), limits.bytesMax);
  throw new HttpRefusal(415, `content-encoding ${coding} is not understood`, { "accept-encoding": "zstd, gzip" });
}

/** Undefined when the request does not say. */
export function contentLength(request: Request): number | undefined {
  const text = request.headers.get("content-length");
  if (text === null) return undefined;
  if (!/^\d{1,15}$/.test(text)) throw new HttpRefusal(400, "content-length is not a number");
  return Number(text);
}

export const tooLarge = (bytesMax: number): HttpRefusal =>
  new HttpRefusal(413, `more than ${bytesMax} bytes are not taken`);

async function* rawParts(request: Request, idleMs: number, clock: Clock): AsyncGenerator<Uint8Array> {
  if (!request.body) return;
  const reader = request.body.getReader();
  try {
    for (;;) {
      const { value } = await within(reader.read(), idleMs, clock);
      if (value === undefined) return;
      yield value;
    }
  } finally {
    // A body that is not read to its end must not keep the connection waiting.
    reader.cancel().catch(() => {});
  }
}

async function within<T>(promise: Promise<T>, ms: number, clock: Clock): Promise<T> {
  const late = Promise.withResolvers<never>();
  const cancel = clock.after(ms, () => late.reject(new HttpRefusal(408, `nothing has come for ${ms} ms`)));
  try {
    return await Promise.race([promise, late.promise]);
  } catch (error) {
    throw error instanceof HttpRefusal ? error : new HttpRefusal(400, "the body broke off", {}, error);
  } finally {
    cancel();
  }
}

async function* counted(
  parts: AsyncIterable<Uint8Array>,
  bytesMax: number,
  announced?: number,
): AsyncGenerator<Uint8Array> {
  let sizeBytes = 0;
  for await (const part of parts) {
    sizeBytes += part.length;
    if (sizeBytes > bytesMax) throw tooLarge(bytesMax);
    yield part;
  }
  if (announced !== undefined && announced !== sizeBytes)
    throw new HttpRefusal(400, `content-length says ${announced} bytes, and ${sizeBytes} came`);
}

async function* decoded(
  parts: AsyncIterable<Uint8Array>,
  decoder: ReturnType<typeof createGunzip> | ReturnType<typeof createZstdDecompress>,
): AsyncGenerator<Uint8Array> {
  pipeline(Readable.from(parts, { objectMode: false }), decoder, () => {});
  try {
    for await (const part of decoder) yield part as Uint8Array;
  } catch (error) {
    throw error instanceof HttpRefusal ? error : new HttpRefusal(400, "the body is not in its coding", {}, error);
  } finally {
    decoder.destroy();
  }
}
