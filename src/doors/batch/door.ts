/** The batch door: queries over files, cut into stages that run as tasks. */
import { randomUUID } from "node:crypto";
import { defineDoor, type JobDocuments } from "#door/door.ts";
import { batchCommands } from "./commands/commands.ts";
import { BatchConfig } from "./config.ts";
import { batchEndpoints } from "./endpoints.ts";
import { batchDoorKinds } from "./kinds.ts";
import { planSubmit } from "./plan.ts";
import { BatchDocument } from "./request.ts";
import { stagesOf } from "./view.ts";

const documents: JobDocuments = {
  schema: BatchDocument,
  plan(document, { tenant, priority = 0, key }) {
    const { sql, folder, explain, output, fresh, ...settings } = document as BatchDocument;
    const job = { sql, folder, settings, isExplained: explain, ...(output && { output }), ...(fresh && { fresh }) };
    return planSubmit(job, { tenant, priority, unique: randomUUID(), ...(key !== undefined && { key }) });
  },
};

export const batchDoor = defineDoor({
  name: "batch",
  about: "Queries over Parquet, CSV and JSON files, cut into stages of tasks; for operators.",
  section: { about: "Queries over files.", schema: BatchConfig },
  kinds: [batchDoorKinds],
  commands: batchCommands,
  endpoints: batchEndpoints,
  documents,
  shows: { show: (_jobId, view) => stagesOf(view) },
  pages: [],
  open: async (ports, settings) => (await import("./serve.ts")).openBatch(ports, settings),
});
