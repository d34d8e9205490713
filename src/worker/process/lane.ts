/**
 * One lane: a shell that waits for orders, forks, and says how the fork ended. It is the leader of its process group,
 * lives in the lane's control group, and runs as the lane's user. A watchman beside it holds a pipe of the launcher's:
 * when that closes, the launcher is gone, and the watchman ends the whole group (N4).
 */
import { chmodSync, chownSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { Fault } from "#base/fault.ts";
import { killQuietly, type Group } from "./groups/group.ts";
import type { MarkRange } from "./launcher/marks.ts";
import { LaneNetwork } from "./sockets/network.ts";
import { OrderFile } from "./launcher/order-file.ts";
import { toldIn, type BoxOrders } from "./order.ts";
import { isAlive, isOver, strays, writtenBytesOf, type ChildrenUse } from "./launcher/proc.ts";
import type { Network } from "./protocol.ts";
import { Shell, signalGroup } from "./shell.ts";

export type LaneSettings = {
  /** Where lanes have their folders. */
  readonly folder: string;
  readonly uidBase: number | undefined;
  /** The shell keeps our own user; what it runs does not. */
  readonly drops: boolean;
  /** Lanes with users of their own can have networks of their own. */
  readonly networks: boolean;
  readonly marks: MarkRange | undefined;
};

export class Lane {
  readonly index: number;
  readonly group: Group | undefined;
  /** The user of what runs here. */
  readonly uid: number | undefined;
  readonly drops: boolean;
  readonly #folder: string;
  readonly #order: OrderFile;
  readonly #told: OrderFile;
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
    this.#told = new OrderFile(join(this.#folder, toldIn), this.uid);
  }

  get shellPid(): number | undefined {
    return this.#shell?.pid;
  }

  /** What this shell's children used before the next one. */
  get usedBefore(): ChildrenUse {
    return this.#used;
  }

  childrenUse(): ChildrenUse {
    this.#used = this.#shell?.uses.now ?? this.#used;
    return this.#used;
  }

  /** What was written to disks since the last run: by those that are here still, and those they waited for. */
  writtenBytes(folder: string, marks: MarkRange | undefined): number {
    const members = this.group?.members() ?? strays({ uid: this.uid, marks, folders: [folder] });
    const others = members.filter((pid) => pid !== this.#shell?.pid);
    const waitedFor = (this.#shell?.uses.now.writtenBytes ?? 0) - this.#used.writtenBytes;
    return others.reduce((sum, pid) => sum + writtenBytesOf(pid), Math.max(0, waitedFor));
  }

  isReady(network: Network): boolean {
    return this.#starting === undefined && this.#shell?.isUp === true && this.#shell.network === network;
  }

  /** Nothing runs or waits in it, nor is on its way out. */
  get isIdle(): boolean {
    return this.#shell?.isIdle === true;
  }

  /** When there is a shell that can take an order. */
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

  /** Lets the shell do it; its exit code, or undefined when the shell itself was lost. */
  obey(order: string): Promise<number | undefined> {
    if (!this.#shell) throw new Fault("internal", "order", { lane: this.index, why: "no shell" });
    this.#order.write(order);
    return this.#shell.obey();
  }

  /** Has a sandbox made that waits. Only where there is a control group, by which it can be taken away again. */
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

  /** Tells the sandbox that waits what to run; its exit code. */
  obeyInBox(order: string): Promise<number | undefined> {
    const box = this.#box;
    if (!box) throw new Fault("internal", "order", { lane: this.index, why: "no sandbox" });
    this.#box = undefined;
    this.#told.write(order);
    this.#shell?.tell(box.no);
    return box.end;
  }

  /** Takes away the sandbox that waits, if it has for so long. */
  async dropBox(forMs = 0): Promise<void> {
    const box = this.#box;
    if (box && performance.now() - box.sinceMono >= forMs) {
      this.#box = undefined;
      this.#dropped = box.end;
      // One that is not there yet cannot be killed, and leaves when it is.
      this.#told.write("exit 0\n");
      this.#shell?.tell(box.no);
      this.killAll();
    }
    // Until then the shell takes no order.
    await this.#dropped;
  }

  signal(name: NodeJS.Signals): void {
    const pid = this.#shell?.pid;
    if (pid !== undefined) signalGroup(pid, name);
  }

  /** Everything but the shell where there is a control group; otherwise the shell with everything. */
  killAll(): void {
    const pid = this.#shell?.pid;
    if (pid === undefined) return;
    if (this.group) this.group.kill(new Set([pid]));
    else signalGroup(pid, "SIGKILL");
  }

  /** The shell is not used again: what ran could reach it. */
  discard(): void {
    this.#box = undefined;
    this.#shell?.end();
    this.#shell = undefined;
  }

  /** Whether nothing but the shell is alive any more, after as much killing and waiting as it takes, within reason. */
  async isQuiet({ folder, marks, first, isDying }: Traces): Promise<boolean> {
    for (let waitMs = 0; waitMs <= quietMsMax; waitMs = waitMs * 2 || 1) {
      if (waitMs > 0) await pause(waitMs);
      if (this.group) {
        // Until its end is noticed here, the shell is one of them, alive or unburied. Of a sandbox, somebody always is.
        if (!isDying && this.#shell?.isUp && this.group.has(1)) return true;
        const others = this.group.members().filter((pid) => pid !== this.#shell?.pid && !isOver(pid));
        if (others.length === 0) return true;
        // To freeze and to thaw them would cost more than their whole run.
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
    this.#told[Symbol.dispose]();
    this.#network?.[Symbol.dispose]();
    this.#network = undefined;
  }

  async #start(): Promise<Shell> {
    const network = this.#usual;
    if (network === "own" && !this.#hasNetwork)
      throw new Fault("internal", "start lane", { lane: this.index, why: "it can have no network of its own" });
    if (network === "own") this.#network ??= await LaneNetwork.make();
    const path = network === "own" ? this.#network?.path : undefined;
    const uid = this.drops ? undefined : this.uid;
    const marks = this.group ? undefined : this.#marks;
    const shell = await Shell.start(this.#folder, { uid, network, path, countsCpu: !this.group?.countsCpu, marks });
    try {
      this.group?.add(shell.pid);
    } catch (cause) {
      shell.end();
      throw new Fault("unavailable", "start lane", { lane: this.index, why: "the control group refuses it" }, cause);
    }
    this.#shell = shell;
    this.#used = shell.uses.now;
    return shell;
  }
}

type WaitingBox = {
  readonly folder: string;
  /** What it waits for: not the number of one that was here before, and never heard it. */
  readonly no: number;
  readonly sinceMono: number;
  readonly end: Promise<number | undefined>;
};

const nothingUsed: ChildrenUse = { cpuMs: 0, readBytes: 0, writtenBytes: 0 };

/**
 * How what ran can be known, where no control group tells: by the first process of its namespace, by its mark, or by a
 * folder that is the run's alone. Never by its working directory, which may be anybody's.
 */
type Traces = {
  readonly folder: string;
  readonly marks: MarkRange | undefined;
  readonly first: number | undefined;
  /** What is left can only be on its way out: its sandbox has ended, with which the kernel kills what is in there. */
  readonly isDying: boolean;
};

const quietMsMax = 4_096;

/** Its user may pass through, and read what is meant for it; others may not even pass. */
function makeFolder(path: string, gid: number | undefined): void {
  mkdirSync(path, { recursive: true, mode: 0o700 });
  if (gid === undefined) return;
  chownSync(path, process.getuid?.() ?? 0, gid);
  chmodSync(path, 0o710);
}
