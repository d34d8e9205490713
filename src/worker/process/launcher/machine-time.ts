import { uptime } from "node:os";

/**
 * Milliseconds since the machine started, in steps of 10. It counts the time when the machine slept, and is the same in
 * every process of the machine: a deadline can be told to another process, however long the message takes.
 */
export const machineMs = (): number =>
  // Elsewhere uptime() follows the wall clock, and the clock behind hrtime() counts sleep.
  process.platform === "linux" ? uptime() * 1_000 : Number(process.hrtime.bigint() / 1_000_000n);
