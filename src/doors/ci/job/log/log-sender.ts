/** Sends a job's log to a stream while it grows, and seals it into a blob when the job has ended. */
import type { Digest } from "#base/digest.ts";
import { isFault } from "#base/fault.ts";
import type { WorkPlace } from "#door/ports.ts";
import type { Granted } from "#shard/client/executor.ts";
import type { RunContext } from "#worker/runner.ts";
import { FileTail } from "./file-tail.ts";

export const logName = "log";
const retryMsMax = 2_000;

export class LogSender {
  readonly #live: NonNullable<WorkPlace["live"]>;
  readonly #task: { readonly tenant: string; readonly task: string; readonly token: number };
  readonly #attempt: Pick<RunContext, "clock" | "signal">;
  #tail: FileTail | undefined;
  #hasSent = false;
  #sentBytes = 0;
  #sent = Promise.withResolvers<void>();

  constructor(
    live: NonNullable<WorkPlace["live"]>,
    { tenant, taskId, token }: Granted,
    attempt: Pick<RunContext, "clock" | "signal">,
  ) {
    this.#live = live;
    this.#attempt = attempt;
    this.#task = { tenant, task: taskId, token };
  }

  async follow(path: string): Promise<void> {
    this.#tail = await FileTail.open(path, async (piece, at) => {
      await this.#append(at, piece);
      this.#hasSent = true;
      this.#sentBytes = at + piece.length;
      this.#sent.resolve();
      this.#sent = Promise.withResolvers<void>();
    });
  }

  /** The log waits in its file while the node is away; a piece that arrives twice is at the same offset. */
  async #append(at: number, piece: Uint8Array): Promise<void> {
    const { clock, signal } = this.#attempt;
    for (let tries = 0; ; tries += 1)
      try {
        return await this.#live.streams.append({ ...this.#task, name: logName }, at, piece);
      } catch (error) {
        const mayPass = isFault(error, "unavailable") || isFault(error, "unknown-outcome");
        if (!mayPass || signal.aborted) throw error;
        await clock.sleep(Math.min(retryMsMax, 100 * 2 ** Math.min(tries, 10)), signal).catch(() => {});
      }
  }

  /** Resolves when so much of it is durable. */
  async reached(bytes: number): Promise<void> {
    while (this.#sentBytes < bytes) await this.#sent.promise;
  }

  /** Everything is in the stream; the digest where it is a blob now. The job must have ended. */
  async seal(): Promise<Digest | undefined> {
    await this.#tail?.end();
    return this.#hasSent ? await this.#live.streams.seal({ ...this.#task, name: logName }) : undefined;
  }

  /** Of an attempt without a result the stream is all there is. */
  async keep(): Promise<void> {
    try {
      await this.#tail?.end();
      if (this.#hasSent) await this.#live.keeper.keep(this.#task, [logName]);
    } catch (error) {
      if (!isFault(error)) throw error; // the attempt's own end counts more
    }
  }

  /** Readers have the blob. */
  async remove(): Promise<void> {
    if (this.#hasSent) await this.#live.streams.remove({ ...this.#task, name: logName });
  }
}
