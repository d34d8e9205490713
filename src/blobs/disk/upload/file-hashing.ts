/** Hashes a file while it grows, in a thread that reads the written bytes from the page cache. */
import { Worker } from "node:worker_threads";
import type { DigestFunction } from "#base/digest.ts";
import { Fault } from "#base/fault.ts";
import { storeIsClosed } from "#blobs/disk/disk-fault.ts";

export type FileHashing = {
  /** So many bytes are in the file now. */
  advance(sizeBytes: number): void;
  /** Resolves when so many bytes were hashed. */
  reach(sizeBytes: number): Promise<void>;
  /** The hash, in hex, of the first `sizeBytes`. */
  finish(sizeBytes: number): Promise<string>;
  close(): void;
};

export type HashRequest =
  | { readonly kind: "begin"; readonly id: number; readonly fn: DigestFunction; readonly path: string }
  | { readonly kind: "advance"; readonly id: number; readonly sizeBytes: number }
  | { readonly kind: "reach"; readonly id: number; readonly sizeBytes: number }
  | { readonly kind: "finish"; readonly id: number; readonly sizeBytes: number }
  | { readonly kind: "close"; readonly id: number };

export type HashAnswer =
  /** The hash, or "" if it has only reached what was asked. */
  | { readonly id: number; readonly hex: string }
  | { readonly id: number; readonly error: { readonly message: string; readonly code: string | undefined } };

/** A message to the thread costs more than hashing a little. */
const adviseBytes = 4 * 1024 * 1024;

export class HashThread {
  #worker: Worker | undefined;
  #isClosed = false;
  #nextId = 1;
  readonly #waiting = new Map<number, PromiseWithResolvers<string>>();

  begin({ fn }: { readonly fn: DigestFunction }, path: string): FileHashing {
    const id = this.#nextId++;
    let advisedBytes = 0;
    let isOpen = false;
    const send = (request: HashRequest): void => {
      if (!isOpen) this.#post({ kind: "begin", id, fn, path });
      isOpen = true;
      this.#post(request);
    };
    const ask = async (request: HashRequest): Promise<string> => {
      if (this.#isClosed) throw storeIsClosed("hash file");
      const waiting = Promise.withResolvers<string>();
      this.#waiting.set(id, waiting);
      send(request);
      return await waiting.promise;
    };
    return {
      advance(sizeBytes) {
        if (sizeBytes - advisedBytes < adviseBytes) return;
        advisedBytes = sizeBytes;
        send({ kind: "advance", id, sizeBytes });
      },
      reach: async (sizeBytes) => void (await ask({ kind: "reach", id, sizeBytes })),
      finish: async (sizeBytes) => await ask({ kind: "finish", id, sizeBytes }),
      close: () => {
        if (isOpen) send({ kind: "close", id });
        isOpen = false;
      },
    };
  }

  /** Starting a thread from here on is refused: nothing would end it, and the process could not exit. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#worker?.terminate();
  }

  #post(request: HashRequest): void {
    if (this.#isClosed) return;
    this.#worker ??= this.#start();
    this.#worker.postMessage(request);
  }

  #start(): Worker {
    const worker = new Worker(new URL("./hash-thread.ts", import.meta.url), { name: "hashing" });
    worker.unref();
    worker.on("message", (answer: HashAnswer) => {
      const waiting = this.#waiting.get(answer.id);
      this.#waiting.delete(answer.id);
      if ("hex" in answer) waiting?.resolve(answer.hex);
      else waiting?.reject(new Fault("unavailable", "hash file", { errno: answer.error.code }, answer.error.message));
    });
    const failed = (error: unknown): void => {
      if (this.#worker === worker) this.#worker = undefined;
      for (const waiting of this.#waiting.values())
        waiting.reject(new Fault("unavailable", "hash file", { why: "the thread ended" }, error));
      this.#waiting.clear();
    };
    worker.on("error", failed);
    worker.on("exit", failed);
    return worker;
  }
}
