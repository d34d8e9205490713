/**
 * What a process prints, sent on to streams while it prints. Costs nothing for a process that ends soon. Only what
 * stays is sent: the beginning that a capped file keeps whatever comes; the end is in the result.
 *
 * W4 What is sent is a courtesy: that it cannot be sent fails no attempt.
 */
import { closeSync, openSync, readSync, statSync, writeFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import type { Clock } from "#base/clock.ts";
import { isFault } from "#base/fault.ts";
import type { StreamKey, Streams } from "#blobs/streams.ts";
import { headBytesOf } from "./process/launcher/capped.ts";
import type { AttemptFolder } from "./sandbox/folders/attempt-folder.ts";

export type LivePorts = { readonly streams: Streams; readonly clock: Clock };
export type LiveTask = Pick<StreamKey, "tenant" | "task" | "token">;

export const liveNames = ["stdout", "stderr"] as const;
export type LiveName = (typeof liveNames)[number];

const firstMs = 300;
const everyMs = 250;
const pieceBytesMax = 256 * 1024;
/** In the attempt's folder: whose streams there may be, for whoever clears up. */
const markName = "live";

export class LiveOutput {
  readonly #ports: LivePorts;
  readonly #task: LiveTask;
  readonly #folder: AttemptFolder;
  readonly #headBytes: number;
  readonly #sent = new Map<LiveName, number>();
  readonly #gone = new Set<LiveName>();
  #cancel: () => void;
  #looking: Promise<void> | undefined;
  #isStopped = false;

  constructor(ports: LivePorts, task: LiveTask, folder: AttemptFolder, bytesMax: number) {
    this.#ports = ports;
    this.#task = task;
    this.#folder = folder;
    this.#headBytes = headBytesOf(bytesMax);
    this.#cancel = ports.clock.after(firstMs, () => this.#look());
  }

  /** Nothing is sent any more when it resolves. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#cancel();
    await this.#looking;
  }

  /** Who reads then is given the result instead. */
  async remove(): Promise<void> {
    await this.stop();
    if (this.#sent.size > 0) await removeLive(this.#ports.streams, this.#task);
  }

  #look(): void {
    this.#looking = this.#sendAll().finally(() => {
      this.#looking = undefined;
      if (!this.#isStopped) this.#cancel = this.#ports.clock.after(everyMs, () => this.#look());
    });
  }

  async #sendAll(): Promise<void> {
    for (const name of liveNames)
      try {
        if (!this.#gone.has(name)) await this.#send(name);
      } catch (error) {
        this.#gone.add(name);
        if (!isFault(error) && (error as NodeJS.ErrnoException).code === undefined) throw error;
      }
  }

  async #send(name: LiveName): Promise<void> {
    const path = this.#folder[name];
    const until = Math.min(statSync(path).size, this.#headBytes);
    for (let at = this.#sent.get(name) ?? 0; at < until && !this.#isStopped;) {
      if (this.#sent.size === 0) mark(this.#folder, this.#task);
      const piece = pieceOf(path, at, Math.min(until - at, pieceBytesMax));
      if (piece.length === 0) return;
      // Before it is sent: that it may be there is enough for whoever clears up.
      this.#sent.set(name, at);
      await this.#ports.streams.append({ ...this.#task, name }, at, piece);
      at += piece.length;
      this.#sent.set(name, at);
    }
  }
}

export async function removeLive(streams: Streams, task: LiveTask): Promise<void> {
  for (const name of liveNames) await streams.remove({ ...task, name });
}

/** Of an attempt that nobody goes on with. */
export async function removeMarked(streams: Streams, folder: string): Promise<void> {
  const text = await readFile(join(folder, markName), "utf8").catch(() => undefined);
  if (text === undefined) return;
  try {
    await removeLive(streams, JSON.parse(text) as LiveTask);
  } catch (error) {
    if (!isFault(error) && !(error instanceof SyntaxError)) throw error;
  }
}

const mark = ({ path }: AttemptFolder, task: LiveTask): void =>
  writeFileSync(join(path, markName), JSON.stringify(task), { mode: 0o600 });

function pieceOf(path: string, at: number, length: number): Uint8Array {
  const fd = openSync(path, "r");
  try {
    const piece = Buffer.allocUnsafe(length);
    return piece.subarray(0, readSync(fd, piece, 0, length, at));
  } finally {
    closeSync(fd);
  }
}
