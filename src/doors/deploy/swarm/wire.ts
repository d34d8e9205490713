/** What machines send each other: frames of a length, a kind, and a message as JSON or a unit's bytes. */
import { z } from "zod";
import { Fault } from "#base/fault.ts";

export const PeerMessage = z.discriminatedUnion("kind", [
  z.strictObject({
    kind: z.literal("subscribe"),
    id: z.int().min(0),
    content: z.string().max(200),
    stripe: z.int().min(0),
    from: z.int().min(0),
    to: z.int().min(0),
    priority: z.union([z.literal(0), z.literal(1), z.literal(2)]),
  }),
  z.strictObject({ kind: z.literal("shorten"), id: z.int().min(0), to: z.int().min(0) }),
  z.strictObject({ kind: z.literal("query"), id: z.int().min(0) }),
  z.strictObject({ kind: z.literal("answer"), id: z.int().min(0), isWaiting: z.boolean(), count: z.int().min(0) }),
  z.strictObject({ kind: z.literal("refused"), id: z.int().min(0), why: z.string().max(500) }),
  /** A goal that is passed on because it halts its service: it is verified like one from a node. */
  z.strictObject({ kind: z.literal("goal"), signed: z.unknown() }),
  /** Asks for the goals that halt something: a machine that no node answers may have missed one. */
  z.strictObject({ kind: z.literal("halts") }),
]);
export type PeerMessage = z.output<typeof PeerMessage>;
export type UnitFrame = { readonly kind: "unit"; readonly id: number; readonly unit: number; readonly bytes: Buffer };

/** A halt with as many pins as a goal may have is below it. */
const messageBytesMax = 1024 * 1024;
export const unitFrameBytesMax = 16 * 1024 * 1024 + 64;
const messageKind = 1;
const unitKind = 2;

export function messageFrame(message: PeerMessage): Buffer {
  const body = Buffer.from(JSON.stringify(message));
  return Buffer.concat([head(messageKind, body.length), body]);
}

/** The head of a unit; its bytes follow. */
export function unitHead(id: number, unit: number, sizeBytes: number): Buffer {
  const ids = Buffer.allocUnsafe(8);
  ids.writeUInt32BE(id, 0);
  ids.writeUInt32BE(unit, 4);
  return Buffer.concat([head(unitKind, sizeBytes + 8), ids]);
}

function head(kind: number, length: number): Buffer {
  const bytes = Buffer.allocUnsafe(5);
  bytes.writeUInt32BE(length, 0);
  bytes.writeUInt8(kind, 4);
  return bytes;
}

/** Cuts what arrives into frames. Throws for what is none: the connection is then worth nothing. */
export class Frames {
  readonly #unitBytesMax: number;
  #parts: Buffer[] = [];
  #length = 0;

  /** Those who only give units take none: a unit's length is refused before its bytes are kept. */
  constructor({ takesUnits }: { readonly takesUnits: boolean } = { takesUnits: true }) {
    this.#unitBytesMax = takesUnits ? unitFrameBytesMax : 0;
  }

  *take(part: Buffer): Generator<PeerMessage | UnitFrame> {
    this.#parts.push(part);
    this.#length += part.length;
    for (;;) {
      if (this.#length < 5) return;
      const start = this.#peek(5);
      const length = start.readUInt32BE(0);
      const kind = start.readUInt8(4);
      if (kind !== messageKind && kind !== unitKind) throw malformed(`kind ${kind}`);
      if (length > (kind === messageKind ? messageBytesMax : this.#unitBytesMax)) throw malformed(`${length} bytes`);
      if (this.#length < 5 + length) return;
      const whole = this.#peek(5 + length);
      this.#parts = whole.length === this.#length ? [] : [this.#peek(this.#length).subarray(whole.length)];
      this.#length -= whole.length;
      yield kind === messageKind ? messageOf(whole.subarray(5)) : unitOf(whole.subarray(5));
    }
  }

  #peek(length: number): Buffer {
    const [first] = this.#parts;
    if (first && first.length >= length) return first.subarray(0, length);
    const all = Buffer.concat(this.#parts);
    this.#parts = [all];
    return all.subarray(0, length);
  }
}

function messageOf(body: Buffer): PeerMessage {
  let value: unknown;
  try {
    value = JSON.parse(body.toString("utf8"));
  } catch {
    throw malformed("not JSON");
  }
  const parsed = PeerMessage.safeParse(value);
  if (!parsed.success) throw malformed("an unknown message");
  return parsed.data;
}

function unitOf(body: Buffer): UnitFrame {
  if (body.length < 8) throw malformed("a unit without its head");
  return { kind: "unit", id: body.readUInt32BE(0), unit: body.readUInt32BE(4), bytes: body.subarray(8) };
}

const malformed = (why: string): Fault => new Fault("invalid", "read from a peer", { why });
