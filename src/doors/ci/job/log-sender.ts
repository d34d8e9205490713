/** Sends a job's log to a stream while it grows, and seals it into a blob when the job has ended. */
import type { Digest } from "#base/digest.ts";
import { isFault } from "#base/fault.ts";
import type { WorkPlace } from "#door/ports.ts";
import type { Granted } from "#shard/client/executor.ts";
import { FileTail } from "./file-tail.ts";

export const logName = "log";

export class LogSender {
  readonly #live: NonNullable<WorkPlace["live"]>;
  readonly #task: { readonly tenant: string; readonly task: string; readonly token: number };
  #tail: FileTail | undefined;
  #hasSent = false;
  #sentBytes = 0;
  #sent = Promise.withResolvers<void>();

  constructor(live: NonNullable<WorkPlace["live"]>, { tenant, taskId, token }: Granted) {
    this.#live = live;
    this.#task = { tenant, task: taskId, token };
  }

  async follow(path: string): Promise<void> {
    this.#tail = await FileTail.open(path, async (piece, at) => {
      await this.#live.streams.append({ ...this.#task, name: logName }, at, piece);
      this.#hasSent = true;
      this.#sentBytes = at + piece.length;
      this.#sent.resolve();
      this.#sent = Promise.withResolvers<void>();
    });
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
