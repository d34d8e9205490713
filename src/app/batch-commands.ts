/** The batch door's commands, for the command line, which knows no doors. */
import type { Command } from "#door/command.ts";
import { batchCommands } from "#doors/batch/commands/commands.ts";

export type BlobBytes = (
  digest: string,
  values: { readonly data?: string; readonly server?: string; readonly token?: string },
  env: NodeJS.ProcessEnv,
) => Promise<AsyncIterable<Uint8Array>>;

export const commandsOfBatch = (readBlob: BlobBytes): readonly Command[] => batchCommands(readBlob);
