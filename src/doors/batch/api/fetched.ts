/** What a query wrote, fetched from the node and opened in DuckDB: to be read as rows, as a table or into a file. */
import { createWriteStream } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import type { DuckDBConnection } from "@duckdb/node-api";
import { tableLines } from "#door/table.ts";
import { Fault } from "#base/fault.ts";
import type { PlanDocument } from "#doors/batch/documents.ts";
import { namedColumns } from "#doors/batch/plan/named-columns.ts";
import { quoteText } from "#doors/batch/plan/quoting.ts";

/** The bytes of a blob of the node. */
export type ReadBlob = (digest: string) => Promise<AsyncIterable<Uint8Array>>;

export async function readPlan(digest: string, readBlob: ReadBlob): Promise<PlanDocument> {
  const parts: Uint8Array[] = [];
  for await (const part of await readBlob(digest)) parts.push(part);
  return JSON.parse(Buffer.concat(parts).toString("utf8")) as PlanDocument;
}

export async function fetchResult(
  document: PlanDocument,
  packs: readonly string[],
  readBlob: ReadBlob,
): Promise<Fetched> {
  const folder = await mkdtemp(join(tmpdir(), "millrace-result-"));
  try {
    const paths: string[] = [];
    for (const [i, digest] of packs.entries()) {
      const path = join(folder, `${i}.parquet`);
      await pipeline(Readable.from(await readBlob(digest)), createWriteStream(path, { mode: 0o600 }));
      paths.push(path);
    }
    return new Fetched(folder, document, paths, await openDuck());
  } catch (error) {
    await rm(folder, { recursive: true, force: true });
    throw error;
  }
}

export class Fetched implements AsyncDisposable {
  readonly document: PlanDocument;
  readonly connection: DuckDBConnection;
  /** What stands behind FROM; its columns are c0, c1, ... */
  readonly from: string;
  readonly #folder: string;

  constructor(folder: string, document: PlanDocument, paths: readonly string[], connection: DuckDBConnection) {
    this.#folder = folder;
    this.document = document;
    this.connection = connection;
    this.from = `read_parquet([${paths.map(quoteText).join(", ")}])`;
  }

  get #select(): string {
    return `select ${namedColumns(this.document.columns)} from ${this.from}`;
  }

  async rows(): Promise<Record<string, unknown>[]> {
    const rows: Record<string, unknown>[] = [];
    const result = await this.connection.stream(this.#select);
    for await (const some of result.yieldRowObjectJs())
      for (const row of some) rows.push(plain(row) as Record<string, unknown>);
    return rows;
  }

  /** One object after the other, as JSON writes them. */
  async *jsonRows(): AsyncGenerator<unknown> {
    const result = await this.connection.stream(this.#select);
    for await (const some of result.yieldRowObjectJson()) yield* some;
  }

  async table(rowsMax: number): Promise<{ readonly lines: readonly string[]; readonly hasMore: boolean }> {
    const result = await this.connection.stream(`${this.#select} limit ${rowsMax + 1}`);
    const rows: (readonly unknown[])[] = [];
    for await (const some of result.yieldRowsJson()) rows.push(...some);
    const columns = this.document.columns.map(({ name, type }) => ({ name, isNumber: isNumber(type) }));
    const cells = rows.slice(0, rowsMax).map((row) => row.map(cellText));
    return { lines: tableLines(columns, cells, { widthMax: 60, hasRule: true }), hasMore: rows.length > rowsMax };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.connection.closeSync();
    await rm(this.#folder, { recursive: true, force: true });
  }
}

async function openDuck(): Promise<DuckDBConnection> {
  const { DuckDBInstance } = await import("@duckdb/node-api").catch((error: unknown) => {
    const why = "the npm package @duckdb/node-api is not installed for this platform";
    throw new Fault("unavailable", "read result", { why }, error);
  });
  const connection = await (await DuckDBInstance.create(":memory:", { threads: "1" })).connect();
  await connection.run("set timezone='UTC'");
  return connection;
}

/** A program wants numbers: a bigint only where a number would be wrong. */
function plain(value: unknown): unknown {
  if (typeof value === "bigint") return Number.isSafeInteger(Number(value)) ? Number(value) : value;
  if (Array.isArray(value)) return value.map(plain);
  if (typeof value !== "object" || value === null || Object.getPrototypeOf(value) !== Object.prototype) return value;
  return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, plain(one)]));
}

const isNumber = (type: string): boolean => /INT|DECIMAL|DOUBLE|FLOAT/.test(type) && !/\[\]|STRUCT|MAP/.test(type);

function cellText(value: unknown): string {
  if (value === null || value === undefined) return "NULL";
  return typeof value === "string" ? value : JSON.stringify(value);
}
