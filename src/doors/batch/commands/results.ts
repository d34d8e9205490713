/** Fetches what a query wrote, and shows it or writes it to a file. */
import { createWriteStream } from "node:fs";
import { mkdtemp, rename, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import type { Digest } from "#base/digest.ts";
import { Fault } from "#base/fault.ts";
import type { World } from "#door/command.ts";
import type { PlanDocument } from "#doors/batch/documents.ts";
import { carriedAs, uncarry } from "#doors/batch/plan/column-types.ts";
import { columnName, quoteName, quoteText } from "#doors/batch/plan/quoting.ts";
import { typeNamed } from "#doors/batch/plan/type-names.ts";
import { tableLines } from "#door/table.ts";

/** The bytes of a blob of the node. */
export type ReadBlob = (digest: Digest) => Promise<AsyncIterable<Uint8Array>>;

export type Shown = { readonly json?: boolean; readonly out?: string; readonly rows?: number };

export async function readDocument(digest: Digest, readBlob: ReadBlob): Promise<PlanDocument> {
  const parts: Uint8Array[] = [];
  for await (const part of await readBlob(digest)) parts.push(part);
  return JSON.parse(Buffer.concat(parts).toString("utf8")) as PlanDocument;
}

export async function showResult(
  document: PlanDocument,
  packs: readonly Digest[],
  { readBlob, world, shown }: { readonly readBlob: ReadBlob; readonly world: World; readonly shown: Shown },
): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), "millrace-result-"));
  try {
    const paths: string[] = [];
    for (const [i, digest] of packs.entries()) {
      const path = join(folder, `${i}.parquet`);
      await pipeline(Readable.from(await readBlob(digest)), createWriteStream(path, { mode: 0o600 }));
      paths.push(path);
    }
    const from = `read_parquet([${paths.map(quoteText).join(", ")}])`;
    if (shown.out === undefined) await print(document, from, world, shown);
    else await write(document, from, shown.out, world);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

async function openDuck() {
  const { DuckDBInstance } = await import("@duckdb/node-api").catch((error: unknown) => {
    const why = "the npm package @duckdb/node-api is not installed for this platform";
    throw new Fault("unavailable", "show result", { why }, error);
  });
  const connection = await (await DuckDBInstance.create(":memory:", { threads: "1" })).connect();
  await connection.run("set timezone='UTC'");
  return connection;
}

const columnList = ({ columns }: PlanDocument): string =>
  columns.map(({ name, type }, i) => `${uncarry(columnName(i), typeNamed(type))} as ${quoteName(name)}`).join(", ");

async function print(document: PlanDocument, from: string, world: World, { json, rows: rowsMax = 100 }: Shown) {
  const connection = await openDuck();
  const result = await connection.stream(
    `select ${columnList(document)} from ${from}${json ? "" : ` limit ${rowsMax + 1}`}`,
  );
  if (json) {
    for await (const rows of result.yieldRowObjectJson()) for (const row of rows) world.out(JSON.stringify(row));
    return;
  }
  const rows: (readonly unknown[])[] = [];
  for await (const some of result.yieldRowsJson()) rows.push(...some);
  const columns = document.columns.map(({ name, type }) => ({ name, isNumber: isNumber(type) }));
  const cells = rows.slice(0, rowsMax).map((row) => row.map(cellText));
  for (const line of tableLines(columns, cells, { widthMax: 60, hasRule: true })) world.out(line);
  if (rows.length > rowsMax) world.note(`more than ${rowsMax} rows: all of them with --json or --out FILE`);
}

const isNumber = (type: string): boolean => /INT|DECIMAL|DOUBLE|FLOAT/.test(type) && !/\[\]|STRUCT|MAP/.test(type);

function cellText(value: unknown): string {
  if (value === null || value === undefined) return "NULL";
  return typeof value === "string" ? value : JSON.stringify(value);
}

/** Under another name first: what is there afterwards is whole. */
async function write(document: PlanDocument, from: string, out: string, world: World): Promise<void> {
  const path = resolve(out);
  const format = /\.csv(\.gz)?$/.test(path) ? "csv" : /\.(json|ndjson|jsonl)$/.test(path) ? "json" : "parquet";
  // Parquet would make doubles of the widest integers.
  const list =
    format === "parquet"
      ? document.columns
          .map(({ name, type }, i) =>
            carriedAs(typeNamed(type)) === "DECIMAL(38,0)"
              ? `${columnName(i)} as ${quoteName(name)}`
              : `${uncarry(columnName(i), typeNamed(type))} as ${quoteName(name)}`,
          )
          .join(", ")
      : columnList(document);
  const temporary = join(dirname(path), `.${Date.now().toString(36)}-${process.pid}.tmp`);
  const connection = await openDuck();
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
