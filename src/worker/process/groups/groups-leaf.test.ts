/**
 * Tests the kernel's own rule. Needs a controller that requires groups without processes: hugetlb is available in
 * version 2 even on machines that leave memory to version 1.
 */
import { deepEqual, equal, match, throws } from "node:assert/strict";
import { spawn, spawnSync, type ChildProcess } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test, type TestContext } from "node:test";
import { fileURLToPath } from "node:url";
import { until } from "#testing/until.ts";
import { numbersIn, readOr, removeQuietly, writeQuietly } from "./group.ts";
import { groupAround, leafName, moveIntoLeaf, oursOf } from "./groups-leaf.ts";
import { openGroupsV2 } from "./groups-v2.ts";
import { mountsOf } from "./groups-where.ts";

const controllers = ["hugetlb"];
const mounts = readOr("/proc/self/mountinfo");

/** A group like that of a service or container: with a shell in it and its child. */
class Service implements AsyncDisposable {
  readonly path: string;
  readonly where: { readonly mounts: string; readonly own: string };
  readonly #mount: string;
  readonly #hadIt: boolean;
  readonly #children: ChildProcess[] = [];

  private constructor(mount: string, name: string) {
    this.#mount = mount;
    this.#hadIt = readOr(join(mount, "cgroup.subtree_control")).includes("hugetlb");
    this.path = join(mount, name);
    this.where = { mounts, own: `0::/${name}\n` };
  }

  /** Undefined if there is no such controller, or if we cannot delegate it. */
  static open(t: TestContext): Service | undefined {
    const mount = mountsOf(mounts).find(({ type }) => type === "cgroup2")?.point ?? "";
    const service = new Service(mount, `millrace-room-${process.pid}`);
    try {
      writeFileSync(join(mount, "cgroup.subtree_control"), "+hugetlb");
      mkdirSync(service.path);
      return service;
    } catch (error) {
      t.skip(`needs root, and the controller hugetlb in control groups of version 2: ${String(error)}`);
      return undefined;
    }
  }

  /** A shell in the group that starts another process. */
  async start(): Promise<number> {
    const child = spawn("/bin/sh", ["-c", "read _; sleep 100 & wait"], { stdio: ["pipe", "ignore", "ignore"] });
    this.#children.push(child);
    const { pid = 0 } = child;
    const before = this.members().length;
    this.add(pid);
    child.stdin?.end("go\n");
    await until("it has forked", () => this.members().length === before + 2);
    return pid;
  }

  add(pid: number): void {
    writeFileSync(join(this.path, "cgroup.procs"), String(pid));
  }

  members(below = "."): readonly number[] {
    return numbersIn(readOr(join(this.path, below, "cgroup.procs")));
  }

  enable(): void {
    writeFileSync(join(this.path, "cgroup.subtree_control"), "+hugetlb");
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const groups = ["ours/lane-0", "ours", leafName, "."];
    await until("all are gone", () => {
      const left = groups.flatMap((group) => this.members(group));
      for (const pid of left) process.kill(pid, "SIGKILL");
      return left.length === 0;
    });
    for (const group of groups) removeQuietly(join(this.path, group));
    if (!this.#hadIt) writeQuietly(join(this.#mount, "cgroup.subtree_control"), "-hugetlb");
  }
}

test("a group with processes delegates no such controller; after ours have moved, it does", async (t) => {
  await using service = Service.open(t);
  if (!service) return;
  const shell = await service.start();
  const before = service.members();
  throws(() => service.enable(), { code: "EBUSY" });
  const ours = (): ReadonlySet<number> => new Set([shell]);
  const groups = openGroupsV2("ours", service.where, { controllers, ours });
  deepEqual(groups?.controllers, controllers);
  deepEqual([service.members(), service.members(leafName)], [[], before], "with its children");
  const [sleeper = 0] = before.filter((pid) => pid !== shell);
  groups?.lane(0).add(sleeper);
  deepEqual(service.members("ours/lane-0"), [sleeper], "and lanes can be used");
  // The next launcher, which starts in the leaf, finds the same groups.
  const own = `${service.where.own.trim()}/${leafName}\n`;
  const again = openGroupsV2("ours", { mounts, own }, { controllers, ours });
  deepEqual([again?.roots, again?.controllers], [groups?.roots, controllers]);
});

test("a foreign process is not moved, and then ours are not either; it is reported as in the way", async (t) => {
  await using service = Service.open(t);
  if (!service) return;
  const [shell, other] = [await service.start(), await service.start()];
  const before = service.members();
  const groups = openGroupsV2("ours", service.where, { controllers, ours: () => new Set([shell]) });
  deepEqual(groups?.controllers, []);
  match(groups?.why ?? "", new RegExp(`must not be moved \\(.*\\b${other}\\b`));
  deepEqual(service.members(), before);
  equal(readOr(join(service.path, leafName, "cgroup.type"), "none"), "none", "no leaf is created needlessly");
  groups?.lane(0).add(shell);
  deepEqual(service.members("ours/lane-0"), [shell], "trees are still found");
});

test("a process that forks meanwhile is moved as well", async (t) => {
  await using service = Service.open(t);
  if (!service) return;
  const forks = "read _; while :; do /bin/true & sleep 0.001; done";
  const forking = spawn("/bin/sh", ["-c", forks], { stdio: ["pipe", "ignore", "ignore"] });
  service.add(forking.pid ?? 0);
  forking.stdin?.end("go\n");
  await until("it forks", () => service.members().length > 1);
  deepEqual(
    moveIntoLeaf(service.path, () => new Set([forking.pid ?? 0])),
    [],
  );
  service.enable();
});

test("the machine's root group needs no leaf", (t) => {
  const mount = mountsOf(mounts).find(({ type }) => type === "cgroup2")?.point;
  if (mount === undefined || readOr(join(mount, "cgroup.type")) !== "")
    return t.skip("needs the root of control groups of version 2: a container sees its own");
  const none = (): never => {
    throw new Error("no process may be moved");
  };
  deepEqual(moveIntoLeaf(mount, none), []);
});

test("our leaf is known by its name, and its parent group is used", () => {
  equal(groupAround("/sys/fs/cgroup/a"), "/sys/fs/cgroup/a");
  equal(groupAround(`/sys/fs/cgroup/a/${leafName}`), "/sys/fs/cgroup/a");
});

test("ours are this process and its node, if that is alive, and the command that started the node", () => {
  deepEqual([...oursOf(process.ppid)].slice(0, 2), [process.pid, process.ppid]);
  deepEqual([...oursOf(1_000_000_000)], [process.pid], "the node is gone: its pid may belong to another process");
  const module = JSON.stringify(new URL("./groups-leaf.ts", import.meta.url).href);
  const script = `const { isCommand } = await import(${module});
    console.log(isCommand(process.ppid), isCommand(process.pid), isCommand(1));`;
  const command = fileURLToPath(new URL("../../../../bin/node.js", import.meta.url));
  const args = ["--input-type=module", "--eval", script];
  const { stdout, stderr } = spawnSync(process.execPath, [command, ...args], { encoding: "utf8" });
  equal(stdout, "true false false\n", stderr);
});
