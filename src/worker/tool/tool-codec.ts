/**
 * Requests to a tool that stays, and its answers: length-prefixed messages, or JSON. Pure.
 *
 * O1 Whatever a tool prints, reading it ends with an answer or with a Fault "invalid", and holds no more than
 * `answerBytesMax`.
 */
import { Fault } from "#base/fault.ts";
import { WorkRequest, WorkResponse } from "#wire/generated/blaze/worker/worker_protocol.ts";
import { decode, encode } from "#wire/message.ts";
import { Writer } from "#wire/writer.ts";

export type ToolProtocol = "proto" | "json";

export type ToolRequest = Pick<WorkRequest, "arguments" | "inputs">;
export type ToolAnswer = { readonly exitCode: number; readonly output: string };

export const answerBytesMax = 16 * 1024 * 1024;

/** The id for tools that take one request at a time; some answer with nothing else. */
const requestId = 0;

export function requestBytes(request: ToolRequest, protocol: ToolProtocol): Buffer {
  const whole = { ...request, requestId, cancel: false, verbosity: 0, sandboxDir: "" };
  if (protocol === "json") return Buffer.from(`${JSON.stringify(jsonOf(whole))}\n`);
  const message = encode(WorkRequest, whole);
  const length = new Writer(Buffer.allocUnsafe(lengthBytesMax));
  length.plainUint32(message.length);
  return Buffer.concat([length.bytes.subarray(0, length.pos), message]);
}

/** In protobuf's JSON form: bytes are base64. */
const jsonOf = ({ arguments: words, inputs }: WorkRequest) => ({
  arguments: words,
  inputs: inputs.map(({ path, digest }) => ({ path, digest: Buffer.from(digest).toString("base64") })),
  requestId,
});

/** Reads one answer, in pieces of any size. */
export class AnswerReader {
  readonly #protocol: ToolProtocol;
  #pieces: Buffer[] = [];
  #bytes = 0;
  readonly #json = new ObjectEnd();
  /** Size of the message with its length prefix; undefined until that is known. */
  #wanted: number | undefined;

  constructor(protocol: ToolProtocol) {
    this.#protocol = protocol;
  }

  /** The answer once it is complete. Throws for anything else, and for bytes after the answer. */
  push(piece: Buffer): ToolAnswer | undefined {
    this.#pieces.push(piece);
    this.#bytes += piece.length;
    if (this.#bytes > answerBytesMax + lengthBytesMax) throw babble(`more than ${answerBytesMax} bytes`);
    return this.#protocol === "json" ? this.#pushJson(piece) : this.#pushProto();
  }

  #pushJson(piece: Buffer): ToolAnswer | undefined {
    const end = this.#json.push(piece);
    if (end === undefined) return undefined;
    if (piece.subarray(end).toString("latin1").trim() !== "") throw babble("bytes after the answer");
    return jsonAnswer(this.#whole().toString("utf8"));
  }

  #pushProto(): ToolAnswer | undefined {
    if (this.#wanted === undefined) {
      const length = lengthIn(this.#whole());
      if (!length) return undefined;
      if (length.value > answerBytesMax) throw babble(`an answer of ${length.value} bytes`);
      this.#wanted = length.value + length.bytes;
    }
    if (this.#bytes < this.#wanted) return undefined;
    if (this.#bytes > this.#wanted) throw babble("bytes after the answer");
    const whole = this.#whole();
    const { value, bytes } = lengthIn(whole) ?? { value: 0, bytes: 0 };
    return checked(decode(WorkResponse, whole.subarray(bytes, bytes + value)));
  }

  #whole(): Buffer {
    const [first, ...more] = this.#pieces;
    if (!first || more.length === 0) return first ?? Buffer.alloc(0);
    const whole = Buffer.concat(this.#pieces);
    this.#pieces = [whole];
    return whole;
  }
}

const lengthBytesMax = 5;

/** Undefined if more bytes are needed. */
function lengthIn(bytes: Buffer): { readonly value: number; readonly bytes: number } | undefined {
  let value = 0;
  for (let at = 0; at < bytes.length; at += 1) {
    if (at >= lengthBytesMax) throw babble("a length prefix without end");
    const byte = bytes[at] ?? 0;
    value += (byte & 0x7f) * 128 ** at;
    if (byte < 0x80) return { value, bytes: at + 1 };
  }
  if (bytes.length >= lengthBytesMax) throw babble("a length prefix without end");
  return undefined;
}

/** Finds the end of the first object in a JSON text, without parsing it. */
class ObjectEnd {
  #depth = 0;
  #isText = false;
  #isEscaped = false;

  /** The position in the piece where it ends. */
  push(piece: Buffer): number | undefined {
    for (let at = 0; at < piece.length; at += 1) {
      const byte = piece[at] ?? 0;
      if (this.#isText) this.#inText(byte);
      else if (byte === quote && this.#depth > 0) this.#isText = true;
      else if (byte === open) this.#depth += 1;
      else if (byte === close && this.#depth > 0) {
        this.#depth -= 1;
        if (this.#depth === 0) return at + 1;
      } else if (this.#depth === 0 && !blanks.has(byte)) throw babble("no JSON object");
    }
    return undefined;
  }

  #inText(byte: number): void {
    if (this.#isEscaped) this.#isEscaped = false;
    else if (byte === backslash) this.#isEscaped = true;
    else if (byte === quote) this.#isText = false;
  }
}

const [quote, backslash, open, close] = [0x22, 0x5c, 0x7b, 0x7d];
const blanks: ReadonlySet<number> = new Set([0x20, 0x09, 0x0a, 0x0d]);

function jsonAnswer(text: string): ToolAnswer {
  let response: Partial<Record<keyof WorkResponse, unknown>>;
  try {
    response = JSON.parse(text) as typeof response;
  } catch {
    throw babble("no JSON");
  }
  // Absent fields have protobuf's defaults.
  const { exitCode = 0, output = "", requestId: id = 0, wasCancelled = false } = response;
  if (typeof exitCode !== "number" || (exitCode | 0) !== exitCode)
    throw babble("an exit code that is not a 32-bit integer");
  if (typeof output !== "string" || typeof id !== "number") throw babble("fields of other types");
  return checked({ exitCode, output, requestId: id, wasCancelled: wasCancelled === true });
}

function checked({ exitCode, output, requestId: id, wasCancelled }: WorkResponse): ToolAnswer {
  if (id !== requestId) throw babble(`an answer to request ${id}, which was not sent`);
  if (wasCancelled) throw babble("it reports a cancellation, but was not cancelled");
  return { exitCode, output };
}

const babble = (why: string): Fault => new Fault("invalid", "read the answer of a tool", { why });
