import { closeSync, mkdirSync, openSync, readFileSync, readSync, rmdirSync, writeFileSync, writeSync } from "node:fs";
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
import { groupAround, moveIntoLeaf } from "./groups-leaf.ts";
import { ownGroupV2, type Where } from "./groups-where.ts";
import type { Limits } from "#worker/process/protocol.ts";

export type WishesV2 = {
  readonly controllers?: readonly string[];
  /** Processes that may be moved into the leaf, each with all that it started. */
  readonly ours?: () => ReadonlySet<number>;
};

/**
 * If this process's group cannot delegate controllers, groups still find and kill whole trees; only limits and
 * measurements are missing, and `controllers` says so.
 */
export function openGroupsV2(name: string, where: Where, wishes: WishesV2 = {}): Groups | undefined {
  const { controllers: wanted = ["memory", "pids", "cpu"], ours = () => new Set() } = wishes;
  const found = ownGroupV2(where);
  if (found === undefined) return undefined;
  const own = groupAround(found);
  const root = join(own, name);
  let others: readonly number[] = [];
  try {
    others = moveIntoLeaf(own, ours);
    // A group that has processes and still delegates makes its subgroups unusable.
    if (others.length === 0) enable(own, wanted);
    mkdirSync(root, { recursive: true });
    enable(root, wanted);
    const probe = join(root, `probe-${process.pid}`);
    mkdirSync(probe);
    rmdirSync(probe);
  } catch {
    return undefined;
  }
  if (readOr(join(root, "cgroup.type")).trim() === "domain invalid") return undefined;
  const given = namesIn(join(root, "cgroup.subtree_control"));
  return {
    kind: "cgroup-v2",
    controllers: wanted.filter((controller) => given.includes(controller)),
    why: others.length > 0 ? inTheWay(others) : "it is not delegated to this node's control group",
    freezes: hasFreezer(root),
    roots: [root],
    lane: (index) => new GroupV2(join(root, `lane-${index}`)),
    limitAll: (memoryBytes) => writeQuietly(join(root, "memory.max"), memoryBytes > 0 ? String(memoryBytes) : "max"),
  };
}

/** Since Linux 5.2. */
const hasFreezer = (root: string): boolean => readOr(join(root, "cgroup.freeze")) !== "";

const inTheWay = (pids: readonly number[]): string =>
  `this node's control group has processes that must not be moved (${pids.slice(0, 5).join(", ")})`;

function enable(path: string, wanted: readonly string[]): void {
  const there = namesIn(join(path, "cgroup.controllers"));
  // One by one: a kernel that refuses one may accept the others.
  for (const controller of wanted)
    if (there.includes(controller)) writeQuietly(join(path, "cgroup.subtree_control"), `+${controller}`);
}

const namesIn = (path: string): readonly string[] => readOr(path).trim().split(" ");

class GroupV2 implements Group {
  readonly #path: string;
  /** Since Linux 6.12 writing to the file resets the peak for that open file. */
  #peak: number | undefined;
  readonly #cpu: ControlFile;
  readonly #events: ControlFile;
  readonly #count: ControlFile;
  #limits: Limits = {};
  #cpuUsBefore = 0;
  #oomBefore = 0;

  constructor(path: string) {
    this.#path = path;
    mkdirSync(path, { recursive: true });
    this.#cpu = new ControlFile(join(path, "cpu.stat"), "r");
    this.#events = new ControlFile(join(path, "memory.events"), "r");
    this.#count = new ControlFile(join(path, "pids.current"), "r");
  }

  get countsCpu(): boolean {
    return this.#cpu.isThere;
  }

  add(pid: number): void {
    writeFileSync(join(this.#path, "cgroup.procs"), String(pid));
  }

  members(): readonly number[] {
    return numbersIn(readFileSync(join(this.#path, "cgroup.procs"), "utf8"));
  }

  has(count: number): boolean {
    return Number(this.#count.read() || Number.NaN) === count;
  }

  begin(limits: Limits, spared: number): void {
    const { memoryBytes = 0, cpus = 0, pids = 0 } = limits;
    const before = this.#limits;
    if (limits.memoryBytes !== before.memoryBytes) {
      this.#set("memory.max", memoryBytes > 0 ? String(memoryBytes) : "max");
      this.#set("memory.swap.max", memoryBytes > 0 ? "0" : "max");
    }
    if (limits.pids !== before.pids) this.#set("pids.max", pids > 0 ? String(pids + spared) : "max");
    if (limits.cpus !== before.cpus)
      this.#set("cpu.max", cpus > 0 ? `${Math.round(cpus * 100_000)} 100000` : "max 100000");
    this.#limits = limits;
    this.#countPeak();
    this.#cpuUsBefore = this.#cpuUs();
    this.#oomBefore = this.#oomKills();
  }

  use(): GroupUse {
    const peak = this.#peakBytes();
    return {
      outOfMemory: this.#oomKills() > this.#oomBefore,
      cpuMs: (this.#cpuUs() - this.#cpuUsBefore) / 1e3,
      ...(peak === undefined ? {} : { memoryPeakBytes: peak }),
    };
  }

  kill(spared: ReadonlySet<number>): void {
    killFrozen(this, spared);
  }

  freeze(): void {
    this.#set("cgroup.freeze", "1");
  }

  isFrozen(): boolean {
    return /^frozen 1$/m.test(readOr(join(this.#path, "cgroup.events")));
  }

  thaw(): void {
    this.#set("cgroup.freeze", "0");
  }

  remove(): void {
    if (this.#peak !== undefined) closeSync(this.#peak);
    this.#peak = undefined;
    for (const file of [this.#cpu, this.#events, this.#count]) file[Symbol.dispose]();
    removeQuietly(this.#path);
  }

  #countPeak(): void {
    try {
      this.#peak ??= openSync(join(this.#path, "memory.peak"), "r+");
      writeSync(this.#peak, "0");
    } catch {
      // An older kernel reports the peak since the lane was made; that is misleading, so it is left out.
      if (this.#peak !== undefined) closeSync(this.#peak);
      this.#peak = undefined;
    }
  }

  #peakBytes(): number | undefined {
    if (this.#peak === undefined) return undefined;
    const text = Buffer.alloc(32);
    return Number(text.toString("latin1", 0, readSync(this.#peak, text, 0, text.length, 0)).trim());
  }

  #cpuUs(): number {
    return numberOf("usage_usec ", this.#cpu.read());
  }

  #oomKills(): number {
    return numberOf("oom_kill ", this.#events.read());
  }

  #set(file: string, value: string): void {
    // Its controller may not be delegated, or the kernel may be too old for the file.
    writeQuietly(join(this.#path, file), value);
  }
}
