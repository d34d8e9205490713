/** The batch door: queries over files, cut into stages that run as tasks. */
import { randomUUID } from "node:crypto";
import { defineDoor, type JobDocuments } from "#door/door.ts";
import { batchCommands } from "./commands/commands.ts";
import { BatchConfig } from "./config.ts";
import { batchEndpoints } from "./endpoints.ts";
import { batchDoorKinds } from "./kinds.ts";
import { planSubmit, type BatchJob, type MapRequest } from "./plan.ts";
import { BatchDocument, type MapDocument } from "./request.ts";
import { cpuMsIn } from "./documents.ts";
import { keptOf, stagesOf } from "./view.ts";

const documents: JobDocuments = {
  schema: BatchDocument,
  plan(document, { tenant, priority = 0, key, isOperator = true }) {
    const { sql, folder, explain, granted, output, fresh, maps, ...settings } = document as BatchDocument;
    const job: BatchJob = {
      sql,
      folder,
      settings,
      isExplained: explain,
      ...((granted || !isOperator) && { isGranted: true }),
      ...(output && { output }),
      ...(fresh && { fresh }),
      ...(maps.length > 0 && { maps: maps.map(mapRequest) }),
    };
    return planSubmit(job, { tenant, priority, unique: randomUUID(), ...(key !== undefined && { key }) });
  },
};

const mapRequest = ({ name, sql, params, skip, deterministic, ...rest }: MapDocument): MapRequest => ({
  name,
  sql,
  function: { ...rest, params: JSON.stringify(params), skipMax: skip, isDeterministic: deterministic },
});

export const batchDoor = defineDoor({
  name: "batch",
  about: "Queries over Parquet, CSV and JSON files, cut into stages of tasks.",
  section: { about: "Queries over files.", schema: BatchConfig },
  hides: ({ inputs }) => inputs.flatMap(({ folder }) => folder ?? []),
  kinds: [batchDoorKinds],
  commands: batchCommands,
  endpoints: batchEndpoints,
  documents,
  keepsResults: keptOf,
  cpuMs: cpuMsIn,
  shows: { show: (_jobId, view) => stagesOf(view) },
  pages: [{ path: "queries", title: "Queries", module: "pages/doors/batch/queries.tsx" }],
  open: async (ports, settings) => (await import("./serve.ts")).openBatch(ports, settings),
});
