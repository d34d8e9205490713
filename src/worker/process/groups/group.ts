/**
 * Control groups: where the machine has them and lets us, each lane has a group of its own. Its shell lives in there,
 * so that what it forks is in the group from the first instruction on, and no process is ever moved (which takes
 * milliseconds). Of either version; the machine decides.
 */
import { closeSync, constants, openSync, readFileSync, rmdirSync, writeSync } from "node:fs";
import type { GroupKind, Limits } from "#worker/process/protocol.ts";

export type GroupUse = { readonly cpuMs?: number; readonly memoryPeakBytes?: number; readonly outOfMemory: boolean };

export type Group = {
  /** Whether its use says how much processor time it was, to the microsecond. */
  readonly countsCpu: boolean;
  /** Moves a process in; what it forks from then on is born there. */
  add(pid: number): void;
  members(): readonly number[];
  /** Whether it is known, at little cost, that there are so many processes and no more, the unburied among them. */
  has(count: number): boolean;
  /** Sets the limits, and counts use from here on. `spared` processes are ours and do not count. */
  begin(limits: Limits, spared: number): void;
  use(): GroupUse;
  /** Begins to stop every member where it is. */
  freeze(): void;
  /** Whether all of them have stopped. */
  isFrozen(): boolean;
  thaw(): void;
  /** Kills every member but these, frozen or not. Members that are born meanwhile, too. */
  kill(spared: ReadonlySet<number>): void;
  remove(): void;
};

export type Groups = {
  readonly kind: GroupKind;
  /** What is limited and measured. */
  readonly controllers: readonly string[];
  /** Why it is not more. */
  readonly why?: string;
  /** Whether groups can be frozen. */
  readonly freezes: boolean;
  /** The folders below which our groups are, for whoever has to clear up. */
  readonly roots: readonly string[];
  lane(index: number): Group;
  /** Of all lanes together; the machine is needed for more than what runs in them. */
  limitAll(memoryBytes: number): void;
};

export const readOr = (path: string, otherwise = ""): string => {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return otherwise;
  }
};

export const numbersIn = (text: string): readonly number[] =>
  text
    .split("\n")
    .filter((line) => line !== "")
    .map(Number);

export function killQuietly(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch {
    // It was quicker.
  }
}

/** To a file that is there; false where the kernel wants none of it. */
export function writeQuietly(path: string, value: string): boolean {
  try {
    const fd = openSync(path, constants.O_WRONLY | constants.O_TRUNC);
    try {
      writeSync(fd, value);
      return true;
    } finally {
      closeSync(fd);
    }
  } catch {
    return false;
  }
}

/** Where nothing else is to be done until others have. */
export const rest = (): void => void Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 10);

export function removeQuietly(path: string): void {
  try {
    rmdirSync(path);
  } catch {
    // Still in use, or gone: whoever starts next looks again.
  }
}
