/**
 * GetActionResult as nearly every client sends it: with a SHA-256 digest, and nothing to inline. The hash is left in
 * place for a lookup by its 32-bit words; a string is made only on request. Any other request is decoded as the
 * generated message. Replaces that: `{ ...method, request: getActionResultRequest }`.
 */
import {
  DigestFunction_Value,
  GetActionResultRequest,
  type Digest,
} from "./generated/build/bazel/remote/execution/v2/remote_execution.ts";
import { wordsOfDigits } from "./hex-words.ts";
import type { Message } from "./message.ts";

const tags = { instanceName: 10, actionDigest: 18, digestFunction: 48, hash: 10, sizeBytes: 16 } as const;
const hexLength = 64;
const none: readonly string[] = [];

export class UsualGetActionResult implements GetActionResultRequest {
  readonly instanceName: string;
  readonly digestFunction: number;
  readonly inlineStdout = false;
  readonly inlineStderr = false;
  readonly inlineOutputFiles: readonly string[] = none;
  /** Of the action; more than 0. */
  readonly sizeBytes: number;
  readonly #bytes: Buffer;
  readonly #hashAt: number;

  constructor(instanceName: string, digestFunction: number, bytes: Buffer, hashAt: number, sizeBytes: number) {
    this.instanceName = instanceName;
    this.digestFunction = digestFunction;
    this.sizeBytes = sizeBytes;
    this.#bytes = bytes;
    this.#hashAt = hashAt;
  }

  get actionDigest(): Digest {
    const hash = this.#bytes.toString("utf8", this.#hashAt, this.#hashAt + hexLength);
    return { hash, sizeBytes: this.sizeBytes };
  }

  /** Writes the hash as eight 32-bit words. False if it is not a hash. */
  wordsInto(words: Uint32Array): boolean {
    return wordsOfDigits(words, this.#bytes, this.#hashAt);
  }
}

export const getActionResultRequest: Message<GetActionResultRequest> = {
  typeName: GetActionResultRequest.typeName,
  write: (message, to) => GetActionResultRequest.write(message, to),
  read(from, end, before) {
    const start = from.pos;
    const instanceName = from.bytes[start] === tags.instanceName ? (from.tag(), from.string()) : "";
    const usual = before ? undefined : usualAt(from.bytes, from.pos, end, instanceName);
    from.pos = usual ? end : start;
    return usual ?? GetActionResultRequest.read(from, end, before);
  },
};

/** One digest, its size in up to three bytes, and perhaps the function after it. */
function usualAt(bytes: Buffer, at: number, end: number, instanceName: string): UsualGetActionResult | undefined {
  const sizeAt = at + 4 + hexLength;
  if (sizeAt + 2 > end || bytes[at] !== tags.actionDigest || bytes[at + 2] !== tags.hash) return undefined;
  if (bytes[at + 3] !== hexLength || bytes[sizeAt] !== tags.sizeBytes) return undefined;
  const digestEnd = at + 2 + (bytes[at + 1] as number);
  const sizeBytes = sizeOf(bytes, sizeAt + 1, digestEnd);
  if (sizeBytes <= 0 || digestEnd > end) return undefined;
  const hashAt = at + 4;
  // The generated code decides whether it is valid UTF-8.
  if (!isAscii(bytes, hashAt, sizeAt)) return undefined;
  if (digestEnd === end) return new UsualGetActionResult(instanceName, 0, bytes, hashAt, sizeBytes);
  const sha256: number = DigestFunction_Value.SHA256;
  if (digestEnd + 2 !== end || bytes[digestEnd] !== tags.digestFunction || bytes[digestEnd + 1] !== sha256)
    return undefined;
  return new UsualGetActionResult(instanceName, sha256, bytes, hashAt, sizeBytes);
}

function isAscii(bytes: Buffer, start: number, end: number): boolean {
  let all = 0;
  for (let i = start; i < end; i += 1) all |= bytes[i] as number;
  return all < 0x80;
}

/** A varint that takes exactly the bytes from `at` to `end`; -1 if it does not, or takes more than three. */
function sizeOf(bytes: Buffer, at: number, end: number): number {
  const count = end - at;
  if (count < 1 || count > 3) return -1;
  let size = 0;
  for (let i = 0; i < count; i += 1) {
    const byte = bytes[at + i] as number;
    if (byte > 0x7f !== i < count - 1) return -1;
    size |= (byte & 0x7f) << (7 * i);
  }
  return size;
}
