// Suspends processes as a machine that sleeps does: they do nothing, their monotonic clock stands still, and the wall
// clock and /proc/uptime go on. SIGSTOP alone does not stop the monotonic clock, so standing-clock.c is preloaded.
//
//   const suspend = openSuspend();
//   test("…", { skip: suspend.skip }, async () => {
//     const child = spawn(program, args, { env: { ...process.env, ...suspend.env } });
//     const wake = suspend.begin([child.pid]);
//     …
//     wake();
//   });
//   after(() => suspend.close());
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";

export type Suspend = {
  /** False, or why processes cannot be suspended here: the `skip` of every test that needs it. */
  readonly skip: false | string;
  /** The environment that processes need to be suspended. */
  readonly env: Readonly<Record<string, string>>;
  /** Suspends them in the given order. The result wakes them in the same order. */
  begin(pids: readonly number[]): () => void;
  /** The same for this long. Resolves with the time of day when they woke. */
  sleep(pids: readonly number[], ms: number): Promise<number>;
  close(): void;
};

export function openSuspend(): Suspend {
  const folder = mkdtempSync(join(tmpdir(), "millrace-suspend-"));
  const [library, file] = [join(folder, "standing-clock.so"), join(folder, "stood")];
  let stoodNs = 0n;
  const write = (): void => writeFileSync(file, new BigInt64Array([stoodNs]), { flag: "r+" });
  writeFileSync(file, new BigInt64Array(1));
  const begin = (pids: readonly number[]): (() => void) => {
    const beganNs = process.hrtime.bigint();
    for (const pid of pids) signal(pid, "SIGSTOP");
    return () => {
      stoodNs += process.hrtime.bigint() - beganNs;
      write();
      for (const pid of pids) signal(pid, "SIGCONT");
    };
  };
  return {
    skip: whyNot(library),
    env: { LD_PRELOAD: library, STANDING_CLOCK: file },
    begin,
    async sleep(pids, ms) {
      const wake = begin(pids);
      await pause(ms);
      const wokeAtMs = Date.now();
      wake();
      return wokeAtMs;
    },
    close: () => rmSync(folder, { recursive: true, force: true }),
  };
}

/** One of them may have ended since they were listed: the others are still suspended and woken. */
function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
  }
}

function whyNot(library: string): false | string {
  if (process.platform !== "linux") return "needs linux: elsewhere the monotonic clock counts sleep";
  const source = join(import.meta.dirname, "standing-clock.c");
  const made = spawnSync("cc", ["-shared", "-fPIC", "-O1", "-o", library, source, "-ldl"], { encoding: "utf8" });
  return made.status === 0 ? false : `needs cc: ${made.error?.message ?? made.stderr.slice(0, 200)}`;
}
