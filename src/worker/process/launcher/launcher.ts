/**
 * The launcher: a small process that starts others, for a node that may die and restart. Started by path, never
 * imported: `node launcher.ts HOME SOCKET`.
 */
import { spawnSync } from "node:child_process";
import { chmodSync, closeSync, mkdirSync, readdirSync, rmSync } from "node:fs";
import { createServer, type Socket } from "node:net";
import { dirname, join } from "node:path";
import { ClaimWatch } from "#worker/process/claim-watch.ts";
import { fillerAmong, shortOf, type Suspect } from "./disk-guard.ts";
import { Ends } from "#worker/process/ends.ts";
import { FrameReader, frameOf } from "#worker/process/frame.ts";
import { readOr, type Groups } from "#worker/process/groups/group.ts";
import { missingOf } from "#worker/process/groups/groups-missing.ts";
import { oursOf } from "#worker/process/groups/groups-leaf.ts";
import { openGroups } from "#worker/process/groups/groups.ts";
import { Lane, type LaneSettings } from "#worker/process/lane.ts";
import { clearRoots, clearUp, endStrays, groupsName, remember } from "./leftovers.ts";
import { Marks, markRange } from "./marks.ts";
import { threadsOf } from "./proc.ts";
import { canMakeNetworks } from "#worker/process/sockets/network.ts";
import { boxOrders, type BoxOrders } from "#worker/process/order.ts";
import {
  launcherVersion,
  type Limits,
  type Request,
  type RunView,
  type StartRequest,
  type LauncherMessage,
} from "#worker/process/protocol.ts";
import { Run, type Machine } from "./run.ts";

const lookMs = 50;
/** The disk is checked every so many rounds. */
const looksForDisk = 5;
/** Without a connection and without runs, it waits so long for a node that restarts. */
const lingerMs = 30_000;
/** Twice the maximal number of slots of a node. */
const lanesMax = 20_000;
/** At most so many lanes are prepared in advance. */
const readyMax = 256;
const endsMax = 10_000;
/** A waiting sandbox keeps the mounts from when it was made, so it is replaced after this time. */
const boxWaitsMs = 60_000;

class Launcher {
  readonly #home: string;
  readonly #groups: Groups | undefined;
  readonly #lanes = new Map<number, Lane>();
  readonly #runs = new Map<string, Run>();
  readonly #busy = new Set<number>();
  readonly #machine: Machine;
  #users: Pick<LaneSettings, "uidBase" | "drops"> = { uidBase: undefined, drops: false };
  #peer: Socket | undefined;
  #aloneSinceMono = performance.now();
  #ticker: NodeJS.Timeout | undefined;
  readonly #claims = new ClaimWatch();
  #looks = 0;
  #freeBytesMin = 0;
  #lanesWanted = 1;
  readonly #networks = canMakeNetworks();
  #firstOwnLane = Infinity;
  #boxes: BoxOrders | undefined;
  /** Without a connection, the next welcome reports it. */
  readonly #ends = new Ends((frames) => void this.#peer?.write(frames));

  constructor(home: string, groups: Groups | undefined, marks: Marks | undefined) {
    this.#home = home;
    this.#groups = groups;
    this.#machine = {
      marks,
      cleanShell: isCleanShell(),
      controllers: groups?.controllers ?? [],
      othersOf: (pidsEach) => threadsOf(process.getuid?.() ?? 0) + pidsEach * (this.#lanesWanted - 1),
      boxes: () => this.#boxes,
    };
    setInterval(() => {
      this.#dropBoxes(boxWaitsMs);
      this.#leaveIfIdle();
    }, lingerMs / 4);
  }

  /** One node at a time: a new connection replaces the old one. */
  welcome(peer: Socket): void {
    this.#peer?.destroy();
    this.#peer = peer;
    const reader = new FrameReader();
    peer.on("error", () => {});
    peer.on("close", () => {
      if (this.#peer !== peer) return;
      this.#peer = undefined;
      this.#aloneSinceMono = performance.now();
      for (const run of this.#runs.values()) run.orphaned();
    });
    peer.on("data", (chunk: Buffer) => {
      try {
        for (const message of reader.push(chunk)) this.#hear(message as Request);
      } catch (error) {
        this.#tell({ ev: "trouble", line: String(error) });
        peer.destroy();
      }
    });
  }

  quit(): never {
    for (const lane of this.#lanes.values()) lane.close();
    clearRoots(this.#groups?.roots ?? []);
    if (!this.#groups) endStrays(this.#home, this.#machine.marks?.range);
    process.exit(0);
  }

  #hear(request: Request): void {
    switch (request.op) {
      case "hello":
        return this.#greet(request);
      case "start":
        return this.#start(request);
      case "boxes":
        this.#dropBoxes();
        this.#boxes = boxOrders(request.boxes);
        return;
      case "lease":
        return request.ids.forEach((id) => this.#runs.get(id)?.renew(request.leaseMs));
      case "claims":
        return Object.entries(request.untilMs).forEach(([id, untilMs]) => this.#runs.get(id)?.claimed(untilMs));
      case "signal":
        return this.#runs.get(request.id)?.signal(request.signal);
      case "signal-command":
        return this.#runs.get(request.id)?.signalCommand(request.signal);
      case "kill":
        return this.#runs.get(request.id)?.stop(request.why);
      case "freeze":
        return this.#freeze(request.id);
      case "thaw":
        return this.#runs.get(request.id)?.thaw();
      case "forget":
        for (const id of request.ids) if (this.#runs.get(id)?.end) this.#runs.delete(id);
        return;
      case "quit":
        return this.quit();
    }
  }

  #freeze(id: string): void {
    const none = { isStill: false, usage: { cpuMs: 0 } };
    const frozen = this.#runs.get(id)?.freeze() ?? Promise.resolve(none);
    void frozen.then((is) => this.#tell({ ev: "frozen", id, ...is }));
  }

  #greet(hello: Extract<Request, { op: "hello" }>): void {
    const { lanes, toolLanes = 0, ownLanes = 0, uidBase, drops = false, freeBytesMin = 0, memoryBytesMax = 0 } = hello;
    this.#dropBoxes(); // made for folders of an earlier node process
    this.#users = { uidBase, drops };
    this.#firstOwnLane = lanes;
    const ready = this.#groups?.freezes ? lanes : lanes - toolLanes;
    this.#lanesWanted = ready + ownLanes;
    for (const [index, lane] of this.#lanes) if (!this.#busy.has(index) && !this.#fits(lane)) this.#close(index, lane);
    this.#freeBytesMin = freeBytesMin;
    this.#groups?.limitAll(memoryBytesMax);
    const runs = [...this.#runs.values()].map(viewOf);
    const { kind = "none", controllers = [], freezes = false } = this.#groups ?? {};
    const missing = missingOf(this.#groups);
    const about = { groups: kind, controllers, missing, networks: this.#networks, freezes };
    this.#tell({ ev: "welcome", version: launcherVersion, pid: process.pid, ...about, runs });
    for (let index = 0; index < Math.min(ready, readyMax); index += 1) this.#prepare(index);
  }

  #start(start: StartRequest): void {
    if (this.#runs.has(start.id)) return;
    if (this.#busy.has(start.lane) || start.lane >= lanesMax || this.#runs.size >= endsMax)
      return this.#tell({
        ev: "trouble",
        line: `start ${start.id}: lane ${start.lane} is busy, or too many runs are stored`,
      });
    const run = new Run(start, this.#lane(start.lane), this.#machine);
    this.#runs.set(start.id, run);
    this.#busy.add(start.lane);
    this.#ticker ??= setInterval(() => this.#look(), lookMs);
    this.#claims.add(run);
    void run.whole().then((end) => {
      this.#busy.delete(start.lane);
      this.#claims.delete(run);
      if (end.note !== undefined || !this.#fits(run.lane)) this.#close(start.lane, run.lane);
      const next = fitsBox(start.limits) ? start.box?.next : undefined;
      const isMakingNext = next !== undefined && this.#boxes !== undefined;
      this.#ends.tell({ ev: "ended", id: start.id, end }, { isMakingNext, others: this.#busy.size });
      this.#prepare(start.lane, next);
      if (this.#busy.size > 0) return;
      clearInterval(this.#ticker);
      this.#ticker = undefined;
    });
  }

  #look(): void {
    for (const run of this.#runs.values()) run.look();
    this.#looks += 1;
    if (this.#freeBytesMin > 0 && this.#looks % looksForDisk === 0) this.#guardDisk();
  }

  #guardDisk(): void {
    const what = shortOf(this.#home, this.#freeBytesMin);
    if (what === undefined) return;
    const running = [...this.#runs.values()].filter(({ end }) => !end);
    fillerAmong(running, suspectOf, what)?.stop("disk-full");
  }

  #lane(index: number): Lane {
    const known = this.#lanes.get(index);
    if (known) return known;
    const given = { folder: join(this.#home, "lanes"), networks: this.#networks, marks: this.#machine.marks?.range };
    const lane = new Lane(index, { ...given, ...this.#usersOf(index) }, this.#groups?.lane(index));
    this.#lanes.set(index, lane);
    return lane;
  }

  #usersOf(index: number): Pick<LaneSettings, "uidBase" | "drops"> {
    return index < this.#firstOwnLane ? this.#users : { uidBase: undefined, drops: false };
  }

  /** A lane of another user must never be reused: the next run belongs to another user. */
  #fits({ index, uid, drops }: Lane): boolean {
    const wanted = this.#usersOf(index);
    const wantedUid = wanted.uidBase === undefined ? undefined : wanted.uidBase + index;
    return uid === wantedUid && drops === (wanted.drops && wantedUid !== undefined);
  }

  /** Outside the critical path of the next order. */
  #prepare(index: number, next?: string): void {
    if (this.#busy.has(index)) return;
    const boxes = this.#boxes;
    const lane = this.#lane(index);
    const failed = (error: unknown): void => this.#tell({ ev: "trouble", line: `lane ${index}: ${String(error)}` });
    try {
      // At once if possible, so that it is ready sooner for the next run.
      if (next && boxes && lane.isReady(boxes.network)) return lane.makeBox(boxes, next);
    } catch (error) {
      // For example a full disk. Runs in other lanes continue.
      return failed(error);
    }
    lane.ready().catch(failed);
  }

  #dropBoxes(waitingMs = 0): void {
    for (const [index, lane] of this.#lanes) if (!this.#busy.has(index)) void lane.dropBox(waitingMs);
  }

  #close(index: number, lane: Lane): void {
    lane.close();
    if (this.#lanes.get(index) === lane) this.#lanes.delete(index);
  }

  #tell(news: LauncherMessage): void {
    this.#peer?.write(frameOf(news));
  }

  #leaveIfIdle(): void {
    const isAlone = this.#peer === undefined && performance.now() - this.#aloneSinceMono > lingerMs;
    if (isAlone && this.#busy.size === 0) this.quit();
  }
}

/**
 * A sandbox made in advance is made within the limits of the previous run. If those are too tight, making it would fail
 * and the next run would see the error; that run makes its sandbox within its own limits instead.
 */
const fitsBox = ({ pids = 0, memoryBytes = 0 }: Limits): boolean =>
  (pids === 0 || pids >= boxPids) && (memoryBytes === 0 || memoryBytes >= boxBytes);

/** Several times what making it takes. */
const boxPids = 16;
const boxBytes = 64 * 1024 * 1024;

const suspectOf = (run: Run): Suspect => ({
  folder: dirname(run.start.stdout.path),
  uid: run.lane.uid,
  writtenBytes: () => run.writtenBytes,
});

const viewOf = ({ start: { id, tag, note, lane, stdout }, end }: Run): RunView => ({
  id,
  tag,
  lane,
  folder: dirname(stdout.path),
  ...(note === undefined ? {} : { note }),
  ...(end ? { end } : {}),
});

/** Some shells always export variables of their own. */
function isCleanShell(): boolean {
  const script = "cd /; unset PWD OLDPWD; export A=1; exec /usr/bin/env";
  const { stdout } = spawnSync("/bin/sh", ["-c", script], { env: {}, encoding: "utf8", timeout: 10_000 });
  return stdout === "A=1\n";
}

/** Files left open by whatever started the node would be inherited by every run. */
function closeInherited(): void {
  if (process.platform !== "linux") return;
  for (const fd of readdirSync("/proc/self/fd").map(Number)) {
    const flags = Number.parseInt(/^flags:\s*(\d+)/m.exec(readOr(`/proc/self/fdinfo/${fd}`))?.[1] ?? "", 8);
    if (fd > 2 && flags >= 0 && (flags & closeOnExec) === 0) closeSync(fd);
  }
}

const closeOnExec = 0o2000000;

/** The folder of lanes, the socket path, and the pid of the process that started this one. */
export type LauncherArguments = readonly [home: string, socket: string, node: string];

function main([home, socket, node]: LauncherArguments): void {
  for (const name of ["lanes", "attempts"]) mkdirSync(join(home, name), { recursive: true, mode: 0o711 });
  mkdirSync(dirname(socket), { recursive: true, mode: 0o700 });
  closeInherited();
  clearUp(home);
  const groups = openGroups(groupsName(home), () => oursOf(Number(node)));
  const marks = markRange(readOr("/proc/self/limits"));
  remember(home, { roots: groups?.roots ?? [], ...(marks && { marks }) });
  const launcher = new Launcher(home, groups, marks && new Marks(marks));
  for (const name of ["SIGTERM", "SIGINT"] as const) process.on(name, () => launcher.quit());
  process.on("SIGHUP", () => {});
  rmSync(socket, { force: true });
  const server = createServer((peer) => launcher.welcome(peer));
  server.on("error", (error) => {
    console.error(`launcher: ${error.message}`);
    process.exit(1);
  });
  server.listen(socket, () => chmodSync(socket, 0o600));
}

if (import.meta.main) main(process.argv.slice(2) as [string, string, string]);
