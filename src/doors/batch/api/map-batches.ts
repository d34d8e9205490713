/** Functions over batches of rows: named in a program, and sent to the node as one file by its digest. */
import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import { resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { Fault } from "#base/fault.ts";
import type { Ask } from "./connect.ts";

export type MapOptions = {
  /** The columns that the function returns, with types of DuckDB: `{ name: "VARCHAR", n: "BIGINT" }`. */
  readonly schema: Readonly<Record<string, string>>;
  /** Given to each call; anything that JSON can say. */
  readonly params?: unknown;
  /** How many rows it gets at once, at most (8192). */
  readonly batchRows?: number;
  /** How long one call may take (60000). */
  readonly batchMs?: number;
  /** How many rows of one task may be left out because it fails on them (0). */
  readonly skip?: number;
  /** False: its results are never used again for the same rows. */
  readonly deterministic?: boolean;
};

/** A call as the program wrote it; the module is a file of this machine still. */
export type MapCall = Omit<MapOptions, "schema" | "params"> & {
  readonly name: string;
  readonly sql: string;
  readonly file: string;
  readonly export: string;
  readonly params: unknown;
  readonly schema: readonly { readonly name: string; readonly type: string }[];
};

/** The table gets its name from the query, the file and the options, so that equal calls are one. */
export function mapCall(sql: string, module: string | URL, { schema, params = null, ...rest }: MapOptions): MapCall {
  const [path = "", name = "default"] = String(module).split("#");
  if (path === "") throw new TypeError("name the module of the function, such as ./clean.ts#tidy");
  const file = path.startsWith("file:") ? fileURLToPath(path) : resolve(path);
  const columns = Object.entries(schema).map(([column, type]) => ({ name: column, type }));
  if (columns.length === 0) throw new TypeError("say in `schema` which columns the function returns");
  const call = { sql, file, export: name, params, schema: columns, ...rest };
  const digest = createHash("sha256").update(JSON.stringify(call)).digest("hex").slice(0, 12);
  return { ...call, name: `map_${digest}` };
}

/** The same with the code uploaded: what the node understands. */
export async function uploadMaps(calls: readonly MapCall[], ask: Ask, tenant?: string): Promise<readonly object[]> {
  const modules = new Map<string, Promise<string>>();
  const query = tenant === undefined ? "" : `?tenant=${encodeURIComponent(tenant)}`;
  const send = async (file: string): Promise<string> => {
    const bytes = file.endsWith(".py") ? await readFile(file) : await bundle(file);
    const digest = `${createHash("sha256").update(bytes).digest("hex")}/${bytes.length}`;
    await ask(`/v1/build-cache/blobs/${digest}${query}`, "upload function", {
      method: "PUT",
      body: new Uint8Array(bytes),
    });
    return digest;
  };
  const sent: object[] = [];
  for (const { file, ...call } of calls) {
    const module = modules.get(file) ?? send(file);
    modules.set(file, module);
    sent.push({ ...call, module: await module, language: file.endsWith(".py") ? "python" : "javascript" });
  }
  return sent;
}

/** One file with all that it imports. The same sources give the same bytes. */
async function bundle(file: string): Promise<Buffer> {
  const { build } = await import("esbuild").catch((error: unknown) => {
    const why = "the npm package esbuild is not installed for this platform";
    throw new Fault("unavailable", "bundle function", { file, why }, error);
  });
  const made = await build({
    entryPoints: [file],
    bundle: true,
    write: false,
    platform: "node",
    format: "esm",
    target: "node24",
    logLevel: "silent",
  }).catch((error: unknown) => {
    const why = error instanceof Error ? error.message : String(error);
    throw new Fault("invalid", "bundle function", { file, why }, error);
  });
  return Buffer.from(made.outputFiles[0]?.contents ?? []);
}
