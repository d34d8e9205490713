import { deepEqual, equal, match, ok, rejects } from "node:assert/strict";
import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdtemp, readFile, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { ManualClock } from "#base/testing/manual-clock.ts";
import { Stopped } from "./holding.ts";
import { BoundedOutput } from "./printed/output.ts";
import { createProcessRunner, type ProcessRequest, type ProcessRunner } from "./process.ts";
import { SpawnerRig } from "./process/testing/rig.ts";
import { reclaimScratch, ScratchDir } from "./scratch.ts";
import { createSpawnedRunner } from "./spawned-runner.ts";
import { clearAway } from "#testing/clear-away.ts";
import { until } from "#testing/until.ts";

const clock = new ManualClock();
const never = new AbortController().signal;
const sh = (script: string, more: Partial<ProcessRequest> = {}): ProcessRequest => ({
  command: ["/bin/sh", "-c", script],
  cwd: "/",
  env: { PATH: process.env["PATH"] ?? "" },
  outputBytesMax: 10_000,
  signal: never,
  ...more,
});

const isAlive = (pid: number): boolean => {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
};

async function withFolder(body: (folder: string) => Promise<void>): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), "millrace-process-"));
  try {
    await body(folder);
  } finally {
    clearAway(folder);
  }
}

async function pidIn(path: string): Promise<number> {
  let pid = 0;
  await until(`there is a pid in ${path}`, async () => {
    pid = Number(await readFile(path, "utf8").catch(() => ""));
    return pid > 0;
  });
  return pid;
}

const posix = process.platform === "win32" && "needs posix: process groups";

for (const way of ["directly", "through a launcher"] as const)
  describe(`a process, started ${way}`, { skip: posix, timeout: 60_000 }, () => {
    let run: ProcessRunner = createProcessRunner(clock);
    const undo = new AsyncDisposableStack();
    before(async () => {
      if (way === "directly") return;
      const rig = undo.use(await SpawnerRig.open());
      run = createSpawnedRunner({
        spawner: rig.spawner,
        lanes: rig.spawner.lanes,
        folder: join(rig.home, "attempts"),
        clock,
      });
    });
    after(() => undo.disposeAsync());

    test("returns its exit code and both streams", async () => {
      const { exitCode, killedBy, output } = await run(sh("echo out; echo err >&2; exit 3"));
      deepEqual([exitCode, killedBy], [3, undefined]);
      deepEqual(output.tail(100).split("\n").toSorted(), ["", "err", "out"]);
    });

    test("sees only the environment it is given", async () => {
      const { output } = await run(sh("echo $SECRET-$GIVEN", { env: { GIVEN: "yes" } }));
      equal(output.tail(100), "-yes\n");
    });

    test("is not started if its claim is over", async () =>
      withFolder(async (folder) => {
        const leases = { leaseMs: 10_000, orphanMs: 0, leftMs: () => 0 };
        await rejects(run(sh(`echo ran > ${join(folder, "effect")}`, { leases })), /lease/);
        equal(existsSync(join(folder, "effect")), false);
      }));

    test("that does not exist is reported", async () => {
      const { exitCode, output } = await run({ ...sh(""), command: ["no-such-program-here"] });
      equal(exitCode, 127);
      match(output.tail(200), /not found/);
    });

    test("takes its background processes with it when it ends", async () =>
      withFolder(async (folder) => {
        const pidFile = join(folder, "pid");
        const { exitCode } = await run(sh(`sleep 1000 & echo $! > ${pidFile}`));
        equal(exitCode, 0);
        const pid = await pidIn(pidFile);
        await until("the background process is gone", () => !isAlive(pid));
      }));

    test("is stopped with all its children; if it ignores SIGTERM it is killed", async () =>
      withFolder(async (folder) => {
        const pidFile = join(folder, "pid");
        const abort = new AbortController();
        const running = run(
          sh(`trap '' TERM; sleep 1000 & echo $! > ${pidFile}; wait; sleep 1000`, { signal: abort.signal }),
        );
        const pid = await pidIn(pidFile);
        const refused = rejects(running, Stopped);
        abort.abort(new Stopped("cancelled"));
        await clock.advance(2_000);
        await refused;
        await until("the grandchild is gone", () => !isAlive(pid));
      }));
  });

describe("a process, started directly,", { skip: posix }, () => {
  test("dies with the process that started it, even by kill -9", async () =>
    withFolder(async (folder) => {
      const pidFile = join(folder, "pid");
      const parent = join(folder, "parent.ts");
      const here = new URL("./process.ts", import.meta.url).href;
      await writeFile(
        parent,
        `const { createProcessRunner } = await import(${JSON.stringify(here)});
         const clock = { after: () => () => {} };
         await createProcessRunner(clock)({ command: ["/bin/sh", "-c", "sleep 1000 & echo $! > ${pidFile}; wait"],
           cwd: "/", env: { PATH: process.env.PATH }, outputBytesMax: 100, signal: new AbortController().signal });`,
      );
      const child = spawn(process.execPath, [parent], { stdio: "ignore" });
      const pid = await pidIn(pidFile);
      ok(isAlive(pid));
      child.kill("SIGKILL");
      await until("the orphan is gone", () => !isAlive(pid));
    }));
});

test("output keeps its beginning and its end, and counts what is left out", () => {
  const output = new BoundedOutput(20);
  for (const part of ["0123456789", "abc", "defghijklm", "nopqrstuvwxyz"]) output.add(Buffer.from(part));
  equal(Buffer.from(output.bytes()).toString(), "0123456789\n... 16 bytes left out ...\nqrstuvwxyz");
  equal(output.totalBytes, 36);
  equal(output.tail(3), "xyz");
  const small = new BoundedOutput(20);
  small.add(Buffer.from("all of it"));
  equal(Buffer.from(small.bytes()).toString(), "all of it");
});

test("scratch folders are deleted with their attempt, and those of a crash at the next start", async () =>
  withFolder(async (folder) => {
    const root = join(folder, "scratch");
    let path: string;
    {
      await using scratch = await ScratchDir.create(root, "t0-1");
      path = scratch.path;
      await writeFile(join(path, "file"), "x");
    }
    await rejects(readFile(join(path, "file")));
    await ScratchDir.create(root, "t0-2");
    equal(await reclaimScratch(root), 1);
    equal(await reclaimScratch(root), 0);
  }));
