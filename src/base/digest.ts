/** A blob's name: `<function>:<hex>/<size>`; the function may be left out for SHA-256, the default. */
export type Digest = string;

const shape = /^(?:(sha256|blake3):)?([0-9a-f]{64})\/(0|[1-9][0-9]{0,15})$/;

/** Every blob that a command names is looked at several times: SHA-256, by far the most, goes without the expression. */
export function isDigest(text: string): boolean {
  if (text.charCodeAt(hexLength) !== slash || text.charCodeAt(hexLength + 1) === zero) return shape.test(text);
  const { length } = text;
  if (length < hexLength + 2 || length > lengthMax) return false;
  for (let i = 0; i < hexLength; i += 1) if (!isHex(text.charCodeAt(i))) return shape.test(text);
  for (let i = hexLength + 1; i < length; i += 1) if (!isNumeral(text.charCodeAt(i))) return false;
  return true;
}

const hexLength = 64;
const lengthMax = hexLength + 1 + 16;
const slash = 0x2f;
const zero = 0x30;
const isNumeral = (code: number): boolean => code >= zero && code <= 0x39;
const isHex = (code: number): boolean => isNumeral(code) || (code >= 0x61 && code <= 0x66);

export function digestSizeBytes(digest: Digest): number {
  const match = shape.exec(digest);
  return match ? Number(match[3]) : Number.NaN;
}
