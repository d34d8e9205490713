/** The commands of this door. */
import type { Command } from "#door/command.ts";
import { batchExplain, batchGet, batchList, batchShow } from "./look.ts";
import { batchRun, sqlCommand } from "./sql.ts";

export const batchCommands: readonly Command[] = [sqlCommand, batchRun, batchList, batchShow, batchGet, batchExplain];
