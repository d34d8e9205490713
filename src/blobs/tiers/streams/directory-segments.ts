/** Segments as files of a folder that all nodes reach. A name is given by a link, which fails where there is one. */
import { randomUUID } from "node:crypto";
import { link, mkdir, open, readdir, readFile, rename, rm, rmdir, stat } from "node:fs/promises";
import { dirname, join } from "node:path";
import { Fault } from "#base/fault.ts";
import { DurableNames } from "#blobs/durable-names.ts";
import { realSyncs, type Syncs } from "#blobs/syncs.ts";
import type { Segments } from "./segments.ts";

/** How long output of attempts without a result can be read. */
const keptMs = 7 * 24 * 3_600_000;

const errnoOf = (error: unknown): string | undefined => (error as NodeJS.ErrnoException).code;

/** `folder` must exist: creating it where nothing is mounted would hide that all streams are gone. */
export async function directorySegments(folder: string, syncs: Syncs = realSyncs): Promise<Segments> {
  const root = join(folder, "streams");
  const temporary = join(root, "tmp");
  await stat(folder).catch((error: unknown) => {
    throw asFault(error, "open the shared folder");
  });
  await mkdir(temporary, { recursive: true, mode: 0o700 });
  void sweepDirectory(folder, keptMs, Date.now()).catch(() => {});
  const names = new DurableNames(folder, syncs);
  const pathOf = (name: string): string => join(root, ...name.split("/"));

  const written = async (bytes: Uint8Array): Promise<string> => {
    const path = join(temporary, randomUUID());
    await using file = await open(path, "wx", 0o600);
    await file.writeFile(bytes);
    await syncs.file(file.fd, path);
    return path;
  };
  const linked = async (partial: string, path: string): Promise<"written" | "present"> => {
    for (let tries = 0; ; tries += 1)
      try {
        await link(partial, path);
        return "written";
      } catch (error) {
        if (errnoOf(error) === "EEXIST") return "present";
        if (errnoOf(error) !== "ENOENT" || tries > 0) throw error;
        await names.makeFolder(dirname(path));
      }
  };

  return {
    everyMs: 100,
    async put(name, bytes) {
      try {
        const partial = await written(bytes);
        const path = pathOf(name);
        try {
          const how = await linked(partial, path);
          await names.sync(dirname(path));
          return how;
        } finally {
          await rm(partial, { force: true });
        }
      } catch (error) {
        throw asFault(error, "append to stream");
      }
    },
    async replace(name, bytes) {
      try {
        const path = pathOf(name);
        const partial = await written(bytes);
        await names.makeFolder(dirname(path));
        await rename(partial, path);
        await names.sync(dirname(path));
      } catch (error) {
        throw asFault(error, "write stream");
      }
    },
    async get(name) {
      try {
        return await readFile(pathOf(name));
      } catch (error) {
        if (errnoOf(error) !== "ENOENT") throw asFault(error, "read stream");
        await stat(temporary).catch((gone: unknown) => {
          throw asFault(gone, "read stream");
        });
        return undefined;
      }
    },
    async remove(name) {
      try {
        const path = pathOf(name);
        await rm(path, { force: true });
        // The last file takes its folder along, and the task's; others keep them.
        for (let parent = dirname(path); parent.startsWith(`${root}/`); parent = dirname(parent)) await rmdir(parent);
      } catch (error) {
        const isShared = ["ENOTEMPTY", "EEXIST", "ENOENT"].includes(errnoOf(error) ?? "");
        if (!isShared) throw asFault(error, "remove stream");
      }
    },
  };
}

/** Removes old streams of attempts whose nodes died before they could seal or remove them. */
export async function sweepDirectory(folder: string, olderThanMs: number, nowMs: number): Promise<number> {
  const root = join(folder, "streams");
  let swept = 0;
  for (const prefix of await namesIn(root)) {
    if (prefix.length !== 2) continue;
    for (const task of await namesIn(join(root, prefix)))
      for (const stream of await namesIn(join(root, prefix, task))) {
        const path = join(root, prefix, task, stream);
        const touchedMs = (await stat(path).catch(() => undefined))?.mtimeMs ?? nowMs;
        if (nowMs - touchedMs < olderThanMs) continue;
        await rm(path, { recursive: true, force: true });
        swept += 1;
      }
  }
  return swept;
}

const namesIn = (path: string): Promise<readonly string[]> => readdir(path).catch(() => []);

function asFault(error: unknown, doing: string): Fault {
  if (error instanceof Fault) return error;
  const errno = errnoOf(error);
  const isFull = errno === "ENOSPC" || errno === "EDQUOT";
  return new Fault(isFull ? "exhausted" : "unavailable", doing, { errno }, error);
}
