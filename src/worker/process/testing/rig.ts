/** What tests of real processes share: a spawner in a temporary folder, which leaves nothing behind. */
import { chmodSync, chownSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Clock } from "#base/clock.ts";
import type { LaneLoan } from "#worker/process/lanes.ts";
import type { End } from "#worker/process/protocol.ts";
import { Spawner, type ProcessSpec, type Running, type SpawnerOptions } from "#worker/process/spawner.ts";

export const rigClock: Clock = {
  monotonicMs: () => performance.now(),
  wallMs: () => Date.now(),
  sleep: (ms) => new Promise((resolve) => setTimeout(resolve, ms)),
  after: (ms, run) => {
    const timer = setTimeout(run, ms);
    return () => clearTimeout(timer);
  },
};

/** Different for tests that run in parallel. */
export const rigUidBase = 1_600_000_000 + (process.pid % 100_000) * 1_000;

export type Ran = { readonly end: End; readonly out: string; readonly err: string };

export class SpawnerRig implements AsyncDisposable {
  readonly home: string;
  readonly spawner: Spawner;
  #attempts = 0;

  private constructor(home: string, spawner: Spawner) {
    this.home = home;
    this.spawner = spawner;
  }

  static options(home: string, more: Partial<SpawnerOptions> = {}): SpawnerOptions {
    return { home, socket: join(home, "launcher.sock"), lanes: 2, clock: rigClock, log: () => {}, ...more };
  }

  static async open(more: Partial<SpawnerOptions> = {}, home = rigHome()): Promise<SpawnerRig> {
    return new SpawnerRig(home, await Spawner.open(SpawnerRig.options(home, more)));
  }

  /** Starts it; the lane is returned when it has ended. */
  async start(
    argv: readonly string[],
    more: Partial<ProcessSpec> = {},
    loan?: LaneLoan,
  ): Promise<Running & { readonly attempt: string }> {
    const lane = loan ?? (await this.spawner.lanes.lend());
    const attempt = this.#attempt(lane.uid);
    const running = this.#begin(lane, {
      tag: "rig",
      lane: lane.index,
      argv,
      env: { PATH: "/usr/local/bin:/usr/bin:/bin" },
      cwd: join(attempt, "work"),
      stdout: { path: join(attempt, "stdout"), bytesMax: 100_000 },
      stderr: { path: join(attempt, "stderr"), bytesMax: 100_000 },
      limits: {},
      timeoutMs: 20_000,
      leaseMs: 10_000,
      sealed: false,
      ...more,
    });
    const giveBack = (): void => lane[Symbol.dispose]();
    running.end.then(giveBack, giveBack);
    return { ...running, attempt };
  }

  #begin(lane: Disposable, spec: ProcessSpec): Running {
    try {
      return this.spawner.start(spec);
    } catch (error) {
      lane[Symbol.dispose]();
      throw error;
    }
  }

  async run(argv: readonly string[], more: Partial<ProcessSpec> = {}, loan?: LaneLoan): Promise<Ran> {
    const { end, attempt } = await this.start(argv, more, loan);
    return { end: await end, out: text(join(attempt, "stdout")), err: text(join(attempt, "stderr")) };
  }

  sh(script: string, more: Partial<ProcessSpec> = {}): Promise<Ran> {
    return this.run(["/bin/sh", "-c", script], more);
  }

  #attempt(uid: number | undefined): string {
    this.#attempts += 1;
    const attempt = join(this.home, "attempts", String(this.#attempts));
    mkdirSync(join(attempt, "work"), { recursive: true });
    for (const name of ["stdout", "stderr"]) writeFileSync(join(attempt, name), "");
    if (uid !== undefined)
      for (const name of ["", "work", "stdout", "stderr"]) chownSync(join(attempt, name), uid, uid);
    return attempt;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.spawner.close({ quit: true });
    rmSync(this.home, { recursive: true, force: true, maxRetries: 5, retryDelay: 1_000 });
  }
}

export function rigHome(): string {
  const home = mkdtempSync(join(tmpdir(), "millrace-spawn-"));
  chmodSync(home, 0o711);
  return home;
}

export function text(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
}
