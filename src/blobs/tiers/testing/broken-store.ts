/**
 * A store whose reads come in random pieces and break off, stall or lie at a random position, by a seeded generator.
 */
import { Fault } from "#base/fault.ts";
import type { Random } from "#base/random.ts";
import { extend } from "#blobs/extend.ts";
import type { BlobStore } from "#blobs/store.ts";

/** How a read goes wrong. All but "well" happen at some byte, including the first and the one after the last. */
export type Mishap = "well" | "gone" | "broken" | "corrupt" | "short" | "longer" | "twice" | "other bytes";

export type BrokenOptions = {
  readonly random: Random;
  /** One is drawn for each read. */
  readonly mishaps: readonly Mishap[];
};

/** Lets all other pending work run, many times. */
async function stall(turns: number): Promise<void> {
  for (let i = 0; i < turns; i += 1) await new Promise((resolve) => setImmediate(resolve));
}

async function* inPieces(bytes: Uint8Array, random: Random): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.length;) {
    if (random.chance(0.2)) await stall(random.below(20));
    const length = random.chance(0.3) ? bytes.length : 1 + random.below(Math.max(1, bytes.length >> 1));
    yield Uint8Array.from(bytes.subarray(at, at + length));
    at += length;
  }
}

function told(bytes: Uint8Array, mishap: Mishap, at: number): Uint8Array {
  switch (mishap) {
    case "broken":
    case "corrupt":
    case "short":
      return bytes.subarray(0, at);
    case "longer":
      return Buffer.concat([bytes, bytes.subarray(0, Math.max(1, at))]);
    case "twice":
      return Buffer.concat([bytes.subarray(0, at), bytes]);
    case "other bytes":
      return bytes.map((byte, i) => (i === Math.min(at, bytes.length - 1) ? byte ^ 1 : byte));
    default:
      return bytes;
  }
}

export function brokenReads(inner: BlobStore, { random, mishaps }: BrokenOptions): BlobStore {
  return extend(inner, {
    // Removed, so that every byte passes `read` here.
    file: undefined,
    adopt: undefined,
    path: undefined,
    part: undefined,
    prompt: undefined,
    async *read(digest, range) {
      const parts: Uint8Array[] = [];
      for await (const part of inner.read(digest, range)) parts.push(Uint8Array.from(part));
      const bytes = Buffer.concat(parts);
      const mishap = random.pick(mishaps);
      const at = random.pick([0, bytes.length, random.below(bytes.length + 1)]);
      if (mishap === "gone") throw new Fault("not-found", "read blob", { digest });
      yield* inPieces(told(bytes, mishap, at), random);
      if (random.chance(0.5)) await stall(random.below(50));
      if (mishap === "broken") throw new Fault("unavailable", "read blob", { digest, at });
      if (mishap === "corrupt") throw new Fault("corrupt", "read blob", { digest, at });
    },
  });
}
