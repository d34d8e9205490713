/**
 * Sends a process's output to streams while it runs. Costs nothing for a process that ends soon. Only the beginning is
 * sent, which a capped file keeps in any case; the end is in the result.
 *
 * W4 Live output is best effort: failing to send it fails no attempt.
 */
import { writeFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import type { Clock } from "#base/clock.ts";
import { isFault } from "#base/fault.ts";
import type { StreamKey, Streams } from "#blobs/streams.ts";
import type { PrintedHead } from "./printed-head.ts";

export type LivePorts = { readonly streams: Streams; readonly clock: Clock };
export type LiveTask = Pick<StreamKey, "tenant" | "task" | "token">;

/** What to send, by the stream's name. */
export type LiveSources = Readonly<Record<string, PrintedHead>>;

export type LiveOptions = {
  /** A folder that is looked through after a crash: a note there names the streams. Left out: no note is left. */
  readonly markIn?: string | undefined;
  /** For the note: the streams are all that is left of the output when the attempt does not end by itself. */
  readonly keep?: boolean;
};

const firstMs = 300;
const everyMs = 250;
const pieceBytesMax = 256 * 1024;
const markName = "live";

export class LiveOutput {
  readonly #ports: LivePorts;
  readonly #task: LiveTask;
  readonly #sources: LiveSources;
  readonly #options: LiveOptions;
  readonly #sent = new Map<string, number>();
  readonly #gone = new Set<string>();
  #cancel: () => void;
  #looking: Promise<void> | undefined;
  #isStopped = false;

  constructor(ports: LivePorts, task: LiveTask, sources: LiveSources, options: LiveOptions = {}) {
    this.#ports = ports;
    this.#task = task;
    this.#sources = sources;
    this.#options = options;
    this.#cancel = ports.clock.after(firstMs, () => this.#look());
  }

  /** Whether a stream was written, or may have been. */
  get hasSent(): boolean {
    return this.#sent.size > 0;
  }

  /** Nothing is sent any more when it resolves. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#cancel();
    await this.#looking;
  }

  /** Sends what there is, then stops: for an attempt that has no result to hold its output. */
  async finish(): Promise<void> {
    this.#cancel();
    await this.#looking;
    if (!this.#isStopped) await this.#sendAll();
    await this.stop();
  }

  /** Readers are given the result instead. */
  async remove(): Promise<void> {
    await this.stop();
    if (this.hasSent) await removeLive(this.#ports.streams, this.#task, Object.keys(this.#sources));
  }

  #look(): void {
    this.#looking = this.#sendAll().finally(() => {
      this.#looking = undefined;
      if (!this.#isStopped) this.#cancel = this.#ports.clock.after(everyMs, () => this.#look());
    });
  }

  async #sendAll(): Promise<void> {
    for (const [name, head] of Object.entries(this.#sources))
      try {
        if (!this.#gone.has(name)) await this.#send(name, head);
      } catch (error) {
        this.#gone.add(name);
        if (!isFault(error) && (error as NodeJS.ErrnoException).code === undefined) throw error;
      }
  }

  async #send(name: string, head: PrintedHead): Promise<void> {
    const until = head.sizeBytes();
    for (let at = this.#sent.get(name) ?? 0; at < until && !this.#isStopped;) {
      if (!this.hasSent) this.#mark();
      const piece = head.read(at, Math.min(until - at, pieceBytesMax));
      if (piece.length === 0) return;
      // Before it is sent: after a crash it is enough to know that it may be there.
      this.#sent.set(name, at);
      await this.#ports.streams.append({ ...this.#task, name }, at, piece);
      at += piece.length;
      this.#sent.set(name, at);
    }
  }

  #mark(): void {
    const { markIn, keep = false } = this.#options;
    if (markIn === undefined) return;
    const mark: Mark = { ...this.#task, names: Object.keys(this.#sources), keep };
    writeFileSync(join(markIn, markName), JSON.stringify(mark), { mode: 0o600 });
  }
}

export async function removeLive(streams: Streams, task: LiveTask, names: readonly string[]): Promise<void> {
  for (const name of names) await streams.remove({ tenant: task.tenant, task: task.task, token: task.token, name });
}

const Mark = z.object({
  tenant: z.string(),
  task: z.string(),
  token: z.int(),
  names: z.array(z.string()),
  keep: z.boolean(),
});
type Mark = z.output<typeof Mark>;

/** Streams that outlive their attempt, because it left no result. */
export type StreamKeeper = { keep(task: LiveTask, names: readonly string[]): Promise<void> };

/** Of an attempt that an earlier life of this node began and that nothing goes on with. */
export async function reclaimMarked(streams: Streams, folder: string, keeper: StreamKeeper): Promise<void> {
  const text = await readFile(join(folder, markName), "utf8").catch(() => undefined);
  if (text === undefined) return;
  try {
    const mark = Mark.parse(JSON.parse(text));
    if (mark.keep) await keeper.keep(mark, mark.names);
    else await removeLive(streams, mark, mark.names);
  } catch (error) {
    if (!isFault(error) && !(error instanceof SyntaxError) && !(error instanceof z.ZodError)) throw error;
  }
}
