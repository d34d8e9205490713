import { deepEqual, equal, match, ok } from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, rmdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { until } from "#testing/until.ts";
import { readOr } from "./group.ts";
import { missingOf } from "./groups-missing.ts";
import { openGroups } from "./groups.ts";
import { openGroupsV2 } from "./groups-v2.ts";
import { ownGroupsV1, ownGroupV2 } from "./groups-where.ts";
import { isAlive } from "#worker/process/launcher/proc.ts";

const hybrid = `34 29 0:30 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory
35 29 0:31 / /sys/fs/cgroup/cpu,cpuacct rw,relatime - cgroup cgroup rw,cpu,cpuacct
36 29 0:32 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw`;

test("our groups are found in the kernel's mount table: both versions beside each other", () => {
  const where = { mounts: hybrid, own: "4:memory:/a/b\n2:cpu,cpuacct:/\n0::/\n" };
  deepEqual(
    [...ownGroupsV1(where)],
    [
      ["memory", "/sys/fs/cgroup/memory/a/b"],
      ["cpu", "/sys/fs/cgroup/cpu,cpuacct"],
      ["cpuacct", "/sys/fs/cgroup/cpu,cpuacct"],
    ],
  );
  equal(ownGroupV2(where), "/sys/fs/cgroup/unified");
});

test("our groups are found in a container that sees its own group as the root, and in one that does not", () => {
  const mount = (root: string): string => `30 25 0:26 ${root} /sys/fs/cgroup rw - cgroup2 cgroup rw,nsdelegate`;
  equal(ownGroupV2({ mounts: mount("/"), own: "0::/\n" }), "/sys/fs/cgroup");
  equal(ownGroupV2({ mounts: mount("/docker/abc"), own: "0::/docker/abc/x\n" }), "/sys/fs/cgroup/x");
  equal(ownGroupV2({ mounts: mount("/docker/abc"), own: "0::/\n" }), "/sys/fs/cgroup");
  equal(ownGroupV2({ mounts: "", own: "0::/\n" }), undefined);
});

for (const kind of ["as found", "version 2"] as const)
  test(`a group (${kind}) contains its processes and their children, and kills all but the spared ones`, async (t) => {
    const name = `millrace-test-${process.pid}`;
    const where = { mounts: readOr("/proc/self/mountinfo"), own: readOr("/proc/self/cgroup") };
    const groups = kind === "as found" ? openGroups(name) : openGroupsV2(name, where);
    if (!groups) return t.skip("needs cgroups: none of this kind can be written here");
    const group = groups.lane(0);
    const spared = spawn("/bin/sleep", ["100"], { stdio: "ignore" });
    const doomed = spawn("/bin/sh", ["-c", "read _; sleep 100 & sleep 100"], { stdio: ["pipe", "ignore", "ignore"] });
    try {
      for (const { pid = 0 } of [spared, doomed]) group.add(pid);
      group.begin({ pids: 50 }, 1);
      doomed.stdin?.end("go\n");
      await until("it has forked", () => group.members().length === 4);
      const others = group.members().filter((pid) => pid !== spared.pid);
      if (groups.freezes) {
        group.freeze();
        await until("all are frozen", () => group.isFrozen());
        group.thaw();
        equal(group.isFrozen(), false);
        group.freeze(); // and is still killed
      }
      await until("all others are gone", () => {
        group.kill(new Set([spared.pid ?? 0]));
        return group.members().length === 1;
      });
      ok(isAlive(spared.pid ?? 0));
      deepEqual(others.filter(isAlive), []);
      if (groups.controllers.includes("pids")) await until("it counts one", () => group.has(1));
      equal(group.has(0), false);
      equal(group.has(2), false);
      equal(group.use().outOfMemory, false);
    } finally {
      for (const child of [spared, doomed]) child.kill("SIGKILL");
      await until("the group is empty", () => group.members().length === 0);
      group.remove();
      for (const root of groups.roots) rmdirSync(root);
    }
  });

/** Folders and files as the kernel would make them, but static. */
class FakeGroups implements Disposable {
  readonly path = mkdtempSync(join(tmpdir(), "millrace-groups-"));
  readonly where = { mounts: `30 25 0:26 / ${this.path} rw - cgroup2 cgroup rw`, own: "0::/\n" };

  make(folder: string, files: Readonly<Record<string, string>>): void {
    mkdirSync(join(this.path, folder), { recursive: true });
    for (const [name, text] of Object.entries(files)) writeFileSync(join(this.path, folder, name), text);
  }

  read(path: string): string {
    return readOr(join(this.path, path), "missing");
  }

  [Symbol.dispose](): void {
    rmSync(this.path, { recursive: true, force: true });
  }
}

test("version 2: our root delegates the available controllers, and has a limit for all lanes", () => {
  using fake = new FakeGroups();
  fake.make(".", { "cgroup.controllers": "cpuset memory pids", "cgroup.subtree_control": "" });
  fake.make("ours", { "cgroup.controllers": "memory", "cgroup.subtree_control": "", "memory.max": "max" });
  const groups = openGroupsV2("ours", fake.where);
  equal(groups?.kind, "cgroup-v2");
  deepEqual(groups?.roots, [join(fake.path, "ours")]);
  equal(fake.read("cgroup.subtree_control"), "+pids", "written one by one, this one last");
  equal(fake.read("ours/cgroup.subtree_control"), "+memory");
  groups?.limitAll(5_000_000);
  equal(fake.read("ours/memory.max"), "5000000");
  groups?.limitAll(0);
  equal(fake.read("ours/memory.max"), "max");
});

test("version 2: a lane has its limits, its usage counts from the order on, and its shell is spared", async () => {
  using fake = new FakeGroups();
  fake.make(".", { "cgroup.controllers": "memory pids cpu", "cgroup.subtree_control": "" });
  fake.make("ours/lane-3", {
    "memory.max": "max",
    "memory.swap.max": "max",
    "pids.max": "max",
    "cpu.max": "max 100000",
    "memory.events": "low 0\noom 4\noom_kill 2\n",
    "memory.peak": "0",
    "cpu.stat": "usage_usec 7000\nuser_usec 1\n",
    "cgroup.freeze": "0",
    "cgroup.procs": "",
  });
  const group = openGroupsV2("ours", fake.where)?.lane(3);
  ok(group);
  const limits = (): readonly string[] =>
    ["memory.max", "memory.swap.max", "pids.max", "cpu.max"].map((name) => fake.read(`ours/lane-3/${name}`).trim());
  group.begin({ memoryBytes: 1_000, pids: 5, cpus: 1.5 }, 1);
  deepEqual(limits(), ["1000", "0", "6", "150000 100000"]);
  equal(group.use().outOfMemory, false, "earlier kills do not count");
  fake.make("ours/lane-3", {
    "memory.events": "low 0\noom 5\noom_kill 3\n",
    "memory.peak": "900\n",
    "cpu.stat": "usage_usec 9500\n",
  });
  deepEqual(group.use(), { outOfMemory: true, cpuMs: 2.5, memoryPeakBytes: 900 });
  group.begin({}, 1);
  deepEqual(limits(), ["max", "max", "max", "max 100000"]);
  const [shell, other] = [0, 1].map(() => spawn("/bin/sleep", ["100"], { stdio: "ignore" }));
  fake.make("ours/lane-3", { "cgroup.procs": `${shell?.pid}\n${other?.pid}\n` });
  group.kill(new Set([shell?.pid ?? 0]));
  await until("the other is gone", () => !isAlive(other?.pid ?? 0));
  ok(isAlive(shell?.pid ?? 0));
  equal(fake.read("ours/lane-3/cgroup.freeze"), "0", "nothing is left frozen");
  shell?.kill("SIGKILL");
});

test("missing controllers are reported with what to do about it", () => {
  deepEqual(missingOf({ controllers: ["memory", "cpu"] }), []);
  match(missingOf(undefined).join(), /memory .* and a limit of CPU: no control group can be made; .*Delegate=yes/);
  match(missingOf({ controllers: ["memory"], why: "a reason" }).join(), /^a limit of CPU: a reason; /);
});

test("a folder that is not a control group is not used", () => {
  const folder = join("/tmp", `millrace-no-group-${process.pid}`);
  mkdirSync(folder);
  try {
    const mounts = `30 25 0:26 / ${folder}/missing rw - cgroup2 cgroup rw`;
    equal(openGroupsV2("x", { mounts, own: "1:name=systemd:/\n" }), undefined);
  } finally {
    rmdirSync(folder);
  }
});
