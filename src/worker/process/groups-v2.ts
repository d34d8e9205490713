import { closeSync, mkdirSync, openSync, readFileSync, readSync, rmdirSync, writeFileSync, writeSync } from "node:fs";
import { join } from "node:path";
import { ControlFile, numberOf } from "./control-file.ts";
import {
  killQuietly,
  numbersIn,
  readOr,
  removeQuietly,
  writeQuietly,
  type Group,
  type Groups,
  type GroupUse,
} from "./group.ts";
import { ownGroupV2, type Where } from "./groups-where.ts";
import type { Limits } from "./protocol.ts";

const wanted = ["memory", "pids", "cpu"] as const;

/**
 * A group that hands controllers down may have no processes of its own. Where this process's group can hand down none,
 * groups still find and end whole trees; only limits and measures are missing, and `controllers` says so.
 */
export function openGroupsV2(name: string, where: Where): Groups | undefined {
  const own = ownGroupV2(where);
  if (own === undefined) return undefined;
  const root = join(own, name);
  try {
    enable(own);
    mkdirSync(root, { recursive: true });
    enable(root);
    const probe = join(root, `probe-${process.pid}`);
    mkdirSync(probe);
    rmdirSync(probe);
  } catch {
    return undefined;
  }
  const given = readOr(join(root, "cgroup.subtree_control")).trim().split(" ");
  return {
    kind: "cgroup-v2",
    controllers: wanted.filter((controller) => given.includes(controller)),
    freezes: hasFreezer(root),
    roots: [root],
    lane: (index) => new GroupV2(join(root, `lane-${index}`)),
    limitAll: (memoryBytes) => writeQuietly(join(root, "memory.max"), memoryBytes > 0 ? String(memoryBytes) : "max"),
  };
}

/** Since Linux 5.2. */
const hasFreezer = (root: string): boolean => readOr(join(root, "cgroup.freeze")) !== "";

function enable(path: string): void {
  const there = readOr(join(path, "cgroup.controllers")).trim().split(" ");
  for (const controller of wanted) {
    if (!there.includes(controller)) continue;
    try {
      writeFileSync(join(path, "cgroup.subtree_control"), `+${controller}`);
    } catch {
      // Busy: it has processes of its own.
    }
  }
}

class GroupV2 implements Group {
  readonly #path: string;
  /** Since Linux 6.12 the peak is counted anew for whoever writes to it, and told to that same open file. */
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
    const doomed = (): readonly number[] => this.members().filter((pid) => !spared.has(pid));
    if (doomed().length === 0) return;
    this.freeze();
    try {
      for (const pid of doomed()) killQuietly(pid);
    } finally {
      this.thaw();
    }
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
      // An older kernel: then it is the peak of the lane, which is no lie but says less, and is left out.
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
    // Its controller may not have been handed down, or the kernel may be older than the file.
    writeQuietly(join(this.#path, file), value);
  }
}
