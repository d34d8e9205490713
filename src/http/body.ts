/** Reads what a request carries: never more than allowed, and never waiting without end. */
import { pipeline, Readable } from "node:stream";
import { createGunzip, createZstdDecompress } from "node:zlib";
import type { z } from "zod";
import { Problem } from "./problem.ts";

export type BodyClock = { after(ms: number, run: () => void): () => void };

export type BodyLimits = {
  readonly bytesMax: number;
  /** A client that sends nothing for so long is given up. */
  readonly idleMs: number;
};

export const bodyIdleMsDefault = 60_000;

/** The bytes as they come with their content coding taken off, counted. Throws Problems. */
export function bodyParts(request: Request, limits: BodyLimits, clock: BodyClock): AsyncGenerator<Uint8Array> {
  const { bytesMax, idleMs } = limits;
  const announced = contentLength(request);
  const coding = request.headers.get("content-encoding")?.trim().toLowerCase() ?? "identity";
  if (announced !== undefined && announced > bytesMax) throw tooLarge(bytesMax);
  const raw = rawParts(request, idleMs, clock);
  if (coding === "identity" || coding === "") return counted(raw, bytesMax, announced);
  if (coding === "zstd") return counted(decoded(raw, createZstdDecompress()), bytesMax);
  if (coding === "gzip") return counted(decoded(raw, createGunzip()), bytesMax);
  const headers = { "accept-encoding": "zstd, gzip" };
  throw new Problem(415, `content-encoding ${coding.slice(0, 100)} is not understood`, { headers });
}

async function* rawParts(request: Request, idleMs: number, clock: BodyClock): AsyncGenerator<Uint8Array> {
  if (!request.body) return;
  const reader = request.body.getReader();
  try {
    for (;;) {
      const { value } = await within(reader.read(), idleMs, clock);
      if (value === undefined) return;
      yield value;
    }
  } finally {
    reader.cancel().catch(() => {}); // otherwise the connection would wait for the rest of the body
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
    throw new Problem(400, `content-length says ${announced} bytes, and ${sizeBytes} came`);
}

async function* decoded(
  parts: AsyncIterable<Uint8Array>,
  decoder: ReturnType<typeof createGunzip> | ReturnType<typeof createZstdDecompress>,
): AsyncGenerator<Uint8Array> {
  pipeline(Readable.from(parts, { objectMode: false }), decoder, () => {});
  try {
    for await (const part of decoder) yield part as Uint8Array;
  } catch (cause) {
    throw cause instanceof Problem ? cause : new Problem(400, "body: not in its content-encoding", { cause });
  } finally {
    decoder.destroy();
  }
}

export async function bodyBytes(request: Request, limits: BodyLimits, clock: BodyClock): Promise<Buffer> {
  const parts: Uint8Array[] = [];
  for await (const part of bodyParts(request, limits, clock)) parts.push(part);
  return Buffer.concat(parts);
}

/** JSON that fits the schema. */
export function parseJsonBody<S extends z.ZodType>(bytes: Uint8Array, schema: S): z.output<S> {
  let given: unknown;
  try {
    given = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
  } catch (cause) {
    throw new Problem(400, `body: not JSON: ${(cause as Error).message}`, { cause });
  }
  return parseFields("body", schema, given);
}

const issuesShown = 10;

export function parseFields<S extends z.ZodType>(what: string, schema: S, given: unknown): z.output<S> {
  const parsed = schema.safeParse(given);
  if (parsed.success) return parsed.data;
  const issues = parsed.error.issues.slice(0, issuesShown);
  const text = issues.map(({ path, message }) => `${[what, ...path.map(String)].join(".")}: ${message}`).join("; ");
  throw new Problem(400, text.slice(0, 4_000));
}

export function requireJson(headers: Headers): void {
  const type = (headers.get("content-type") ?? "application/json").split(";")[0]?.trim().toLowerCase();
  if (type !== "application/json") throw new Problem(415, "body: send JSON, with content-type: application/json");
}

/** Undefined when the request does not say. */
export function contentLength({ headers }: Request): number | undefined {
  const text = headers.get("content-length");
  if (text === null) return undefined;
  if (!/^\d{1,15}$/.test(text)) throw new Problem(400, "content-length is not a number");
  return Number(text);
}

export const tooLarge = (bytesMax: number): Problem =>
  new Problem(413, `body: more than ${bytesMax} bytes are not accepted`);

async function within<T>(promise: Promise<T>, ms: number, clock: BodyClock): Promise<T> {
  const late = Promise.withResolvers<never>();
  const cancel = clock.after(ms, () => late.reject(new Problem(408, `body: nothing arrived for ${ms} ms`)));
  try {
    return await Promise.race([promise, late.promise]);
  } catch (cause) {
    throw cause instanceof Problem ? cause : new Problem(400, "body: the connection broke off", { cause });
  } finally {
    cancel();
  }
}
