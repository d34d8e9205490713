/**
 * One lane: a shell that waits for orders, forks, and says how the fork ended. It is the leader of its process group,
 * lives in the lane's control group, and runs as the lane's user. A watchman beside it holds a pipe of the launcher's:
 * when that closes, the launcher is gone, and the watchman ends the whole group (N4).
 */
import { spawn, type ChildProcess } from "node:child_process";
import { chmodSync, chownSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import type { Duplex } from "node:stream";
import { setTimeout as pause } from "node:timers/promises";
import { Fault } from "#base/fault.ts";
import { killQuietly, type Group } from "./group.ts";
import { enterWords, LaneNetwork } from "./network.ts";
import { OrderFile } from "./order-file.ts";
import { ChildrenUses, isAlive, strays, type ChildrenUse } from "./proc.ts";
import type { Network } from "./protocol.ts";

/** When the machine itself runs out of memory, what runs here goes before the node does; children inherit it. */
const firstToGo = 800;

const shellScript = `
{ echo ${firstToGo} > /proc/self/oom_score_adj; } 2>/dev/null
{ trap '' TERM INT HUP QUIT; read -r _ <&5; kill -9 -$$; } 3<&- 4>&- &
exec 5<&-
trap : TERM INT HUP QUIT
echo "$!" >&4
while read -r order <&3; do
  ( . "$order" ) 3<&- 4>&-
  echo "$?" >&4
done
`;

export type LaneSettings = {
  /** Where lanes have their folders. */
  readonly folder: string;
  readonly uidBase: number | undefined;
  /** The shell keeps our own user; what it runs does not. */
  readonly drops: boolean;
  /** Lanes with users of their own can have networks of their own. */
  readonly networks: boolean;
};

export class Lane {
  readonly index: number;
  readonly group: Group | undefined;
  /** The user of what runs here. */
  readonly uid: number | undefined;
  readonly drops: boolean;
  readonly #folder: string;
  readonly #order: OrderFile;
  readonly #hasNetwork: boolean;
  #network: LaneNetwork | undefined;
  /** What the last run wanted, and the next will probably want. */
  #usual: Network;
  #shell: Shell | undefined;
  #starting: Promise<Shell> | undefined;
  #used: ChildrenUse = nothingUsed;

  constructor(index: number, { folder, uidBase, drops, networks }: LaneSettings, group: Group | undefined) {
    this.index = index;
    this.group = group;
    this.uid = uidBase === undefined ? undefined : uidBase + index;
    this.drops = drops && this.uid !== undefined;
    this.#folder = join(folder, String(index));
    makeFolder(this.#folder, this.uid);
    this.#hasNetwork = networks && this.uid !== undefined && !this.drops;
    this.#usual = this.#hasNetwork ? "own" : "host";
    this.#order = new OrderFile(join(this.#folder, "order"), this.uid);
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
  async obey(order: string): Promise<number | undefined> {
    if (!this.#shell) throw new Fault("internal", "order", { lane: this.index, why: "no shell" });
    this.#order.write(order);
    return await this.#shell.obey("./order");
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
    this.#shell?.end();
    this.#shell = undefined;
  }

  /** Whether nothing but the shell is alive any more, after as much killing and waiting as it takes, within reason. */
  async isQuiet({ folder, first }: Traces): Promise<boolean> {
    for (let waitMs = 0; waitMs <= quietMsMax; waitMs = waitMs * 2 || 1) {
      if (waitMs > 0) await pause(waitMs);
      if (this.group) {
        // Until its end is noticed here, the shell is one of them, alive or unburied.
        if (this.#shell?.isUp && this.group.has(1)) return true;
        const others = this.group.members().filter((pid) => pid !== this.#shell?.pid);
        if (others.length === 0) return true;
        this.group.kill(new Set(this.#shell ? [this.#shell.pid] : []));
      } else if (first !== undefined) {
        if (!isAlive(first)) return true;
        killQuietly(first);
      } else {
        const left = strays([folder], this.uid).filter((pid) => pid !== this.#shell?.pid && isAlive(pid));
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
    this.#network?.[Symbol.dispose]();
    this.#network = undefined;
  }

  async #start(): Promise<Shell> {
    const network = this.#usual;
    if (network === "own" && !this.#hasNetwork)
      throw new Fault("internal", "start lane", { lane: this.index, why: "it can have no network of its own" });
    if (network === "own") this.#network ??= await LaneNetwork.make();
    const path = network === "own" ? this.#network?.path : undefined;
    const shell = await Shell.start(this.#folder, { uid: this.drops ? undefined : this.uid, network, path });
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

type Entering = { readonly uid: number | undefined; readonly network: Network; readonly path: string | undefined };

const nothingUsed: ChildrenUse = { cpuMs: 0, readBytes: 0, writtenBytes: 0 };

/**
 * How what ran can be known, where no control group tells: by the first process of its namespace, or by a folder that
 * is the run's alone. Never by its working directory, which may be anybody's.
 */
type Traces = { readonly folder: string; readonly first: number | undefined };

const quietMsMax = 4_096;

class Shell {
  readonly pid: number;
  readonly network: Network;
  readonly uses: ChildrenUses;
  readonly #child: ChildProcess;
  readonly #orders: Duplex;
  #answer: ((status: number | undefined) => void) | undefined;
  #isUp = true;

  private constructor(child: ChildProcess, pid: number, network: Network) {
    this.#child = child;
    this.pid = pid;
    this.network = network;
    this.uses = new ChildrenUses(pid);
    this.#orders = child.stdio[3] as Duplex;
    child.once("exit", () => this.#gone());
  }

  static async start(cwd: string, { uid, network, path }: Entering): Promise<Shell> {
    const entering = path === undefined || uid === undefined ? [] : enterWords(path, uid);
    const [program, ...args] = [...entering, "/bin/sh", "-c", shellScript];
    const child = spawn(program, args, {
      cwd,
      env: {},
      detached: true,
      stdio: ["ignore", "ignore", "ignore", "pipe", "pipe", "pipe"],
      ...(uid === undefined || entering.length > 0 ? {} : { uid, gid: uid }),
    });
    const answers = child.stdio[4] as Duplex;
    for (const pipe of child.stdio) pipe?.on("error", () => {});
    const up = Promise.withResolvers<void>();
    child.once("error", (cause: NodeJS.ErrnoException) =>
      up.reject(new Fault("unavailable", "start lane", { errno: cause.code, cwd }, cause)),
    );
    child.once("exit", (code) => up.reject(new Fault("unavailable", "start lane", { code: code ?? undefined, cwd })));
    answers.once("data", () => up.resolve());
    await up.promise;
    const shell = new Shell(child, child.pid ?? 0, network);
    let held = "";
    answers.setEncoding("latin1").on("data", (text: string) => {
      const lines = (held + text).split("\n");
      held = lines.pop() ?? "";
      for (const line of lines) shell.#answered(Number(line));
    });
    return shell;
  }

  get isUp(): boolean {
    return this.#isUp;
  }

  obey(order: string): Promise<number | undefined> {
    return new Promise((resolve) => {
      if (!this.#isUp) return resolve(undefined);
      this.#answer = resolve;
      this.#orders.write(`${order}\n`);
    });
  }

  end(): void {
    signalGroup(this.pid, "SIGKILL");
    this.#gone();
    for (const pipe of this.#child.stdio) pipe?.destroy();
  }

  #gone(): void {
    this.#isUp = false;
    this.uses[Symbol.dispose]();
    this.#answered(undefined);
  }

  #answered(status: number | undefined): void {
    const answer = this.#answer;
    this.#answer = undefined;
    answer?.(status);
  }
}

function signalGroup(leader: number, name: NodeJS.Signals): void {
  try {
    process.kill(-leader, name);
  } catch {
    // All of it is gone.
  }
}

/** Its user may pass through, and read what is meant for it; others may not even pass. */
function makeFolder(path: string, gid: number | undefined): void {
  mkdirSync(path, { recursive: true, mode: 0o700 });
  if (gid === undefined) return;
  chownSync(path, process.getuid?.() ?? 0, gid);
  chmodSync(path, 0o710);
}
