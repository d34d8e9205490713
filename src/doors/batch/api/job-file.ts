/** A job file in TypeScript: whatever it exports by default is the query. It runs as a program of the caller. */
import { registerHooks } from "node:module";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { Fault } from "#base/fault.ts";
import { Dataset } from "./dataset.ts";

const api = new URL("./batch.ts", import.meta.url).href;

/** The query as SQL. In the file, "millrace/batch" means this very program, wherever the file lies. */
export async function readJobFile(file: string): Promise<string> {
  const path = resolve(file);
  const hooks = registerHooks({
    resolve: (specifier, context, next) =>
      specifier === "millrace/batch" ? { url: api, shortCircuit: true } : next(specifier, context),
  });
  try {
    const { default: query } = (await import(pathToFileURL(path).href)) as { readonly default?: unknown };
    if (query instanceof Dataset) return query.toSql();
    if (typeof query === "string") return query;
    throw new Fault("invalid", "read job file", { file, why: "it exports no dataset and no SQL by default" });
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw error instanceof Fault ? error : new Fault("invalid", "read job file", { file, why }, error);
  } finally {
    hooks.deregister();
  }
}
