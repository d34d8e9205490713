/** The commands of this door. */
import type { Command } from "#door/command.ts";
import type { BlobReader } from "./ask.ts";
import { batchExplain, batchGet, batchList, batchShow } from "./look.ts";
import { sqlCommand } from "./sql.ts";

export const batchCommands = (readBlob: BlobReader): readonly Command[] => [
  sqlCommand(readBlob),
  batchList,
  batchShow,
  batchGet(readBlob),
  batchExplain(readBlob),
];
