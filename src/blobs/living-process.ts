/** Identifies the process that holds a folder's lock. */
import { readFileSync } from "node:fs";

/** Describes a live process by its pid and, where the system shows it, its start time, because pids are reused. */
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
