/** Which processes hold a socket, as far as this process may see. */
import { readdir, readlink } from "node:fs/promises";
import { statOf } from "#worker/process/launcher/proc.ts";

/** By inode: the processes that have it open, except those whose files we may not see. */
export async function socketHolders(inodes: ReadonlySet<number>): Promise<ReadonlyMap<number, readonly number[]>> {
  const holders = new Map<number, number[]>();
  const pids = (await readdir("/proc")).filter((name) => /^\d+$/.test(name));
  for (const pid of pids)
    for (const inode of await socketsOf(pid))
      if (inodes.has(inode)) holders.set(inode, [...(holders.get(inode) ?? []), Number(pid)]);
  return holders;
}

async function socketsOf(pid: string): Promise<ReadonlySet<number>> {
  const folder = `/proc/${pid}/fd`;
  const names = await readdir(folder).catch(() => []);
  const links = await Promise.all(names.map((name) => readlink(`${folder}/${name}`).catch(() => "")));
  return new Set(links.flatMap((link) => /^socket:\[(\d+)\]$/.exec(link)?.[1] ?? []).map(Number));
}

const ancestorsMax = 1_000;

/** Whether a process is a descendant of another; undefined if one in between has ended. */
export function descendsFrom(pid: number, ancestor: number): boolean | undefined {
  for (let at = pid, steps = 0; steps < ancestorsMax; steps += 1) {
    if (at === ancestor) return true;
    if (at <= 1) return false;
    const parent = statOf(at)?.parent;
    if (parent === undefined) return undefined;
    at = parent;
  }
  return undefined;
}
