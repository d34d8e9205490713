/** The thread behind diff-threads.ts: encodes blocks. */
import { parentPort } from "node:worker_threads";
import { addDiff, type AddDiff, type Op } from "./add-diff.ts";
import type { EncodeAnswer, EncodeRequest, Encoded } from "./diff-threads.ts";
import { applyPatch, compressed, encodePatch, type Bytes } from "./patch.ts";

/** A patch that is smaller than this part of the block is taken without looking whether compression is better. */
const clearlyBetter = 0.15;
const rawShare = 0.95;
const fastLevel = 6;

async function encode({ fresh, old, regions }: EncodeRequest): Promise<Encoded> {
  const patch = old && (await patchOf(fresh, old, regions));
  if (patch && patch.length < clearlyBetter * fresh.length) return { how: "patch", bytes: patch };
  const packed = compressed(fresh, fastLevel);
  if (patch && patch.length < packed.length && patch.length < rawShare * fresh.length)
    return { how: "patch", bytes: patch };
  return packed.length < rawShare * fresh.length ? { how: "zstd", bytes: packed } : { how: "raw", bytes: fresh };
}

/** Undefined where the patch does not give the bytes back, which would be a fault of ours: it is not shipped. */
async function patchOf(
  fresh: Uint8Array,
  old: Uint8Array,
  regions: EncodeRequest["regions"],
): Promise<Uint8Array | undefined> {
  const patch = encodePatch(inRow(addDiff(old, fresh), regions));
  const bytes: Bytes = async function* ({ offset, length }) {
    yield patch.subarray(offset, offset + length);
  };
  let at = 0;
  const sizes = { patchBytes: patch.length, sizeBytes: fresh.length };
  for await (const part of applyPatch(bytes, sizes, async (from, into) => copyFrom(old, regions, from, into))) {
    if (Buffer.compare(part, fresh.subarray(at, at + part.length)) !== 0) return undefined;
    at += part.length;
  }
  return at === fresh.length ? patch : undefined;
}

/** The old bytes are regions of the base's row, one after the other: places in them become places in the row. */
function inRow({ ops, add, literal }: AddDiff, regions: EncodeRequest["regions"]): AddDiff {
  const told: Op[] = [];
  for (const op of ops) {
    let [from, left] = [op.from, op.add];
    do {
      const { row, start, length } = regionAt(regions, from);
      const here = Math.min(left, start + length - from);
      const isLast = here === left;
      told.push({ from: row + from - start, add: here, literal: isLast ? op.literal : 0 });
      from += here;
      left -= here;
    } while (left > 0);
  }
  return { ops: told, add, literal };
}

function regionAt(regions: EncodeRequest["regions"], at: number) {
  let start = 0;
  for (const region of regions) {
    if (at < start + region.length) return { ...region, start };
    start += region.length;
  }
  return { row: 0, start: at, length: 0 };
}

function copyFrom(old: Uint8Array, regions: EncodeRequest["regions"], from: number, into: Uint8Array): void {
  let start = 0;
  for (const { row, length } of regions) {
    if (from >= row && from + into.length <= row + length)
      return into.set(old.subarray(start + from - row, start + from - row + into.length));
    start += length;
  }
  throw new RangeError("a patch left the old bytes");
}

parentPort?.on("message", (request: EncodeRequest) => {
  void encode(request).then(
    (encoded) => parentPort?.postMessage({ encoded } satisfies EncodeAnswer),
    (error: unknown) => parentPort?.postMessage({ error: String(error) } satisfies EncodeAnswer),
  );
});
