/** Reads what a request carries: never more than allowed, and never waiting without end. */
import type { z } from "zod";
import { Problem } from "./problem.ts";

export type BodyClock = { after(ms: number, run: () => void): () => void };

export type BodyLimits = {
  readonly bytesMax: number;
  /** A client that sends nothing for so long is given up. */
  readonly idleMs: number;
};

/** The bytes as they come, counted. Throws Problems. */
export async function* bodyParts(request: Request, limits: BodyLimits, clock: BodyClock): AsyncGenerator<Uint8Array> {
  const announced = contentLength(request);
  if (announced !== undefined && announced > limits.bytesMax) throw tooLarge(limits.bytesMax);
  if (!request.body) return;
  const reader = request.body.getReader();
  let sizeBytes = 0;
  try {
    for (;;) {
      const { value } = await within(reader.read(), limits.idleMs, clock);
      if (value === undefined) return;
      sizeBytes += value.length;
      if (sizeBytes > limits.bytesMax) throw tooLarge(limits.bytesMax);
      yield value;
    }
  } finally {
    reader.cancel().catch(() => {}); // a client that was left in the middle must not keep its connection waiting
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

function contentLength({ headers }: Request): number | undefined {
  const text = headers.get("content-length");
  if (text === null) return undefined;
  if (!/^\d{1,15}$/.test(text)) throw new Problem(400, "content-length is not a number");
  return Number(text);
}

const tooLarge = (bytesMax: number): Problem => new Problem(413, `body: more than ${bytesMax} bytes are not accepted`);

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
