/** What tests of real sandboxes share. */
import { rmSync } from "node:fs";
import { rigHome } from "#worker/process/testing/rig.ts";
import { tellsChanges } from "#worker/stamp.ts";
import type { Command } from "#worker/sandbox/command.ts";

export const commandOf = (argv: readonly string[], more: Partial<Command> = {}): Command => ({
  tag: "test",
  argv,
  env: { PATH: "/usr/bin:/bin" },
  workingDirectory: "",
  network: false,
  limits: {},
  timeoutMs: 30_000,
  leaseMs: 30_000,
  outputBytesMax: 100_000,
  ...more,
});

/** Why folders of attempts cannot be reused here; false if they can. */
export function whyNotUsedAgain(): string | false {
  if (process.platform !== "linux" || process.getuid?.() !== 0) return "needs root on linux: separate users";
  const home = rigHome();
  try {
    return tellsChanges(home) ? false : "needs a file system whose times show every change (linux 6.13)";
  } finally {
    rmSync(home, { recursive: true, force: true, maxRetries: 5, retryDelay: 1_000 });
  }
}
