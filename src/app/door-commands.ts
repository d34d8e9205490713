/** The commands that doors bring. */
import type { Command } from "#door/command.ts";
import { ciLint } from "#doors/ci/commands/lint.ts";
import { ciRun } from "#doors/ci/commands/run.ts";

export const doorCommands: readonly Command[] = [ciRun, ciLint];
