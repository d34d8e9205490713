/** One attempt in a sandbox: its folder, its lane, and its command. */
import type { LaneLoan } from "#worker/process/lanes.ts";
import type { Running } from "#worker/process/spawner.ts";
import type { LaidInputs, LeftInputs } from "#worker/stage/left-inputs.ts";
import type { AttemptFolder } from "./folders/attempt-folder.ts";
import type { AttemptFolders } from "./folders/attempt-folders.ts";
import type { Command, Ran } from "./command.ts";

/** What an attempt needs from its sandbox. */
export type AttemptPorts = {
  readonly folders: AttemptFolders;
  start(attempt: Attempt, command: Command): Running;
  ended(running: Running, folder: AttemptFolder): Promise<Ran>;
};

export class Attempt implements AsyncDisposable {
  readonly lane: LaneLoan;
  readonly folder: AttemptFolder;
  /** Inputs in its root, to use or to remove. */
  readonly left: LeftInputs | undefined;
  readonly #ports: AttemptPorts;
  #running: Running | undefined;
  #inputs: LaidInputs | undefined;
  #isStaged = false;
  /** It ended, and none of its processes is alive. */
  #isQuiet = false;
  #hasPrinted = true;
  #isForgotten = false;

  constructor(lane: LaneLoan, folder: AttemptFolder, ports: AttemptPorts) {
    this.lane = lane;
    this.folder = folder;
    this.#ports = ports;
    this.left = ports.folders.takeLeft(folder);
  }

  /** Its inputs are there; unchanged ones can be reused in the end. */
  staged(inputs: LaidInputs): void {
    this.#inputs = inputs;
    this.#isStaged = true;
    if (!inputs.areAsFound) this.#ports.folders.seal(this.folder);
  }

  /** Starts it. To be awaited with `sandbox.ended`. */
  start(command: Command): Running {
    return this.#ports.start(this, command);
  }

  async run(command: Command, signal?: AbortSignal): Promise<Ran> {
    signal?.throwIfAborted();
    return await this.follow(this.start(command), signal);
  }

  /** Resolves when it ends, by itself or by the signal. It is remembered, for a later process, until `forget`. */
  async follow(running: Running, signal?: AbortSignal): Promise<Ran> {
    this.#running = running;
    const stop = (): void => running.kill("cancelled");
    signal?.addEventListener("abort", stop, { once: true });
    if (signal?.aborted) stop();
    try {
      const ran = await this.#ports.ended(running, this.folder);
      this.#isQuiet = ran.note === undefined;
      this.#hasPrinted = ran.stdout.bytes + ran.stderr.bytes > 0;
      if (!this.#isQuiet) this.#ports.folders.distrust(this.lane.uid);
      return ran;
    } finally {
      signal?.removeEventListener("abort", stop);
    }
  }

  /**
   * To be called when no reader uses its inputs any more, while its lane is still lent: another attempt of the same
   * user could change what has just been found unchanged. The same holds for a process that may be alive.
   */
  leaveInputs(): void {
    if (this.#inputs && this.#isQuiet) this.#ports.folders.leaveInputs(this.folder, this.#inputs);
    this.#inputs = undefined;
  }

  /** Its outputs were handled. The folder is deleted or reused later. */
  forget(): void {
    if (this.#isForgotten) return;
    this.#isForgotten = true;
    this.#running?.forget();
    const { folders } = this.#ports;
    if (this.#isStaged && this.#isQuiet) folders.giveBack(this.folder, this.#hasPrinted);
    else folders.remove(this.folder);
  }

  /** The lane is free at once. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.lane[Symbol.dispose]();
    this.forget();
  }
}
