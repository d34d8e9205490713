/** The commands of this door. */
import type { Command } from "#door/command.ts";
import { batchCancel, batchExplain, batchGet, batchList, batchShow, batchWhy } from "./look.ts";
import { batchRun, batchSubmit, sqlCommand } from "./sql.ts";
import { batchTypes } from "./types.ts";

export const batchCommands: readonly Command[] = [
  sqlCommand,
  batchRun,
  batchSubmit,
  batchList,
  batchShow,
  batchGet,
  batchCancel,
  batchExplain,
  batchWhy,
  batchTypes,
];
