/** The data folder of a node, and how local tools find the node through it. */
import { randomBytes } from "node:crypto";
import { existsSync, readFileSync, type BigIntStats } from "node:fs";
import { access, chmod, constants, mkdir, open, readFile, rename, rm, stat, writeFile } from "node:fs/promises";
import { homedir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import type { Clock } from "#base/clock.ts";
import { Fault } from "#base/fault.ts";
import { livingProcess } from "#blobs/living-process.ts";
import type { Address } from "#shard/transport/transport.ts";

export type DataFolder = {
  readonly path: string;
  /** Other nodes and tools of the cluster speak gRPC here. */
  readonly socket: string;
  /** Commands speak HTTP here, if the node listens on no port for them. */
  readonly edgeSocket: string;
  readonly journal: string;
  readonly blobs: string;
  readonly scratch: string;
  /** Read if it exists and no other configuration is named. */
  readonly config: string;
};

export function dataFolder(path: string): DataFolder {
  const root = resolve(path);
  return {
    path: root,
    socket: join(root, "node.sock"),
    edgeSocket: join(root, "edge.sock"),
    journal: join(root, "journal"),
    blobs: join(root, "blobs"),
    scratch: join(root, "scratch"),
    config: join(root, "config.yaml"),
  };
}

export const defaultDataPath = (env: NodeJS.ProcessEnv): string => env["MILLRACE_DATA"] || join(homedir(), ".millrace");

export type FolderLock = AsyncDisposable & {
  /** Whether the folder is still the one that was locked, and was not removed or replaced. */
  isHeld(): Promise<boolean>;
};

/** Locks the folder for one node, until the lock is disposed. */
export async function lockFolder(folder: DataFolder): Promise<FolderLock> {
  const fault = (cause: unknown): Fault =>
    new Fault("unavailable", "lock data folder", { folder: folder.path, errno: errnoOf(cause) }, cause);
  await mkdir(folder.path, { recursive: true, mode: 0o700 }).catch(async (cause: unknown) => {
    throw fault((await whyNotMade(folder.path)) ?? cause);
  });
  await closeToOthers(folder.path);
  const path = join(folder.path, lockName);
  for (let tries = 0; ; tries += 1) {
    try {
      await using file = await open(path, "wx", 0o600);
      await file.writeFile(livingProcess(process.pid) ?? "");
      const mark = markOf(await file.stat({ bigint: true }));
      const isHeld = async (): Promise<boolean> =>
        (await stat(path, { bigint: true }).then(markOf, ({ code }: NodeJS.ErrnoException) =>
          code === "ENOENT" || code === "ENOTDIR" ? undefined : mark,
        )) === mark;
      // Another program may listen now at the address that a killed node published.
      for (const name of ["address", "edge-address"]) await rm(join(folder.path, name), { force: true });
      return {
        isHeld,
        async [Symbol.asyncDispose]() {
          if (await isHeld()) await rm(path, { force: true });
        },
      };
    } catch (cause) {
      if (errnoOf(cause) !== "EEXIST") throw fault(cause);
      await makeWay(folder, path, tries);
    }
  }
}

/** Identifies this file among others of the same name. */
const markOf = ({ dev, ino, birthtimeNs }: BigIntStats): string => `${dev} ${ino} ${birthtimeNs}`;

const watchEveryMs = 1_000;

/** Checks every second that the lock is still held; calls back once if not. Disposing it ends the checks. */
export function watchLock(
  lock: FolderLock,
  folder: DataFolder,
  clock: Clock,
  lost: (fault: Fault) => void,
): Disposable {
  let isOver = false;
  const look = async (): Promise<void> => {
    if (isOver) return;
    if (await lock.isHeld()) return wait();
    if (!isOver) lost(folderLost(folder.path));
  };
  let cancel = (): void => {};
  const wait = (): void => void (cancel = clock.after(watchEveryMs, () => void look()));
  wait();
  return {
    [Symbol.dispose]() {
      isOver = true;
      cancel();
    },
  };
}

/** The error that ends a node whose data folder is gone. */
export const folderLost = (folder: string): Fault =>
  new Fault("unavailable", "keep the data folder", {
    folder,
    why:
      "it was removed or replaced while the node was running; put it back if there is a copy, " +
      "and start the node again",
  });

const errnoOf = (cause: unknown): string | undefined => (cause as NodeJS.ErrnoException).code;

/** Why a folder cannot be created, by looking at the nearest existing folder above it. */
async function whyNotMade(path: string): Promise<unknown> {
  const above = dirname(path);
  if (above === path || existsSync(path)) return undefined;
  if (!existsSync(above)) return await whyNotMade(above);
  return await access(above, constants.W_OK).then(
    () => undefined,
    (error: unknown) => error,
  );
}

const lockName = "up.pid";
const lockTries = 30;

/**
 * A user who may write to the folder could replace the node's files. A folder with the sticky bit, such as /tmp, is
 * shared on purpose, and others cannot replace our files in it.
 */
async function closeToOthers(path: string): Promise<void> {
  const { mode, uid } = await stat(path);
  const isShared = (mode & 0o1000) !== 0;
  if (uid === process.getuid?.() && !isShared && (mode & 0o022) !== 0) await chmod(path, mode & 0o7755);
}

/** Whether a live node holds the folder. */
export function hasLivingNode(folder: DataFolder): boolean {
  const path = join(folder.path, lockName);
  const holder = existsSync(path) ? readFileSync(path, "utf8").trim() : "";
  return holder !== "" && livingProcess(Number(holder.split(" ")[0])) === holder;
}

/** Removes the lock of a killed node, and waits a moment for a node that is just ending. */
async function makeWay(folder: DataFolder, path: string, tries: number): Promise<void> {
  const holder = (await readFile(path, "utf8").catch(() => "")).trim();
  const pid = Number(holder.split(" ")[0]);
  if (!(pid > 0) || livingProcess(pid) !== holder) return await rm(path, { force: true });
  if (tries >= lockTries)
    throw new Fault("exhausted", "lock data folder", {
      folder: folder.path,
      heldBy: `process ${pid}`,
      why: "a node is already running there",
    });
  await pause(100);
}

export const namePattern = /^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$/;

/** The node's name: the same after every restart, so that its shards and claims are recognised. */
export async function nodeName(folder: DataFolder, given: string | undefined): Promise<string> {
  if (given !== undefined) return given;
  const path = join(folder.path, "node-name");
  const kept = (await readFile(path, "utf8").catch(() => "")).trim();
  if (namePattern.test(kept)) return kept;
  if (kept !== "")
    throw new Fault("corrupt", "read the node's name", { file: path, why: "its content is not a valid name" });
  const made = `n-${randomBytes(5).toString("hex")}`;
  await writeFile(path, `${made}\n`, { mode: 0o600 });
  return made;
}

/** Publishes the node's address for tools on this machine. */
export const publishAddress = (folder: DataFolder, address: Address): Promise<AsyncDisposable> =>
  publish(folder, "address", address);

export const publishedAddress = (folder: DataFolder): Address | undefined => published(folder, "address");

/** How local tools reach the node's public port. */
export type EdgeNotice = {
  /** `unix:` and the path of a Unix socket, if it listens on no port. */
  readonly url: string;
  /** Its certificate as PEM, if it uses TLS. */
  readonly certificate?: string | undefined;
};

export const publishEdge = (folder: DataFolder, { url, certificate = "" }: EdgeNotice): Promise<AsyncDisposable> =>
  publish(folder, "edge-address", `${url}\n${certificate}`.trim());

export function publishedEdge(folder: DataFolder): EdgeNotice | undefined {
  const [url, ...certificate] = published(folder, "edge-address")?.split("\n") ?? [];
  return url === undefined ? undefined : { url, certificate: certificate.join("\n") || undefined };
}

/** Renamed into place, because it may be replaced while a tool reads it. */
async function publish(folder: DataFolder, name: string, text: string): Promise<AsyncDisposable> {
  const path = join(folder.path, name);
  await writeFile(`${path}.new`, `${text}\n`, { mode: 0o600 });
  await rename(`${path}.new`, path);
  return { [Symbol.asyncDispose]: () => rm(path, { force: true }) };
}

function published(folder: DataFolder, name: string): string | undefined {
  const path = join(folder.path, name);
  try {
    return readFileSync(path, "utf8").trim() || undefined;
  } catch (cause) {
    if (errnoOf(cause) === "ENOENT") return undefined;
    throw new Fault("unavailable", "find node", { folder: folder.path, errno: errnoOf(cause) }, cause);
  }
}
