/** Where a node keeps what it has, and how others on this machine find it. */
import { randomBytes } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { chmod, mkdir, open, readFile, rename, rm, stat, writeFile } from "node:fs/promises";
import { homedir } from "node:os";
import { join, resolve } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { Fault } from "#base/fault.ts";
import { livingProcess } from "#blobs/living-process.ts";
import type { Address } from "#shard/transport.ts";

export type DataFolder = {
  readonly path: string;
  readonly socket: string;
  readonly journal: string;
  readonly blobs: string;
  readonly scratch: string;
  /** Read when it is there and no other configuration is named. */
  readonly config: string;
};

export function dataFolder(path: string): DataFolder {
  const root = resolve(path);
  return {
    path: root,
    socket: join(root, "node.sock"),
    journal: join(root, "journal"),
    blobs: join(root, "blobs"),
    scratch: join(root, "scratch"),
    config: join(root, "config.yaml"),
  };
}

export const defaultDataPath = (env: NodeJS.ProcessEnv): string => env["MILLRACE_DATA"] || join(homedir(), ".millrace");

/** The folder belongs to one node at a time, from here until the lock is disposed of. */
export async function lockFolder(folder: DataFolder): Promise<AsyncDisposable> {
  await mkdir(folder.path, { recursive: true, mode: 0o700 });
  await closeToOthers(folder.path);
  const path = join(folder.path, lockName);
  for (let tries = 0; ; tries += 1) {
    try {
      await using file = await open(path, "wx", 0o600);
      await file.writeFile(livingProcess(process.pid) ?? "");
      // What a node that was killed has published leads to whoever listens there now.
      for (const name of ["address", "edge-address"]) await rm(join(folder.path, name), { force: true });
      return { [Symbol.asyncDispose]: () => rm(path, { force: true }) };
    } catch (cause) {
      const errno = (cause as NodeJS.ErrnoException).code;
      if (errno !== "EEXIST") throw new Fault("unavailable", "lock data folder", { folder: folder.path, errno }, cause);
      await makeWay(folder, path, tries);
    }
  }
}

const lockName = "up.pid";
const lockTries = 30;

/**
 * Whoever may write to the folder could put files of their own in the place of the node's. A folder with the sticky
 * bit, such as /tmp, is meant for others, who cannot replace what is ours in it.
 */
async function closeToOthers(path: string): Promise<void> {
  const { mode, uid } = await stat(path);
  const isShared = (mode & 0o1000) !== 0;
  if (uid === process.getuid?.() && !isShared && (mode & 0o022) !== 0) await chmod(path, mode & 0o7755);
}

/** Whether a node has the folder at the moment. */
export function hasLivingNode(folder: DataFolder): boolean {
  const path = join(folder.path, lockName);
  const holder = existsSync(path) ? readFileSync(path, "utf8").trim() : "";
  return holder !== "" && livingProcess(Number(holder.split(" ")[0])) === holder;
}

/** Takes away the lock of one that was killed, and waits a moment for one that is just dying. */
async function makeWay(folder: DataFolder, path: string, tries: number): Promise<void> {
  const holder = (await readFile(path, "utf8").catch(() => "")).trim();
  const pid = Number(holder.split(" ")[0]);
  if (!(pid > 0) || livingProcess(pid) !== holder) return await rm(path, { force: true });
  if (tries >= lockTries)
    throw new Fault("exhausted", "lock data folder", {
      folder: folder.path,
      heldBy: `process ${pid}`,
      why: "a node is already up there",
    });
  await pause(100);
}

/** The node's name: the same after every restart, so that what it held is known to be its own. */
export async function nodeName(folder: DataFolder, given: string | undefined): Promise<string> {
  if (given !== undefined) return given;
  const path = join(folder.path, "node-name");
  const kept = await readFile(path, "utf8").catch(() => "");
  if (kept.trim() !== "") return kept.trim();
  const made = `n-${randomBytes(5).toString("hex")}`;
  await writeFile(path, `${made}\n`, { mode: 0o600 });
  return made;
}

/** Tells tools on this machine where the node listens. */
export const publishAddress = (folder: DataFolder, address: Address): Promise<AsyncDisposable> =>
  publish(folder, "address", address);

export const publishedAddress = (folder: DataFolder): Address | undefined => published(folder, "address");

/** How its port for everybody is reached from this machine. */
export type EdgeNotice = {
  readonly url: string;
  /** As PEM, the one that it shows: with TLS. */
  readonly certificate?: string | undefined;
};

export const publishEdge = (folder: DataFolder, { url, certificate = "" }: EdgeNotice): Promise<AsyncDisposable> =>
  publish(folder, "edge-address", `${url}\n${certificate}`.trim());

export function publishedEdge(folder: DataFolder): EdgeNotice | undefined {
  const [url, ...certificate] = published(folder, "edge-address")?.split("\n") ?? [];
  return url === undefined ? undefined : { url, certificate: certificate.join("\n") || undefined };
}

/** Renamed into place: it may be told anew while somebody reads it. */
async function publish(folder: DataFolder, name: string, text: string): Promise<AsyncDisposable> {
  const path = join(folder.path, name);
  await writeFile(`${path}.new`, `${text}\n`, { mode: 0o600 });
  await rename(`${path}.new`, path);
  return { [Symbol.asyncDispose]: () => rm(path, { force: true }) };
}

function published(folder: DataFolder, name: string): string | undefined {
  const path = join(folder.path, name);
  return existsSync(path) ? readFileSync(path, "utf8").trim() || undefined : undefined;
}
