/** Threads that encode blocks: diffing costs a tenth of a second for each MB, which no event loop can give. */
import { availableParallelism, totalmem } from "node:os";
import { Worker } from "node:worker_threads";
import { Fault } from "#base/fault.ts";
import type { Block } from "./pack.ts";

/** A part of the older release's row. */
export type Region = { readonly row: number; readonly length: number };

export type EncodeRequest = {
  /** Memory of its own, which the caller has no more after the call. The same goes for `old`. */
  readonly fresh: Uint8Array<ArrayBuffer>;
  /** The bytes of the regions, one after the other; left out: there is nothing to diff against. */
  readonly old?: Uint8Array<ArrayBuffer> | undefined;
  readonly regions: readonly Region[];
};
export type Encoded = { readonly how: Block["how"]; readonly bytes: Uint8Array };
export type EncodeAnswer = { readonly encoded: Encoded } | { readonly error: string };

/** What a thread holds at most: old and new bytes, the index, the patch. */
const threadBytes = 800 * 1024 * 1024;
const threadsMax = 4;

export const threadCount = (): number =>
  Math.max(1, Math.min(threadsMax, availableParallelism() - 1, Math.floor(totalmem() / 4 / threadBytes)));

/** For one piece of work: threads start when they are needed, and end with it. */
export class DiffThreads implements AsyncDisposable {
  readonly #idle: Worker[] = [];
  readonly #all = new Set<Worker>();
  readonly size = threadCount();

  /** At most `size` at once. The signal ends a thread in the middle of its work. */
  async encode(request: EncodeRequest, signal: AbortSignal): Promise<Encoded> {
    signal.throwIfAborted();
    const worker = this.#idle.pop() ?? this.#start();
    const answer = Promise.withResolvers<EncodeAnswer>();
    const stop = (): void => {
      this.#all.delete(worker);
      void worker.terminate();
      answer.reject(signal.reason as Error);
    };
    const ended = (): void => answer.reject(new Fault("unavailable", "encode block", { why: "its thread ended" }));
    signal.addEventListener("abort", stop, { once: true });
    worker.once("message", answer.resolve);
    worker.once("error", answer.reject);
    worker.once("exit", ended);
    try {
      // Handed over, not copied.
      worker.postMessage(request, [request.fresh.buffer, ...(request.old ? [request.old.buffer] : [])]);
      const said = await answer.promise;
      if ("error" in said) throw new Fault("internal", "encode block", { why: said.error });
      this.#idle.push(worker);
      return said.encoded;
    } finally {
      signal.removeEventListener("abort", stop);
      worker.off("message", answer.resolve);
      worker.off("error", answer.reject);
      worker.off("exit", ended);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([...this.#all].map((worker) => worker.terminate()));
  }

  #start(): Worker {
    const worker = new Worker(new URL("./diff-thread.ts", import.meta.url), { name: "deltas" });
    worker.on("error", () => this.#all.delete(worker));
    this.#all.add(worker);
    return worker;
  }
}
