/** A launcher on a machine that sleeps: real processes, and a monotonic clock that stands still meanwhile. */
import { equal, ok } from "node:assert/strict";
import { spawn } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { after, test } from "node:test";
import { ManualClock } from "#base/testing/manual-clock.ts";
import { endChild } from "#testing/end-child.ts";
import { openSuspend } from "#testing/suspend.ts";
import { until } from "#testing/until.ts";
import { rigHome, SpawnerRig, text } from "#worker/process/testing/rig.ts";

const suspend = openSuspend();
after(() => suspend.close());

const leaseMs = 3_000;
const program = join(import.meta.dirname, "launcher.ts");

async function sleepyLauncher(stack: AsyncDisposableStack) {
  const home = rigHome();
  const socket = join(home, "launcher.sock");
  const env = { PATH: process.env["PATH"] ?? "", ...suspend.env };
  const launcher = spawn(process.execPath, ["--no-warnings", program, home, socket, String(process.pid)], {
    cwd: "/",
    env,
    stdio: "ignore",
  });
  stack.defer(() => endChild(launcher, "SIGKILL"));
  await until("the launcher listens", () => existsSync(socket));
  // The node sleeps too and renews nothing: its time stands still.
  const rig = stack.use(await SpawnerRig.open({ clock: new ManualClock() }, home));
  equal(rig.spawner.launcherPid, launcher.pid);
  return rig;
}

function descendants(pid: number): readonly number[] {
  const tasks = text(`/proc/${pid}/task/${pid}/children`).split(" ").filter(Boolean).map(Number);
  return tasks.flatMap((child) => [child, ...descendants(child)]);
}

/** Prints the time about every 10 ms. */
const effects = ["/bin/sh", "-c", "while :; do date +%s%3N; sleep 0.01; done"];
const linesOf = (path: string): readonly number[] => readFileSync(path, "utf8").trim().split("\n").map(Number);

test(
  "a run with outside effects is stopped as soon as the machine wakes, if its claim ended meanwhile",
  { skip: suspend.skip, timeout: 60_000 },
  async () => {
    await using stack = new AsyncDisposableStack();
    const rig = await sleepyLauncher(stack);
    const claim = { leaseMs, orphanMs: 0, leftMs: () => leaseMs };
    const running = await rig.start(effects, claim);
    const stdout = join(running.attempt, "stdout");
    await until("it has effects", () => text(stdout).split("\n").length > 3);
    const { launcherPid } = rig.spawner;
    const wokeAtMs = await suspend.sleep([launcherPid, ...descendants(launcherPid)], leaseMs + 200);
    const { why } = await running.end;
    const afterwardsMs = (linesOf(stdout).at(-1) ?? 0) - wokeAtMs;
    equal(why, "lease-ran-out");
    // By a clock that stood still, nearly all of the lease would be left.
    ok(afterwardsMs < 500, `it continued for ${afterwardsMs} ms after the machine woke`);
  },
);

test(
  "a run without outside effects continues when the machine wakes",
  { skip: suspend.skip, timeout: 60_000 },
  async () => {
    await using stack = new AsyncDisposableStack();
    const rig = await sleepyLauncher(stack);
    const script = "sleep 0.5; echo done";
    const running = await rig.start(["/bin/sh", "-c", script], { leaseMs: 1_500, orphanMs: 1_500 });
    const { launcherPid } = rig.spawner;
    await until("it runs", () => descendants(launcherPid).some((pid) => text(`/proc/${pid}/comm`) === "sleep\n"));
    await suspend.sleep([launcherPid, ...descendants(launcherPid)], 1_700);
    const { why, exitCode } = await running.end;
    equal(`${why} ${exitCode}`, "exited 0");
  },
);
