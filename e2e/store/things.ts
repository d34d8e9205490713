/** What the writer stores and the checker expects: everything is derived from a number. */
import type { Digest } from "#base/digest.ts";
import { digestOf } from "#blobs/hashing.ts";

export type Thing = {
  readonly number: number;
  readonly kind: "small" | "large" | "name" | "upload" | "pinned" | "blake3";
  readonly bytes: Buffer;
  readonly digest: Digest;
};

const kinds = ["small", "small", "small", "small", "large", "name", "upload", "pinned", "blake3", "small"] as const;

export function thing(number: number): Thing {
  const kind = kinds[number % kinds.length] ?? "small";
  const isLarge = kind === "large" || kind === "upload" || (kind === "pinned" && number % 20 < 10);
  const sizeBytes = isLarge ? 70_000 + ((number * 7_919) % 400_000) : (number * 104_729) % 20_000;
  const bytes = Buffer.alloc(sizeBytes, `thing ${number} of the mill `);
  return { number, kind, bytes, digest: digestOf(bytes, kind === "blake3" ? "blake3" : "sha256") };
}

export const tenant = "mill";
export const keyOf = (number: number) => ({ tenant, space: "ac/sha256", name: `action ${number}` });
export const uploadKey = ({ number, digest }: Thing) => ({ uuid: `upload ${number}`, digest });
