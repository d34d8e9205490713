/** The shell of a lane: takes one order at a time, forks, and reports how the fork ended. */
import { spawn, type ChildProcess } from "node:child_process";
import type { Duplex } from "node:stream";
import { Fault } from "#base/fault.ts";
import { endMarkedScript, type MarkRange } from "./launcher/marks.ts";
import { enterArguments } from "./sockets/network.ts";
import { ChildrenUses } from "./launcher/proc.ts";
import type { Network } from "./protocol.ts";

/** If the machine runs out of memory, the kernel kills these processes before the node; children inherit the value. */
const firstToGo = 800;

/**
 * The shell uses its own stdin and stdout for orders and answers: a redirection for each line would cost more calls
 * than the line. A forked command gets neither: its stdin is /dev/null (the shell's stderr), and the first thing an
 * order does is to open its own output.
 */
const shellScript = `
{ echo ${firstToGo} > /proc/self/oom_score_adj; } 2>/dev/null
{ trap '' TERM INT HUP QUIT USR1 USR2; read -r _ <&5; ${endMarkedScript} kill -9 -$$; } <&2 >&2 6<&- &
exec 5<&-
trap : TERM INT HUP QUIT USR1 USR2
echo "$!"
while read -r _; do
  ( . ./order ) <&2
  echo "$?"
done
`;

const lineEnd = 0x0a;
const zero = 0x30;

type Entering = {
  readonly uid: number | undefined;
  readonly network: Network;
  readonly path: string | undefined;
  /** Whether the shell must count CPU time, because no control group does. */
  readonly countsCpu: boolean;
  /** Marks of processes that may be left after the launcher died, outside the shell's process group. */
  readonly marks: MarkRange | undefined;
};

export class Shell {
  readonly pid: number;
  readonly network: Network;
  readonly uses: ChildrenUses;
  readonly #child: ChildProcess;
  readonly #orders: Duplex;
  #answer: ((status: number | undefined) => void) | undefined;
  #isUp = true;

  private constructor(child: ChildProcess, pid: number, { network, countsCpu }: Entering) {
    this.#child = child;
    this.pid = pid;
    this.network = network;
    this.uses = new ChildrenUses(pid, countsCpu);
    this.#orders = child.stdio[0] as Duplex;
    child.once("exit", () => this.#gone());
  }

  static async start(cwd: string, entering: Entering): Promise<Shell> {
    const { uid, path, marks: { from, count } = { from: 0, count: 0 } } = entering;
    const words = path === undefined || uid === undefined ? [] : enterArguments(path, uid);
    const [program, ...args] = [...words, "/bin/sh", "-c", shellScript, "sh", `${from}`, `${from + count}`];
    const child = spawn(program, args, {
      cwd,
      env: {},
      detached: true,
      stdio: ["pipe", "pipe", "ignore", "ignore", "ignore", "pipe", "pipe"],
      ...(uid === undefined || words.length > 0 ? {} : { uid, gid: uid }),
    });
    const answers = child.stdio[1] as Duplex;
    for (const pipe of child.stdio) pipe?.on("error", () => {});
    const up = Promise.withResolvers<void>();
    child.once("error", (cause: NodeJS.ErrnoException) =>
      up.reject(new Fault("unavailable", "start lane", { errno: cause.code, cwd }, cause)),
    );
    child.once("exit", (code) => up.reject(new Fault("unavailable", "start lane", { code: code ?? undefined, cwd })));
    answers.once("data", () => up.resolve());
    await up.promise;
    const shell = new Shell(child, child.pid ?? 0, entering);
    let status = 0;
    answers.on("data", (chunk: Buffer) => {
      for (const byte of chunk)
        if (byte === lineEnd) {
          shell.#answered(status);
          status = 0;
        } else status = status * 10 + byte - zero;
    });
    return shell;
  }

  get isUp(): boolean {
    return this.#isUp;
  }

  get isIdle(): boolean {
    return this.#answer === undefined;
  }

  /** Runs the file `order` in its folder. */
  obey(): Promise<number | undefined> {
    return new Promise((resolve) => {
      if (!this.#isUp) return resolve(undefined);
      this.#answer = resolve;
      this.#orders.write("\n");
    });
  }

  /** Sends the number to a sandbox that waits for it. */
  tell(no: number): void {
    (this.#child.stdio as readonly unknown[] as readonly Duplex[])[6]?.write(`${no}\n`);
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

export function signalGroup(leader: number, name: NodeJS.Signals): void {
  try {
    process.kill(-leader, name);
  } catch {
    // All its processes are gone.
  }
}
