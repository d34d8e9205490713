/** What Linux reports about processes. Empty on other systems, and for processes that are gone. */
import { readFileSync, readdirSync, readlinkSync, statSync } from "node:fs";
import { ControlFile, numberOf } from "#worker/process/groups/control-file.ts";
import { isInRange, markIn, type MarkRange } from "./marks.ts";

export type Stat = {
  readonly state: string;
  readonly parent: number;
  readonly group: number;
  readonly startedTicks: string;
};

export function statOf(pid: number): Stat | undefined {
  const fields = fieldsOf(pid);
  if (!fields) return undefined;
  const [state = "", parent, group] = fields;
  return { state, parent: Number(parent), group: Number(group), startedTicks: fields[19] ?? "" };
}

/** Whether it still runs; a zombie does not. */
export function isAlive(pid: number): boolean {
  const fields = fieldsOf(pid);
  const [state] = fields ?? [];
  return fields !== undefined && ((state !== "Z" && state !== "X") || !isLastThread(fields));
}

/** PF_EXITING of the kernel: the thread no longer executes code of its program. */
const exiting = 0x4;

/**
 * Whether the process can run no more code. It may still be listed in /proc: while the init process of a sandbox exits,
 * the kernel removes its mounts, which takes milliseconds.
 */
export function isOver(pid: number): boolean {
  const fields = fieldsOf(pid);
  return !fields || (isLastThread(fields) && (Number(fields[6]) & exiting) !== 0);
}

/** The first thread may be dead while others run. */
const isLastThread = (fields: readonly string[]): boolean => Number(fields[17]) <= 1;

export type ChildrenUse = { readonly cpuMs: number; readonly readBytes: number; readonly writtenBytes: number };

const tickMs = 10;

/** What the waited-for children of a process have used, including their own. Only grows. */
export class ChildrenUses implements Disposable {
  readonly #stat: ControlFile | undefined;
  readonly #io: ControlFile;

  /** CPU time, in ticks, only if nothing else counts it: reading it takes as long as all the rest. */
  constructor(pid: number, withCpu: boolean) {
    this.#stat = withCpu ? new ControlFile(`/proc/${pid}/stat`, "r") : undefined;
    this.#io = new ControlFile(`/proc/${pid}/io`, "r");
  }

  get now(): ChildrenUse {
    const fields = fieldsIn(this.#stat?.read() ?? "") ?? [];
    const io = this.#io.read();
    return {
      cpuMs: (Number(fields[13] ?? 0) + Number(fields[14] ?? 0)) * tickMs,
      readBytes: numberOf("read_bytes: ", io),
      writtenBytes: numberOf("write_bytes: ", io),
    };
  }

  [Symbol.dispose](): void {
    this.#stat?.[Symbol.dispose]();
    this.#io[Symbol.dispose]();
  }
}

/** Bytes written to devices, by it and its waited-for children. */
export const writtenBytesOf = (pid: number): number => numberOf("write_bytes: ", text(`/proc/${pid}/io`));

/** Its depth in pid namespaces, seen from here: 1 is our own. */
export const namespaceDepth = (pid: number): number =>
  /^NSpid:\s*(.*)$/m.exec(text(`/proc/${pid}/status`))?.[1]?.split(/\s+/).length ?? 0;

/** How the processes of a run are found without control groups. */
export type StrayTraces = {
  /** A user without other processes: all of its processes. The other traces are ignored then. */
  readonly uid?: number | undefined;
  readonly marks?: MarkRange | undefined;
  /** They work in these folders, or print to a file in them: also processes that lost their mark. */
  readonly folders: readonly string[];
};

export function strays({ uid, marks, folders }: StrayTraces): readonly number[] {
  if (process.platform !== "linux") return [];
  const inside = (path: string): boolean =>
    folders.some((folder) => path === folder || path.startsWith(`${folder}/`) || path === `${folder} (deleted)`);
  const isMarked = (pid: number): boolean =>
    marks !== undefined && isInRange(markIn(text(`/proc/${pid}/limits`)) ?? Infinity, marks);
  const isStray = (pid: number): boolean =>
    uid === undefined
      ? isMarked(pid) || ["cwd", "root", "fd/1", "fd/2"].some((link) => inside(linkOr(`/proc/${pid}/${link}`)))
      : ownerOf(pid) === uid;
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((pid) => pid !== process.pid)
    .filter(isStray);
}

export function childrenOf(parent: number): readonly number[] {
  if (process.platform !== "linux") return [];
  const pids = readdirSync("/proc").filter((name) => /^\d+$/.test(name));
  return pids.map(Number).filter((pid) => statOf(pid)?.parent === parent);
}

/** All threads of a user's processes. */
export function threadsOf(uid: number): number {
  if (process.platform !== "linux") return 0;
  const pids = readdirSync("/proc").filter((name) => /^\d+$/.test(name) && ownerOf(Number(name)) === uid);
  const counted = pids.map((pid) => Number(fieldsOf(Number(pid))?.[17] ?? 0));
  return counted.reduce((sum, threads) => sum + threads, 0);
}

/** The fields after the name, which may contain any character: the first is the state. */
const fieldsOf = (pid: number): readonly string[] | undefined => fieldsIn(text(`/proc/${pid}/stat`));

const fieldsIn = (stat: string): readonly string[] | undefined =>
  stat === "" ? undefined : stat.slice(stat.lastIndexOf(")") + 2).split(" ", fieldsMax);

/** Later fields are not needed. */
const fieldsMax = 20;

function text(path: string): string {
  try {
    // As utf8 it is one call; a name that is not valid UTF-8 may be misread, which does no harm.
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
}

function ownerOf(pid: number): number | undefined {
  return statSync(`/proc/${pid}`, { throwIfNoEntry: false })?.uid;
}

function linkOr(path: string): string {
  try {
    return readlinkSync(path);
  } catch {
    return "";
  }
}
