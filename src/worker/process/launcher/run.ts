/** One process tree that a launcher manages, from order to end. */
import { readFileSync } from "node:fs";
import { dirname } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { Fault } from "#base/fault.ts";
import { Capped } from "./capped.ts";
import type { Lane } from "#worker/process/lane.ts";
import type { MarkRange, Marks } from "./marks.ts";
import { orderText, boxOrderText, type BoxOrders } from "#worker/process/order.ts";
import type { GroupUse } from "#worker/process/groups/group.ts";
import { machineMs } from "./machine-time.ts";
import { childrenOf, namespaceDepth, type ChildrenUse } from "./proc.ts";
import type { CommandSignal, End, EndReason, Network, StartRequest, Usage } from "#worker/process/protocol.ts";

/** What a run needs to know about its machine. */
export type Machine = {
  readonly cleanShell: boolean;
  /** Available cgroup controllers. */
  readonly controllers: readonly string[];
  /** Processes that our own user has, or will have if each lane has so many. */
  readonly othersOf: (pidsEach: number) => number;
  /** Marks for runs that cannot be found in another way; undefined if they cannot be marked. */
  readonly marks: Marks | undefined;
  /** How to make sandboxes, for runs that need one. */
  readonly boxes: () => BoxOrders | undefined;
};

export class Run {
  readonly start: StartRequest;
  readonly lane: Lane;
  readonly #machine: Machine;
  readonly #askedMono = performance.now();
  #startedMono: number | undefined;
  #startedAtMs = 0;
  #leaseUntilMono: number;
  #claimUntilMs: number;
  #stopped: EndReason | undefined;
  #stoppedMono = 0;
  readonly #streams: readonly Capped[];
  /** The mark of all its processes. */
  readonly #mark: number | undefined;
  #wasFrozen = false;
  #isOver = false;
  end: End | undefined;

  constructor(start: StartRequest, lane: Lane, machine: Machine) {
    this.start = start;
    this.lane = lane;
    this.#machine = machine;
    this.#leaseUntilMono = this.#askedMono + start.leaseMs;
    this.#claimUntilMs = start.claimUntilMs ?? Number.POSITIVE_INFINITY;
    const isKnown = lane.uid !== undefined || lane.group !== undefined || start.sealed;
    this.#mark = isKnown ? undefined : machine.marks?.next();
    const { stdout, stderr } = start;
    this.#streams = (stderr.path === stdout.path ? [stdout] : [stdout, stderr]).map((file) => new Capped(file));
  }

  get writtenBytes(): number {
    return this.lane.writtenBytes(dirname(this.start.stdout.path), this.#marks);
  }

  get #marks(): MarkRange | undefined {
    return this.#mark === undefined ? undefined : { from: this.#mark, count: 1 };
  }

  /** Never rejects: every outcome is an end. */
  async whole(): Promise<End> {
    try {
      this.end = await this.#run();
    } catch (error) {
      this.lane.discard();
      this.end = this.#ended("not-started", 126, { note: String(error) });
    } finally {
      for (const stream of this.#streams) stream[Symbol.dispose]();
    }
    return this.end;
  }

  renew(leaseMs: number): void {
    this.#leaseUntilMono = Math.max(this.#leaseUntilMono, performance.now() + leaseMs);
  }

  /** It has a claim, which was renewed until then. */
  claimed(untilMs: number): void {
    this.#claimUntilMs = untilMs;
  }

  /** Ends the run if its claim is over. */
  lookAtClaim(): void {
    if (!this.end && this.#isClaimOver && this.#stopped === undefined) this.stop("lease-ran-out");
  }

  get #isClaimOver(): boolean {
    return this.#claimUntilMs < Number.POSITIVE_INFINITY && machineMs() >= this.#claimUntilMs;
  }

  /** No node is connected that could stop it if its claim is lost. */
  orphaned(): void {
    const { orphanMs } = this.start;
    if (orphanMs !== undefined) this.#leaseUntilMono = performance.now() + orphanMs;
  }

  signal(name: NodeJS.Signals): void {
    if (this.end || this.#startedMono === undefined) return;
    if (!this.start.sealed) return this.lane.signal(name);
    // The signal would kill the sandbox, and with it a command that may want to exit cleanly.
    const { group, shellPid = 0 } = this.lane;
    const depth = namespaceDepth(shellPid);
    for (const pid of group?.members() ?? []) if (namespaceDepth(pid) > depth) tell(pid, name);
  }

  signalCommand(name: CommandSignal): void {
    const { shellPid } = this.lane;
    if (this.end || this.#startedMono === undefined || this.start.sealed || shellPid === undefined) return;
    // The order becomes the command; the watchdog, the only other child, ignores these signals.
    for (const pid of childrenOf(shellPid)) tell(pid, name);
  }

  stop(why: EndReason): void {
    if (this.#stopped === undefined) this.#stoppedMono = performance.now();
    this.#stopped ??= why;
    if (!this.end && this.#startedMono !== undefined) this.lane.killAll();
  }

  /** Resolves with whether no process can run any more, until it is thawed or ended; and with its usage so far. */
  async freeze(): Promise<{ readonly isStill: boolean; readonly usage: Usage }> {
    const { group } = this.lane;
    const isThere = (): boolean => this.#startedMono !== undefined && !this.#isOver && this.#stopped === undefined;
    const untilMono = performance.now() + freezeMsMax;
    if (!isThere()) return { isStill: false, usage: { cpuMs: 0 } };
    this.#wasFrozen = true;
    group?.freeze();
    while (isThere() && group?.isFrozen() === false && performance.now() < untilMono) await pause(1);
    const { outOfMemory: _, ...used } = group?.use() ?? {};
    const usage = usageOf(used, this.lane.usedBefore, this.lane.usedBefore);
    return { isStill: isThere() && group?.isFrozen() === true, usage };
  }

  /** Does nothing once the run is over: its lane may be in use again. */
  thaw(): void {
    if (!this.#isOver) this.lane.group?.thaw();
  }

  /** Enforces limits on output, on run time, and on the time since the last renewal. */
  look(): void {
    if (this.end || this.#startedMono === undefined) return;
    const nowMono = performance.now();
    const { timeoutMs } = this.start;
    if (this.#stopped !== undefined) this.#insist(nowMono);
    if (timeoutMs > 0 && nowMono > this.#startedMono + timeoutMs) this.stop("timed-out");
    if (nowMono > this.#leaseUntilMono) this.stop("lease-ran-out");
    this.#lookAtStreams();
  }

  /** If a run moved its streams out of reach, their size cannot be limited any more: it is ended. */
  #lookAtStreams(): void {
    try {
      for (const stream of this.#streams) stream.look();
    } catch {
      this.stop("lane-lost");
    }
  }

  /** A process was forked while its parents were killed; or the shell itself hangs, and is killed too. */
  #insist(nowMono: number): void {
    this.lane.killAll();
    if (nowMono - this.#stoppedMono > shellMsMax) this.lane.discard();
  }

  async #run(): Promise<End> {
    const { lane, start } = this;
    const boxes = start.box && this.#machine.boxes();
    const network = boxes?.network ?? start.network ?? "host";
    if (!this.#isPrepared(network)) {
      await lane.dropBox();
      await lane.ready(network);
    }
    const { group } = lane;
    group?.begin(start.limits, 1);
    const before = lane.usedBefore;
    // Preparing a lane takes time, and the machine may have slept meanwhile.
    this.lookAtClaim();
    if (this.#stopped) return this.#ended(this.#stopped, 137, {});
    this.#startedMono = performance.now();
    this.#startedAtMs = Date.now();
    const exitCode = await this.#obeyed(boxes);
    // It may have ended while it was being frozen, and its shell is needed.
    if (this.#wasFrozen) group?.thaw();
    this.#isOver = true;
    const ranMs = performance.now() - this.#startedMono;
    const { outOfMemory = false, ...used } = group?.use() ?? {};
    const usage = usageOf(used, before, lane.childrenUse());
    const isQuiet = await this.#quiet(exitCode !== undefined);
    const [stdout, stderr] = this.#streams.map((stream) => stream.finish());
    return this.#ended(this.#stopped ?? (exitCode === undefined ? "lane-lost" : "exited"), exitCode ?? 137, {
      outOfMemory,
      usage,
      ranMs,
      ...(stdout ? { stdout } : {}),
      ...(stderr ? { stderr } : {}),
      ...(isQuiet ? {} : { note: "some of its processes may still be alive" }),
    });
  }

  /** Whether a shell is ready for an order, with the sandbox prepared for this run or with none. */
  #isPrepared(network: Network): boolean {
    const { lane, start } = this;
    return lane.isReady(network) && (start.box ? lane.hasBox(start.box.folder) : lane.isIdle);
  }

  #obeyed(boxes: BoxOrders | undefined): Promise<number | undefined> {
    const { lane, start } = this;
    if (!start.box) return lane.obey(this.#order());
    if (!boxes) throw new Fault("internal", "start run", { why: "no sandbox was configured" });
    if (!lane.hasBox(start.box.folder)) lane.makeBox(boxes, start.box.folder);
    return lane.obeyInBox(this.#order());
  }

  #order(): string {
    const { lane, start } = this;
    const { cleanShell, controllers, othersOf } = this.#machine;
    const textOf = start.box ? boxOrderText : orderText;
    return textOf(start, {
      cleanShell,
      grouped: controllers,
      // A lane's own user has no other processes.
      othersMax: lane.uid !== undefined || controllers.includes("pids") ? 0 : othersOf(start.limits.pids ?? 0),
      dropTo: lane.drops ? lane.uid : undefined,
      mark: this.#mark,
    });
  }

  /** Kills leftover processes before outputs are read. */
  async #quiet(isShellUp: boolean): Promise<boolean> {
    const { lane, start } = this;
    // Under a single user, runs could reach the lane in any case.
    const isOutOfReach = start.sealed || (lane.group !== undefined && (lane.drops || lane.uid === undefined));
    const isReusable = isShellUp && isOutOfReach;
    if (!isReusable) lane.discard();
    const first = start.sealed && !lane.group ? firstOf(start.statusPath) : undefined;
    const folder = dirname(start.stdout.path);
    return await lane.isQuiet({ folder, marks: this.#marks, first, isDying: start.sealed && isShellUp });
  }

  #ended(why: EndReason, exitCode: number, more: Partial<End>): End {
    const none = { bytes: 0, leftOutBytes: 0 };
    const readyMs = (this.#startedMono ?? performance.now()) - this.#askedMono;
    const rest = { outOfMemory: false, usage: { cpuMs: 0 }, stdout: none, stderr: none, ranMs: 0 };
    return { why, exitCode, startedAtMs: this.#startedAtMs, readyMs, ...rest, ...more };
  }
}

function usageOf(used: Partial<GroupUse>, before: ChildrenUse, after: ChildrenUse): Usage {
  const { cpuMs = 0, memoryPeakBytes } = used;
  return {
    cpuMs: Math.max(cpuMs, after.cpuMs - before.cpuMs, 0),
    ...(memoryPeakBytes === undefined ? {} : { memoryPeakBytes }),
    readBytes: Math.max(0, after.readBytes - before.readBytes),
    writtenBytes: Math.max(0, after.writtenBytes - before.writtenBytes),
  };
}

/** A process that waits for a disk cannot be frozen in between. */
const freezeMsMax = 2_000;

/** How long a shell may take to notice that its child is dead. */
const shellMsMax = 3_000;

function tell(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name);
  } catch {
    // It has exited.
  }
}

/** The init process of the sandbox's pid namespace; when it is dead, all others in there are too. */
function firstOf(statusPath: string | undefined): number | undefined {
  if (statusPath === undefined) return undefined;
  try {
    return Number(/"child-pid": (\d+)/.exec(readFileSync(statusPath, "latin1"))?.[1] ?? Number.NaN) || undefined;
  } catch {
    return undefined;
  }
}
