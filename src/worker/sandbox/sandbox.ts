/**
 * Runs commands for attempts, each in its own folder, lane and, if available, sandbox.
 *
 * X1 Every result names the kind of sandbox it ran in.
 * X2 An attempt's end is reported only when no process of its tree runs any more.
 */
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import type { Clock } from "#base/clock.ts";
import { Fault } from "#base/fault.ts";
import { fileHead } from "#worker/printed/file-head.ts";
import type { LaneLoan } from "#worker/process/lanes.ts";
import type { GroupKind, StartRequest } from "#worker/process/protocol.ts";
import type { SpawnedPorts } from "#worker/spawned-runner.ts";
import { Spawner, type Found, type Running } from "#worker/process/spawner.ts";
import { attemptFolderAt, attemptsIn, reclaimAttempts, type AttemptFolder } from "./folders/attempt-folder.ts";
import { AttemptFolders } from "./folders/attempt-folders.ts";
import { Attempt } from "./attempt.ts";
import { boxFailure, boxArguments, emptyBox, folderInBox } from "./box.ts";
import type { Command, Ran } from "./command.ts";
import { messageOf } from "./ending.ts";
import { checkPassable, foldersAmong } from "./folders/folders.ts";
import { probeIsolation, sandboxPath, uidsOfNode, type Isolation, type IsolationOptions } from "./isolation.ts";
import { machineBytes } from "./machine-bytes.ts";
import { noteText, saidOf } from "./run-note.ts";
import { showsAmong, type Shown, type Shows } from "./shown.ts";
import { TaskCallers } from "./task-callers.ts";
import { Unseen } from "./unseen.ts";

export type SandboxOptions = {
  /** Attempts have their folders below it. Other users must be able to traverse it. */
  readonly home: string;
  readonly socket: string;
  readonly lanes: number;
  /** How many of these are for tools that stay, if those are supported. */
  readonly toolLanes?: number;
  /** For commands beside attempts, as our own user and without a sandbox: `unboxed`. */
  readonly ownLanes?: number;
  readonly clock: Clock;
  readonly log: (line: string) => void;
  readonly isolation?: Partial<IsolationOptions>;
  /** Folders and files that commands must not see, besides `home`: this node's data and its secrets. */
  readonly hidden?: readonly string[];
  /** What commands must find at its own place, such as our own program, wherever it lies. */
  readonly shown?: readonly Shown[];
  /** Size of /tmp in the sandbox, and a quarter of it for each similar folder. */
  readonly tmpBytes?: number;
  /** With less free space than this, the attempt that wrote most is ended. */
  readonly freeBytesMin?: number;
  /** For all commands together, if control groups count memory; by default nine tenths of what there is. */
  readonly memoryBytesMax?: number | undefined;
};

/** The isolation in place: for capabilities and results. */
export type SandboxAbout = {
  readonly kind: Isolation["kind"];
  readonly users: "own" | "shared";
  readonly network: Isolation["network"];
  readonly groups: GroupKind;
  readonly controllers: readonly string[];
  readonly missing: readonly string[];
};

/** A run that an earlier process of this node started: to be adopted or dropped. */
export type FoundRun = { readonly note: string; readonly folder: AttemptFolder; readonly running: Found };

export class Sandbox implements AsyncDisposable {
  readonly about: SandboxAbout;
  readonly folders: AttemptFolders;
  /** Knows which local callers are tasks that run here. */
  readonly callers: TaskCallers;
  readonly #options: SandboxOptions;
  readonly #isolation: Isolation;
  readonly #spawner: Spawner;
  readonly #unseen: Unseen;
  readonly #scratch: readonly string[];
  readonly #shows: Shows;
  readonly #tmpBytes: number;
  /** Lanes of found runs that are not adopted yet. */
  readonly #reserved = new Map<string, LaneLoan>();
  /** Whether sandboxes are made ahead of time: that needs control groups, reusable folders and separate users. */
  readonly #areAhead: boolean;
  /** By lane: the folder of the attempt that a sandbox is made for. */
  readonly #ahead = new Map<number, AttemptFolder>();

  private constructor(options: SandboxOptions, isolation: Isolation, spawner: Spawner) {
    this.#options = options;
    this.#isolation = isolation;
    this.#spawner = spawner;
    const { home, log, clock } = options;
    const { uidBase: first } = isolation;
    const uids = first === undefined ? undefined : { first, count: uidsOfNode };
    this.callers = new TaskCallers({ clock, uids, launcherPid: () => spawner.launcherPid });
    // The network of a found run is not known.
    for (const { hasEnded, end } of spawner.found) if (!hasEnded) this.callers.sharing(end);
    this.folders = new AttemptFolders({ home, boxed: isolation.kind === "bubblewrap", log });
    const areOthers = isolation.uidBase !== undefined;
    this.#unseen = new Unseen([options.home, ...(options.hidden ?? [])], { areOthers });
    this.#scratch = foldersAmong(["/run", "/var/tmp", "/tmp"]).filter((path) => path !== "/tmp");
    this.#shows = showsAmong(options.shown ?? [], [...this.#scratch, "/tmp"]);
    // Control groups with a memory controller count /tmp as well; without, all lanes together must not take all memory.
    const shared = spawner.groups.controllers.includes("memory") ? 1 : spawner.lanes.count;
    this.#tmpBytes = options.tmpBytes ?? Math.floor(machineBytes() / 2 / shared);
    const { kind, uidBase, network, missing } = isolation;
    const users = uidBase === undefined ? "shared" : "own";
    const { kind: groups, controllers, missing: ungrouped } = spawner.groups;
    this.about = { kind, users, network, groups, controllers, missing: [...missing, ...ungrouped] };
    this.#areAhead = kind === "bubblewrap" && uidBase !== undefined && groups !== "none";
    if (this.#areAhead) this.#tellBoxes();
  }

  #tellBoxes(): void {
    const { bwrap } = this.#isolation;
    const network = this.#spawner.hasNetworks ? "own" : "host";
    const words = emptyBox({ bwrap, network: network === "own", ...this.#folders });
    this.#spawner.useBoxes({ ...words, env: sandboxEnv, network });
  }

  get #folders() {
    const { folders: hidden, files: unreadable } = this.#unseen;
    return { hidden, unreadable, scratch: this.#scratch, tmpBytes: this.#tmpBytes, ...this.#shows };
  }

  static async open(options: SandboxOptions): Promise<Sandbox> {
    const usual = { want: "auto", users: process.getuid?.() === 0, home: options.home } as const;
    const isolation = await probeIsolation({ ...usual, ...options.isolation });
    const { uidBase, drops } = isolation;
    mkdirSync(attemptsIn(options.home), { recursive: true, mode: 0o711 });
    if (uidBase !== undefined) checkPassable(options.home);
    const { home, socket, lanes, toolLanes, ownLanes, clock, log, freeBytesMin = freeBytesMinDefault } = options;
    const memoryBytesMax = options.memoryBytesMax ?? Math.floor(machineBytes() * 0.9);
    const limits = { freeBytesMin, memoryBytesMax };
    const spawner = await Spawner.open({
      home,
      socket,
      lanes,
      toolLanes,
      ownLanes,
      uidBase,
      drops,
      ...limits,
      clock,
      log,
    });
    return new Sandbox(options, isolation, spawner);
  }

  /** The same launcher, for callers that may do on this machine what this process may. */
  get unboxed(): SpawnedPorts {
    const { home, clock } = this.#options;
    const spawner = this.#spawner;
    return { spawner, lanes: spawner.ownLanes, folder: attemptsIn(home), clock };
  }

  /** Whether runs can be frozen, so that their folder can be used safely. */
  get canFreeze(): boolean {
    return this.#spawner.canFreeze;
  }

  /** Runs with a note that an earlier process of this node started in this kind of sandbox. */
  get found(): readonly FoundRun[] {
    return this.#spawner.found.flatMap((running) => {
      const note = saidOf(this.#isolation.kind, running.note);
      return note === undefined ? [] : [{ note, folder: attemptFolderAt(running.folder), running }];
    });
  }

  /** The attempt that the run belongs to. Undefined if its lane does not exist any more. */
  adopt({ folder, running }: FoundRun): Attempt | undefined {
    const lane = this.#reserved.get(running.id);
    this.#reserved.delete(running.id);
    return lane && new Attempt(lane, folder, this);
  }

  /** The run is not continued. */
  drop({ folder, running }: FoundRun): void {
    running.kill("lost");
    const gone = (): void => {
      this.#reserved.get(running.id)?.[Symbol.dispose]();
      this.#reserved.delete(running.id);
      running.forget();
      this.folders.remove(folder);
    };
    running.end.then(gone, gone);
  }

  /** Ends found runs that are not among these, and deletes unused folders, each after `before`. To be called first. */
  async keepOnly(kept: readonly FoundRun[], before?: (path: string) => Promise<void>): Promise<void> {
    for (const { running } of kept) {
      const lane = running.hasEnded ? noLane : this.#spawner.lanes.take(running.lane);
      if (lane) this.#reserved.set(running.id, lane);
    }
    const others = this.#spawner.found.filter(({ id }) => !this.#reserved.has(id));
    for (const running of others) running.kill("lost");
    await Promise.allSettled(others.map(({ end }) => end));
    for (const running of others) running.forget();
    const needed = kept.filter(({ running }) => this.#reserved.has(running.id));
    await this.reclaim(
      needed.map(({ folder }) => folder.path),
      before,
    );
  }

  get launcherPid(): number {
    return this.#spawner.launcherPid;
  }

  /** Deletes folders that no found run needs. To be called before the first attempt. */
  reclaim(kept: readonly string[], before?: (path: string) => Promise<void>): Promise<number> {
    return reclaimAttempts(this.#options.home, new Set(kept), before);
  }

  async attempt(signal?: AbortSignal): Promise<Attempt> {
    const lane = await this.#spawner.lanes.lend(signal);
    try {
      return new Attempt(lane, this.#aheadFor(lane) ?? this.folders.take(lane.uid), this);
    } catch (error) {
      lane[Symbol.dispose]();
      throw error;
    }
  }

  #aheadFor({ index, uid }: LaneLoan): AttemptFolder | undefined {
    const folder = this.#ahead.get(index);
    this.#ahead.delete(index);
    return folder && uid !== undefined && this.folders.isStillGood(folder, uid) ? folder : undefined;
  }

  start(attempt: Attempt, command: Command): Running {
    const running = this.#start(attempt, command);
    if (this.#isolation.kind === "plain" || this.#sharesNetwork(command)) this.callers.sharing(running.end);
    return running;
  }

  /** A sandbox without its own network uses the machine's, whatever was requested; results say so. */
  #sharesNetwork({ network }: Pick<Command, "network">): boolean {
    return network || this.#isolation.network === "shared";
  }

  #start({ lane, folder }: Attempt, command: Command): Running {
    const { kind, bwrap } = this.#isolation;
    const { tag, argv, env, workingDirectory, limits, timeoutMs, leaseMs, outputBytesMax: bytesMax } = command;
    const { stdout, stderr, status, root } = folder;
    const files = { stdout: { path: stdout, bytesMax }, stderr: { path: stderr, bytesMax } };
    const { note, orphanMs, talk } = command;
    const adopting = {
      ...(note === undefined ? {} : { note: noteText({ kind, said: note }) }),
      ...(orphanMs === undefined ? {} : { orphanMs }),
      ...(talk && { talk }),
    };
    const rest = { tag, lane: lane.index, limits, timeoutMs, leaseMs, ...files, ...adopting };
    if (kind === "plain")
      return this.#spawner.start({ ...rest, argv, env, cwd: join(root, workingDirectory), sealed: false });
    const { readOnly = [] } = command;
    const network = this.#sharesNetwork(command);
    checkArguments(argv);
    if (this.#unseen.look() && this.#areAhead) this.#tellBoxes();
    // A waiting sandbox has its pipes already.
    if (this.#areAhead && !network && readOnly.length === 0 && !talk) {
      const cwd = folderInBox(workingDirectory);
      const box = this.#boxFor(lane, folder);
      return this.#spawner.start({ ...rest, argv, env, cwd, sealed: true, statusPath: status, box });
    }
    // A lane's network isolates as well as one made for the command alone, and costs nothing.
    const isLanes = !network && this.#spawner.hasNetworks && this.#isolation.uidBase !== undefined;
    const box = { bwrap, workingDirectory, argv, env, network: network || isLanes, root, readOnly, ...this.#folders };
    return this.#spawner.start({
      ...rest,
      argv: boxArguments(box),
      env: sandboxEnv,
      cwd: "/",
      sealed: true,
      network: isLanes ? "own" : "host",
      statusPath: status,
    });
  }

  /** Its sandbox, and the folder of the next one, which is known already. */
  #boxFor({ index, uid }: LaneLoan, { path: folder }: AttemptFolder): NonNullable<StartRequest["box"]> {
    const ahead = uid === undefined ? undefined : (this.#ahead.get(index) ?? this.folders.ahead(uid));
    if (!ahead) return { folder };
    this.#ahead.set(index, ahead);
    return { folder, next: ahead.path };
  }

  async ended(running: Running, folder: AttemptFolder): Promise<Ran> {
    const end = await running.end;
    const { kind } = this.#isolation;
    if (end.why === "not-started") throw new Fault("unavailable", "run command", { tag: running.tag, why: end.note });
    if (end.note !== undefined) this.#options.log(`${running.tag}: ${end.note}`);
    if (kind === "bubblewrap" && end.why === "exited" && end.exitCode === 1) {
      const failure = boxFailure(end.exitCode, await head(folder.status), await head(folder.stderr));
      if (failure?.kind === "no-sandbox") {
        this.#unseen.distrust();
        throw new Fault("unavailable", "set up sandbox", { tag: running.tag, why: failure.message });
      }
      if (failure) return { ...end, exitCode: failure.exitCode, sandbox: kind, message: failure.message };
    }
    const message = messageOf(end);
    return { ...end, sandbox: kind, ...(message === undefined ? {} : { message }) };
  }

  /** Without `quit`, runs continue until their lease ends. */
  async close(options: { readonly quit: boolean }): Promise<void> {
    await this.#spawner.close(options);
    for (const folder of this.#ahead.values()) this.folders.remove(folder);
    this.#ahead.clear();
    await this.folders.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close({ quit: true });
  }
}

const noLane: LaneLoan = { index: -1, uid: undefined, [Symbol.dispose]: () => {} };

const sandboxEnv = { PATH: sandboxPath };

function checkArguments(argv: readonly string[]): void {
  if (argv.length === 0 || argv[0] === "") throw new Fault("invalid", "run command", { why: "no program is named" });
}

const freeBytesMinDefault = 512 * 1024 * 1024;
const headBytes = 4_096;

const head = async (path: string): Promise<string> => (await fileHead(path, headBytes)).toString("latin1");
