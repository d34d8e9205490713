/** Converts digests between the wire and the store. Invalid ones are refused here. */
import { digestText, hashBytes, isDigest, parseDigest, type Digest, type DigestFunction } from "#base/digest.ts";
import { hashHex } from "#blobs/hashing.ts";
import {
  DigestFunction_Value,
  type Digest as WireDigest,
} from "#wire/generated/build/bazel/remote/execution/v2/remote_execution.ts";
import { invalid } from "./refusals.ts";

/** The digest functions that are served, by their wire numbers. */
const functions: ReadonlyMap<number, DigestFunction> = new Map([
  [DigestFunction_Value.SHA256, "sha256"],
  [DigestFunction_Value.BLAKE3, "blake3"],
  [DigestFunction_Value.SHA1, "sha1"],
  [DigestFunction_Value.SHA384, "sha384"],
  [DigestFunction_Value.SHA512, "sha512"],
]);

const numbers = new Map([...functions].map(([number, fn]) => [fn, number]));

/** In the order in which a client should prefer them. */
export const servedFunctions: readonly number[] = [...functions.keys()];
export const numberOf = (fn: DigestFunction): number => numbers.get(fn) ?? DigestFunction_Value.UNKNOWN;

const servedNames = [...functions.values()].join(", ");

/** If the function is left out, the length of the hash tells it; BLAKE3, as long as SHA-256, has to be named. */
const byHashLength: ReadonlyMap<number, DigestFunction> = new Map(
  (["sha256", "sha1", "sha384", "sha512"] as const).map((fn) => [hashBytes[fn] * 2, fn]),
);

/** Throws for a function that is not served; undefined if it is left out. */
export function functionOf(number: number): DigestFunction | undefined {
  if (number === DigestFunction_Value.UNKNOWN) return undefined;
  const fn = functions.get(number);
  if (!fn) throw invalid(`digest function ${number} is not served here; these are: ${servedNames}`);
  return fn;
}

/** The function of a digest, given what the request says. */
export function functionFor(given: DigestFunction | undefined, hash: string): DigestFunction {
  const fn = given ?? byHashLength.get(hash.length);
  if (!fn) throw invalid(`no digest function has hashes of ${hash.length} digits; these are served: ${servedNames}`);
  return fn;
}

/** The empty blob always exists, under the hash of each function. */
const emptyHashes = new Map([...functions.values()].map((fn) => [fn, hashHex(fn, new Uint8Array())]));
export const emptyHash = (fn: DigestFunction): string => emptyHashes.get(fn) ?? "";

export const isEmpty = (digest: Digest): boolean => digest.endsWith("/0");

/** Throws if it is not a valid digest. */
export function digestFor(given: DigestFunction | undefined, hash: string, sizeBytes: number): Digest {
  const fn = functionFor(given, hash);
  const digest = digestText(fn, hash, sizeBytes);
  if (!isDigest(digest)) throw invalid(`not a digest of ${fn}: ${shown(`${hash}/${sizeBytes}`)}`);
  if (sizeBytes === 0 && hash !== emptyHash(fn)) throw invalid(`no empty blob has the hash ${hash}`);
  return digest;
}

export function digestOfWire(digest: WireDigest | undefined, given: DigestFunction | undefined, what: string): Digest {
  if (!digest) throw invalid(`${what} is not given`);
  return digestFor(given, digest.hash, digest.sizeBytes);
}

export function wireOf(digest: Digest): WireDigest {
  const { hash = "", sizeBytes = 0 } = parseDigest(digest) ?? {};
  return { hash, sizeBytes };
}

export const shown = (text: string): string => (text.length > 150 ? `${text.slice(0, 150)}...` : text);
