/**
 * One lane: a shell that waits for orders, forks, and reports how the fork ended. It leads its own process group, is in
 * the lane's control group, and runs as the lane's user. A watchdog beside it reads a pipe of the launcher: when that
 * closes, the launcher is gone, and the watchdog kills the whole group (N4).
 */
import { chmodSync, chownSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { Fault } from "#base/fault.ts";
import { killQuietly, type Group } from "./groups/group.ts";
import type { MarkRange } from "./launcher/marks.ts";
import { LaneNetwork } from "./sockets/network.ts";
import { OrderFile } from "./launcher/order-file.ts";
import { boxOrderFile, type BoxOrders } from "./order.ts";
import { isAlive, isOver, strays, writtenBytesOf, type ChildrenUse } from "./launcher/proc.ts";
import type { Network } from "./protocol.ts";
import { Shell, signalGroup } from "./shell.ts";

export type LaneSettings = {
  /** The folder of all lanes. */
  readonly folder: string;
  readonly uidBase: number | undefined;
  /** The shell keeps our own user; its commands do not. */
  readonly drops: boolean;
  /** Whether lanes with separate users can have separate networks. */
  readonly networks: boolean;
  readonly marks: MarkRange | undefined;
};

export class Lane {
  readonly index: number;
  readonly group: Group | undefined;
  /** The user of the commands. */
  readonly uid: number | undefined;
  readonly drops: boolean;
  readonly #folder: string;
  readonly #order: OrderFile;
  readonly #boxOrder: OrderFile;
  readonly #hasNetwork: boolean;
  readonly #marks: MarkRange | undefined;
  #network: LaneNetwork | undefined;
  /** What the last run wanted, and the next will probably want. */
  #usual: Network;
  #shell: Shell | undefined;
  #starting: Promise<Shell> | undefined;
  #used: ChildrenUse = nothingUsed;
  /** A sandbox in which nothing runs yet. */
  #box: WaitingBox | undefined;
  #boxNo = 0;
  #dropped: Promise<unknown> = Promise.resolve();

  constructor(index: number, { folder, uidBase, drops, networks, marks }: LaneSettings, group: Group | undefined) {
    this.index = index;
    this.group = group;
    this.uid = uidBase === undefined ? undefined : uidBase + index;
    this.drops = drops && this.uid !== undefined;
    this.#folder = join(folder, String(index));
    makeFolder(this.#folder, this.uid);
    this.#hasNetwork = networks && this.uid !== undefined && !this.drops;
    this.#marks = marks;
    this.#usual = this.#hasNetwork ? "own" : "host";
    this.#order = new OrderFile(join(this.#folder, "order"), this.uid);
    this.#boxOrder = new OrderFile(join(this.#folder, boxOrderFile), this.uid);
  }

  get shellPid(): number | undefined {
    return this.#shell?.pid;
  }

  /** What this shell's children had used before the next run. */
  get usedBefore(): ChildrenUse {
    return this.#used;
  }

  childrenUse(): ChildrenUse {
    this.#used = this.#shell?.uses.now ?? this.#used;
    return this.#used;
  }

  /** Bytes written to disks since the last run: by live processes, and by those they waited for. */
  writtenBytes(folder: string, marks: MarkRange | undefined): number {
    const members = this.group?.members() ?? strays({ uid: this.uid, marks, folders: [folder] });
    const others = members.filter((pid) => pid !== this.#shell?.pid);
    const waitedFor = (this.#shell?.uses.now.writtenBytes ?? 0) - this.#used.writtenBytes;
    return others.reduce((sum, pid) => sum + writtenBytesOf(pid), Math.max(0, waitedFor));
  }

  isReady(network: Network): boolean {
    return this.#starting === undefined && this.#shell?.isUp === true && this.#shell.network === network;
  }

  /** Whether nothing runs, waits or is exiting in it. */
  get isIdle(): boolean {
    return this.#shell?.isIdle === true;
  }

  /** Resolves when a shell is ready for an order. */
  async ready(network: Network = this.#usual): Promise<void> {
    await this.#starting?.catch(() => {});
    if (this.#shell?.isUp && this.#shell.network === network) return;
    if (this.#shell?.isUp) this.discard();
    this.#usual = network;
    this.#starting ??= this.#start().finally(() => {
      this.#starting = undefined;
    });
    await this.#starting;
  }

  /** Runs the order; resolves with its exit code, or undefined if the shell itself was lost. */
  obey(order: string): Promise<number | undefined> {
    if (!this.#shell) throw new Fault("internal", "order", { lane: this.index, why: "no shell" });
    this.#order.write(order);
    return this.#shell.obey();
  }

  /** Makes a sandbox that waits. Only with a control group, which is needed to remove it again. */
  makeBox(boxes: BoxOrders, folder: string): void {
    if (!this.#shell?.isUp || this.#box) throw new Fault("internal", "make box", { lane: this.index });
    this.#boxNo += 1;
    this.#order.write(boxes.text(folder, this.#boxNo));
    const box: WaitingBox = { folder, no: this.#boxNo, sinceMono: performance.now(), end: this.#shell.obey() };
    this.#box = box;
    void box.end.then(() => {
      if (this.#box === box) this.#box = undefined;
    });
  }

  hasBox(folder: string): boolean {
    return this.#box?.folder === folder;
  }

  /** Sends the order to the waiting sandbox; resolves with its exit code. */
  obeyInBox(order: string): Promise<number | undefined> {
    const box = this.#box;
    if (!box) throw new Fault("internal", "order", { lane: this.index, why: "no sandbox" });
    this.#box = undefined;
    this.#boxOrder.write(order);
    this.#shell?.tell(box.no);
    return box.end;
  }

  /** Removes the waiting sandbox if it has waited for so long. */
  async dropBox(forMs = 0): Promise<void> {
    const box = this.#box;
    if (box && performance.now() - box.sinceMono >= forMs) {
      this.#box = undefined;
      this.#dropped = box.end;
      // A sandbox that is still being made cannot be killed; it exits when it reads this.
      this.#boxOrder.write("exit 0\n");
      this.#shell?.tell(box.no);
      this.killAll();
    }
    // The shell takes no order before that.
    await this.#dropped;
  }

  signal(name: NodeJS.Signals): void {
    const pid = this.#shell?.pid;
    if (pid !== undefined) signalGroup(pid, name);
  }

  /** Kills everything but the shell if there is a control group; otherwise the shell too. */
  killAll(): void {
    const pid = this.#shell?.pid;
    if (pid === undefined) return;
    if (this.group) this.group.kill(new Set([pid]));
    else signalGroup(pid, "SIGKILL");
  }

  /** The shell is not reused: the run could reach it. */
  discard(): void {
    this.#box = undefined;
    this.#shell?.end();
    this.#shell = undefined;
  }

  /** Whether only the shell is alive, after as much killing and waiting as needed, within limits. */
  async isQuiet({ folder, marks, first, isDying }: Traces): Promise<boolean> {
    for (let waitMs = 0; waitMs <= quietMsMax; waitMs = waitMs * 2 || 1) {
      if (waitMs > 0) await pause(waitMs);
      if (this.group) {
        // Until its exit is noticed here, the shell counts, alive or as a zombie. A sandbox always has a process.
        if (!isDying && this.#shell?.isUp && this.group.has(1)) return true;
        const others = this.group.members().filter((pid) => pid !== this.#shell?.pid && !isOver(pid));
        if (others.length === 0) return true;
        // Freezing and thawing would cost more than their whole run.
        if (isDying && waitMs === 0) continue;
        this.group.kill(new Set(this.#shell ? [this.#shell.pid] : []));
      } else if (first !== undefined) {
        if (!isAlive(first)) return true;
        killQuietly(first);
      } else {
        const all = strays({ uid: this.uid, marks, folders: [folder] });
        const left = all.filter((pid) => pid !== this.#shell?.pid && isAlive(pid));
        if (left.length === 0) return true;
        for (const pid of left) killQuietly(pid);
      }
    }
    return false;
  }

  close(): void {
    this.group?.kill(new Set());
    this.discard();
    this.group?.remove();
    this.#order[Symbol.dispose]();
    this.#boxOrder[Symbol.dispose]();
    this.#network?.[Symbol.dispose]();
    this.#network = undefined;
  }

  async #start(): Promise<Shell> {
    const network = this.#usual;
    if (network === "own" && !this.#hasNetwork)
      throw new Fault("internal", "start lane", { lane: this.index, why: "it cannot have its own network" });
    if (network === "own") this.#network ??= await LaneNetwork.make();
    const path = network === "own" ? this.#network?.path : undefined;
    const uid = this.drops ? undefined : this.uid;
    const marks = this.group ? undefined : this.#marks;
    const shell = await Shell.start(this.#folder, { uid, network, path, countsCpu: !this.group?.countsCpu, marks });
    try {
      this.group?.add(shell.pid);
    } catch (cause) {
      shell.end();
      throw new Fault(
        "unavailable",
        "start lane",
        { lane: this.index, why: "the process cannot be added to the control group" },
        cause,
      );
    }
    this.#shell = shell;
    this.#used = shell.uses.now;
    return shell;
  }
}

type WaitingBox = {
  readonly folder: string;
  /** The number that it waits for: a sandbox that was here before never saw it. */
  readonly no: number;
  readonly sinceMono: number;
  readonly end: Promise<number | undefined>;
};

const nothingUsed: ChildrenUse = { cpuMs: 0, readBytes: 0, writtenBytes: 0 };

/**
 * How leftover processes are found without a control group: by the init process of their namespace, by their mark, or
 * by a folder that belongs to this run alone. Never by the working directory, which may be shared.
 */
type Traces = {
  readonly folder: string;
  readonly marks: MarkRange | undefined;
  readonly first: number | undefined;
  /** All leftovers are exiting: their sandbox has ended, and the kernel kills everything in it. */
  readonly isDying: boolean;
};

const quietMsMax = 4_096;

/** The lane's user may traverse it and read what is meant for it; others may not even traverse it. */
function makeFolder(path: string, gid: number | undefined): void {
  mkdirSync(path, { recursive: true, mode: 0o700 });
  if (gid === undefined) return;
  chownSync(path, process.getuid?.() ?? 0, gid);
  chmodSync(path, 0o710);
}
