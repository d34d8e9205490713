/** What Linux tells of processes. Elsewhere, and of processes that are gone, nothing. */
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

/** Whether it runs still; one that is dead and not yet collected does not. */
export function isAlive(pid: number): boolean {
  const fields = fieldsOf(pid);
  const [state] = fields ?? [];
  return fields !== undefined && ((state !== "Z" && state !== "X") || !isLastThread(fields));
}

/** PF_EXITING of the kernel: the thread runs no more code of its program. */
const exiting = 0x4;

/**
 * Whether it can do nothing any more, though it may not be gone: the first process of a sandbox takes milliseconds to
 * leave, which the kernel needs to take its mounts apart.
 */
export function isOver(pid: number): boolean {
  const fields = fieldsOf(pid);
  return !fields || (isLastThread(fields) && (Number(fields[6]) & exiting) !== 0);
}

/** The first thread may be dead while others go on. */
const isLastThread = (fields: readonly string[]): boolean => Number(fields[17]) <= 1;

export type ChildrenUse = { readonly cpuMs: number; readonly readBytes: number; readonly writtenBytes: number };

const tickMs = 10;

/** What the processes used that one has waited for, with those that they waited for. Grows only. */
export class ChildrenUses implements Disposable {
  readonly #stat: ControlFile | undefined;
  readonly #io: ControlFile;

  /** Processor time, in ticks, only where nobody else counts it: it takes as long to read as all the rest. */
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

/** To devices, by it and by those that it has waited for. */
export const writtenBytesOf = (pid: number): number => numberOf("write_bytes: ", text(`/proc/${pid}/io`));

/** How deep in process namespaces it is, seen from here: 1 is our own. */
export const namespaceDepth = (pid: number): number =>
  /^NSpid:\s*(.*)$/m.exec(text(`/proc/${pid}/status`))?.[1]?.split(/\s+/).length ?? 0;

/** How the processes of runs are known where no control group tells. */
export type StrayTraces = {
  /** Of a user that has no others: all of its processes. The rest is then not looked at. */
  readonly uid?: number | undefined;
  readonly marks?: MarkRange | undefined;
  /** They work in these, or print to a file in them: also those that have lost their mark. */
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

/** All threads of a user's processes. */
export function threadsOf(uid: number): number {
  if (process.platform !== "linux") return 0;
  const pids = readdirSync("/proc").filter((name) => /^\d+$/.test(name) && ownerOf(Number(name)) === uid);
  const counted = pids.map((pid) => Number(fieldsOf(Number(pid))?.[17] ?? 0));
  return counted.reduce((sum, threads) => sum + threads, 0);
}

/** Fields behind the name, which may contain anything: the first is the state. */
const fieldsOf = (pid: number): readonly string[] | undefined => fieldsIn(text(`/proc/${pid}/stat`));

const fieldsIn = (stat: string): readonly string[] | undefined =>
  stat === "" ? undefined : stat.slice(stat.lastIndexOf(")") + 2).split(" ", fieldsMax);

/** Nobody asks for those behind. */
const fieldsMax = 20;

function text(path: string): string {
  try {
    // In this encoding it is one call; a name that is none in it may be read as any other.
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
