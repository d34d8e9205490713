/** A job file in YAML or JSON: the document that is submitted, checked here so that a mistake is named by its key. */
import { readFile } from "node:fs/promises";
import { dirname, resolve } from "node:path";
import { Fault } from "#base/fault.ts";
import { z } from "zod";
import { BatchDocument, MapDocument } from "#doors/batch/request.ts";
import type { JobDocument } from "./sql.ts";

/** Functions are named by files, which are sent when the job is submitted. */
const JobFile = BatchDocument.partial()
  .required({ sql: true })
  .extend({
    maps: z
      .array(MapDocument.omit({ module: true, language: true }).extend({ file: z.string().min(1).max(4_096) }))
      .optional(),
  });

/** Names of files begin at the file's folder, unless it says otherwise. */
export async function readJobDocument(file: string): Promise<JobDocument> {
  const text = await readFile(file, "utf8").catch((error: unknown) => {
    throw new Fault("not-found", "read job file", { file, why: "it cannot be read" }, error);
  });
  const { parse } = await import("yaml");
  let value: unknown;
  try {
    value = parse(text, { maxAliasCount: 100 });
  } catch (error) {
    throw new Fault(
      "invalid",
      "read job file",
      { file, why: error instanceof Error ? error.message : "no YAML" },
      error,
    );
  }
  const checked = JobFile.safeParse(value);
  if (!checked.success) {
    const [issue] = checked.error.issues;
    throw new Fault("invalid", "read job file", { file, at: issue?.path.join(".") || "its top", why: issue?.message });
  }
  const home = dirname(resolve(file));
  const { maps = [], ...rest } = value as JobDocument;
  const at = maps.map((one) => ({ ...one, file: resolve(home, one.file), export: one.export ?? "default" }));
  return { ...rest, ...(at.length > 0 && { maps: at }), folder: resolve(home, rest.folder ?? ".") };
}
