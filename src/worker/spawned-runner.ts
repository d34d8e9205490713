/**
 * Runs commands through a launcher under our own user: for submitters that may do on this machine what this process
 * may.
 */
import { randomBytes } from "node:crypto";
import { mkdir, rm, writeFile } from "node:fs/promises";
import { constants } from "node:os";
import { join } from "node:path";
import type { Clock } from "#base/clock.ts";
import { Fault } from "#base/fault.ts";
import { Stopped } from "./holding.ts";
import { keptOutput } from "./printed/kept-output.ts";
import { cappedFileHead } from "./printed/printed-head.ts";
import { impolite, politeMsDefault, type ProcessResult, type ProcessRunner } from "./process.ts";
import type { Lanes } from "./process/lanes.ts";
import type { End } from "./process/protocol.ts";
import type { Running, Spawner } from "./process/spawner.ts";

const leasesDefault = { leaseMs: 30_000, orphanMs: 30_000 };

export type SpawnedPorts = {
  readonly spawner: Pick<Spawner, "start">;
  /** Lanes of our own user. */
  readonly lanes: Pick<Lanes, "lend">;
  /** Where output is kept while the process runs. */
  readonly folder: string;
  readonly clock: Clock;
};

export const createSpawnedRunner =
  ({ spawner, lanes, folder, clock }: SpawnedPorts): ProcessRunner =>
  async ({ command, cwd, env, outputBytesMax, signal, leases = leasesDefault, printing, politeMs, started }) => {
    using lane = await lanes.lend(signal);
    await using kept = await OutputFile.create(folder);
    const both = { path: kept.path, bytesMax: outputBytesMax };
    const running = spawner.start({
      tag: "command",
      lane: lane.index,
      argv: command,
      env,
      cwd,
      stdout: both,
      stderr: both,
      limits: {},
      timeoutMs: 0,
      ...leases,
      sealed: false,
    });
    started?.((name) => running.signalCommand(name));
    const printed = cappedFileHead(kept.path, outputBytesMax);
    await using _printing = printing?.(printed, kept.folder);
    const stop = stopOf(running, clock, signal, politeMs ?? politeMsDefault);
    signal.addEventListener("abort", stop.begin, { once: true });
    try {
      const end = await running.end;
      printed.over();
      signal.throwIfAborted();
      const output = await keptOutput(kept.path, end.stdout.leftOutBytes);
      return { ...endingOf(end), output, cpuMs: end.usage.cpuMs };
    } finally {
      signal.removeEventListener("abort", stop.begin);
      stop.cancel();
      running.forget();
    }
  };

/** Ends processes that an earlier process of this node left running and that have no claim any more. */
export async function endFound(spawner: Spawner): Promise<void> {
  for (const running of spawner.found) running.kill("lost");
  await Promise.allSettled(spawner.found.map(({ end }) => end));
  for (const running of spawner.found) running.forget();
}

const signalNames = new Map(Object.entries(constants.signals).map(([name, number]) => [number, name]));

function endingOf({ why, exitCode, outOfMemory, note }: End): Pick<ProcessResult, "exitCode" | "killedBy"> {
  if (why === "lease-ran-out")
    throw new Fault("unavailable", "run process", { why: "its lease ended before it was renewed" });
  if (why === "not-started") throw new Fault("unavailable", "start process", { why: note });
  if (outOfMemory) return { exitCode: undefined, killedBy: "SIGKILL" };
  const killedBy = signalNames.get(exitCode - 128);
  return { exitCode: killedBy === undefined ? exitCode : undefined, killedBy };
}

/** Sends SIGTERM first, unless the claim is gone. */
function stopOf(running: Running, clock: Clock, signal: AbortSignal, politeMs: number) {
  let cancel = (): void => {};
  const begin = (): void => {
    const why = signal.reason instanceof Stopped ? signal.reason.why : undefined;
    if (why !== undefined && impolite.includes(why)) return running.kill("lost");
    running.signal("SIGTERM");
    cancel = clock.after(politeMs, () => running.kill("cancelled"));
  };
  return { begin, cancel: () => cancel() };
}

class OutputFile implements AsyncDisposable {
  readonly path: string;
  readonly folder: string;

  private constructor(folder: string) {
    this.folder = folder;
    this.path = join(folder, "output");
  }

  static async create(parent: string): Promise<OutputFile> {
    const folder = join(parent, randomBytes(16).toString("hex"));
    await mkdir(folder, { mode: 0o700 });
    const file = new OutputFile(folder);
    await writeFile(file.path, "", { mode: 0o600 });
    return file;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await rm(this.folder, { recursive: true, force: true });
  }
}
