/**
 * Finds what changed in a job's folders since the last look, by the facts that the file system keeps of each entry:
 * a file whose inode, size and times are the same is not read again.
 */
import { type BigIntStats, lstatSync, readdirSync, readlinkSync } from "node:fs";
import { Fault } from "#base/fault.ts";

/** Paths are bytes, each as one character (latin1): names need not be UTF-8. Relative to the job's folder. */
export type TreePath = string;

export type Entry =
  | {
      readonly kind: "file";
      readonly path: TreePath;
      readonly mode: number;
      readonly mtimeMs: number;
      readonly size: number;
    }
  | { readonly kind: "folder"; readonly path: TreePath; readonly mode: number; readonly mtimeMs: number }
  | { readonly kind: "link"; readonly path: TreePath; readonly target: string };

/** What was seen of an entry; equal facts mean an unchanged entry. */
type Seen = { readonly facts: string; readonly entry: Entry };

export type Delta = { readonly changed: readonly Entry[]; readonly removed: readonly TreePath[] };

export type WalkLimits = { readonly entriesMax: number; readonly depthMax: number };

export const walkLimits: WalkLimits = { entriesMax: 1_000_000, depthMax: 200 };

/** Times of files have a granularity of a few milliseconds: what changed just before a look may change again unseen. */
const racyMs = 50n;
const nsPerMs = 1_000_000n;

export class TreeMemory {
  readonly #root: string;
  readonly #tops: readonly string[];
  readonly #limits: WalkLimits;
  #seen: ReadonlyMap<TreePath, Seen> = new Map();

  /** `tops` are the folders below `root` that are looked at. */
  constructor(root: string, tops: readonly string[], limits: WalkLimits = walkLimits) {
    this.#root = root;
    this.#tops = tops;
    this.#limits = limits;
  }

  get entries(): number {
    return this.#seen.size;
  }

  /** What changed since the last look; everything at the first. Folders come before what is in them. */
  look(nowMs: number): Delta {
    const before = this.#seen;
    const racyNs = (BigInt(Math.floor(nowMs)) - racyMs) * nsPerMs;
    const now = new Map<TreePath, Seen>();
    const changed: Entry[] = [];
    for (const top of this.#tops) this.#walk(top, 0, racyNs, now);
    for (const [path, { facts, entry }] of now)
      if (before.get(path)?.facts !== facts || facts === "") changed.push(entry);
    const removed = [...before.keys()].filter((path) => !now.has(path));
    this.#seen = now;
    return { changed, removed };
  }

  /** The next look finds everything again. */
  forget(): void {
    this.#seen = new Map();
  }

  #walk(path: TreePath, depth: number, racyNs: bigint, into: Map<TreePath, Seen>): void {
    const { entriesMax, depthMax } = this.#limits;
    const stats = lstatSync(this.#onDisk(path), { bigint: true, throwIfNoEntry: false });
    if (!stats) return;
    const entry = this.#entryOf(path, stats);
    if (!entry) return; // sockets, pipes and devices belong to processes that are gone by then
    if (into.size >= entriesMax) throw new Fault("exhausted", "look at the job's files", { entriesMax });
    if (depth > depthMax) throw new Fault("exhausted", "look at the job's files", { depthMax });
    const isRacy = entry.kind === "file" && (stats.mtimeNs > racyNs || stats.ctimeNs > racyNs);
    into.set(path, { facts: isRacy ? "" : factsOf(entry, stats), entry });
    if (entry.kind !== "folder") return;
    for (const name of readdirSync(this.#onDisk(path), { encoding: "latin1" }))
      this.#walk(`${path}/${name}`, depth + 1, racyNs, into);
  }

  #entryOf(path: TreePath, stats: BigIntStats): Entry | undefined {
    const mode = Number(stats.mode & 0o7777n);
    const mtimeMs = Number(stats.mtimeNs) / 1e6;
    if (stats.isFile()) return { kind: "file", path, mode, mtimeMs, size: Number(stats.size) };
    if (stats.isDirectory()) return { kind: "folder", path, mode, mtimeMs };
    if (!stats.isSymbolicLink()) return undefined;
    return { kind: "link", path, target: readlinkSync(this.#onDisk(path), { encoding: "latin1" }) };
  }

  #onDisk(path: TreePath): Buffer {
    return onDisk(this.#root, path);
  }
}

export const onDisk = (root: string, path: TreePath): Buffer =>
  Buffer.concat([Buffer.from(`${root}/`), Buffer.from(path, "latin1")]);

function factsOf(entry: Entry, { ino, size, mtimeNs, ctimeNs, mode }: BigIntStats): string {
  if (entry.kind === "link") return `l ${entry.target}`;
  // a folder's own times change with every entry in it: only its mode is part of what it is
  return entry.kind === "folder" ? `d ${mode}` : `f ${ino} ${size} ${mtimeNs} ${ctimeNs} ${mode}`;
}
