import { uptime } from "node:os";

/**
 * Milliseconds since the machine started, in steps of 10. Includes time asleep, and is the same in every process of the
 * machine, so that a deadline can be sent to another process, however long the message takes.
 */
export const machineMs = (): number =>
  // On other systems uptime() follows the wall clock, and the clock of hrtime() includes sleep.
  process.platform === "linux" ? uptime() * 1_000 : Number(process.hrtime.bigint() / 1_000_000n);
