/** Shows what a query wrote, or writes it to a file. */
import { rename, rm } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import type { Digest } from "#base/digest.ts";
import type { World } from "#door/command.ts";
import { fetchResult, type Fetched, type ReadBlob } from "#doors/batch/api/fetched.ts";
import type { PlanDocument } from "#doors/batch/documents.ts";
import { namedColumns, parquetColumns } from "#doors/batch/plan/named-columns.ts";
import { quoteText } from "#doors/batch/plan/quoting.ts";

export type Shown = { readonly json?: boolean; readonly out?: string; readonly rows?: number };

export async function showResult(
  document: PlanDocument,
  packs: readonly Digest[],
  { readBlob, world, shown }: { readonly readBlob: ReadBlob; readonly world: World; readonly shown: Shown },
): Promise<void> {
  await using result = await fetchResult(document, packs, readBlob);
  if (shown.out === undefined) await print(result, world, shown);
  else await write(result, shown.out, world);
}

async function print(result: Fetched, world: World, { json, rows: rowsMax = 100 }: Shown): Promise<void> {
  if (json) {
    for await (const row of result.jsonRows()) world.out(JSON.stringify(row));
    return;
  }
  const { lines, hasMore } = await result.table(rowsMax);
  for (const line of lines) world.out(line);
  if (hasMore) world.note(`more than ${rowsMax} rows: all of them with --json or --out FILE`);
}

/** Under another name first: what is there afterwards is whole. */
async function write({ document, from, connection }: Fetched, out: string, world: World): Promise<void> {
  const path = resolve(out);
  const format = /\.csv(\.gz)?$/.test(path) ? "csv" : /\.(json|ndjson|jsonl)$/.test(path) ? "json" : "parquet";
  const list = format === "parquet" ? parquetColumns(document.columns) : namedColumns(document.columns);
  const temporary = join(dirname(path), `.${Date.now().toString(36)}-${process.pid}.tmp`);
  try {
    const compression = format === "parquet" ? ", compression zstd" : format === "csv" ? ", header true" : "";
    await connection.run(
      `copy (select ${list} from ${from}) to ${quoteText(temporary)} (format ${format}${compression})`,
    );
    await rename(temporary, path);
  } finally {
    await rm(temporary, { force: true });
  }
  world.note(`written to ${out}`);
}
