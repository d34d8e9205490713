/**
 * The job's half of keeping what a step has left: it packs and seals it in its own folder, tells the node by a line in
 * the file of steps, and goes on when the node has answered by a file. So a step that has ended is never run again.
 */
import { existsSync, mkdirSync, rmSync, watch } from "node:fs";
import { join } from "node:path";
import { isFault } from "#base/fault.ts";
import type { JobMemory } from "#doors/ci/run/job-memory.ts";
import { openText } from "./sealed-file.ts";
import { packDelta } from "./pack.ts";
import { unpackDeltas } from "./unpack.ts";
import { TreeMemory } from "./walk.ts";

/** What steps change, below the job's own folder. */
export const keptFolders = ["work", "home", "temp", "tools", "details"] as const;
/** Below the job's folder: what is on its way to the node, and what came from it. */
export const keptFolder = "kept";
export const restoredFolder = "restored";
export const stateName = "state";

/** What the node says: it is durable; it is not; it has too many pieces, and the next one is to be whole. */
export const answers = ["yes", "no", "whole"] as const;
export type KeptAnswer = (typeof answers)[number];

/** One line of the file of steps. */
export type KeptNews = {
  readonly kept: number;
  readonly parts: number;
  readonly isWhole: boolean;
  readonly next: number;
  /** How many steps had a number by then. */
  readonly numbered: number;
};

const lookMs = 100;
/** A node that is being restarted answers late; one that never does must not hold the job for ever. */
const answerMsMax = 120_000;

export type KeeperPorts = {
  readonly folder: string;
  readonly key: Uint8Array;
  readonly tell: (news: KeptNews) => void;
  readonly note: (text: string) => void;
  readonly signal: AbortSignal;
};

const foldersOf = (folder: string, deltas: number): readonly string[] =>
  Array.from({ length: deltas }, (_, at) => join(folder, restoredFolder, String(at)));

const memoryOf = (folder: string, deltas: number, key: Uint8Array): JobMemory =>
  JSON.parse(openText(join(foldersOf(folder, deltas).at(-1) ?? "", stateName), key)) as JobMemory;

/** Puts back the files that the node brought. Throws if anything of them is damaged: then the job starts again. */
export function putBack(folder: string, deltas: number, key: Uint8Array): void {
  memoryOf(folder, deltas, key);
  unpackDeltas(folder, keptFolders, { folders: foldersOf(folder, deltas), key });
}

export class StepKeeper {
  readonly #ports: KeeperPorts;
  readonly #tree: TreeMemory;
  #count = 0;
  #isWhole = true;
  #isOff = false;

  constructor(ports: KeeperPorts) {
    this.#ports = ports;
    this.#tree = new TreeMemory(ports.folder, keptFolders);
    mkdirSync(join(ports.folder, keptFolder), { recursive: true, mode: 0o700 });
  }

  /** After `putBack`: the memory that goes with the last delta. */
  recall(deltas: number): JobMemory {
    const { folder, key } = this.#ports;
    const memory = memoryOf(folder, deltas, key);
    rmSync(join(folder, restoredFolder), { recursive: true });
    this.#tree.look(Date.now());
    this.#isWhole = false;
    return memory;
  }

  /** After a step. Resolves when what it left is durable, or when that cannot be had. */
  async keep(memory: JobMemory): Promise<void> {
    if (this.#isOff) return;
    const { folder, key, tell, note } = this.#ports;
    const name = String(this.#count);
    const into = join(folder, keptFolder, name);
    try {
      if (this.#isWhole) this.#tree.forget();
      const delta = this.#tree.look(Date.now());
      const state = { name: stateName, text: JSON.stringify(memory) };
      const { parts } = packDelta(folder, delta, { folder: into, key, more: state });
      tell({ kept: this.#count, parts, isWhole: this.#isWhole, next: memory.next, numbered: memory.numbered });
    } catch (error) {
      this.#isOff = true;
      if (!isFault(error) && (error as NodeJS.ErrnoException).code === undefined) throw error;
      return note(
        `what this job leaves cannot be kept, so if its runner is lost it starts again: ${(error as Error).message}`,
      );
    }
    const answer = await this.#answer(name);
    this.#isWhole = answer !== "yes";
    this.#count += 1;
    rmSync(into, { recursive: true, force: true });
  }

  async #answer(name: string): Promise<KeptAnswer> {
    const folder = join(this.#ports.folder, keptFolder);
    const find = (): KeptAnswer | undefined => answers.find((word) => existsSync(join(folder, `${name}.${word}`)));
    const found = find();
    if (found) return found;
    const { promise, resolve } = Promise.withResolvers<KeptAnswer>();
    const look = (): void => {
      const word = find();
      if (word) resolve(word);
    };
    const watcher = watch(folder, look);
    watcher.on("error", () => {}); // then the timer alone looks
    const timer = setInterval(look, lookMs);
    const late = setTimeout(() => resolve("no"), answerMsMax);
    const stop = (): void => resolve("no");
    this.#ports.signal.addEventListener("abort", stop, { once: true });
    look();
    try {
      return await promise;
    } finally {
      watcher.close();
      clearInterval(timer);
      clearTimeout(late);
      this.#ports.signal.removeEventListener("abort", stop);
    }
  }
}
