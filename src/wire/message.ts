/** What generated code offers for every message and service, and how whole messages are encoded and decoded. */
import { Fault, isFault } from "#base/fault.ts";
import { Reader, readLimitsDefault, type ReadLimits } from "./reader.ts";
import { Writer } from "./writer.ts";

export type Message<T> = {
  /** With its package, as in reflection and in `google.protobuf.Any`. */
  readonly typeName: string;
  write(message: T, to: Writer): void;
  /** Decodes up to `end`. If the field was given before, that value is in `before`, and is merged into, not copied. */
  read(from: Reader, end: number, before?: T): T;
  /** The decoded value is in memory that is reused once its handler returns or waits. */
  readonly isBrief?: true;
  /**
   * For messages that end with one long bytes field, and whose parts are messages too: how to deliver one of `length`
   * bytes, which begins with `first`, as several. Undefined if `first` does not show that it is possible: then the
   * message has to be read whole.
   */
  readonly inParts?: (first: Buffer, length: number) => MessageParts<T> | undefined;
};

/** The parts together are equivalent to the whole message. */
export type MessageParts<T> = {
  /** Where in the message the long field's bytes begin. They go to its end, and there is at least one. */
  readonly dataAt: number;
  /** The part with these bytes of the long field, after `before` bytes in earlier parts. */
  part(data: Uint8Array, before: number, last: boolean): T;
};

export type Method<Request, Response> = {
  readonly name: string;
  /** As HTTP/2 carries it: `/package.Service/Method`. */
  readonly path: string;
  readonly request: Message<Request>;
  readonly response: Message<Response>;
  /** Which side sends a stream of messages instead of one. */
  readonly streams: "none" | "client" | "server" | "both";
};

export type Service = {
  readonly typeName: string;
  readonly methods: Readonly<Record<string, Method<unknown, unknown>>>;
};

const keptBytesMax = 1024 * 1024;
const firstBytes = 64 * 1024;
let scratch = new Writer(Buffer.allocUnsafe(firstBytes));

export function encode<T>(type: Message<T>, message: T): Buffer {
  try {
    type.write(message, scratch);
    const bytes = Buffer.allocUnsafe(scratch.pos);
    scratch.bytes.copy(bytes, 0, 0, scratch.pos);
    return bytes;
  } finally {
    scratch.pos = 0;
    if (scratch.bytes.length > keptBytesMax) scratch = new Writer(Buffer.allocUnsafe(firstBytes));
  }
}

/** Fields of type bytes are views into `bytes`. Throws a Fault "invalid" that names the type. */
export function decode<T>(type: Message<T>, bytes: Uint8Array, limits: ReadLimits = readLimitsDefault): T {
  const from = new Reader(bytes, limits);
  try {
    const message = type.read(from, from.bytes.length);
    if (from.pos !== from.bytes.length) from.fail("a field goes beyond its message");
    return message;
  } catch (error) {
    if (!isFault(error, "invalid")) throw error;
    throw new Fault("invalid", error.doing, { type: type.typeName, ...error.facts });
  }
}
