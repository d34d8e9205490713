/**
 * Compares two input trees. Equal digests are equal trees, so only what changed is read: the cost is that of the
 * change, not of the tree.
 */
import type { Directory } from "#wire/generated/build/bazel/remote/execution/v2/remote_execution.ts";
import type { Difference } from "./difference.ts";

type DigestLike = { readonly hash: string; readonly sizeBytes: number };

/** Undefined when it is not in the store. */
export type ReadDirectory = (digest: DigestLike) => Promise<Directory | undefined>;

export type TreeLimits = { readonly differencesMax: number; readonly directoriesMax: number };

type Pair = { readonly path: string; readonly before: DigestLike | undefined; readonly after: DigestLike | undefined };

export async function compareTrees(
  roots: { readonly before: DigestLike; readonly after: DigestLike },
  read: ReadDirectory,
  limits: TreeLimits,
): Promise<readonly Difference[]> {
  const found: Difference[] = [];
  const open: Pair[] = [{ path: "", ...roots }];
  for (let directories = 0; open.length > 0; directories += 1) {
    if (found.length >= limits.differencesMax || directories >= limits.directoriesMax)
      return [...found.slice(0, limits.differencesMax), { kind: "more" }];
    const pair = open.shift() as Pair;
    const [before, after] = await Promise.all([
      pair.before ? read(pair.before) : undefined,
      pair.after ? read(pair.after) : undefined,
    ]);
    if ((pair.before && !before) || (pair.after && !after)) found.push(unseen(pair));
    else compareDirectories(pair.path, before, after, found, open);
  }
  return found;
}

const unseen = ({ path, before, after }: Pair): Difference => ({
  kind: "unseen",
  what: "inputs",
  path,
  before: before && text(before),
  after: after && text(after),
});

function compareDirectories(
  at: string,
  before: Directory | undefined,
  after: Directory | undefined,
  found: Difference[],
  open: Pair[],
): void {
  const [was, is] = [entriesOf(before), entriesOf(after)];
  // An empty directory that was added or removed would otherwise not be reported.
  if ((!before || !after) && was.size + is.size === 0)
    found.push({ kind: "input", path: at, before: before && "empty directory", after: after && "empty directory" });
  for (const name of [...new Set([...was.keys(), ...is.keys()])].toSorted()) {
    const path = at === "" ? name : `${at}/${name}`;
    const [old, now] = [was.get(name), is.get(name)];
    if (old?.text === now?.text) continue;
    // A directory that was added, removed or changed is reported by its contents; one that became a file, by both.
    if (old?.directory || now?.directory) open.push({ path, before: old?.directory, after: now?.directory });
    const [oldLeaf, nowLeaf] = [leaf(old), leaf(now)];
    if (oldLeaf !== nowLeaf) found.push({ kind: "input", path, before: oldLeaf, after: nowLeaf });
  }
}

type Entry = { readonly text: string; readonly directory?: DigestLike };

const leaf = (entry: Entry | undefined): string | undefined => (entry?.directory ? undefined : entry?.text);

function entriesOf(directory: Directory | undefined): ReadonlyMap<string, Entry> {
  const entries = new Map<string, Entry>();
  if (!directory) return entries;
  const { files, directories, symlinks } = directory;
  for (const { name, digest, isExecutable } of files)
    entries.set(name, { text: `${isExecutable ? "executable " : ""}${digest ? text(digest) : "empty"}` });
  for (const { name, target } of symlinks) entries.set(name, { text: `link to ${target}` });
  for (const { name, digest } of directories)
    if (digest) entries.set(name, { text: `directory ${text(digest)}`, directory: digest });
  return entries;
}

const text = ({ hash, sizeBytes }: DigestLike): string => `${hash}/${sizeBytes}`;
