/**
 * The tools of this node: starts them on demand, lends them, and ends those that are unused, misbehaved, or must make
 * way for another.
 */
import type { Clock } from "#base/clock.ts";
import type { ProcessRunner } from "#worker/process.ts";
import type { Sandbox } from "#worker/sandbox/sandbox.ts";
import { ToolPool, type PoolOptions } from "./tool-pool.ts";
import { ToolProcess, type ToolCommand } from "./tool-process.ts";

export type ToolsPorts = {
  readonly sandbox: Sandbox;
  readonly processes: ProcessRunner;
  readonly clock: Clock;
  readonly log: (line: string) => void;
};

/** A tool in use. Must be given back or ended in any case. */
export type LentTool = { readonly id: number; readonly process: ToolProcess };

export type ToolCounts = {
  readonly lent: number;
  readonly idle: number;
  /** Since the node started: requests to running tools, requests that started one, and broken tools. */
  readonly kept: number;
  readonly started: number;
  readonly broken: number;
};

export class Tools implements AsyncDisposable {
  readonly #ports: ToolsPorts;
  readonly #options: PoolOptions;
  readonly #pool: ToolPool;
  readonly #processes = new Map<number, ToolProcess>();
  readonly #ending = new Map<number, Promise<void>>();
  #kept = 0;
  #started = 0;
  #broken = 0;
  #cancelLook: (() => void) | undefined;
  #isClosed = false;

  constructor(ports: ToolsPorts, options: PoolOptions) {
    this.#ports = ports;
    this.#options = options;
    this.#pool = new ToolPool(options);
  }

  get counts(): ToolCounts {
    return { ...this.#pool.counts, kept: this.#kept, started: this.#started, broken: this.#broken };
  }

  /** Undefined if all are busy. Only equal commands have equal keys. */
  async borrow(key: string, command: ToolCommand, signal: AbortSignal): Promise<LentTool | undefined> {
    if (this.#isClosed) return undefined;
    const taken = this.#pool.take(key);
    if (taken.kind === "none") return undefined;
    const { id } = taken;
    const process = this.#processes.get(id);
    if (process) {
      this.#kept += 1;
      return { id, process };
    }
    try {
      if (taken.kind === "new" && taken.ends !== undefined) await this.#end(taken.ends);
      const { sandbox, processes, clock } = this.#ports;
      // Its borrower may still be reading its outputs.
      const onEnd = (): void => {
        if (this.#pool.idle().includes(id)) void this.#end(id);
      };
      const made = await ToolProcess.make(command, { sandbox, processes, clock, onEnd }, signal);
      this.#processes.set(id, made);
      this.#started += 1;
      return { id, process: made };
    } catch (error) {
      this.#pool.gone(id);
      throw error;
    }
  }

  /** It has answered, and rests. */
  giveBack({ id, process }: LentTool): void {
    if (process.isBroken || this.#isClosed) return void this.#end(id);
    this.#pool.giveBack(id, this.#ports.clock.monotonicMs());
    this.#lookLater();
  }

  /** When this resolves, it is dead and its folder is deleted or being deleted. */
  async end({ id }: LentTool): Promise<void> {
    await this.#end(id);
  }

  /** Ends a tool that misbehaved, and logs why. */
  async broke(lent: LentTool, why: string): Promise<void> {
    this.#broken += 1;
    this.#ports.log(`tool ${lent.id}: ${why}`);
    await this.#end(lent.id);
  }

  /** Memory is short, and these only wait. */
  endIdle(): void {
    for (const id of this.#pool.idle()) void this.#end(id);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isClosed = true;
    this.#cancelLook?.();
    for (const id of this.#processes.keys()) void this.#end(id);
    await Promise.all(this.#ending.values());
  }

  #end(id: number): Promise<void> {
    const known = this.#ending.get(id);
    if (known) return known;
    const process = this.#processes.get(id);
    if (!process) return Promise.resolve();
    this.#pool.end(id);
    const ending = process
      .forget()
      .catch((error: unknown) => this.#ports.log(`end tool ${id}: ${String(error)}`))
      .finally(() => {
        this.#processes.delete(id);
        this.#ending.delete(id);
        this.#pool.gone(id);
      });
    this.#ending.set(id, ending);
    return ending;
  }

  #lookLater(): void {
    this.#cancelLook ??= this.#ports.clock.after(Math.max(1, this.#options.idleMs / 4), () => {
      this.#cancelLook = undefined;
      for (const id of this.#pool.overdue(this.#ports.clock.monotonicMs())) void this.#end(id);
      if (this.#pool.counts.idle > 0) this.#lookLater();
    });
  }
}
