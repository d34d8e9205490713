/**
 * The wrappers around messages. A packet, from the outside in: label, seal, checksum, compression, and a compound of
 * several messages; each is optional. A stream: label, seal with its length, compression.
 */
import { crc32 } from "node:zlib";
import { Fault } from "#base/fault.ts";
import { Fields } from "./fields.ts";
import type { Keyring } from "./keyring.ts";
import { labelBytesMax, type MeshLimits } from "#mesh/machine/limits.ts";
import { compress, decompress } from "./lzw.ts";
import { framed, messageCode } from "./messages.ts";
import { MsgpackReader, whole } from "./msgpack-reader.ts";
import { joined } from "./msgpack-writer.ts";
import { nonceBytes, seal, sealedBytes, sealOverheadBytes, unseal, type SealVersion } from "./sealing.ts";

export type EnvelopePorts = {
  readonly label: string;
  readonly keyring: Keyring;
  readonly compresses: boolean;
  readonly sealVersion: SealVersion;
  /** Unpredictable bytes for a seal: a nonce must never repeat. */
  readonly randomBytes: (count: number) => Uint8Array;
  readonly limits: MeshLimits;
};

const compoundPartsMax = 255;

export class Envelope {
  readonly #ports: EnvelopePorts;
  readonly #label: Uint8Array;
  readonly #labelHeader: Uint8Array;

  constructor(ports: EnvelopePorts) {
    this.#ports = ports;
    this.#label = new TextEncoder().encode(ports.label);
    if (this.#label.length > labelBytesMax)
      throw new Fault("invalid", "label a mesh", { bytes: this.#label.length, labelBytesMax });
    this.#labelHeader =
      this.#label.length === 0
        ? new Uint8Array(0)
        : joined([Uint8Array.of(messageCode.label, this.#label.length), this.#label]);
  }

  /** What the label and the seal add to a packet. */
  get overheadBytes(): number {
    const { keyring, sealVersion } = this.#ports;
    return this.#labelHeader.length + (keyring.isEmpty ? 0 : sealOverheadBytes(sealVersion));
  }

  packet(messages: readonly Uint8Array[], options: { readonly withCrc: boolean }): Uint8Array {
    const plain = messages.length === 1 && messages[0] ? messages[0] : compound(messages);
    const small = this.#ports.compresses ? compressed(plain) : plain;
    const body = small.length < plain.length ? small : plain;
    return joined([this.#labelHeader, this.#sealed(options.withCrc ? withCrc(body) : body, this.#label)]);
  }

  /** The messages of a packet, each still with its kind in front; throws "invalid" if it is not for this mesh. */
  openPacket(packet: Uint8Array): readonly Uint8Array[] {
    const { keyring } = this.#ports;
    const inner = this.#withoutLabel(packet);
    const plain = keyring.isEmpty ? inner : unseal(inner, keyring.keys, this.#label);
    const messages: Uint8Array[] = [];
    this.#unwrap(plain[0] === messageCode.crc ? checked(plain) : plain, messages, 0);
    return messages;
  }

  stream(message: Uint8Array): Uint8Array {
    const { keyring, compresses, sealVersion } = this.#ports;
    const body = compresses ? compressed(message) : message;
    if (keyring.isEmpty) return joined([this.#labelHeader, body]);
    const header = new Uint8Array(5);
    header[0] = messageCode.encrypt;
    new DataView(header.buffer).setUint32(1, sealedBytes(sealVersion, body.length));
    return joined([this.#labelHeader, header, this.#sealed(body, joined([header, this.#label]))]);
  }

  /** Checks the label at the beginning of a stream as soon as it was read. */
  checkLabel(label: Uint8Array): void {
    if (Buffer.compare(label, this.#label) !== 0) throw foreign();
  }

  get isSealed(): boolean {
    return !this.#ports.keyring.isEmpty;
  }

  openStream(header: Uint8Array, sealed: Uint8Array): Uint8Array {
    return unseal(sealed, this.#ports.keyring.keys, joined([header, this.#label]));
  }

  #sealed(plain: Uint8Array, authenticated: Uint8Array): Uint8Array {
    const { keyring, sealVersion, randomBytes } = this.#ports;
    const key = keyring.primary;
    return key ? seal(plain, { version: sealVersion, key, nonce: randomBytes(nonceBytes), authenticated }) : plain;
  }

  #withoutLabel(packet: Uint8Array): Uint8Array {
    const size = packet[0] === messageCode.label ? packet[1] : undefined;
    if (packet[0] === messageCode.label && (size === undefined || size === 0 || packet.length < 2 + size))
      throw new Fault("invalid", "read a packet", { why: "its label is truncated" });
    const headerBytes = size === undefined ? 0 : 2 + size;
    this.checkLabel(packet.subarray(Math.min(2, headerBytes), headerBytes));
    return packet.subarray(headerBytes);
  }

  #unwrap(message: Uint8Array, into: Uint8Array[], depth: number): void {
    const { packetInflatedBytesMax, packetMessagesMax } = this.#ports.limits;
    if (depth > 3) throw new Fault("invalid", "read a packet", { why: "messages are nested too deep" });
    if (into.length >= packetMessagesMax) throw new Fault("exhausted", "read a packet", { packetMessagesMax });
    if (message[0] === messageCode.compress) {
      const { packed } = whole(() => readCompressed(message));
      this.#unwrap(decompress(packed, packetInflatedBytesMax), into, depth + 1);
    } else if (message[0] === messageCode.compound) {
      for (const part of partsOf(message)) this.#unwrap(part, into, depth + 1);
    } else if (message.length > 0) into.push(message);
  }
}

export const compoundOverheadBytes = 2;

function compound(messages: readonly Uint8Array[]): Uint8Array {
  if (messages.length > compoundPartsMax) throw new Fault("internal", "write a packet", { parts: messages.length });
  const lengths = messages.flatMap(({ length }) => [length >> 8, length & 0xff]);
  return joined([Uint8Array.of(messageCode.compound, messages.length, ...lengths), ...messages]);
}

/** A truncated part is dropped together with those behind it, as memberlist does. */
function partsOf(message: Uint8Array): readonly Uint8Array[] {
  const count = message[1] ?? 0;
  let at = 2 + count * 2;
  if (message.length < at) throw new Fault("invalid", "read a packet", { why: "a compound is truncated" });
  const parts: Uint8Array[] = [];
  for (let i = 0; i < count; i += 1) {
    const length = ((message[2 + 2 * i] ?? 0) << 8) | (message[3 + 2 * i] ?? 0);
    if (at + length > message.length) break;
    parts.push(message.subarray(at, at + length));
    at += length;
  }
  return parts;
}

const compressed = (bytes: Uint8Array): Uint8Array => framed(messageCode.compress, { Algo: 0, Buf: compress(bytes) });

/** The bytes inside a compress message, and where it ends; `Short` if it is incomplete. */
export function readCompressed(message: Uint8Array): { readonly packed: Uint8Array; readonly end: number } {
  const reader = new MsgpackReader(message, 1, 8);
  const fields = new Fields(reader.map());
  if (fields.uint32("Algo") !== 0)
    throw new Fault("invalid", "decompress", { why: "the compression method is unknown" });
  return { packed: fields.bytes("Buf", message.length), end: reader.at };
}

function withCrc(body: Uint8Array): Uint8Array {
  const header = new Uint8Array(5);
  header[0] = messageCode.crc;
  new DataView(header.buffer).setUint32(1, crc32(body));
  return joined([header, body]);
}

function checked(packet: Uint8Array): Uint8Array {
  if (packet.length < 5) throw new Fault("invalid", "read a packet", { why: "its checksum is truncated" });
  const body = packet.subarray(5);
  const said = new DataView(packet.buffer, packet.byteOffset).getUint32(1);
  if (crc32(body) !== said) throw new Fault("corrupt", "read a packet", { why: "its checksum is wrong" });
  return body;
}

const foreign = (): Fault => new Fault("invalid", "read a message", { why: "it carries another mesh's label" });
