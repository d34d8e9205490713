/** Data, and nodes that answer queries over it. */
import { mkdtemp, readdir, readFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { DuckDBConnection } from "@duckdb/node-api";
import { connectWith } from "#doors/batch/api/connect.ts";
import { openOracle } from "#doors/batch/testing/oracle.ts";
import { httpOf } from "#app/client/server.ts";

export const newFolder = (): Promise<string> => mkdtemp(join(tmpdir(), "millrace-batch-e2e-"));

/** The API of this process asks the node of this data folder from now on. */
export const apiAsks = (data: string): void =>
  connectWith(async () => {
    const http = httpOf({ data }, {});
    return (path, doing, init) => http.ask(path, doing, init);
  });

/** Events in several Parquet files, users as CSV. */
export async function writeEvents(folder: string, { files = 4, rows = 20_000 } = {}): Promise<DuckDBConnection> {
  const oracle = await openOracle();
  for (let i = 0; i < files; i += 1) await writeEventFile(oracle, folder, i, rows);
  await oracle.run(
    `copy (select range as "user", 'u' || range as name from range(100)) to '${folder}/users.csv' (header)`,
  );
  return oracle;
}

export async function writeEventFile(
  oracle: DuckDBConnection,
  folder: string,
  file: number,
  rows: number,
  salt = 0,
): Promise<void> {
  const columns = `(range * 7 + ${file + salt}) % 100 as "user", ['fr', 'de', 'jp'][range % 3 + 1] as country, range + ${file} * ${rows} as ms`;
  await oracle.run(`copy (select ${columns} from range(${rows})) to '${folder}/events-${file}.parquet'`);
}

/** Relative paths of all files, with their bytes as hex digests do not matter here: only equality does. */
export async function filesIn(folder: string): Promise<ReadonlyMap<string, string>> {
  const found = new Map<string, string>();
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  for (const entry of entries.toSorted((a, b) => (a.parentPath + a.name < b.parentPath + b.name ? -1 : 1)))
    if (entry.isFile()) {
      const path = join(entry.parentPath, entry.name);
      found.set(path.slice(folder.length + 1), (await readFile(path)).toString("base64"));
    }
  return found;
}
