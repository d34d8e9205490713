/**
 * Reads the one message of a stream as its bytes arrive. Only the message itself says how long it is, and the sender
 * waits for an answer on the same stream, so the end must be recognised at the last byte.
 */
import { Fault } from "#base/fault.ts";
import { readCompressed, type Envelope } from "./envelope.ts";
import { Fields } from "./fields.ts";
import type { MeshLimits } from "#mesh/machine/limits.ts";
import { decompress } from "./lzw.ts";
import { messageCode, readMember, readPing, type PushedMember, type StreamMessage } from "./messages.ts";
import { MsgpackReader, Short, whole } from "./msgpack-reader.ts";

const smallItemsMax = 64;

export class StreamReader {
  readonly #envelope: Envelope;
  readonly #limits: MeshLimits;
  #bytes: Uint8Array = new Uint8Array(4_096);
  #size = 0;
  #needed = 1;
  #labelEnd: number | undefined;
  #plain: MessageReader | undefined;

  constructor(envelope: Envelope, limits: MeshLimits) {
    this.#envelope = envelope;
    this.#limits = limits;
  }

  /** How many bytes are held. */
  get heldBytes(): number {
    return this.#size;
  }

  /** Undefined while it is incomplete; Fault "invalid" or "exhausted" for bytes that can never be a message. */
  push(chunk: Uint8Array): StreamMessage | undefined {
    this.#append(chunk);
    if (this.#size < this.#needed) return undefined;
    try {
      return this.#read();
    } catch (error) {
      if (!(error instanceof Short)) throw error;
      if (error.atLeastBytes > this.#limits.streamBytesMax) throw tooLarge(this.#limits);
      this.#needed = error.atLeastBytes;
      return undefined;
    }
  }

  #append(chunk: Uint8Array): void {
    const size = this.#size + chunk.length;
    if (size > this.#limits.streamBytesMax) throw tooLarge(this.#limits);
    if (size > this.#bytes.length) {
      const wider = new Uint8Array(Math.max(this.#bytes.length * 2, size));
      wider.set(this.#bytes.subarray(0, this.#size));
      this.#bytes = wider;
    }
    this.#bytes.set(chunk, this.#size);
    this.#size = size;
  }

  #read(): StreamMessage {
    const start = (this.#labelEnd ??= this.#readLabel());
    const code = this.#byteAt(start);
    if (code === messageCode.encrypt) return this.#readSealed(start);
    if (this.#envelope.isSealed) throw new Fault("invalid", "read a stream", { why: "it is not sealed" });
    const held = this.#bytes.subarray(start, this.#size);
    if (code === messageCode.compress) return this.#readCompressed(held, start);
    this.#plain ??= new MessageReader(this.#limits);
    return shifted(start, () => (this.#plain as MessageReader).read(held));
  }

  #readLabel(): number {
    if (this.#byteAt(0) !== messageCode.label) {
      this.#envelope.checkLabel(new Uint8Array(0));
      return 0;
    }
    const size = this.#byteAt(1);
    if (size === 0) throw new Fault("invalid", "read a stream", { why: "its label is empty" });
    if (this.#size < 2 + size) throw new Short(2 + size);
    this.#envelope.checkLabel(this.#bytes.subarray(2, 2 + size));
    return 2 + size;
  }

  #readSealed(start: number): StreamMessage {
    if (!this.#envelope.isSealed)
      throw new Fault("invalid", "read a stream", { why: "it is sealed, and no key is set" });
    if (this.#size < start + 5) throw new Short(start + 5);
    const length = new DataView(this.#bytes.buffer, this.#bytes.byteOffset).getUint32(start + 1);
    const end = start + 5 + length;
    if (this.#size < end) throw new Short(end);
    const header = this.#bytes.slice(start, start + 5);
    const plain = this.#envelope.openStream(header, this.#bytes.subarray(start + 5, end));
    return whole(() =>
      plain[0] === messageCode.compress ? this.#readCompressed(plain, 0) : new MessageReader(this.#limits).read(plain),
    );
  }

  #readCompressed(message: Uint8Array, start: number): StreamMessage {
    const { packed } = shifted(start, () => readCompressed(message));
    const plain = decompress(packed, this.#limits.streamBytesMax);
    return whole(() => new MessageReader(this.#limits).read(plain));
  }

  #byteAt(at: number): number {
    const byte = at < this.#size ? this.#bytes[at] : undefined;
    if (byte === undefined) throw new Short(at + 1);
    return byte;
  }
}

/** One message in clear. Resumes where it stopped when called again with more bytes. */
class MessageReader {
  readonly #limits: MeshLimits;
  readonly #members: PushedMember[] = [];
  #header: Fields | undefined;
  #at = 1;

  constructor(limits: MeshLimits) {
    this.#limits = limits;
  }

  read(bytes: Uint8Array): StreamMessage {
    const code = bytes[0];
    if (code === undefined) throw new Short(1);
    const header = (this.#header ??= this.#next(bytes));
    switch (code) {
      case messageCode.ping:
        return readPing(header);
      case messageCode.ack:
        return { kind: "ack", seqNo: header.uint32("SeqNo") };
      case messageCode.error:
        return { kind: "error", text: errorText(header) };
      case messageCode.user: {
        const length = header.count("UserMsgLen", this.#limits.userMessageBytesMax);
        return { kind: "user", bytes: this.#rest(bytes, length) };
      }
      case messageCode.pushPull:
        return this.#readPushPull(bytes, header);
      default:
        throw new Fault("invalid", "read a stream", { code, why: "its kind is unknown" });
    }
  }

  #readPushPull(bytes: Uint8Array, header: Fields): StreamMessage {
    // Twice as many as we would keep: the other side remembers members that left.
    const count = header.count("Nodes", this.#limits.membersMax * 2);
    const userBytes = header.count("UserStateLen", this.#limits.streamBytesMax);
    while (this.#members.length < count) this.#members.push(readMember(this.#next(bytes)));
    const userState = this.#rest(bytes, userBytes);
    return { kind: "push-pull", isJoin: header.flag("Join"), members: this.#members, userState };
  }

  #next(bytes: Uint8Array): Fields {
    const reader = new MsgpackReader(bytes, this.#at, smallItemsMax);
    const fields = new Fields(reader.map());
    this.#at = reader.at;
    return fields;
  }

  #rest(bytes: Uint8Array, length: number): Uint8Array {
    if (bytes.length < this.#at + length) throw new Short(this.#at + length);
    return bytes.slice(this.#at, this.#at + length);
  }
}

/** `Short` counts from the beginning of what was read, which began later here. */
function shifted<T>(start: number, read: () => T): T {
  try {
    return read();
  } catch (error) {
    throw error instanceof Short ? new Short(error.atLeastBytes + start) : error;
  }
}

function errorText(header: Fields): string {
  const value = header.bytes("Error", 4_096);
  return new TextDecoder().decode(value).slice(0, 300);
}

const tooLarge = ({ streamBytesMax }: MeshLimits): Fault => new Fault("exhausted", "read a stream", { streamBytesMax });
