/** What a run is made from, and how it is written down: short texts in the job's spec, long ones as blobs. */
import type { Digest } from "#base/digest.ts";
import { isFault } from "#base/fault.ts";
import type { BlobStore } from "#blobs/store.ts";
import type { SourceFile } from "#doors/ci/workflow/compile/file.ts";
import type { PlainValue } from "#doors/ci/workflow/expression/value.ts";
import type { FromStep } from "./edited-step.ts";
import { keep, type Kept, recall, writeText } from "./texts.ts";

/** A merge that is no ref of the repository: every node makes the same one of these commits. */
export type PullOf = { readonly number: number; readonly head: string; readonly base: string };

/** It never changes, and has no secrets in it. */
export type RunRecord = {
  readonly file: SourceFile;
  /** Files that it calls, or that those call. */
  readonly called?: readonly SourceFile[];
  /** By `owner/repo@ref`: the commits that called files of other repositories are of. */
  readonly commits?: Readonly<Record<string, string>>;
  readonly github: PlainValue;
  readonly vars: PlainValue;
  readonly inputs: PlainValue;
  /** What its jobs check out. */
  readonly source?: { readonly repository: string; readonly sha: string; readonly pull?: PullOf };
  /** It runs what comes from another repository: no secrets. */
  readonly isFork?: boolean;
  /** A person has to let it in first. */
  readonly waitsFor?: "approval";
  /** How many runs led to it, one after the other (`workflow_run`). */
  readonly chain?: number;
  /** Labels that every job of the run asks for besides its own. */
  readonly requires?: readonly string[];
  /** One of its jobs goes on where a run before it was. */
  readonly from?: FromStep;
};

/** What lists and pages say of a run. */
export type RunAbout = {
  /** The run's own name, or the workflow's. */
  readonly title: string;
  readonly workflow: string;
  readonly path: string;
  readonly repository: string;
  readonly event: string;
  readonly ref: string;
  readonly sha: string;
  /** Of a pull request: the commit that its forge knows, where `sha` is a merge that was made here. */
  readonly head?: string;
  readonly actor: string;
  /** Counts from 1 where the run was run again; left out: it was not. */
  readonly attempt?: number;
  /** Of a run that was run again: the number of the first. Left out: the run has one of its own, by its series. */
  readonly number?: number;
  /** The run that this one repeats. */
  readonly again?: string;
  /** The first of the runs that it repeats; left out: it repeats none. */
  readonly root?: string;
};

/** The spec of the kernel's job. */
export type StoredRun = {
  readonly about: RunAbout;
  readonly files: Kept<readonly SourceFile[]>;
  readonly rest: Kept<Omit<RunRecord, "file" | "called">>;
};

/** Most workflows are larger, and the same in many runs: as blobs they are stored once. */
const filesBytesMax = 2 * 1024;

/** With the digest under which it is found when the job has left memory. */
export async function storeRun(
  blobs: BlobStore,
  record: RunRecord,
  about: RunAbout,
): Promise<{ readonly stored: StoredRun; readonly digest: Digest }> {
  const { file, called = [], ...rest } = record;
  const stored = { about, files: await keep(blobs, [file, ...called], filesBytesMax), rest: await keep(blobs, rest) };
  return { stored, digest: await writeText(blobs, JSON.stringify(stored)) };
}

/** Undefined where the store has it no longer. */
export async function findStored(blobs: BlobStore, digest: Digest | undefined): Promise<StoredRun | undefined> {
  if (digest === undefined) return undefined;
  return await recall<StoredRun>(blobs, { blob: digest }).catch((error: unknown) => {
    if (isFault(error, "not-found")) return undefined;
    throw error;
  });
}

export async function readRun(blobs: BlobStore, { files, rest }: StoredRun): Promise<RunRecord> {
  const [file = { path: "", text: "" }, ...called] = await recall(blobs, files);
  return { ...(await recall(blobs, rest)), file, ...(called.length > 0 && { called }) };
}
