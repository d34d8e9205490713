/**
 * What one attempt prints, for every door: a stream while it runs, a blob when it has ended by itself. Output that is
 * short and soon over never becomes a stream. That of an attempt that was stopped stays in its stream.
 */
import type { Digest } from "#base/digest.ts";
import { isFault } from "#base/fault.ts";
import { sha256Digest } from "#blobs/sha256.ts";
import type { Streams } from "#blobs/streams.ts";
import type { FailReason } from "#kernel/model/model.ts";
import { wholeBytesMax, type KeptOutput, type ProcessRequest } from "#worker/process.ts";
import type { Output, RunContext, RunOutcome } from "#worker/runner.ts";
import { withOutput } from "./failure-output.ts";
import { LiveOutput, type LiveTask, type StreamKeeper } from "./live-output.ts";
import type { PrintedHead } from "./printed-head.ts";

export type OutputPorts = {
  readonly streams: Streams;
  readonly keeper: StreamKeeper;
  /** Short output becomes a stream, too: the node that takes it makes a blob of it. */
  readonly isAlways?: boolean;
};

/** Doors whose commands print both streams to one file call it this. */
export const outputName = "output";

/** The blob of what was printed; `outputs` has its bytes, unless they are stored already. */
export type KeptAs = { readonly digest: Digest; readonly outputs: readonly Output[] };

export type EndedCommand = { readonly exitCode: number | undefined; readonly output: KeptOutput };

const nothing: AsyncDisposable = { [Symbol.asyncDispose]: () => Promise.resolve() };

type FailedOutcome = Extract<RunOutcome, { kind: "failed" }>;

const stoppedMsMax = 3_000;
/** Of the last characters of an output, which are shown without it. */
export const tailLengthMax = 2_000;

export class TaskOutput {
  readonly #context: RunContext;
  readonly #ports: OutputPorts | undefined;
  readonly #name: string;
  #live: LiveOutput | undefined;
  #isWhole = false;
  #error: unknown;
  /** What `kept` gave last. */
  last: KeptAs | undefined;

  /** Without ports nothing is streamed, and `kept` has only what fits into memory. */
  constructor(context: RunContext, ports: OutputPorts | undefined, name = outputName) {
    this.#context = context;
    this.#ports = ports;
    this.#name = name;
  }

  /** For the process whose output it is. */
  readonly printing: NonNullable<ProcessRequest["printing"]> = (head, folder) => {
    // Readers have seen the output of the attempt's first process; a second one prints something else.
    if (this.#live) return nothing;
    if (this.#ports) this.#live = this.#sending(head, folder, this.#ports);
    return { [Symbol.asyncDispose]: () => this.#ended(head) };
  };

  /** When the process has ended by itself. Throws if its output could not be stored. */
  async kept({ whole }: Pick<KeptOutput, "whole">): Promise<KeptAs> {
    if (this.#error !== undefined) throw this.#error as Error;
    if (this.#live && this.#isWhole) return (this.last = { digest: await this.#live.seal(this.#name), outputs: [] });
    const bytes = whole ?? new Uint8Array();
    const digest = sha256Digest(bytes);
    return (this.last = { digest, outputs: [{ digest, bytes }] });
  }

  /**
   * Of a command that failed: the message ends with where its output is, and what it leaves holds that. A store that
   * cannot take the output must not hide why the command failed.
   */
  async failed(reason: FailReason, message: string, ended: EndedCommand): Promise<FailedOutcome> {
    const { exitCode, output } = ended;
    const tail = output.tail(tailLengthMax);
    const failed = { kind: "failed", reason, message } as const;
    try {
      const { digest, outputs } = await this.kept(output);
      for (const { bytes } of outputs) await this.#context.blobs.write(digest, bytes);
      if (tail === "") return failed;
      const left = { payload: JSON.stringify({ exitCode, output: digest, tail }), digests: [digest] };
      return { ...failed, message: withOutput(message, digest), left };
    } catch (error) {
      if (!isFault(error)) throw error;
      return failed;
    }
  }

  #sending(head: PrintedHead, folder: string | undefined, { streams }: OutputPorts): LiveOutput {
    const { clock } = this.#context;
    return new LiveOutput({ streams, clock }, this.#key, { [this.#name]: head }, { markIn: folder, keep: true });
  }

  get #key(): LiveTask {
    const { tenant, taskId, token } = this.#context.task;
    return { tenant, task: taskId, token };
  }

  async #ended(head: PrintedHead): Promise<void> {
    const live = this.#live;
    if (!live) return;
    if (this.#context.signal.aborted) return await this.#stopped(live);
    const isLong = head.sizeBytes() > (this.#ports?.isAlways ? 0 : wholeBytesMax);
    this.#isWhole = live.hasSent || isLong;
    // A reader may be in the middle of it: what is not sent now is read from the result.
    await (this.#isWhole ? live.finish() : live.stop()).catch((error: unknown) => (this.#error = error));
    this.#context.afterwards?.(() => void live.remove().catch(() => {}));
  }

  /** The stream is all there is then. */
  async #stopped(live: LiveOutput): Promise<void> {
    try {
      await live.finish(stoppedMsMax);
    } catch (error) {
      if (!isFault(error) && (error as NodeJS.ErrnoException).code === undefined) throw error;
    }
    if (live.hasSent) await this.#ports?.keeper.keep(this.#key, [this.#name]);
  }
}
