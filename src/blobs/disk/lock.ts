/** A store belongs to one process at a time: its table is in that one's memory. */
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Fault } from "#base/fault.ts";
import { livingProcess } from "#blobs/living-process.ts";

export function lockStore(root: string): () => void {
  const path = join(root, "in-use-by");
  const mine = livingProcess(process.pid) ?? String(process.pid);
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
    const isAlive = pid > 0 && holder.startsWith(`${livingProcess(pid) ?? "nobody"} `);
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
