/**
 * The manifest of a stage's results, as blobs. The root names the stage's sets of tasks, and for each set the pages
 * that list its tasks, 1,024 to a page, one JSON object to a line. So a reader of one result reads the root and one
 * page, and a generation in which few results changed shares the other pages with the one before. The bytes follow
 * from the results alone: writing a manifest again gives the same digest.
 */
import type { Digest } from "#base/digest.ts";
import { Fault } from "#base/fault.ts";
import type { TaskPhase } from "#kernel/model/model.ts";

export const manifestFormat = "millrace-manifest-1";

/** One task and its result. */
export type ManifestEntry = {
  readonly task: number;
  readonly key: string;
  readonly phase: TaskPhase;
  readonly generation: number;
  readonly payload?: string;
  readonly digests?: readonly Digest[];
};

export type ManifestSet = {
  /** For an array: the index of its first task. */
  readonly first?: number;
  readonly tasks: number;
  readonly pages: readonly Digest[];
};

export type ManifestRoot = {
  readonly format: typeof manifestFormat;
  readonly stage: string;
  readonly generation: number;
  readonly pageTasks: number;
  readonly sets: readonly ManifestSet[];
};

export const writeRoot = (root: ManifestRoot): Uint8Array => Buffer.from(`${JSON.stringify(root)}\n`);

export const writePage = (entries: readonly ManifestEntry[]): Uint8Array =>
  Buffer.from(entries.map((entry) => `${JSON.stringify(entry)}\n`).join(""));

/** Throws a Fault: the bytes have the digest that was asked for, so it is no manifest, or one of a newer version. */
export function readRoot(bytes: Uint8Array): ManifestRoot {
  const root = parse(textOf(bytes)) as Partial<ManifestRoot> | null;
  if (root?.format !== manifestFormat || !Array.isArray(root.sets)) throw unreadable("it is no manifest");
  return root as ManifestRoot;
}

export function readPage(bytes: Uint8Array): readonly ManifestEntry[] {
  return textOf(bytes)
    .split("\n")
    .filter((line) => line !== "")
    .map(readEntry);
}

/** One line of a page. */
export const readEntry = (line: string): ManifestEntry => parse(line) as ManifestEntry;

const textOf = (bytes: Uint8Array): string =>
  Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("utf8");

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw unreadable("it is no JSON", cause);
  }
}

const unreadable = (why: string, cause?: unknown): Fault => new Fault("corrupt", "read a manifest", { why }, cause);
