/**
 * A pack: what a machine fetches instead of a release's own segments. Its blocks are runs of segments, each as a patch
 * against an older release, compressed, or as it is. The signed manifest names the pack's description by digest, and
 * the segments that come out are verified by their own digests, so a pack can waste bytes but change nothing.
 */
import { z } from "zod";
import { digestSizeBytes, type Digest } from "#base/digest.ts";
import { Fault } from "#base/fault.ts";
import {
  DigestText,
  segmentBytes,
  Units,
  unitCount,
  type Alternative,
  type Manifest,
} from "#doors/deploy/manifest/manifest.ts";

const hows = ["patch", "zstd", "raw"] as const;
const Block = z.strictObject({
  /** What comes out of it, in this order. */
  segments: z.array(DigestText).min(1).max(100_000),
  how: z.enum(hows),
  /** Its length in the pack. */
  bytes: z.int().min(0),
});
export type Block = z.output<typeof Block>;

export const Pack = z.strictObject({
  format: z.literal(1),
  base: DigestText.nullable(),
  blocks: z.array(Block).min(1).max(100_000),
  /** The pack's bytes as blobs of the store. */
  segments: z.array(DigestText).min(1).max(1_000_000),
  units: Units,
});
export type Pack = z.output<typeof Pack>;

const path = "pack";

/** A pack is kept, spread and staged as if it were a release of one file. */
export function packContent({ segments, units }: Pick<Pack, "segments"> & { readonly units?: Units }) {
  const sizeBytes = segments.reduce((sum, digest) => sum + digestSizeBytes(digest), 0);
  const files = [{ path, executable: false, sizeBytes, segments }];
  return { files, links: [], ...(units && { units }) } satisfies Partial<Manifest>;
}

export const blockBytes = ({ segments }: Pick<Block, "segments">): number =>
  segments.reduce((sum, digest) => sum + digestSizeBytes(digest), 0);

/** Refuses what does not add up before any of it is fetched. */
export function parsePack(text: string): Pack {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw invalid("it is not JSON", error);
  }
  const parsed = Pack.safeParse(value);
  if (!parsed.success) throw invalid(parsed.error.issues[0]?.message ?? "");
  const pack = parsed.data;
  const [file] = packContent(pack).files;
  if (pack.blocks.some((block) => blockBytes(block) > segmentBytes)) throw invalid("a block is too long");
  const bytes = pack.blocks.reduce((sum, block) => sum + block.bytes, 0);
  if (file?.sizeBytes !== bytes) throw invalid("its blocks do not add up to its segments");
  if (pack.segments.some((digest, i) => !isFull(digest, i === pack.segments.length - 1)))
    throw invalid(`every segment but the last has ${segmentBytes} bytes`);
  if (pack.units.sha256.length !== unitCount(packContent(pack), pack.units.bytes))
    throw invalid("the units do not add up to the segments");
  return pack;
}

/** What moves the fewest bytes to a machine that lacks `missingBytes` and has these releases. */
export function cheapest(
  alternatives: readonly Alternative[],
  { missingBytes, has }: { readonly missingBytes: number; readonly has: (manifest: Digest) => boolean },
): Alternative | undefined {
  let best: Alternative | undefined;
  for (const each of alternatives)
    if ((each.base === null || has(each.base)) && each.sizeBytes < (best?.sizeBytes ?? missingBytes)) best = each;
  return best;
}

const isFull = (digest: Digest, isLast: boolean): boolean =>
  isLast ? digestSizeBytes(digest) <= segmentBytes : digestSizeBytes(digest) === segmentBytes;

const invalid = (why: string, cause?: unknown): Fault => new Fault("invalid", "read pack", { why }, cause);
