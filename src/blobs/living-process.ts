/** Who holds a folder. */
import { readFileSync } from "node:fs";

/** A living process: its pid and, where the system tells it, its time of birth, for pids are given out again. */
export function livingProcess(pid: number): string | undefined {
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
