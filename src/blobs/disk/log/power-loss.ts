/**
 * Files written shortly before a power failure may have lost bytes, because only pins wait for the disk. After a reboot
 * such files are marked suspect and are verified before they are served (B1). Packed records have a checksum of their
 * own.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { uptime } from "node:os";
import { join } from "node:path";
import type { Holdings } from "#blobs/disk/holdings.ts";
import { flags } from "#blobs/disk/table/table.ts";

/** Systems flush dirty pages after about half a minute; this is well above. */
const writtenBackSec = 300;

/** Identifies this boot of the machine. */
function bootNow(): string {
  try {
    return readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim();
  } catch {
    return `about ${Math.round((Date.now() / 1_000 - uptime()) / 60)}`; // other systems: the minute of the boot
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

/** Returns the number of suspect files. `boot` is for tests. */
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

/** To be called once the suspect marks are on disk. */
export function rememberBoot(root: string): void {
  try {
    const boot = bootNow();
    if (bootBefore(root) !== boot) writeFileSync(pathOf(root), boot, { mode: 0o600 });
  } catch {
    // they are suspected again after the next start
  }
}
