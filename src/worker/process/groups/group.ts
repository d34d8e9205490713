/**
 * Control groups: if the machine has them and lets us, each lane has its own group. Its shell is in it, so that its
 * children are in the group from their first instruction on, and no process is ever moved (which takes milliseconds).
 * Version 1 or 2, depending on the machine.
 */
import { closeSync, constants, openSync, readFileSync, rmdirSync, writeSync } from "node:fs";
import type { GroupKind, Limits } from "#worker/process/protocol.ts";

export type GroupUse = { readonly cpuMs?: number; readonly memoryPeakBytes?: number; readonly outOfMemory: boolean };

export type Group = {
  /** Whether usage includes CPU time, to the microsecond. */
  readonly countsCpu: boolean;
  /** Moves a process in; its later children start there. */
  add(pid: number): void;
  members(): readonly number[];
  /** Whether there are exactly so many processes, including zombies; false if that cannot be found out cheaply. */
  has(count: number): boolean;
  /** Sets the limits, and counts usage from here on. `spared` processes are ours and do not count. */
  begin(limits: Limits, spared: number): void;
  use(): GroupUse;
  /** Begins to freeze every member. */
  freeze(): void;
  /** Whether all of them are frozen. */
  isFrozen(): boolean;
  thaw(): void;
  /** Kills every member but these, frozen or not, including members forked meanwhile. */
  kill(spared: ReadonlySet<number>): void;
  remove(): void;
};

export type Groups = {
  readonly kind: GroupKind;
  /** Controllers that limit and measure. */
  readonly controllers: readonly string[];
  /** Why there are not more. */
  readonly why?: string;
  /** Whether groups can be frozen. */
  readonly freezes: boolean;
  /** The folders that contain our groups, for cleaning up. */
  readonly roots: readonly string[];
  lane(index: number): Group;
  /** For all lanes together; the machine needs memory for other things too. */
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

/** A frozen group cannot fork while it is killed. The kernel delivers the signals when the group thaws. */
export function killFrozen(group: Pick<Group, "members" | "freeze" | "thaw">, spared: ReadonlySet<number>): void {
  const doomed = (): readonly number[] => group.members().filter((pid) => !spared.has(pid));
  if (doomed().length === 0) return;
  group.freeze();
  try {
    for (const pid of doomed()) killQuietly(pid);
  } finally {
    group.thaw();
  }
}

export function killQuietly(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch {
    // It has already exited.
  }
}

/** Writes to an existing file; false if the kernel refuses. */
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

/** Blocks for a moment, when there is nothing to do until other processes have acted. */
export const rest = (): void => void Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 10);

export function removeQuietly(path: string): void {
  try {
    rmdirSync(path);
  } catch {
    // Still in use, or gone: the next start tries again.
  }
}
