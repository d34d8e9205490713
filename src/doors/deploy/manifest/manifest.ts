/**
 * What a release consists of: files, each cut into segments that the store keeps as blobs. A manifest is named by the
 * digest of its text, never by a tag or a path.
 *
 * MF1 A path in a manifest stays below the folder that it is unpacked to, and no two entries share a path.
 */
import { z } from "zod";
import { isDigest, digestSizeBytes } from "#base/digest.ts";
import { Fault } from "#base/fault.ts";
import { RunSpec } from "./run-spec.ts";
import { ServiceName } from "#doors/deploy/service/service-file.ts";

export const segmentBytes = 64 * 1024 * 1024;
const filesMax = 200_000;
const pathLengthMax = 1_000;

export const DigestText = z.string().refine(isDigest, "not a digest");
const Path = z.string().max(pathLengthMax).refine(isSafePath, "a path must stay below the release's folder");

const File = z.strictObject({
  path: Path,
  executable: z.boolean(),
  sizeBytes: z.int().min(0),
  segments: z.array(DigestText).max(1_000_000),
});
const Link = z.strictObject({ path: Path, target: z.string().min(1).max(pathLengthMax) });

/** SHA-256 of each unit, as base64url: what machines give each other is verified by these (layout.ts). */
export const Units = z.strictObject({
  bytes: z
    .int()
    .min(4 * 1024)
    .max(16 * 1024 * 1024),
  sha256: z.array(z.string().regex(/^[A-Za-z0-9_-]{43}$/, "not a hash")).max(200_000),
});
export type Units = z.output<typeof Units>;

/** Other bytes that the release can be made from, with those of an older release or alone (delta/pack.ts). */
const Alternative = z.strictObject({
  /** The manifest of the older release; null: it needs none. */
  base: DigestText.nullable(),
  pack: DigestText,
  /** How many bytes are fetched with it. */
  sizeBytes: z.int().min(1),
});
export type Alternative = z.output<typeof Alternative>;
export const alternativesMax = 8;

export const Manifest = z.strictObject({
  format: z.literal(1),
  service: ServiceName,
  /** The commit that it was built from. */
  sha: z.string().regex(/^[0-9a-f]{7,64}$/, "not a commit SHA"),
  /** The job that built it. */
  builder: z.string().max(200),
  run: RunSpec,
  files: z.array(File).max(filesMax),
  links: z.array(Link).max(filesMax),
  /** Left out: its bytes come from nodes only. */
  units: Units.optional(),
  alternatives: z.array(Alternative).max(alternativesMax).optional(),
});
export type Manifest = z.output<typeof Manifest>;
export type ManifestFile = Manifest["files"][number];

/** The one spelling of a manifest: entries by path, keys in the schema's order. */
export function manifestText(manifest: Manifest): string {
  const { format, service, sha, builder, run, files, links, units, alternatives } = manifest;
  const byPath = <T extends { readonly path: string }>(entries: readonly T[]): readonly T[] =>
    entries.toSorted((a, b) => (a.path < b.path ? -1 : 1));
  const same = { format, service, sha, builder, run, files: byPath(files), links: byPath(links) };
  return JSON.stringify({ ...same, ...(units && { units }), ...(alternatives && { alternatives }) });
}

/** Refuses what could harm the machine that unpacks it, also when it is signed (MF1). */
export function parseManifest(text: string): Manifest {
  const parsed = Manifest.safeParse(parseJson(text));
  if (!parsed.success) {
    const [first] = parsed.error.issues;
    throw invalid({ at: first?.path.map(String).join("."), why: first?.message });
  }
  const manifest = parsed.data;
  const seen = new Set<string>();
  const folders = new Set<string>();
  for (const { path } of [...manifest.files, ...manifest.links]) {
    if (seen.has(path)) throw invalid({ path, why: "two entries have this path" });
    seen.add(path);
    for (let at = path.lastIndexOf("/"); at > 0; at = path.lastIndexOf("/", at - 1)) folders.add(path.slice(0, at));
  }
  for (const path of seen) if (folders.has(path)) throw invalid({ path, why: "it is a file and a folder" });
  for (const { path, sizeBytes, segments } of manifest.files) {
    const sizes = segments.map((digest) => digestSizeBytes(digest));
    if (sizes.reduce((sum, size) => sum + size, 0) !== sizeBytes)
      throw invalid({ path, why: "its segments do not add up to its size" });
    if (sizes.some((size, i) => size > segmentBytes || (i < sizes.length - 1 && size !== segmentBytes)))
      throw invalid({ path, why: `every segment but the last has ${segmentBytes} bytes` });
  }
  if (manifest.units && manifest.units.sha256.length !== unitCount(manifest, manifest.units.bytes))
    throw invalid({ why: "the units do not add up to the segments" });
  for (const { path, target } of manifest.links)
    if (!staysBelow(path, target)) throw invalid({ path, target, why: "the link leaves the release's folder" });
  return manifest;
}

/** Equal segments are in the units once. */
export const distinctSegments = ({ files }: Pick<Manifest, "files">): readonly string[] => [
  ...new Set(files.flatMap(({ segments }) => segments)),
];

export const unitCount = (manifest: Pick<Manifest, "files">, unitBytes: number): number =>
  Math.ceil(distinctSegments(manifest).reduce((sum, digest) => sum + digestSizeBytes(digest), 0) / unitBytes);

export const manifestSizeBytes = ({ files }: Pick<Manifest, "files">): number =>
  files.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0);

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch (error) {
    throw invalid({ why: "it is not JSON" }, error);
  }
}

function isSafePath(path: string): boolean {
  if (path === "" || path.startsWith("/") || path.includes("\0") || path.includes("\\")) return false;
  return path.split("/").every((part) => part !== "" && part !== "." && part !== "..");
}

function staysBelow(path: string, target: string): boolean {
  if (target.startsWith("/") || target.includes("\0")) return false;
  let depth = path.split("/").length - 1;
  for (const part of target.split("/")) {
    if (part === "..") depth -= 1;
    else if (part !== "." && part !== "") depth += 1;
    if (depth < 0) return false;
  }
  return true;
}

const invalid = (facts: Readonly<Record<string, string | undefined>>, cause?: unknown): Fault =>
  new Fault("invalid", "read manifest", facts, cause);
