import { deepEqual, equal, match, ok, rejects } from "node:assert/strict";
import { spawn } from "node:child_process";
import { existsSync, globSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { isFault } from "#base/fault.ts";
import { until } from "#testing/until.ts";
import type { LaneLoan } from "./lanes.ts";
import { groupsName } from "./launcher/leftovers.ts";
import { isAlive, isOver } from "./launcher/proc.ts";
import { rigClock, rigHome, rigUidBase, SpawnerRig, text } from "./testing/rig.ts";
import { Spawner } from "./spawner.ts";

const isRoot = process.getuid?.() === 0;
const linux = process.platform !== "linux" && "needs linux: control groups and /proc";
const root = linux || (!isRoot && "needs root: to become other users");

async function pidIn(path: string): Promise<number> {
  await until(`there is a pid in ${path}`, () => Number(text(path)) > 0);
  return Number(text(path));
}

describe("a process that a launcher starts", { skip: linux, timeout: 120_000 }, () => {
  test("returns its exit code and streams, and has exactly the given environment", async () => {
    await using rig = await SpawnerRig.open();
    const { end, out, err } = await rig.sh("echo out; echo err >&2; exit 3");
    deepEqual([end.why, end.exitCode, out, err], ["exited", 3, "out\n", "err\n"]);
    equal((await rig.run(["/usr/bin/env"], { env: { C: "$C `x`" } })).out, "C=$C `x`\n");
    equal((await rig.run(["/usr/bin/env"], { env: { "A.B": "it's", PWD: "here" } })).out, "A.B=it's\nPWD=here\n");
    equal((await rig.run(["/usr/bin/env"], { env: {} })).out, "");
  });

  test("REAPI-83: is found by absolute path, below its folder or by PATH; else ends with 127 or 126", async () => {
    await using rig = await SpawnerRig.open();
    const write = "printf '#!/bin/sh\\necho here\\n' > tool; chmod 755 tool; touch plain;";
    equal((await rig.sh(`${write} exec ./tool`)).out, "here\n");
    equal((await rig.run(["env"], { env: { PATH: "/nowhere:/usr/bin" } })).out, "PATH=/nowhere:/usr/bin\n");
    equal((await rig.run(["no-such-program-here"])).end.exitCode, 127);
    equal((await rig.run(["/etc/passwd"])).end.exitCode, 126);
    equal((await rig.run(["./missing"])).end.exitCode, 127);
    for (const argv of [[], [""], ["a\0b"]]) await rejects(rig.run(argv), (error) => isFault(error, "invalid"));
  });

  test("has an empty stdin, and never a socket", async () => {
    await using rig = await SpawnerRig.open();
    const { out } = await rig.sh("readlink /proc/self/fd/0; cat; ls /proc/self/fd");
    match(out, /^\/dev\/null\n/);
    deepEqual(
      out
        .split("\n")
        .slice(1, -1)
        .filter((fd) => Number(fd) > 3),
      [],
      "no descriptor but the three, and the one that ls opened",
    );
  });

  test("can be frozen, thawed, and ended while frozen", async (t) => {
    await using rig = await SpawnerRig.open();
    if (!rig.spawner.canFreeze) return t.skip("needs control groups that can be frozen: none here");
    const running = await rig.start(["/bin/sh", "-c", "while :; do echo; done"]);
    const size = (): number => statSync(join(running.attempt, "stdout")).size;
    await until("it prints", () => size() > 0);
    const usage = await running.freeze();
    ok(usage && usage.cpuMs > 0);
    const before = size();
    await rigClock.sleep(100);
    equal(size(), before);
    running.thaw();
    await until("it goes on", () => size() > before);
    ok(await running.freeze());
    running.kill("cancelled");
    equal((await running.end).why, "cancelled");
    equal(await running.freeze(), undefined);
    running.thaw();
    equal((await rig.sh("echo next")).out, "next\n");
  });

  test("REAPI-84: killed by a signal ends with 128 plus its number", async () => {
    await using rig = await SpawnerRig.open();
    equal((await rig.sh("kill -TERM $$")).end.exitCode, 143);
    equal((await rig.sh("kill -SEGV $$")).end.exitCode, 139);
    const started = await rig.start(["/bin/sh", "-c", "trap 'echo bye; exit 7' TERM; echo $$ > pid; sleep 100 & wait"]);
    await pidIn(join(started.attempt, "work/pid"));
    started.signal("SIGTERM");
    const { why, exitCode } = await started.end;
    deepEqual([why, exitCode], ["exited", 7]);
    equal(text(join(started.attempt, "stdout")), "bye\n");
  });

  test("REAPI-86: takes its background processes with it, also in other sessions", async () => {
    await using rig = await SpawnerRig.open();
    const script =
      "sleep 1000 & echo $! > a; setsid sleep 1000 & echo $! > b; (setsid sh -c 'echo $$ > c; sleep 1000' &)";
    const started = await rig.start(["/bin/sh", "-c", `${script}; while ! test -s c; do sleep 0.01; done`]);
    equal((await started.end).exitCode, 0);
    for (const name of ["a", "b", "c"]) ok(isOver(await pidIn(join(started.attempt, "work", name))), name);
  });

  test("in a shared working directory takes no other processes with it", async () => {
    await using rig = await SpawnerRig.open();
    const neighbour = spawn("/bin/sleep", ["100"], { cwd: "/", stdio: "ignore" });
    try {
      for (const cwd of ["/", "/tmp"]) equal((await rig.sh("sleep 100 & exit 0", { cwd })).end.exitCode, 0);
      ok(isAlive(neighbour.pid ?? 0));
    } finally {
      neighbour.kill("SIGKILL");
    }
  });

  test("is ended with all its children when its time is over or when it is asked to", async () => {
    await using rig = await SpawnerRig.open();
    const late = await rig.sh("trap '' TERM; sleep 1000 & echo $!; sleep 1000", { timeoutMs: 100 });
    deepEqual([late.end.why, late.end.exitCode], ["timed-out", 137]);
    ok(isOver(Number(late.out)));
    const killed = await rig.start(["/bin/sh", "-c", "echo $$ > pid; sleep 1000"]);
    const pid = await pidIn(join(killed.attempt, "work/pid"));
    killed.kill("cancelled");
    equal((await killed.end).why, "cancelled");
    ok(isOver(pid));
  });

  test("REAPI-85: that prints without end keeps its beginning and its end, also on disk while it runs", async () => {
    await using rig = await SpawnerRig.open();
    const { end, out } = await rig.sh("echo first; yes | head -c 300000000; echo last", {
      timeoutMs: 60_000,
    });
    equal(end.exitCode, 0);
    match(out, /^first\ny\n/);
    match(out, /\n\.\.\. \d+ bytes left out \.\.\.\n/);
    match(out, /y\nlast\n$/);
    ok(end.stdout.leftOutBytes > 100_000_000 && end.stdout.bytes < 101_000, JSON.stringify(end.stdout));
  });

  test("that removes its own output is ended", async () => {
    await using rig = await SpawnerRig.open();
    const other = await rig.start(["/bin/sleep", "1"]);
    const { end } = await rig.sh("rm ../stdout; exec sleep 1000");
    deepEqual([end.why, end.note?.includes("ENOENT")], ["not-started", true]);
    equal((await other.end).exitCode, 0);
  });

  test("that forks without end stays within its process limit, and leaves no processes", async (t) => {
    await using rig = await SpawnerRig.open();
    if (rig.spawner.groups.kind === "none") return t.skip("needs cgroups: they cannot be written here");
    const { end, err } = await rig.run(["/bin/bash", "-c", "f() { f | f & }; f; sleep 1000"], {
      limits: { pids: 40 },
      timeoutMs: 700,
    });
    equal(end.why, "timed-out");
    match(err, /fork/);
    equal((await rig.sh("echo alive")).out, "alive\n");
  });

  test("that exceeds its memory limit is ended and reported as out of memory", async (t) => {
    await using rig = await SpawnerRig.open();
    if (!rig.spawner.groups.controllers.includes("memory")) return t.skip("needs cgroups: no memory controller here");
    const hog = ["/bin/sh", "-c", "head -c 200000000 /dev/zero | tail -c 150000000 | wc -c"];
    const { end } = await rig.run(hog, { limits: { memoryBytes: 30_000_000 } });
    ok(end.outOfMemory);
    ok((end.usage.memoryPeakBytes ?? 0) > 20_000_000 && (end.usage.memoryPeakBytes ?? 0) <= 30_000_000);
    const { end: after } = await rig.run(hog);
    deepEqual([after.outOfMemory, after.exitCode], [false, 0]);
    ok((after.usage.memoryPeakBytes ?? 0) > 100_000_000, JSON.stringify(after.usage));
  });

  test("has its CPU time counted, including its children's", async () => {
    await using rig = await SpawnerRig.open();
    const { end } = await rig.sh("sh -c 'i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done'");
    ok(end.usage.cpuMs >= 20, JSON.stringify(end.usage));
    equal((await rig.sh(":")).end.usage.cpuMs < end.usage.cpuMs, true);
  });

  test("gets no more CPU than its limit", async (t) => {
    await using rig = await SpawnerRig.open();
    if (!rig.spawner.groups.controllers.includes("cpu")) return t.skip("needs cgroups: no cpu controller here");
    const { end } = await rig.sh("while :; do :; done", { limits: { cpus: 0.2 }, timeoutMs: 1_000 });
    ok(end.usage.cpuMs < 500, JSON.stringify(end.usage));
  });
});

describe("a lane with a user of its own", { skip: root, timeout: 60_000 }, () => {
  for (const drops of [false, true])
    test(`runs as that user, who cannot reach our files and processes (${drops ? "drops" : "is"})`, async () => {
      await using rig = await SpawnerRig.open({ uidBase: rigUidBase, drops });
      const { out, end } = await rig.sh("id -u; id -G; grep CapEff /proc/self/status; kill -9 $PPID; echo $?");
      const [uid, groups, caps] = out.split("\n");
      ok(Number(uid) >= rigUidBase && groups === uid);
      match(caps ?? "", /0000000000000000$/);
      if (drops) deepEqual([out.split("\n")[3] !== "0", end.exitCode], [true, 0]);
      const preload = await rig.run(["/usr/bin/id", "-u"], { env: { LD_PRELOAD: "./evil.so" } });
      match(preload.err, /evil\.so.*cannot be preloaded/);
      equal(preload.err.split("\n").length, 2, "only the command itself has seen it");
    });
});

describe("lanes of our own user beside those of others", { skip: root, timeout: 60_000 }, () => {
  const users = { uidBase: rigUidBase, log: () => {} };

  const uidIn = async (rig: SpawnerRig, loan: LaneLoan | undefined): Promise<number> =>
    Number((await rig.run(["/usr/bin/id", "-u"], {}, loan)).out);

  test("each runs as its own user", async () => {
    await using rig = await SpawnerRig.open({ ...users, lanes: 2, ownLanes: 1 });
    equal(await uidIn(rig, await rig.spawner.ownLanes.lend()), 0);
    ok((await uidIn(rig, await rig.spawner.lanes.lend())) >= rigUidBase);
  });

  test("a lane of ours that belongs to another user after a restart is not used for both", async () => {
    const home = rigHome();
    const before = await SpawnerRig.open({ ...users, lanes: 1, ownLanes: 1 }, home);
    const line = "echo $$ > pid; while ! test -e go; do sleep 0.01; done";
    const running = await before.start(["/bin/sh", "-c", line], {}, await before.spawner.ownLanes.lend());
    await pidIn(join(running.attempt, "work/pid"));
    await before.spawner.close({ quit: false });
    await using rig = await SpawnerRig.open({ ...users, lanes: 2 }, home);
    writeFileSync(join(running.attempt, "work/go"), "");
    equal((await rig.spawner.found[0]?.end)?.exitCode, 0);
    equal(await uidIn(rig, rig.spawner.lanes.take(1)), rigUidBase + 1);
  });
});

test(
  "a lease is renewed as long as the node lives, however short it is",
  { skip: linux, timeout: 90_000 },
  async () => {
    await using rig = await SpawnerRig.open();
    const long = await rig.start(["/bin/sleep", "1"]);
    const { end } = await rig.sh("sleep 0.9", { leaseMs: 300 });
    deepEqual([end.why, (await long.end).why], ["exited", "exited"]);
  },
);

test("N3: a run ends with its claim, although it is renewed", { skip: linux, timeout: 90_000 }, async () => {
  await using rig = await SpawnerRig.open({ lanes: 3 });
  const claimUntilMono = performance.now() + 900;
  const over = await rig.start(["/bin/sleep", "10"], {
    leaseMs: 300,
    leftMs: () => claimUntilMono - performance.now(),
  });
  const held = await rig.start(["/bin/sleep", "1.5"], { leaseMs: 300, leftMs: () => 900 });
  const late = await rig.start(["/bin/sleep", "10"], { leaseMs: 300, leftMs: () => -1 });
  deepEqual([(await over.end).why, (await held.end).why], ["lease-ran-out", "exited"]);
  const { why, ranMs } = await late.end;
  deepEqual([why, ranMs], ["lease-ran-out", 0], "never started");
});

describe("when a node dies", { skip: linux, timeout: 60_000 }, () => {
  /** A node process that starts two runs and then lives until it is killed. */
  async function nodeThatRuns(home: string, leaseMs: number, orphanMs = leaseMs): Promise<void> {
    const here = new URL("./testing/rig.ts", import.meta.url).href;
    const program = join(home, "node.ts");
    writeFileSync(
      program,
      `const { SpawnerRig } = await import(${JSON.stringify(here)});
       const rig = await SpawnerRig.open({}, ${JSON.stringify(home)});
       await rig.start(["/bin/sh", "-c", "echo $$ > pid; while ! test -e go; do sleep 0.01; done; echo done; exit 5"],
         { tag: "long", leaseMs: ${leaseMs}, orphanMs: ${orphanMs} });
       await rig.start(["/bin/sh", "-c", "echo short; exit 4"], { tag: "short", leaseMs: ${leaseMs} });`,
    );
    const node = spawn(process.execPath, [program], { stdio: "inherit" });
    await pidIn(join(home, "attempts/1/work/pid"));
    await until("the short one has printed", () => text(join(home, "attempts/2/stdout")) === "short\n");
    node.kill("SIGKILL");
    await new Promise((resolve) => node.once("exit", resolve));
  }

  test("its runs continue within their lease; its next process finds running and ended ones", async () => {
    const home = rigHome();
    await nodeThatRuns(home, 30_000);
    await using rig = await SpawnerRig.open({}, home);
    const byTag = new Map(rig.spawner.found.map((running) => [running.tag, running]));
    equal((await byTag.get("short")?.end)?.exitCode, 4);
    writeFileSync(join(home, "attempts/1/work/go"), "");
    deepEqual([(await byTag.get("long")?.end)?.exitCode, text(join(home, "attempts/1/stdout"))], [5, "done\n"]);
    for (const running of rig.spawner.found) running.forget();
    await rig.spawner.close({ quit: false });
    const third = await Spawner.open(SpawnerRig.options(home));
    deepEqual(third.found, [], "a forgotten run is not reported again");
    equal(third.launcherPid, rig.spawner.launcherPid);
    await third.close({ quit: true });
  });

  for (const [leaseMs, orphanMs] of [
    [500, 500],
    [30_000, 0],
  ] as const)
    test(`and stays dead, its run ends with its lease of ${leaseMs} ms, or ${orphanMs} ms after its node`, async () => {
      const home = rigHome();
      await nodeThatRuns(home, leaseMs, orphanMs);
      const pid = await pidIn(join(home, "attempts/1/work/pid"));
      await until("the orphan is gone", () => !isAlive(pid));
      await using rig = await SpawnerRig.open({}, home);
      const long = rig.spawner.found.find(({ tag }) => tag === "long");
      equal((await long?.end)?.why, "lease-ran-out");
    });
});

describe("when a launcher dies", { skip: linux, timeout: 60_000 }, () => {
  test("its runs are dead before their loss is reported, and the next launcher works", async () => {
    await using rig = await SpawnerRig.open();
    const script = "setsid sleep 1000 & echo $! > stray; echo $$ > pid; sleep 1000";
    const started = await rig.start(["/bin/sh", "-c", script]);
    const pids = [await pidIn(join(started.attempt, "work/pid")), await pidIn(join(started.attempt, "work/stray"))];
    const before = rig.spawner.launcherPid;
    process.kill(before, "SIGKILL");
    await rejects(started.end, (error) => isFault(error, "unavailable"));
    deepEqual(
      pids.filter((pid) => !isOver(pid)),
      [],
    );
    ok(rig.spawner.launcherPid !== before);
    equal((await rig.sh("echo again")).out, "again\n");
  });

  test("and no node is there, its process groups still die", async () => {
    const home = rigHome();
    const rig = await SpawnerRig.open({}, home);
    const started = await rig.start(["/bin/sh", "-c", "echo $$ > pid; sleep 1000"]);
    const pid = await pidIn(join(started.attempt, "work/pid"));
    await rig.spawner.close({ quit: false });
    process.kill(rig.spawner.launcherPid, "SIGKILL");
    await until("the orphan is gone", () => !isAlive(pid));
    // The next launcher removes what is left of its control groups.
    await (await SpawnerRig.open({}, home))[Symbol.asyncDispose]();
  });

  test("a lane whose shell is killed by its run is lost for that run only", async (t) => {
    await using rig = await SpawnerRig.open();
    if (isRoot && rig.spawner.groups.kind === "none") return t.skip("needs cgroups: they cannot be written here");
    const { end } = await rig.sh("kill -9 $PPID; sleep 1000");
    deepEqual([end.why, end.exitCode], ["lane-lost", 137]);
    equal((await rig.sh("echo again")).out, "again\n");
  });
});

test("a closed spawner leaves no process, no socket and no group", { skip: linux }, async () => {
  const home = rigHome();
  const rig = await SpawnerRig.open({}, home);
  await rig.sh(":");
  const { launcherPid } = rig.spawner;
  await rig[Symbol.asyncDispose]();
  await until("the launcher is gone", () => !isAlive(launcherPid));
  ok(!existsSync(home));
  const groups = globSync(`/sys/fs/cgroup/**/${groupsName(home)}`);
  deepEqual(groups, []);
});
