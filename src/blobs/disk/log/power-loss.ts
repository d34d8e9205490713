/**
 * Files that came shortly before the machine stopped may have lost bytes: only pins wait for the disk. After a reboot
 * they are under suspicion, and looked at before they are served (B1). What is packed has its own sum in any case.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { uptime } from "node:os";
import { join } from "node:path";
import type { Holdings } from "#blobs/disk/holdings.ts";
import { flags } from "#blobs/disk/table/table.ts";

/** Systems write back what is older than half a minute. */
const writtenBackSec = 300;

/** Says which life of the machine this is. */
function bootNow(): string {
  try {
    return readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim();
  } catch {
    return `about ${Math.round((Date.now() / 1_000 - uptime()) / 60)}`; // other systems: the minute of its start
  }
}

const pathOf = (root: string): string => join(root, "last-boot");

function bootBefore(root: string): string | undefined {
  try {
    return readFileSync(pathOf(root), "utf8");
  } catch {
    return undefined;
  }
}

/** Gives how many are under suspicion now. `boot` is for tests. */
export function suspectAfterReboot(root: string, { table, lastSec }: Holdings, boot: string = bootNow()): number {
  if (bootBefore(root) === boot) return 0;
  let suspects = 0;
  for (let entry = 0; entry < table.end; entry += 1) {
    if (!table.isTaken(entry) || !table.has(entry, flags.file) || table.has(entry, flags.durable)) continue;
    if (table.accessSec(entry) < lastSec - writtenBackSec) continue;
    table.setFlag(entry, flags.suspect, true);
    suspects += 1;
  }
  return suspects;
}

/** When what is under suspicion has been written down. */
export function rememberBoot(root: string): void {
  try {
    const boot = bootNow();
    if (bootBefore(root) !== boot) writeFileSync(pathOf(root), boot, { mode: 0o600 });
  } catch {
    // then they are suspected again after the next start
  }
}
