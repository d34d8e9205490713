import { mkdirSync, rmdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { ControlFile, numberOf } from "./control-file.ts";
import {
  killFrozen,
  numbersIn,
  readOr,
  removeQuietly,
  writeQuietly,
  type Group,
  type Groups,
  type GroupUse,
} from "./group.ts";
import { ownGroupsV1, type Where } from "./groups-where.ts";
import type { Limits } from "#worker/process/protocol.ts";

const wanted = ["memory", "pids", "cpu", "cpuacct", "freezer"] as const;
type Controller = (typeof wanted)[number];

/** Needs a controller to find members by and one to limit; uses whichever of the others there are. */
export function openGroupsV1(name: string, where: Where): Groups | undefined {
  const own = ownGroupsV1(where);
  const roots = new Map<Controller, string>();
  for (const controller of wanted) {
    const parent = own.get(controller);
    if (parent === undefined) continue;
    const root = join(parent, name);
    try {
      mkdirSync(root, { recursive: true });
      const probe = join(root, `probe-${process.pid}`);
      mkdirSync(probe);
      rmdirSync(probe);
      roots.set(controller, root);
    } catch {
      // Not writable for us.
    }
  }
  if (!roots.has("memory") && !roots.has("pids")) return undefined;
  return {
    kind: "cgroup-v1",
    controllers: [...roots.keys()],
    freezes: roots.has("freezer"),
    roots: [...new Set(roots.values())],
    lane: (index) => new GroupV1(roots, `lane-${index}`),
    limitAll: (memoryBytes) => limitRoot(roots.get("memory"), memoryBytes),
  };
}

const unlimited = -1;

/** Counts subgroups only if the machine uses hierarchical accounting, which is the default. */
function limitRoot(root: string | undefined, memoryBytes: number): void {
  if (root === undefined) return;
  const value = String(memoryBytes > 0 ? memoryBytes : unlimited);
  const files = ["memory.limit_in_bytes", "memory.memsw.limit_in_bytes"];
  // Twice, because which one must be written first depends on the old values.
  for (const file of [...files, ...files]) writeQuietly(join(root, file), value);
}

class GroupV1 implements Group {
  readonly #paths = new Map<Controller, string>();
  readonly #members: string;
  readonly #cpu: ControlFile;
  readonly #peak: ControlFile;
  readonly #oom: ControlFile;
  readonly #count: ControlFile;
  #limits: Limits = {};
  #cpuNsBefore = 0;
  #oomBefore = 0;

  constructor(roots: ReadonlyMap<Controller, string>, name: string) {
    for (const [controller, root] of roots) {
      const path = join(root, name);
      mkdirSync(path, { recursive: true });
      this.#paths.set(controller, path);
    }
    const path = this.#paths.get("freezer") ?? this.#paths.get("pids") ?? this.#paths.get("memory") ?? "";
    this.#members = join(path, "cgroup.procs");
    this.#cpu = new ControlFile(join(this.#paths.get("cpuacct") ?? "", "cpuacct.usage"), "r");
    this.#peak = new ControlFile(join(this.#paths.get("memory") ?? "", "memory.max_usage_in_bytes"), "r+");
    this.#oom = new ControlFile(join(this.#paths.get("memory") ?? "", "memory.oom_control"), "r");
    this.#count = new ControlFile(join(this.#paths.get("pids") ?? "", "pids.current"), "r");
  }

  get countsCpu(): boolean {
    return this.#cpu.isThere;
  }

  add(pid: number): void {
    // Controllers that are mounted together share a folder.
    for (const path of new Set(this.#paths.values())) writeFileSync(join(path, "cgroup.procs"), String(pid));
  }

  members(): readonly number[] {
    // Opened each time: an open file would return its old content.
    return numbersIn(readOr(this.#members));
  }

  has(count: number): boolean {
    return Number(this.#count.read() || Number.NaN) === count;
  }

  begin(limits: Limits, spared: number): void {
    const before = this.#limits;
    if (limits.memoryBytes !== before.memoryBytes) this.#limitMemory(limits.memoryBytes ?? 0);
    if (limits.pids !== before.pids) this.#set("pids", "pids.max", limits.pids ? String(limits.pids + spared) : "max");
    if (limits.cpus !== before.cpus) {
      const periodUs = 100_000;
      this.#set("cpu", "cpu.cfs_period_us", String(periodUs));
      this.#set("cpu", "cpu.cfs_quota_us", String(limits.cpus ? Math.round(limits.cpus * periodUs) : unlimited));
    }
    this.#limits = limits;
    this.#peak.write("0");
    this.#cpuNsBefore = Number(this.#cpu.read());
    this.#oomBefore = this.#oomKills();
  }

  use(): GroupUse {
    const outOfMemory = this.#oomKills() > this.#oomBefore;
    return {
      outOfMemory,
      ...(this.#paths.has("cpuacct") ? { cpuMs: (Number(this.#cpu.read()) - this.#cpuNsBefore) / 1e6 } : {}),
      ...(this.#paths.has("memory") ? { memoryPeakBytes: Number(this.#peak.read()) } : {}),
    };
  }

  kill(spared: ReadonlySet<number>): void {
    killFrozen(this, spared);
  }

  freeze(): void {
    this.#set("freezer", "freezer.state", "FROZEN");
  }

  isFrozen(): boolean {
    return readOr(join(this.#paths.get("freezer") ?? "", "freezer.state")).trim() === "FROZEN";
  }

  thaw(): void {
    this.#set("freezer", "freezer.state", "THAWED");
  }

  remove(): void {
    for (const file of [this.#cpu, this.#peak, this.#oom, this.#count]) file[Symbol.dispose]();
    for (const path of this.#paths.values()) removeQuietly(path);
  }

  #limitMemory(bytes: number): void {
    const value = String(bytes > 0 ? bytes : unlimited);
    const isRaised = bytes <= 0 || bytes > (this.#limits.memoryBytes ?? Infinity);
    // The limit of memory plus swap must never be the smaller one.
    const files = ["memory.limit_in_bytes", "memory.memsw.limit_in_bytes"];
    for (const file of isRaised ? files.toReversed() : files) this.#set("memory", file, value);
  }

  #oomKills(): number {
    return numberOf("oom_kill ", this.#oom.read());
  }

  #set(controller: Controller, file: string, value: string): void {
    const path = this.#paths.get(controller);
    // Missing in kernels without swap accounting or bandwidth control.
    if (path !== undefined) writeQuietly(join(path, file), value);
  }
}
