/** The pipes between this process and a tool: named pipes in a folder, which the tool's shell opens. */
import { chownSync, closeSync, constants, openSync, readSync } from "node:fs";
import { Socket } from "node:net";
import { join } from "node:path";
import { Fault } from "#base/fault.ts";
import type { ProcessRunner } from "#worker/process.ts";

export type PipePaths = { readonly stdin: string; readonly stdout: string };

const env = { PATH: "/usr/local/bin:/usr/bin:/bin" };

/** Node has no call for this, so it runs mkfifo(1). */
export async function makePipes(
  folder: string,
  uid: number | undefined,
  run: ProcessRunner,
  signal: AbortSignal,
): Promise<PipePaths> {
  const paths = { stdin: join(folder, "asked"), stdout: join(folder, "answered") };
  const command = ["mkfifo", "-m", "600", paths.stdin, paths.stdout];
  const { exitCode, output } = await run({ command, cwd: folder, env, outputBytesMax: 4_096, signal });
  if (exitCode !== 0) throw new Fault("unavailable", "make pipes", { folder, why: output.tail(200) });
  if (uid !== undefined) for (const path of Object.values(paths)) chownSync(path, uid, uid);
  return paths;
}

/**
 * Our side of the pipes. Both are opened for reading and writing, which never blocks: neither ends while this side
 * lives, so the end of the tool must be noticed elsewhere.
 */
export class Pipes implements Disposable {
  readonly #to: Socket;
  readonly #from: Socket;
  /** The same as `#from`, for reading without waiting. */
  #look: number | undefined;

  constructor({ stdin, stdout }: PipePaths, hear: (piece: Buffer) => void) {
    this.#to = new Socket({ fd: openBoth(stdin), readable: false, writable: true });
    this.#from = new Socket({ fd: openBoth(stdout), readable: true, writable: false });
    this.#look = openBoth(stdout);
    for (const pipe of [this.#to, this.#from]) pipe.on("error", () => {}).unref();
    this.#from.on("data", hear);
  }

  say(bytes: Buffer): void {
    this.#to.write(bytes);
  }

  /** Whether no unread bytes are there. */
  get isQuiet(): boolean {
    if (this.#look === undefined) return true;
    try {
      return readSync(this.#look, Buffer.alloc(1)) === 0;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "EAGAIN") return true;
      throw error;
    }
  }

  [Symbol.dispose](): void {
    if (this.#look !== undefined) closeSync(this.#look);
    this.#look = undefined;
    this.#to.destroy();
    this.#from.destroy();
  }
}

const openBoth = (path: string): number => openSync(path, constants.O_RDWR | constants.O_NONBLOCK);
