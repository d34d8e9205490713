import { deepEqual, equal, ok } from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdirSync, rmdirSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { until } from "#test/until.ts";
import { readOr } from "./group.ts";
import { openGroups } from "./groups.ts";
import { openGroupsV2 } from "./groups-v2.ts";
import { ownGroupsV1, ownGroupV2 } from "./groups-where.ts";
import { isAlive } from "./proc.ts";

const hybrid = `34 29 0:30 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory
35 29 0:31 / /sys/fs/cgroup/cpu,cpuacct rw,relatime - cgroup cgroup rw,cpu,cpuacct
36 29 0:32 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw`;

test("where our groups are is read from what the kernel says: both kinds beside each other", () => {
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

test("where our groups are: in a container that sees its own group as the root, and in one that does not", () => {
  const mount = (root: string): string => `30 25 0:26 ${root} /sys/fs/cgroup rw - cgroup2 cgroup rw,nsdelegate`;
  equal(ownGroupV2({ mounts: mount("/"), own: "0::/\n" }), "/sys/fs/cgroup");
  equal(ownGroupV2({ mounts: mount("/docker/abc"), own: "0::/docker/abc/x\n" }), "/sys/fs/cgroup/x");
  equal(ownGroupV2({ mounts: mount("/docker/abc"), own: "0::/\n" }), "/sys/fs/cgroup");
  equal(ownGroupV2({ mounts: "", own: "0::/\n" }), undefined);
});

for (const kind of ["as found", "version 2"] as const)
  test(`a group (${kind}) has what it was given and what that forks, and ends all but those that are spared`, async (t) => {
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
      await until("all others are gone", () => {
        group.kill(new Set([spared.pid ?? 0]));
        return group.members().length === 1;
      });
      ok(isAlive(spared.pid ?? 0));
      deepEqual(others.filter(isAlive), []);
      equal(group.use().outOfMemory, false);
    } finally {
      for (const child of [spared, doomed]) child.kill("SIGKILL");
      await until("the group is empty", () => group.members().length === 0);
      group.remove();
      for (const root of groups.roots) rmdirSync(root);
    }
  });

test("a folder that is no control group is not taken for one", () => {
  const folder = join("/tmp", `millrace-no-group-${process.pid}`);
  mkdirSync(folder);
  try {
    const mounts = `30 25 0:26 / ${folder}/missing rw - cgroup2 cgroup rw`;
    equal(openGroupsV2("x", { mounts, own: "1:name=systemd:/\n" }), undefined);
  } finally {
    rmdirSync(folder);
  }
});
