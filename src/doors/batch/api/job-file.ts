/** A job file in TypeScript: whatever it exports by default is the query. It runs as a program of the caller. */
import { registerHooks } from "node:module";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { Fault } from "#base/fault.ts";
import { Dataset, Output } from "./dataset.ts";
import type { Submission } from "./job.ts";

/** A file that was changed is read again. */
let reads = 0;

const api = new URL("./batch.ts", import.meta.url).href;

/** The query, and where its result goes. In the file, "millrace/batch" means this program, wherever the file lies. */
export async function readJobFile(file: string): Promise<Submission> {
  const path = resolve(file);
  const hooks = registerHooks({
    resolve: (specifier, context, next) =>
      specifier === "millrace/batch" ? { url: api, shortCircuit: true } : next(specifier, context),
  });
  try {
    const { default: query } = (await import(`${pathToFileURL(path).href}?${(reads += 1)}`)) as {
      readonly default?: unknown;
    };
    if (query instanceof Dataset) return query.submission;
    if (query instanceof Output) return query.submission;
    if (typeof query === "string") return { sql: query };
    throw new Fault("invalid", "read job file", { file, why: "it exports no dataset and no SQL by default" });
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw error instanceof Fault ? error : new Fault("invalid", "read job file", { file, why }, error);
  } finally {
    hooks.deregister();
  }
}
