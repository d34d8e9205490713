/**
 * Deletes folders that another user could write to, and may still write to, in its next attempt. So nothing is reached
 * by a path that could lead elsewhere by now: each folder is opened without following links, and its entries are named
 * relative to its descriptor. Names may be any bytes.
 *
 * Uses synchronous calls, and yields every few milliseconds: that takes half the time of asynchronous calls and blocks
 * no other work.
 */
import { randomBytes } from "node:crypto";
import { chmodSync, closeSync, constants, openSync, readdirSync, renameSync, unlinkSync } from "node:fs";
import { rm, rmdir } from "node:fs/promises";
import { ignoreMissing } from "#base/ignore-missing.ts";
import { Pace } from "#worker/visits/pace.ts";

export async function removeFolder(path: string): Promise<void> {
  await emptyFolder(path);
  await rmdirQuietly(Buffer.from(path));
}

/** Empties the folder; keeps the folder itself and the names in `staying`, encoded by `bytesOf`. */
export async function emptyFolder(path: string, staying: ReadonlySet<string> = nothing): Promise<void> {
  if (process.platform !== "linux") return await emptyElsewhere(path);
  const top = openFolder(Buffer.from(path));
  if (top === undefined) return;
  try {
    const emptying = { top, staying, pace: new Pace(), moved: 0 };
    do {
      emptying.moved = 0;
      await empty(top, 0, emptying);
    } while (emptying.moved > 0);
  } finally {
    closeSync(top);
  }
}

/** One character for each byte, so that different names stay different. */
export const bytesOf = (name: string): string => Buffer.from(name).toString("latin1");
const nothing: ReadonlySet<string> = new Set();

type Emptying = {
  readonly top: number;
  /** Directly in it. */
  readonly staying: ReadonlySet<string>;
  readonly pace: Pace;
  moved: number;
};

/** Each level holds a descriptor open. */
const depthMax = 64;

async function empty(fd: number, depth: number, emptying: Emptying): Promise<void> {
  for (const entry of readdirSync(inside(fd), { withFileTypes: true, encoding: "buffer" })) {
    if (depth === 0 && emptying.staying.has(entry.name.toString("latin1"))) continue;
    const path = inside(fd, entry.name);
    if (!entry.isDirectory()) unlinkSync(path);
    else if (depth >= depthMax) {
      renameSync(path, inside(emptying.top, Buffer.from(randomBytes(16).toString("hex"))));
      emptying.moved += 1;
    } else await emptyInside(path, depth + 1, emptying);
    if (emptying.pace.isLong()) await emptying.pace.rest();
  }
}

async function emptyInside(path: Buffer, depth: number, emptying: Emptying): Promise<void> {
  const fd = openFolder(path);
  if (fd === undefined) return;
  try {
    await empty(fd, depth, emptying);
  } finally {
    closeSync(fd);
  }
  await rmdirQuietly(path);
}

const inside = (fd: number, name: Uint8Array = noName): Buffer =>
  Buffer.concat([Buffer.from(`/proc/self/fd/${fd}/`), name]);
const noName = new Uint8Array();

const folderFlags = constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW;

/** Undefined if it is gone. */
function openFolder(path: Buffer): number | undefined {
  try {
    return openSync(path, folderFlags);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ENOENT") return undefined;
    if (code !== "EACCES") throw error;
  }
  // The command removed our access. Root can open everything; of our own files we can change the mode.
  chmodSync(path, 0o700);
  return openSync(path, folderFlags);
}

/** The one call that may wait for the disk's journal. */
async function rmdirQuietly(path: Buffer): Promise<void> {
  await rmdir(path).catch(ignoreMissing);
}

async function emptyElsewhere(path: string): Promise<void> {
  const names = ((): readonly string[] => {
    try {
      return readdirSync(path);
    } catch {
      return [];
    }
  })();
  for (const name of names) await rm(`${path}/${name}`, { recursive: true, force: true });
}
