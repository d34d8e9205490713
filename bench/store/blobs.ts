/** Blobs derived from a number, and many concurrent users of them. */
import { hash } from "node:crypto";
import type { Digest } from "#base/digest.ts";

const filling = hash("sha512", "filling", "buffer");

export function smallBlob(number: number, sizeBytes: number): { readonly digest: Digest; readonly bytes: Buffer } {
  const bytes = Buffer.alloc(sizeBytes, filling);
  bytes.writeUInt32LE(number, 0);
  return { digest: `${hash("sha256", bytes)}/${sizeBytes}`, bytes };
}

export async function lanes(count: number, hands: number, work: (number: number) => Promise<void>): Promise<void> {
  let next = 0;
  const hand = async (): Promise<void> => {
    while (next < count) {
      const number = next;
      next += 1;
      await work(number);
    }
  };
  await Promise.all(Array.from({ length: hands }, hand));
}
