/** A store belongs to one process at a time: its table is in that process's memory. */
import { readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Fault } from "#base/fault.ts";
import { livingProcess } from "#blobs/living-process.ts";

export type StoreLock = {
  /** Whether the folder is still the one that was locked, and was not removed or replaced. */
  isHeld(): boolean;
  unlock(): void;
};

export function lockStore(root: string): StoreLock {
  const path = join(root, "in-use-by");
  const mine = livingProcess(process.pid) ?? String(process.pid);
  for (let tries = 0; tries < 3; tries += 1) {
    try {
      writeFileSync(path, `${mine} ${held.size}`, { flag: "wx", mode: 0o600 });
      held.add(path);
      const mark = markOf(path);
      const isHeld = (): boolean => mark !== undefined && markOf(path) === mark;
      return {
        isHeld,
        unlock() {
          held.delete(path);
          if (isHeld()) rmSync(path, { force: true });
        },
      };
    } catch (error) {
      const errno = (error as NodeJS.ErrnoException).code;
      if (errno !== "EEXIST") throw new Fault("unavailable", "lock store", { root, errno }, error);
    }
    const holder = readFileSync(path, "utf8");
    const pid = Number(holder.split(" ")[0]);
    const isAlive = pid > 0 && holder.startsWith(`${livingProcess(pid) ?? "nodeItself"} `);
    if (isAlive && (pid !== process.pid || held.has(path)))
      throw new Fault("exhausted", "lock store", {
        root,
        heldBy: `process ${pid}`,
        why: "another node uses this folder; give each node its own, or use blobs of kind directory",
      });
    rmSync(path, { force: true });
  }
  throw new Fault("unavailable", "lock store", { root });
}

const held = new Set<string>();

/** Identifies this file among others of the same name. Undefined if there is none. */
function markOf(path: string): string | undefined {
  const stats = statSync(path, { bigint: true, throwIfNoEntry: false });
  return stats && `${stats.dev} ${stats.ino} ${stats.birthtimeNs}`;
}
