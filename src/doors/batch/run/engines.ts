/**
 * Engines that stay warm: starting one costs a tenth of a second, asking one that runs a hundredth. Each has one
 * request at a time; who finds none free waits in line.
 *
 * BE2 A request that is to stop is interrupted, and its process killed if that does not help; the next one gets a fresh
 *     process then.
 * BE3 A process that uses no CPU for a minute of its request is stuck (stopped, or on a disk that does not answer): it
 *     is killed, and the task tried again, instead of being waited for as long as an attempt may take.
 */
import { fork, type ChildProcess } from "node:child_process";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import type { Clock } from "#base/clock.ts";
import { Fault } from "#base/fault.ts";
import type { EngineAnswer, EngineFailure, EngineRequest, ToEngine } from "./engine-protocol.ts";

export type EngineWork = Omit<EngineRequest, "id">;
export type EngineResult = Omit<Extract<EngineAnswer, { ok: true }>, "id" | "ok">;

/** The engine said no, or died of it. */
export class EngineError extends Error {
  readonly why: EngineFailure | "died";

  constructor(why: EngineFailure | "died", message: string) {
    super(message);
    this.name = "EngineError";
    this.why = why;
  }
}

/** An engine's complaint, with the names of files that people know. */
export const withNames = (error: unknown, held: readonly { readonly named: (text: string) => string }[]): unknown =>
  error instanceof EngineError
    ? new EngineError(
        error.why,
        held.reduce((text, { named }) => named(text), error.message),
      )
    : error;

export type EnginesOptions = {
  readonly clock: Clock;
  /** How many run at once. */
  readonly enginesMax: number;
  /** How long an interrupted statement may take before its process is killed. */
  readonly interruptMsMax?: number;
  /** A process is replaced after so many requests: what it leaked goes with it. */
  readonly requestsMax?: number;
  /** How long a request may use no CPU. */
  readonly stallMsMax?: number;
};

const waitingMax = 10_000;

/** What tasks ask of them. */
export type RunsWork = Pick<Engines, "run">;

export class Engines implements AsyncDisposable {
  readonly #options: Required<EnginesOptions>;
  readonly #idle: Engine[] = [];
  readonly #all = new Set<Engine>();
  readonly #waiting: PromiseWithResolvers<void>[] = [];
  #busy = 0;
  #isClosed = false;

  constructor(options: EnginesOptions) {
    this.#options = { interruptMsMax: 2_000, requestsMax: 500, stallMsMax: 60_000, ...options };
  }

  /** Process ids of those that are there. */
  get pids(): readonly number[] {
    return [...this.#all].flatMap(({ pid }) => pid ?? []);
  }

  async run(work: EngineWork, signal: AbortSignal): Promise<EngineResult> {
    await this.#turn(signal);
    const engine = this.#take();
    try {
      return await engine.run(work, signal);
    } finally {
      // One whose query failed is as good as before.
      if (engine.isFree && engine.isUsable && !this.#isClosed) this.#idle.push(engine);
      else engine.kill();
      this.#busy -= 1;
      this.#waiting.shift()?.resolve();
    }
  }

  #take(): Engine {
    for (let engine = this.#idle.pop(); engine; engine = this.#idle.pop()) {
      if (engine.isUsable) return engine;
      engine.kill();
    }
    return this.#start();
  }

  async #turn(signal: AbortSignal): Promise<void> {
    if (this.#waiting.length >= waitingMax)
      throw new Fault("exhausted", "wait for an engine", { waiting: this.#waiting.length });
    while (this.#busy >= this.#options.enginesMax) {
      const turn = Promise.withResolvers<void>();
      this.#waiting.push(turn);
      const leave = (): void => turn.resolve();
      signal.addEventListener("abort", leave, { once: true });
      await turn.promise;
      signal.removeEventListener("abort", leave);
      const at = this.#waiting.indexOf(turn);
      if (at >= 0) this.#waiting.splice(at, 1);
      if (signal.aborted) this.#waiting.shift()?.resolve();
      signal.throwIfAborted();
    }
    signal.throwIfAborted();
    if (this.#isClosed) throw new Fault("unavailable", "use an engine", { why: "the node stops" });
    this.#busy += 1;
  }

  #start(): Engine {
    const engine: Engine = new Engine(this.#options, () => this.#all.delete(engine));
    this.#all.add(engine);
    return engine;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isClosed = true;
    for (const engine of this.#all) engine.kill();
    await Promise.all([...this.#all].map(({ ended }) => ended));
  }
}

class Engine {
  readonly #child: ChildProcess;
  readonly #options: Required<EnginesOptions>;
  readonly ended: Promise<void>;
  #asked: (PromiseWithResolvers<EngineResult> & { readonly id: number }) | undefined;
  #requests = 0;
  #isDead = false;
  #isKilledByUs = false;

  constructor(options: Required<EnginesOptions>, onEnd: () => void) {
    this.#options = options;
    const path = fileURLToPath(new URL("./engine-child.ts", import.meta.url));
    this.#child = fork(path, [], {
      execArgv: [...inheritedFlags(process.execArgv), "--no-warnings", "--max-old-space-size=512"],
      cwd: "/",
      env: { PATH: process.env["PATH"] ?? "/usr/bin:/bin", UV_THREADPOOL_SIZE: "2" },
      stdio: ["ignore", "ignore", "inherit", "ipc"],
    });
    const ended = Promise.withResolvers<void>();
    this.ended = ended.promise;
    const end = (how: string, isMemory: boolean): void => {
      if (this.#isDead) return;
      this.#isDead = true;
      onEnd();
      this.#asked?.reject(new EngineError(isMemory ? "out-of-memory" : "died", how));
      this.#asked = undefined;
      ended.resolve();
    };
    this.#child.once("error", (error) => end(`the engine could not be started: ${error.message}`, false));
    this.#child.once("exit", (code, signal) =>
      end(
        `the engine's process ended with ${signal ?? code}`,
        // Not by us: the kernel does that when memory runs out.
        signal === "SIGKILL" && !this.#isKilledByUs,
      ),
    );
    this.#child.on("message", (message) => this.#hear(message as EngineAnswer | { readonly ready: true }));
  }

  get pid(): number | undefined {
    return this.#child.pid;
  }

  get isFree(): boolean {
    return this.#asked === undefined;
  }

  get isUsable(): boolean {
    return !this.#isDead && !this.#isKilledByUs && this.#requests < this.#options.requestsMax;
  }

  async run(work: EngineWork, signal: AbortSignal): Promise<EngineResult> {
    this.#requests += 1;
    const id = this.#requests;
    const asked = { id, ...Promise.withResolvers<EngineResult>() };
    this.#asked = asked;
    if (this.#isDead) throw new EngineError("died", "the engine's process has ended");
    this.#tell({ do: "run", request: { ...work, id } });
    let cancel = (): void => {};
    const stop = (): void => {
      this.#tell({ do: "interrupt" });
      cancel = this.#options.clock.after(this.#options.interruptMsMax, () => this.kill());
    };
    if (signal.aborted) stop();
    signal.addEventListener("abort", stop, { once: true });
    using _watch = this.#watchStall();
    try {
      return await asked.promise;
    } catch (error) {
      signal.throwIfAborted();
      throw error;
    } finally {
      cancel();
      signal.removeEventListener("abort", stop);
    }
  }

  #watchStall(): Disposable {
    const { clock, stallMsMax } = this.#options;
    let used = cpuTicks(this.pid);
    let isIdle = false;
    let cancel = (): void => {};
    const look = (): void => {
      const now = cpuTicks(this.pid);
      const wasIdle = isIdle;
      isIdle = now !== undefined && now === used;
      // Seen twice: where the whole machine has slept, the first look comes before the engine could do anything.
      if (isIdle && wasIdle) {
        this.#asked?.reject(new EngineError("died", `the engine did nothing for ${stallMsMax / 1_000} s`));
        this.#asked = undefined;
        this.kill();
        return;
      }
      used = now;
      cancel = clock.after(stallMsMax / 2, look);
    };
    cancel = clock.after(stallMsMax / 2, look);
    return { [Symbol.dispose]: () => cancel() };
  }

  #tell(message: ToEngine): void {
    if (this.#child.connected) this.#child.send(message, () => {});
  }

  #hear(message: EngineAnswer | { readonly ready: true }): void {
    const asked = this.#asked;
    if (!("id" in message) || !asked || asked.id !== message.id) return;
    this.#asked = undefined;
    if (message.ok) asked.resolve(message);
    else asked.reject(new EngineError(message.why, message.message));
  }

  kill(): void {
    this.#isKilledByUs = true;
    this.#child.kill("SIGKILL");
  }
}

/** CPU time of a process so far, all its threads; undefined where that cannot be known. */
function cpuTicks(pid: number | undefined): number | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    return Number(fields[11]) + Number(fields[12]);
  } catch {
    return undefined;
  }
}

/** Only what makes the sources readable: nothing of how this process is tested or debugged. */
function inheritedFlags(flags: readonly string[]): string[] {
  const kept: string[] = [];
  for (const [i, flag] of flags.entries()) {
    if (flag.startsWith("--import=")) kept.push(flag);
    if (flag === "--import") kept.push(flag, flags[i + 1] ?? "");
  }
  return kept;
}
