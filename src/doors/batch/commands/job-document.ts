/** A job file in YAML or JSON: the document that is submitted, checked here so that a mistake is named by its key. */
import { readFile } from "node:fs/promises";
import { dirname, resolve } from "node:path";
import { Fault } from "#base/fault.ts";
import { BatchDocument } from "#doors/batch/request.ts";
import type { JobDocument } from "./sql.ts";

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
  const checked = BatchDocument.partial().required({ sql: true }).safeParse(value);
  if (!checked.success) {
    const [issue] = checked.error.issues;
    throw new Fault("invalid", "read job file", { file, at: issue?.path.join(".") || "its top", why: issue?.message });
  }
  const given = value as JobDocument;
  return { ...given, folder: resolve(dirname(resolve(file)), given.folder ?? ".") };
}
