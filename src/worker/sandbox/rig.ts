/** What tests of real sandboxes share. */
import type { Command } from "./command.ts";

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
