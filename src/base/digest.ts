/** A blob's name: `<function>:<hex>/<size>`; the function may be left out for SHA-256, the default. */
export type Digest = string;

const shape = /^(?:(sha256|blake3):)?([0-9a-f]{64})\/(0|[1-9][0-9]{0,15})$/;

/** Every blob that a command names is looked at several times: SHA-256, by far the most, needs no expression. */
export function isDigest(text: string): boolean {
  if (text.charCodeAt(hexLength) !== slash || text.charCodeAt(hexLength + 1) === zero) return shape.test(text);
  const { length } = text;
  if (length < hexLength + 2 || length > lengthMax) return false;
  let wrong = 0;
  for (let i = 0; i < hexLength; i += 1) wrong |= notHex[text.charCodeAt(i)] ?? 1;
  if (wrong !== 0) return false;
  for (let i = hexLength + 1; i < length; i += 1) {
    const code = text.charCodeAt(i);
    if (code < zero || code > nine) return false;
  }
  return true;
}

const hexLength = 64;
const lengthMax = hexLength + 1 + 16;
const slash = 0x2f;
const zero = 0x30;
const nine = 0x39;
const notHex = Uint8Array.from({ length: 128 }, (_, code) =>
  "0123456789abcdef".includes(String.fromCharCode(code)) ? 0 : 1,
);

export function digestSizeBytes(digest: Digest): number {
  const match = shape.exec(digest);
  return match ? Number(match[3]) : Number.NaN;
}
