import { ciLint } from "./lint.ts";
import { ciRun } from "./run.ts";

export const ciCommands = [ciRun, ciLint] as const;
