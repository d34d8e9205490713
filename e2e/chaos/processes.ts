/**
 * Child processes that never outlive the run: each is ended by its own pid, on request, when this process exits for
 * whatever reason, and even when it is killed: then a small shell, which reads their pids from a pipe that only this
 * process holds open, ends the remaining ones.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { closeSync, openSync, readFileSync } from "node:fs";

export type Command = {
  readonly name: string;
  readonly args: readonly string[];
  /** The command that execs Node, such as one that enters a network namespace first. */
  readonly within?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  /** Receives the process's output. */
  readonly logFile: string;
};

export class Child {
  readonly name: string;
  readonly pid: number;
  readonly #child: ChildProcess;
  readonly #exited: Promise<void>;
  readonly #logFile: string;

  constructor(child: ChildProcess, pid: number, { name, logFile }: Command) {
    this.name = name;
    this.pid = pid;
    this.#child = child;
    this.#logFile = logFile;
    this.#exited = new Promise((resolve) => child.once("exit", () => resolve()));
  }

  get hasExited(): boolean {
    return this.#child.exitCode !== null || this.#child.signalCode !== null;
  }

  /** How it ended, for people. */
  get ending(): string {
    return `${this.name} (pid ${this.pid}): ${this.#child.signalCode ?? `exit code ${this.#child.exitCode}`}`;
  }

  signal(signal: NodeJS.Signals): void {
    if (!this.hasExited) process.kill(this.pid, signal);
  }

  async kill(): Promise<void> {
    this.signal("SIGKILL");
    await this.#exited;
  }

  /** Asks it to stop; kills it if it has not by the limit. True if it stopped by itself. */
  async leave(limitMs: number): Promise<boolean> {
    this.signal("SIGTERM");
    const timer = setTimeout(() => this.signal("SIGKILL"), limitMs);
    await this.#exited;
    clearTimeout(timer);
    return this.#child.signalCode !== "SIGKILL";
  }

  exited(): Promise<void> {
    return this.#exited;
  }

  logTail(lines = 15): string {
    return readFileSync(this.#logFile, "utf8").trimEnd().split("\n").slice(-lines).join("\n");
  }
}

const guardScript = `
  pids=" "
  while read -r sign pid; do
    case "$sign" in
      +) pids="$pids$pid " ;;
      -) pids=$(echo "$pids" | sed "s/ $pid / /") ;;
    esac
  done
  for pid in $pids; do kill -KILL "$pid" 2>/dev/null; done
`;

export class Processes {
  readonly #running = new Set<Child>();
  readonly #guard = spawn("/bin/sh", ["-c", guardScript], { detached: true, stdio: ["pipe", "ignore", "ignore"] });
  readonly #onExit = (): void => {
    for (const child of this.#running) child.signal("SIGKILL");
  };

  constructor() {
    this.#guard.on("error", () => {});
    this.#guard.stdin.on("error", () => {});
    this.#guard.unref();
    process.on("exit", this.#onExit);
  }

  /** Runs TypeScript on the same Node that runs this: there is no launcher between us and the process that we kill. */
  spawn(command: Command): Child {
    const log = openSync(command.logFile, "a");
    const env = { ...process.env, ...command.env };
    const [program = process.execPath, ...args] = [...(command.within ?? []), process.execPath, ...command.args];
    const child = spawn(program, args, { stdio: ["ignore", log, log], env });
    closeSync(log);
    if (child.pid === undefined) throw new Error(`${command.name} could not be started`);
    const running = new Child(child, child.pid, command);
    this.#running.add(running);
    this.#guard.stdin.write(`+ ${child.pid}\n`);
    child.once("exit", () => {
      this.#running.delete(running);
      this.#guard.stdin.write(`- ${running.pid}\n`);
    });
    return running;
  }

  async killAll(): Promise<void> {
    await Promise.all([...this.#running].map((child) => child.kill()));
  }

  async close(): Promise<void> {
    await this.killAll();
    process.off("exit", this.#onExit);
    this.#guard.stdin.end();
  }
}
