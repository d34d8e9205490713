/** Calls into the worker thread that owns a database: one message there, one back. */
import { Worker } from "node:worker_threads";
import { Fault } from "#base/fault.ts";
import type { Answer, Request, WorkerSetup } from "./worker.ts";

type Pending = {
  readonly op: string;
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: Fault) => void;
};

export class WorkerThread {
  readonly #setup: Omit<WorkerSetup, "isRestart">;
  readonly #offsetMs: () => number;
  readonly #pending = new Map<number, Pending>();
  #worker: Worker | undefined;
  #lastId = 0;
  #closed = false;

  constructor(setup: Omit<WorkerSetup, "isRestart">, offsetMs: () => number) {
    this.#setup = setup;
    this.#offsetMs = offsetMs;
  }

  call(op: string, args: readonly unknown[], transfer: readonly ArrayBuffer[] = []): Promise<unknown> {
    if (this.#closed) return Promise.reject(new Fault("unavailable", op, { why: "the journal is closed" }));
    return this.#send(op, args, transfer);
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    const worker = this.#worker;
    if (!worker) return;
    const ended = new Promise((resolve) => worker.once("exit", resolve));
    await this.#send("close", [], []);
    await ended;
  }

  #send(op: string, args: readonly unknown[], transfer: readonly ArrayBuffer[]): Promise<unknown> {
    const worker = (this.#worker ??= this.#start());
    const id = (this.#lastId += 1);
    return new Promise((resolve, reject) => {
      // The thread alone must not keep the process alive; a call in progress must.
      if (this.#pending.size === 0) worker.ref();
      this.#pending.set(id, { op, resolve, reject });
      worker.postMessage({ id, op, offsetMs: this.#offsetMs(), args } satisfies Request, transfer);
    });
  }

  #start(): Worker {
    const workerData: WorkerSetup = { ...this.#setup, isRestart: this.#lastId > 0 };
    const worker = new Worker(new URL("./worker.ts", import.meta.url), { workerData });
    worker.on("message", (answer: Answer) => this.#settle(worker, answer));
    worker.on("error", (error) => this.#lost(worker, error));
    worker.on("exit", () => this.#lost(worker, undefined));
    worker.unref();
    return worker;
  }

  #settle(worker: Worker, answer: Answer): void {
    const pending = this.#pending.get(answer.id);
    if (!pending) return;
    this.#pending.delete(answer.id);
    if (this.#pending.size === 0 && !this.#closed) worker.unref();
    if ("code" in answer) pending.reject(new Fault(answer.code, answer.doing, answer.facts));
    else pending.resolve(answer.value);
  }

  /** The next call starts another thread; calls in progress may have been done. */
  #lost(worker: Worker, cause: unknown): void {
    if (this.#worker !== worker) return;
    this.#worker = undefined;
    const pending = [...this.#pending.values()];
    this.#pending.clear();
    for (const { op, reject } of pending) {
      const facts = { why: "the database thread ended", database: this.#setup.role };
      reject(new Fault("unknown-outcome", op, facts, cause));
    }
  }
}
