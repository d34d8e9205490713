/**
 * The process of a service. It outlives the agent: a new agent finds it by its record and goes on watching it.
 *
 * SP1 A process counts as the service's only with the start time that was recorded: a pid may be given again.
 * SP2 Each start is recorded before it is made. After a crash between the two the process is found by the word that it
 *     was started with, so that a service never runs twice.
 */
import { spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { open, stat, truncate } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { must } from "#base/assert.ts";
import { Fault } from "#base/fault.ts";
import { isAlive, statOf } from "#worker/process/launcher/proc.ts";
import type { RunSpec } from "#doors/deploy/manifest/run-spec.ts";
import { ignoreMissing } from "#base/ignore-missing.ts";
import { readIfThere, writeDurably } from "./durable-files.ts";

type ProcessRecord = {
  /** Left out: it is about to be started. */
  readonly pid?: number;
  readonly startedTicks: string;
  readonly manifest: string;
  /** In the environment of the process (SP2); records of earlier versions have none. */
  readonly start?: string;
};

const startVariable = "MILLRACE_START";
const lookEveryMs = 20;
const logBytesMax = 64 * 1024 * 1024;

export class ServiceProcess {
  readonly #folder: string;
  #record: ProcessRecord | undefined;

  private constructor(folder: string, record: ProcessRecord | undefined) {
    this.#folder = folder;
    this.#record = record;
  }

  /** With the process that an earlier agent started, if it is still there. */
  static async adopt(folder: string): Promise<ServiceProcess> {
    const text = await readIfThere(join(folder, "process.json"));
    const record = text === undefined ? undefined : (JSON.parse(text) as ProcessRecord);
    const adopted = new ServiceProcess(folder, record);
    const isUnsure = record?.start !== undefined && record.pid === undefined;
    const found = isUnsure ? startedWith(record.start) : undefined;
    if (record && found !== undefined) await adopted.#remember({ ...record, pid: found });
    return adopted;
  }

  /** The manifest that the living process was started from; undefined when none lives. */
  get running(): string | undefined {
    return this.isAlive ? this.#record?.manifest : undefined;
  }

  get isAlive(): boolean {
    const record = this.#record;
    if (record?.pid === undefined) return false;
    return isAlive(record.pid) && statOf(record.pid)?.startedTicks === record.startedTicks;
  }

  async start(manifest: string, cwd: string, { command, env }: RunSpec): Promise<void> {
    const [program = "", ...args] = command;
    const start = randomUUID();
    await this.#write({ startedTicks: "", manifest, start });
    const log = await open(this.#logPath, "a", 0o600);
    try {
      // Its own session: signals go to the whole group, and the agent's end is not the service's.
      const child = spawn(program, args, {
        cwd,
        env: {
          PATH: process.env["PATH"] ?? "/usr/bin:/bin",
          ...env,
          MILLRACE_MANIFEST: manifest,
          [startVariable]: start,
        },
        detached: true,
        stdio: ["ignore", log.fd, log.fd],
      });
      await new Promise((resolve, reject) => {
        child.once("spawn", resolve);
        child.once("error", (cause) =>
          reject(new Fault("invalid", "start service", { command: program, why: cause.message }, cause)),
        );
      });
      child.unref();
      await this.#remember({ pid: must(child.pid, "it was spawned"), manifest, start });
    } finally {
      await log.close();
    }
  }

  /** Asks it to end, and ends its whole group when the time to drain is over. */
  async stop(drainMs: number): Promise<void> {
    const pid = this.#record?.pid;
    if (pid === undefined || !this.isAlive) return;
    signalGroup(pid, "SIGTERM");
    if (!(await this.#endsWithin(drainMs))) {
      signalGroup(pid, "SIGKILL");
      await this.#endsWithin(10_000);
    }
    // What the service left in its group must not hold its ports.
    signalGroup(pid, "SIGKILL");
  }

  /** Keeps the log within its limit: the oldest half is not worth a full disk. */
  async trimLog(): Promise<void> {
    const found = await stat(this.#logPath).catch(ignoreMissing);
    if ((found?.size ?? 0) > logBytesMax) await truncate(this.#logPath, 0);
  }

  async #remember(record: Omit<ProcessRecord, "startedTicks"> & { readonly pid: number }): Promise<void> {
    await this.#write({ ...record, startedTicks: statOf(record.pid)?.startedTicks ?? "" });
  }

  async #write(record: ProcessRecord): Promise<void> {
    this.#record = record;
    await writeDurably(join(this.#folder, "process.json"), JSON.stringify(record));
  }

  get #logPath(): string {
    return join(this.#folder, "service.log");
  }

  async #endsWithin(ms: number): Promise<boolean> {
    for (let waitedMs = 0; this.isAlive; waitedMs += lookEveryMs) {
      if (waitedMs >= ms) return false;
      await pause(lookEveryMs);
    }
    return true;
  }
}

/** The oldest process with this word in its environment: what it started itself has the word, too. */
function startedWith(start: string): number | undefined {
  const word = `${startVariable}=${start}`;
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name) && environmentOf(name).includes(word))
    .map(Number)
    .filter((pid) => statOf(pid)?.group === pid)
    .toSorted((a, b) => Number(statOf(a)?.startedTicks ?? 0) - Number(statOf(b)?.startedTicks ?? 0) || a - b)[0];
}

function environmentOf(pid: string): readonly string[] {
  try {
    return readFileSync(`/proc/${pid}/environ`, "utf8").split("\0");
  } catch {
    return []; // it is gone, or another user's
  }
}

function signalGroup(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(-pid, signal);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
  }
}
