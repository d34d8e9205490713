/** The files of a commit, as git lists them. Pure. */
import { Fault } from "#base/fault.ts";

export type TreeFile = {
  readonly path: string;
  /** 100644, 100755, or 120000 for a link. */
  readonly mode: string;
  readonly object: string;
  readonly sizeBytes: number;
};

const filesMax = 200_000;
const bytesMax = 8 * 1024 ** 3;

/** Throws Fault "invalid" for a tree that is too large, or that leads out of its folder. Submodules are left out. */
export function readTree(listed: string): readonly TreeFile[] {
  const files: TreeFile[] = [];
  const links = new Set<string>();
  let sizeBytes = 0;
  for (const line of listed.split("\0")) {
    const [, mode = "", object = "", size = "", path = ""] =
      /^(100644|100755|120000) blob ([0-9a-f]+)\s+(\d+)\t(.+)$/s.exec(line) ?? [];
    if (mode === "") continue;
    sizeBytes += Number(size);
    if (files.length === filesMax || sizeBytes > bytesMax)
      throw refused(path, `a commit has at most ${filesMax} files of ${bytesMax} bytes together`);
    checkPath(path);
    if (mode === "120000") links.add(path);
    files.push({ path, mode, object, sizeBytes: Number(size) });
  }
  const through = files.find(({ path }) => parentsOf(path).some((parent) => links.has(parent)));
  if (through) throw refused(through.path, "it lies behind a link");
  return files;
}

function checkPath(path: string): void {
  const parts = path.split("/");
  if (
    path.length > 4_096 ||
    parts.some((part) => part === "" || part === "." || part === ".." || part.toLowerCase() === ".git")
  )
    throw refused(path, "it leads out of its folder");
}

function parentsOf(path: string): readonly string[] {
  const parts = path.split("/");
  return parts.slice(1).map((_part, at) => parts.slice(0, at + 1).join("/"));
}

const refused = (path: string, why: string): Fault =>
  new Fault("invalid", "read a commit's files", { path: path.slice(0, 200), why });
