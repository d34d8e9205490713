/** The batch door: queries over files, cut into stages that run as tasks. */
import { defineDoor } from "#door/door.ts";
import { batchCommands } from "./commands/commands.ts";
import { BatchConfig } from "./config.ts";
import { batchDoorKinds } from "./kinds.ts";
import { stagesOf } from "./view.ts";

export const batchDoor = defineDoor({
  name: "batch",
  about: "Queries over Parquet, CSV and JSON files, cut into stages of tasks; for operators.",
  section: { about: "Queries over files.", schema: BatchConfig },
  kinds: [batchDoorKinds],
  commands: batchCommands,
  endpoints: [],
  shows: { show: (_jobId, view) => stagesOf(view) },
  pages: [],
  open: async (ports, settings) => (await import("./serve.ts")).openBatch(ports, settings),
});
