/** A blob's name: `<function>:<hex>/<size>`; the function may be left out for SHA-256, the default. */
export type Digest = string;

/** The function is part of a blob's name: the same hash under two functions names two blobs. */
export const digestFunctions = ["sha256", "blake3", "sha1", "sha384", "sha512"] as const;
export type DigestFunction = (typeof digestFunctions)[number];

export const hashBytes: Readonly<Record<DigestFunction, number>> = {
  sha256: 32,
  blake3: 32,
  sha1: 20,
  sha384: 48,
  sha512: 64,
};

const shape = new RegExp(
  [
    "^(?:(?:(sha256|blake3):)?([0-9a-f]{64})",
    "(sha1):([0-9a-f]{40})",
    "(sha384):([0-9a-f]{96})",
    "(sha512):([0-9a-f]{128}))/(0|[1-9][0-9]{0,15})$",
  ].join("|"),
);

export type DigestParts = { readonly fn: DigestFunction; readonly hash: string; readonly sizeBytes: number };

/** One digest is parsed several times during a call. */
let lastText = "";
let lastParts: DigestParts | undefined;

/** Undefined if the text is not a digest. */
export function parseDigest(text: string): DigestParts | undefined {
  if (text === lastText) return lastParts;
  lastParts = parsed(text);
  lastText = text;
  return lastParts;
}

function parsed(text: string): DigestParts | undefined {
  if (isPlainSha256(text))
    return { fn: "sha256", hash: text.slice(0, hexLength), sizeBytes: Number(text.slice(hexLength + 1)) };
  const match = shape.exec(text);
  if (!match) return undefined;
  const [, fn64, hash64, sha1, hash40, sha384, hash96, sha512, hash128, size] = match;
  const fn = (fn64 ?? sha1 ?? sha384 ?? sha512 ?? "sha256") as DigestFunction;
  return { fn, hash: hash64 ?? hash40 ?? hash96 ?? hash128 ?? "", sizeBytes: Number(size) };
}

/** The one spelling that the store uses: the name sha256 is left out. */
export const digestText = (fn: DigestFunction, hash: string, sizeBytes: number): Digest =>
  fn === "sha256" ? `${hash}/${sizeBytes}` : `${fn}:${hash}/${sizeBytes}`;

/**
 * Every blob that a command names is checked several times: SHA-256, by far the most frequent, needs no regular
 * expression.
 */
export const isDigest = (text: string): boolean => isPlainSha256(text) || shape.test(text);

function isPlainSha256(text: string): boolean {
  const { length } = text;
  if (text.charCodeAt(hexLength) !== slash || length < hexLength + 2 || length > lengthMax) return false;
  if (text.charCodeAt(hexLength + 1) === zero && length > hexLength + 2) return false;
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

export const digestSizeBytes = (digest: Digest): number => parseDigest(digest)?.sizeBytes ?? Number.NaN;
