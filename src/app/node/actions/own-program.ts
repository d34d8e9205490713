/**
 * Our own program, for what runs it in a sandbox: jobs of CI, functions of batch queries. Users of lanes cannot enter a
 * checkout below /root or in a folder of `mktemp -d`, so they get copies, made of hard links where that is possible.
 */
import { createHash } from "node:crypto";
import {
  chmodSync,
  constants,
  copyFileSync,
  existsSync,
  linkSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readlinkSync,
  realpathSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { isInside, isPassable } from "#worker/sandbox/folders/folders.ts";
import type { Shown } from "#worker/sandbox/shown.ts";
import { elsewhereDefault, isOurs, ofFile } from "./actions-home.ts";

const packageRoot = join(import.meta.dirname, "../../../..");

/** Nothing else of a checkout: the data of a node may lie beside it. */
function ownPaths(): readonly string[] {
  const above = (folder: string): readonly string[] =>
    folder === dirname(folder) ? [folder] : [folder, ...above(dirname(folder))];
  const modules = above(packageRoot).map((folder) => join(folder, "node_modules"));
  const parts = ["package.json", "bin", "src", "dist"].map((name) => join(packageRoot, name));
  const paths = [dirname(process.execPath), ...parts, ...modules].filter((path) => existsSync(path));
  const real = [...new Set(paths.map((path) => realpathSync(path)))];
  return real.filter((path) => !isInside(path, real));
}

/** Where the program lies, and where commands find it. `elsewhere`: every user can traverse it. */
export function ownProgram(paths: readonly string[] = ownPaths(), elsewhere: string = elsewhereDefault): Shown[] {
  const areOthers = process.getuid?.() === 0;
  return paths.map((at) => ({ at, from: areOthers && !isReadable(at) ? copyOf(at, elsewhere) : at }));
}

const isReadable = (path: string): boolean => {
  const stat = lstatSync(path);
  return stat.isDirectory() ? isPassable(path) : (stat.mode & 0o004) !== 0 && isPassable(dirname(path));
};

/** Made once for each state of the original: nodes of the same program share it. `actionsHome` sweeps old ones. */
function copyOf(path: string, elsewhere: string): string {
  const key = createHash("sha256")
    .update(`${path}\n${stateOf(path)}`)
    .digest("hex")
    .slice(0, 16);
  const folder = join(elsewhere, `millrace-program-${key}`);
  const copy = join(folder, "program");
  if (existsSync(folder) && isOurs(folder)) return copy;
  const made = mkdtempSync(join(elsewhere, "millrace-program-"));
  chmodSync(made, 0o711);
  linkTree(path, join(made, "program"));
  writeFileSync(join(made, ofFile), path, { mode: 0o600 });
  try {
    renameSync(made, folder);
  } catch (error) {
    rmSync(made, { recursive: true, force: true });
    if (!isOurs(folder)) throw error; // otherwise another node was faster
  }
  return copy;
}

/** npm rewrites this file whenever it changes a node_modules; other folders of ours are small. */
const installed = ".package-lock.json";

function stateOf(path: string): string {
  const stat = lstatSync(path);
  if (!stat.isDirectory()) return `${stat.ino} ${stat.mtimeMs}`;
  if (existsSync(join(path, installed))) return stateOf(join(path, installed));
  const entries = readdirSync(path).toSorted();
  return entries.map((name) => `${name} ${stateOf(join(path, name))}`).join("\n");
}

/** What tools leave in a node_modules for themselves. */
const isLeft = (name: string): boolean => name === ".cache" || name === ".bin";

function linkTree(from: string, to: string): void {
  const stat = lstatSync(from);
  if (stat.isSymbolicLink()) symlinkSync(readlinkSync(from), to);
  else if (stat.isDirectory()) {
    mkdirSync(to);
    chmodSync(to, 0o755);
    for (const name of readdirSync(from)) if (!isLeft(name)) linkTree(join(from, name), join(to, name));
  } else if (stat.isFile()) linkFile(from, to, stat.mode);
}

function linkFile(from: string, to: string, mode: number): void {
  if ((mode & 0o004) !== 0)
    try {
      return linkSync(from, to);
    } catch {
      // Another file system, or one without hard links: the copy below fails for any other reason.
    }
  copyFileSync(from, to, constants.COPYFILE_FICLONE);
  chmodSync(to, mode | 0o444 | ((mode & 0o100) === 0 ? 0 : 0o111));
}
