/**
 * Sends what a process prints to streams while it runs. Costs nothing for a process that ends soon. What is printed
 * waits in its file until it is acknowledged, so a store that is away for a while loses none of it (ADR 0085).
 *
 * W4 Showing output while it is printed is best effort: failing to send it fails no attempt. Only `finish` insists.
 */
import { writeFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import type { Clock } from "#base/clock.ts";
import type { Digest } from "#base/digest.ts";
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
const everyMsDefault = 100;
const againMsMax = 5_000;
/** How long the end of an attempt waits for a store that does not take its output. */
const finishMsMax = 120_000;
const pieceBytesMax = 1024 * 1024;
const markName = "live";

export class LiveOutput {
  readonly #ports: LivePorts;
  readonly #task: LiveTask;
  readonly #sources: LiveSources;
  readonly #options: LiveOptions;
  readonly #sent = new Map<string, number>();
  /** Lengths of pieces whose append has not been acknowledged: they are sent again as they were. */
  readonly #pending = new Map<string, number>();
  /** Streams that take no more, and why. */
  readonly #gone = new Map<string, Error>();
  #cancel: () => void;
  #looking: Promise<void> | undefined;
  #failures = 0;
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

  /** Sends all that is left, then stops. Throws if a stream does not take it, or not within this time. */
  async finish(withinMs = finishMsMax): Promise<void> {
    this.#cancel();
    await this.#looking;
    const { clock } = this.#ports;
    const untilMs = clock.monotonicMs() + withinMs;
    for (;;) {
      const error = this.#isStopped ? undefined : await this.#sendAll();
      if (!error || this.#gone.size > 0 || clock.monotonicMs() > untilMs) {
        await this.stop();
        for (const why of [...this.#gone.values(), ...(error ? [error] : [])]) throw why;
        return;
      }
      await clock.sleep(this.#againMs());
    }
  }

  /** After `finish`: the stream as a blob. */
  async seal(name: string): Promise<Digest> {
    return await this.#ports.streams.seal({ ...this.#task, name });
  }

  /** Readers are given the result instead. */
  async remove(): Promise<void> {
    await this.stop();
    if (this.hasSent) await removeLive(this.#ports.streams, this.#task, Object.keys(this.#sources));
  }

  #look(): void {
    this.#looking = this.#sendAll().then((error) => {
      this.#looking = undefined;
      if (this.#isStopped) return;
      const { streams, clock } = this.#ports;
      const afterMs = error ? this.#againMs() : (streams.everyMs ?? everyMsDefault);
      this.#cancel = clock.after(afterMs, () => this.#look());
    });
  }

  #againMs(): number {
    this.#failures += 1;
    return Math.min(againMsMax, everyMsDefault * 2 ** Math.min(this.#failures, 10));
  }

  /** Returns why some could not be sent, if that may pass. */
  async #sendAll(): Promise<Error | undefined> {
    let passing: Error | undefined;
    for (const [name, head] of Object.entries(this.#sources))
      try {
        if (!this.#gone.has(name)) await this.#send(name, head);
      } catch (error) {
        if (isFault(error, "unavailable") || isFault(error, "unknown-outcome")) passing = error;
        else if (isFault(error) || (error as NodeJS.ErrnoException).code !== undefined)
          this.#gone.set(name, error as Error);
        else throw error;
      }
    if (!passing) this.#failures = 0;
    return passing;
  }

  async #send(name: string, head: PrintedHead): Promise<void> {
    const until = head.sizeBytes();
    for (let at = this.#sent.get(name) ?? 0; at < until && !this.#isStopped;) {
      if (!this.hasSent) this.#mark();
      const piece = head.read(at, this.#pending.get(name) ?? Math.min(until - at, pieceBytesMax));
      if (piece.length === 0) return;
      this.#pending.set(name, piece.length);
      // Before it is sent: after a crash it is enough to know that it may be there.
      this.#sent.set(name, at);
      await this.#ports.streams.append({ ...this.#task, name }, at, piece);
      at += piece.length;
      this.#pending.delete(name);
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
