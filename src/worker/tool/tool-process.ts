/**
 * One tool that stays, in its own sandbox, with a folder for each request's inputs and outputs. Callers touch that
 * folder only while the tool is `still`.
 *
 * O4 While a caller reads or changes the folder, no process of the tool runs: its control group is frozen. Otherwise it
 * could replace a folder that was just checked by a link, and get access to what is not its own.
 * O5 A tool that does anything but answer is ended, with everything that it started.
 */
import { truncateSync } from "node:fs";
import type { Clock } from "#base/clock.ts";
import { Fault, isFault } from "#base/fault.ts";
import { fileHead } from "#worker/printed/file-head.ts";
import type { Usage } from "#worker/process/protocol.ts";
import type { Running } from "#worker/process/spawner.ts";
import type { ProcessRunner } from "#worker/process.ts";
import type { Attempt } from "#worker/sandbox/attempt.ts";
import type { Command, Ran } from "#worker/sandbox/command.ts";
import { emptyFolder } from "#worker/sandbox/folders/remove-folder.ts";
import type { Sandbox } from "#worker/sandbox/sandbox.ts";
import { AnswerReader, requestBytes, type ToolAnswer, type ToolProtocol, type ToolRequest } from "./tool-codec.ts";
import { makePipes, Pipes, type PipePaths } from "./tool-pipes.ts";

export type ToolCommand = Pick<Command, "argv" | "env" | "network" | "limits" | "outputBytesMax"> & {
  readonly protocol: ToolProtocol;
};

export type ToolPorts = {
  readonly sandbox: Sandbox;
  /** For helper commands, as our own user. */
  readonly processes: ProcessRunner;
  readonly clock: Clock;
  /** Called when it has ended, for whatever reason. */
  readonly onEnd: () => void;
};

/** The tool misbehaved; `why` says how. The caller may run the action without it. */
export class ToolBroke extends Fault {
  constructor(why: string) {
    super("unavailable", "ask tool", { why });
    this.name = "ToolBroke";
  }
}

export type ToolOutcome =
  | {
      readonly kind: "answered";
      readonly answer: ToolAnswer;
      /** What it printed to standard error meanwhile, at most `outputBytesMax`. */
      readonly printed: Buffer;
      readonly startedAtMs: number;
      readonly ranMs: number;
      readonly usage: Usage;
    }
  | { readonly kind: "timed-out"; readonly startedAtMs: number; readonly ranMs: number };

type Asking = { readonly reader: AnswerReader; readonly answered: PromiseWithResolvers<ToolAnswer> };

const unasked = "it printed without a request";

/** Node and launcher exchange several messages within it; a tool dies with its node. */
const leases = { leaseMs: 10_000, orphanMs: 0 };

export class ToolProcess {
  readonly attempt: Attempt;
  /** Number of requests so far. */
  requests = 0;
  readonly #command: ToolCommand;
  readonly #clock: Clock;
  readonly #onEnd: () => void;
  readonly #pipes: Pipes;
  readonly #paths: PipePaths;
  #running: Running | undefined;
  /** How it ended. Never rejects. */
  #ended: Promise<string> | undefined;
  #asking: Asking | undefined;
  #broke: string | undefined;
  #cpuMsBefore = 0;

  private constructor(attempt: Attempt, paths: PipePaths, command: ToolCommand, ports: ToolPorts) {
    this.attempt = attempt;
    this.#command = command;
    this.#clock = ports.clock;
    this.#onEnd = ports.onEnd;
    this.#paths = paths;
    this.#pipes = new Pipes(paths, (piece) => this.#hear(piece));
  }

  /** Makes its folder, which is emptied with each request; the first request starts the tool itself. */
  static async make(command: ToolCommand, ports: ToolPorts, signal: AbortSignal): Promise<ToolProcess> {
    const attempt = await ports.sandbox.attempt(signal);
    try {
      const { folder, lane } = attempt;
      const paths = await makePipes(folder.path, lane.uid, ports.processes, signal);
      return new ToolProcess(attempt, paths, command, ports);
    } catch (error) {
      await attempt[Symbol.asyncDispose]();
      throw error;
    }
  }

  /** It takes no more requests. */
  get isBroken(): boolean {
    return this.#broke !== undefined;
  }

  /** Freezes the tool and empties the folder, which belongs to the caller from here on. */
  async still(): Promise<void> {
    if (this.#running) await this.#freeze();
    await emptyFolder(this.attempt.folder.root);
  }

  /** Everything must be in place. Afterwards the tool is frozen, or dead. */
  async ask(request: ToolRequest, timeoutMs: number, signal: AbortSignal): Promise<ToolOutcome> {
    signal.throwIfAborted();
    const answered = this.#listen();
    truncateSync(this.attempt.folder.stderr);
    const [startedAtMs, startedMono] = [this.#clock.wallMs(), this.#clock.monotonicMs()];
    this.#pipes.say(requestBytes(request, this.#command.protocol));
    if (this.#running) this.#running.thaw();
    else this.#start();
    this.requests += 1;
    using limit = limitOf(this.#clock, timeoutMs, signal);
    try {
      const answer = await Promise.race([answered, limit.over]);
      const ranMs = this.#clock.monotonicMs() - startedMono;
      if (answer === "timed-out") {
        await this.end();
        return { kind: answer, startedAtMs, ranMs };
      }
      const { cpuMs, ...used } = await this.#freeze();
      const usage = { ...used, cpuMs: Math.max(0, cpuMs - this.#cpuMsBefore) };
      this.#cpuMsBefore = cpuMs;
      return {
        kind: "answered",
        answer,
        printed: await fileHead(this.attempt.folder.stderr, this.#command.outputBytesMax),
        startedAtMs,
        ranMs,
        usage,
      };
    } finally {
      this.#asking = undefined;
    }
  }

  /** Removes what the request left, and thaws the tool until the next one. */
  async rest(): Promise<void> {
    await emptyFolder(this.attempt.folder.root);
    this.#running?.thaw();
  }

  /** When it resolves, it is dead; its folder still exists. */
  async end(): Promise<void> {
    this.#broke ??= "it was ended";
    this.#running?.kill("cancelled");
    await this.#ended;
    this.#pipes[Symbol.dispose]();
  }

  /** Its folder is not needed any more. */
  async forget(): Promise<void> {
    await this.end();
    await this.attempt[Symbol.asyncDispose]();
  }

  /** Answers have no id: one that was not requested would be taken for the answer to this request. */
  #listen(): Promise<ToolAnswer> {
    if (!this.#pipes.isQuiet) this.#break(unasked);
    if (this.#broke !== undefined) throw new ToolBroke(this.#broke);
    const answered = Promise.withResolvers<ToolAnswer>();
    answered.promise.catch(() => {});
    this.#asking = { reader: new AnswerReader(this.#command.protocol), answered };
    return answered.promise;
  }

  #start(): void {
    const { protocol: _, ...command } = this.#command;
    const talk = this.#paths;
    const rest = { tag: "tool", workingDirectory: "", timeoutMs: 0, ...leases, talk };
    this.#running = this.attempt.start({ ...command, ...rest });
    this.#ended = this.attempt.follow(this.#running).then(endText, endText);
    void this.#ended.then((why) => {
      this.#broke ??= why;
      this.#asking?.answered.reject(new ToolBroke(this.#broke));
      this.#onEnd();
    });
  }

  async #freeze(): Promise<Usage> {
    const usage = await this.#running?.freeze();
    if (!usage) throw new ToolBroke(this.#broke ?? "it could not be frozen, or died");
    return usage;
  }

  #hear(piece: Buffer): void {
    const asking = this.#asking;
    if (!asking) return this.#break(unasked);
    try {
      const answer = asking.reader.push(piece);
      if (!answer) return;
      this.#asking = undefined;
      asking.answered.resolve(answer);
    } catch (error) {
      if (!isFault(error)) throw error;
      const why = String(error.facts["why"] ?? error.message);
      this.#break(why);
      asking.answered.reject(new ToolBroke(why));
    }
  }

  /** O5. Its further output is not read. */
  #break(why: string): void {
    this.#broke ??= why;
    this.#running?.kill("cancelled");
    this.#pipes[Symbol.dispose]();
  }
}

function endText(end: unknown): string {
  if (end instanceof Error) return end.message;
  const { why, exitCode, outOfMemory } = end as Ran;
  return outOfMemory ? "it ran out of memory" : `it ended (${why}, exit code ${exitCode})`;
}

/** Limits how long the request may take; the signal may end it earlier. */
function limitOf(clock: Clock, timeoutMs: number, signal: AbortSignal) {
  const over = Promise.withResolvers<"timed-out">();
  over.promise.catch(() => {});
  const cancel = timeoutMs > 0 ? clock.after(timeoutMs, () => over.resolve("timed-out")) : () => {};
  const stop = (): void => over.reject(signal.reason as Error);
  signal.addEventListener("abort", stop, { once: true });
  return {
    over: over.promise,
    [Symbol.dispose]: () => {
      cancel();
      signal.removeEventListener("abort", stop);
    },
  };
}
