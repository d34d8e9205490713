/** A store belongs to one process at a time: its table is in that one's memory. */
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Fault } from "#base/fault.ts";

export function lockStore(root: string): () => void {
  const path = join(root, "in-use-by");
  const mine = identity(process.pid) ?? String(process.pid);
  for (let tries = 0; tries < 3; tries += 1) {
    try {
      writeFileSync(path, `${mine} ${held.size}`, { flag: "wx", mode: 0o600 });
      held.add(path);
      return () => {
        held.delete(path);
        rmSync(path, { force: true });
      };
    } catch (error) {
      const errno = (error as NodeJS.ErrnoException).code;
      if (errno !== "EEXIST") throw new Fault("unavailable", "lock store", { root, errno }, error);
    }
    const holder = readFileSync(path, "utf8");
    const pid = Number(holder.split(" ")[0]);
    const isAlive = pid > 0 && holder.startsWith(`${identity(pid) ?? "nobody"} `);
    if (isAlive && (pid !== process.pid || held.has(path)))
      throw new Fault("exhausted", "lock store", {
        root,
        heldBy: `process ${pid}`,
        why: "another node keeps its blobs there; nodes share a folder only as a shared one",
      });
    rmSync(path, { force: true });
  }
  throw new Fault("unavailable", "lock store", { root });
}

const held = new Set<string>();

/** A living process: its pid and, where the system tells it, its time of birth, for pids are given out again. */
function identity(pid: number): string | undefined {
  try {
    process.kill(pid, 0);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EPERM") return undefined;
  }
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    const [state = "", ...fields] = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    return "ZX".includes(state) ? undefined : `${pid} ${fields[18] ?? ""}`;
  } catch {
    return `${pid} -`; // no /proc here
  }
}
