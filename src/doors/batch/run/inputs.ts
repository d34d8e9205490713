/** What a task reads: packs that other tasks wrote, as files, and sources as they were when the job began. */
import type { Digest } from "#base/digest.ts";
import { join } from "node:path";
import { Fault, isFault } from "#base/fault.ts";
import type { BlobStore } from "#blobs/store.ts";
import type { Producer, StageDocument, StageInput } from "#doors/batch/documents.ts";
import { placeOf } from "#doors/batch/memo/identity.ts";
import type { SourceFile } from "#doors/batch/plan/source.ts";
import type { TaskPart } from "#doors/batch/plan/tasks.ts";
import type { LinkCache } from "#worker/stage/link-cache.ts";
import type { Documents, ReadBy } from "./documents-cache.ts";
import { fetchSlice } from "./packs/far-slice.ts";
import type { WantedRows } from "./packs/footer.ts";

export type PackPorts = {
  /** Packs as files. */
  readonly files: LinkCache;
  /** Has a task done again whose pack is lost. The generation that it is in now; undefined if it was refused. */
  readonly invalidate: (taskId: string, generation: number, reason: string) => Promise<number | undefined>;
};

export type Packs = ReadonlyMap<
  string,
  Pick<StageInput, "types" | "producers"> & { readonly digests: readonly Digest[] }
>;

export async function packsOf(document: StageDocument, documents: Documents, by: ReadBy): Promise<Packs> {
  const found = new Map<string, Pick<StageInput, "types" | "producers"> & { readonly digests: readonly Digest[] }>();
  for (const [id, { manifest, types, producers }] of Object.entries(document.inputs)) {
    const { packs } = await documents.manifest(manifest, by);
    found.set(id, { types, producers, digests: packs.map(({ digest }) => digest) });
  }
  return found;
}

export type HeldPacks = AsyncDisposable & { pathOf(digest: Digest): string };

/** Which rows of a pack a task wants; undefined: all. `folder` is the task's own. */
export type SomeRows = { readonly of: (digest: Digest) => WantedRows | undefined; readonly folder: string };

/**
 * Has all packs here as files, or what is wanted of them. Those that are lost or damaged are asked for again, from
 * exactly who wrote them.
 */
export async function heldPacks(
  packs: Packs,
  blobs: BlobStore,
  { files, invalidate }: PackPorts,
  some?: SomeRows,
): Promise<HeldPacks> {
  const wanted = [...new Set([...packs.values()].flatMap(({ digests }) => digests))];
  const lost = new Set(await blobs.missing(wanted));
  try {
    if (lost.size === 0) return await asFiles(wanted, blobs, files, some);
  } catch (error) {
    const digest = isFault(error) ? error.facts["digest"] : undefined;
    if (typeof digest !== "string" || !wanted.includes(digest)) throw error;
    lost.add(digest);
  }
  for (const { digests, producers } of packs.values())
    for (const [i, digest] of digests.entries()) {
      const by = producers[i];
      const isThere = async (): Promise<boolean> => (await blobs.missing([digest])).length === 0;
      if (by && lost.has(digest)) await askAgain(digest, by, { invalidate, isThere });
    }
  throw new Fault("not-found", readPacks, { digest: [...lost][0], lost: lost.size });
}

const generationsMax = 20;

/** Others may have asked before, and the pack may have been written again since, and lost again. */
export async function askAgain(
  digest: Digest,
  { task, generation }: Producer,
  { invalidate, isThere }: Pick<PackPorts, "invalidate"> & { readonly isThere: () => Promise<boolean> },
): Promise<void> {
  let asked = generation;
  for (let tries = 0; tries < generationsMax; tries += 1) {
    const now = await invalidate(task, asked, `its pack ${digest} is lost`);
    if (now === undefined || now <= asked || (await isThere())) return;
    asked = now;
  }
}

/** The store's own files where it has some; what is wanted of those that are far; copies of the others. */
async function asFiles(
  wanted: readonly Digest[],
  blobs: BlobStore,
  files: LinkCache,
  some: SomeRows | undefined,
): Promise<HeldPacks> {
  await using undo = new AsyncDisposableStack();
  const paths = new Map<Digest, string>();
  for (const [i, digest] of wanted.entries()) {
    const rows = some?.of(digest);
    const own = join(some?.folder ?? "", `far-${i}.parquet`);
    if (rows && (await isFar(digest, blobs)) && (await fetchSlice(digest, rows, own, blobs))) {
      paths.set(digest, own);
      continue;
    }
    const lent = await blobs.path?.(digest);
    if (!lent) continue;
    undo.defer(() => lent.release());
    paths.set(digest, lent.path);
  }
  const others = wanted.filter((digest) => !paths.has(digest));
  const copies = await files.hold(
    others.map((digest) => ({ digest, executable: false })),
    blobs,
  );
  undo.defer(() => copies[Symbol.dispose]());
  const held = undo.move();
  return {
    pathOf: (digest) => paths.get(digest) ?? files.path(digest, false),
    [Symbol.asyncDispose]: () => held.disposeAsync(),
  };
}

/** Of a store that has no files of its own nothing is near. */
async function isFar(digest: Digest, blobs: BlobStore): Promise<boolean> {
  const lent = await blobs.file?.(digest);
  await lent?.release();
  return lent === undefined;
}

export const readPacks = "read packs";

/** The files of sources that a part reads. */
export const filesOf = (document: StageDocument, part: number): readonly SourceFile[] =>
  filesIn(document, document.parts[part]);

export function filesIn({ stage, sources }: StageDocument, what: TaskPart | undefined): readonly SourceFile[] {
  return (stage.branches[what?.branch ?? 0]?.inputs ?? []).flatMap((input) => {
    if (input.from !== "source") return [];
    const files = sources[input.source]?.files ?? [];
    return what?.slice.by === "source" && input.take === "part"
      ? what.slice.split.flatMap(({ file }) => files[file] ?? [])
      : files;
  });
}

/** Every attempt reads what was there when the job began, or none does. */
export async function checkSources(document: StageDocument, part: number): Promise<void> {
  for (const { path, place, object } of filesOf(document, part))
    if (!object && (await placeOf(path)) !== place)
      throw new Fault("stale", "read source", { path, why: "it was changed or removed after the job began" });
}
