/**
 * Streams (B8, B9) in files: a folder for each task, a file for each token and name. Acknowledged bytes were synced. A
 * sealed stream has its digest in a file beside it; its bytes stay until it is removed, even if the blob is evicted.
 */
import { createHash } from "node:crypto";
import { constants } from "node:fs";
import { appendFile, open, readFile, rename, rm, rmdir } from "node:fs/promises";
import { join } from "node:path";
import { crc32 } from "node:zlib";
import { digestText, type Digest } from "#base/digest.ts";
import { Fault } from "#base/fault.ts";
import { createHasher } from "#blobs/hashing.ts";
import type { BlobStore } from "#blobs/store.ts";
import type { StreamKey, Streams } from "#blobs/streams.ts";
import type { Core } from "#blobs/disk/core.ts";
import { asDiskFault } from "#blobs/disk/disk-fault.ts";
import { closeFile, openFile, piecesOf, readAt } from "#blobs/disk/read-file.ts";
import { StreamCounts } from "./stream-counts.ts";
import { filesIn, namesIn } from "./stream-files.ts";
import { StreamSums, type Piece } from "./stream-sums.ts";
import { Turns } from "#blobs/disk/turns.ts";

type State = {
  sizeBytes: number;
  /** Bytes acknowledged by this process. What follows them in the file may be torn. */
  trustedBytes: number;
  readonly sums: StreamSums;
  sealed: Digest | undefined;
  isRemoved: boolean;
  /** Wakes readers that wait for more. */
  changed: PromiseWithResolvers<void>;
};

type Task = {
  readonly folder: string;
  newestToken: number;
  readonly states: Map<string, State>;
  /** Readers and active writers, which share this object and must not lose it. */
  users: number;
};

/** Tasks kept in memory; others are looked up on disk again. */
const tasksMax = 10_000;
/** How many of the oldest are considered each time that there are too many. */
const forgetAtOnce = 16;

export type DiskStreamsPort = Streams & {
  /** Resolves when the files of an earlier process are counted as used. */
  readonly counted: Promise<void>;
};

export function createDiskStreams(core: Core, blobsOf: (tenant: string) => BlobStore): DiskStreamsPort {
  const streams = new DiskStreams(core, blobsOf);
  return {
    counted: streams.countAll(),
    append: (key, offset, bytes) => streams.append(key, offset, bytes),
    read: (key, offset, signal) => streams.read(key, offset, signal),
    state: (key) => streams.state(key),
    seal: (key) => streams.seal(key),
    remove: (key) => streams.remove(key),
  };
}

class DiskStreams {
  readonly #core: Core;
  readonly #blobsOf: (tenant: string) => BlobStore;
  readonly #tasks = new Map<string, Promise<Task>>();
  readonly #turns = new Turns();
  readonly #counts = new StreamCounts();

  constructor(core: Core, blobsOf: (tenant: string) => BlobStore) {
    this.#core = core;
    this.#blobsOf = blobsOf;
  }

  /** Folder by folder, yielding in between: a start does not wait for it. */
  async countAll(): Promise<void> {
    const folder = join(this.#core.root, "streams");
    for (const prefix of (await namesIn(folder)).toSorted()) {
      for (const hash of await namesIn(join(folder, prefix)))
        if (this.#counts.begin(hash))
          await this.#turns.take(hash, async () => {
            for (const { sizeBytes } of await filesIn(join(folder, prefix, hash))) this.#core.budget.takeOwn(sizeBytes);
          });
      this.#counts.passed(prefix);
    }
    this.#counts.end();
  }

  append(key: StreamKey, offset: number, bytes: Uint8Array): Promise<void> {
    return this.#inTurn(key, "append to stream", async (task, name) => {
      if (key.token < task.newestToken)
        throw new Fault("stale", "append to stream", { token: key.token, newest: task.newestToken });
      const state = task.states.get(name) ?? newState();
      const facts = { offset, sizeBytes: state.sizeBytes };
      if (state.sealed) throw new Fault("stale", "append to stream", { ...facts, why: "it is sealed" });
      if (!(offset >= 0 && offset <= state.sizeBytes))
        throw new Fault("invalid", "append to stream", { ...facts, why: "there is a gap" });
      // A concurrent reader must wait on this same state object.
      task.states.set(name, state);
      const skipped = Math.max(0, state.trustedBytes - offset);
      if (bytes.length > skipped)
        await this.#write(task, name, state, { at: offset + skipped, bytes: bytes.subarray(skipped) });
      task.newestToken = Math.max(task.newestToken, key.token);
      wake(state);
    });
  }

  async #write(task: Task, name: string, state: State, piece: { readonly at: number; readonly bytes: Uint8Array }) {
    const { at, bytes } = piece;
    const growth = Math.max(0, at + bytes.length - state.sizeBytes);
    const { budget, log } = this.#core;
    if (log.lost) throw log.lost;
    if (!budget.take(growth) && !((await this.#core.makeSpace(growth)) && budget.take(growth)))
      throw this.#core.noSpace("append to stream", { neededBytes: growth });
    try {
      const isNew = state.sizeBytes === 0;
      if (isNew) await this.#core.names.makeFolder(task.folder);
      await using file = await open(join(task.folder, name), constants.O_WRONLY | constants.O_CREAT, 0o600);
      for (let done = 0; done < bytes.length;)
        done += (await file.write(bytes, done, bytes.length - done, at + done)).bytesWritten;
      await this.#core.options.syncs.file(file.fd, join(task.folder, name));
      await appendFile(join(task.folder, `${name}.sums`), state.sums.record(at, bytes), { mode: 0o600 });
      if (isNew) await this.#core.names.sync(task.folder);
    } catch (error) {
      budget.give(growth);
      throw error;
    }
    state.sizeBytes = Math.max(state.sizeBytes, at + bytes.length);
    state.trustedBytes = Math.max(state.trustedBytes, at + bytes.length);
  }

  async *read(key: StreamKey, offset: number, signal: AbortSignal): AsyncGenerator<Uint8Array> {
    let at = offset;
    const stopped = Promise.withResolvers<void>();
    const stop = (): void => stopped.resolve();
    signal.addEventListener("abort", stop, { once: true });
    const task = await this.#task(key);
    const name = nameOf(key);
    task.users += 1;
    try {
      // A stream that does not exist yet may still be written.
      const state = task.states.get(name) ?? newState();
      task.states.set(name, state);
      for (;;) {
        const { changed, sizeBytes, sealed } = state;
        for await (const piece of this.#pieces(join(task.folder, name), state, at, state.isRemoved ? at : sizeBytes)) {
          yield piece;
          at += piece.length;
          if (signal.aborted) return;
        }
        if (sealed !== undefined || state.isRemoved || signal.aborted) return;
        if (at >= state.sizeBytes) await Promise.race([changed.promise, stopped.promise]);
      }
    } finally {
      signal.removeEventListener("abort", stop);
      task.users -= 1;
      this.#leave(task, name);
    }
  }

  /** A stream that was read and never written leaves nothing behind. */
  #leave(task: Task, name: string): void {
    const state = task.states.get(name);
    if (task.users === 0 && state?.sizeBytes === 0 && state.sealed === undefined) task.states.delete(name);
  }

  /** Throws "corrupt" where the bytes are not as they were appended. */
  async *#pieces(path: string, { sums }: State, from: number, to: number): AsyncGenerator<Uint8Array> {
    if (from >= to) return;
    const fd = await openFile(path).catch((error: unknown) => {
      throw asDiskFault(error, "read stream");
    });
    try {
      for (const { sum, ...piece } of sums.piecesOf(from, to)) {
        if (sum === undefined) yield* piecesOf(this.#core, fd, piece);
        else yield (await this.#checked(fd, piece, sum)).subarray(Math.max(0, from - piece.from), to - piece.from);
      }
    } finally {
      await closeFile(fd);
    }
  }

  async #checked(fd: number, { from, to }: Omit<Piece, "sum">, sum: number): Promise<Buffer> {
    const bytes = Buffer.allocUnsafeSlow(to - from);
    const got = await readAt(this.#core, fd, bytes, from);
    if (got === bytes.length && crc32(bytes) === sum) return bytes;
    throw new Fault("corrupt", "read stream", { at: from, why: "it is not as it was written" });
  }

  async state(key: StreamKey): Promise<{ readonly sizeBytes: number; readonly sealed?: Digest } | undefined> {
    const state = (await this.#task(key)).states.get(nameOf(key));
    if (!state || (state.sizeBytes === 0 && state.sealed === undefined)) return undefined;
    return { sizeBytes: state.sizeBytes, ...(state.sealed !== undefined && { sealed: state.sealed }) };
  }

  seal(key: StreamKey): Promise<Digest> {
    return this.#inTurn(key, "seal stream", async (task, name) => {
      const state = task.states.get(name) ?? newState();
      if (state.sealed !== undefined) return state.sealed;
      if (key.token < task.newestToken)
        throw new Fault("stale", "seal stream", { token: key.token, newest: task.newestToken });
      task.states.set(name, state);
      const path = join(task.folder, name);
      const hasher = createHasher("sha256");
      for await (const piece of this.#pieces(path, state, 0, state.sizeBytes)) hasher.update(piece);
      const digest = digestText("sha256", hasher.hex(), state.sizeBytes);
      await this.#blobsOf(key.tenant).write(digest, this.#pieces(path, state, 0, state.sizeBytes));
      await this.#core.names.makeFolder(task.folder);
      await this.#writeDurably(`${path}.sealed`, digest);
      await this.#core.names.sync(task.folder);
      task.newestToken = Math.max(task.newestToken, key.token);
      state.sealed = digest;
      wake(state);
      return digest;
    });
  }

  remove(key: StreamKey): Promise<void> {
    return this.#inTurn(key, "remove stream", async (task, name) => {
      const state = task.states.get(name);
      for (const path of [`${name}.sealed`, name, `${name}.sums`]) await rm(join(task.folder, path), { force: true });
      task.states.delete(name);
      // Removes the task's empty folder; fails, as it should, while other streams are in it.
      if (task.states.size === 0) await rmdir(task.folder).catch(() => {});
      if (!state) return;
      this.#core.budget.give(state.sizeBytes);
      state.isRemoved = true;
      wake(state);
    });
  }

  async #inTurn<T>(key: StreamKey, doing: string, work: (task: Task, name: string) => Promise<T>): Promise<T> {
    try {
      return await this.#turns.take(taskHash(key), async () => {
        const task = await this.#task(key);
        task.users += 1;
        try {
          return await work(task, nameOf(key));
        } finally {
          task.users -= 1;
          this.#leave(task, nameOf(key));
        }
      });
    } catch (error) {
      throw asDiskFault(error, doing, { task: key.task, name: key.name });
    }
  }

  #task(key: StreamKey): Promise<Task> {
    const hash = taskHash(key);
    let task = this.#tasks.get(hash);
    if (task) this.#tasks.delete(hash);
    else task = this.#load(join(this.#core.root, "streams", hash.slice(0, 2), hash), this.#counts.begin(hash));
    this.#tasks.set(hash, task);
    if (this.#tasks.size > tasksMax) this.#forgetSome();
    return task;
  }

  /** Drops tasks that are not in use; the others move to the young end. */
  #forgetSome(): void {
    for (const [hash, coming] of this.#tasks.entries().take(forgetAtOnce).toArray())
      void coming.then(({ users }) => {
        if (this.#tasks.get(hash) !== coming || this.#tasks.size <= tasksMax) return;
        this.#tasks.delete(hash);
        if (users > 0) this.#tasks.set(hash, coming);
      });
  }

  async #writeDurably(path: string, text: string): Promise<void> {
    {
      await using file = await open(`${path}.new`, "w", 0o600);
      await file.writeFile(text);
      await this.#core.options.syncs.file(file.fd, `${path}.new`);
    }
    await rename(`${path}.new`, path);
  }

  async #load(folder: string, isFirst: boolean): Promise<Task> {
    const task: Task = { folder, newestToken: 0, states: new Map(), users: 0 };
    for (const { name, token, sizeBytes } of await filesIn(folder)) {
      const sealed = await readFile(join(folder, `${name}.sealed`), "utf8").catch(() => undefined);
      const sums = StreamSums.decode(await readFile(join(folder, `${name}.sums`)).catch(() => Buffer.alloc(0)));
      // Bytes that are gone are still the stream's: who reads them is told so.
      task.states.set(name, { ...newState(), sizeBytes: Math.max(sizeBytes, sums.sizeBytes), sums, sealed });
      task.newestToken = Math.max(task.newestToken, token);
      if (isFirst) this.#core.budget.takeOwn(sizeBytes);
    }
    return task;
  }
}

const newState = (): State => ({
  sizeBytes: 0,
  trustedBytes: 0,
  sums: new StreamSums(),
  sealed: undefined,
  isRemoved: false,
  changed: Promise.withResolvers<void>(),
});

function wake(state: State): void {
  const { changed } = state;
  state.changed = Promise.withResolvers<void>();
  changed.resolve();
}

const hashOf = (value: unknown): string => createHash("sha256").update(JSON.stringify(value)).digest("hex");
const taskHash = ({ tenant, task }: StreamKey): string => hashOf([tenant, task]);
const nameOf = ({ token, name }: StreamKey): string => `${token}-${hashOf(name)}`;
