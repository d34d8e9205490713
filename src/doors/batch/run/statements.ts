/** Runs the statements of one request on a database, one behind the other, and says what became of them. */
import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { open as openFile, readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import type { DuckDBConnection } from "@duckdb/node-api";
import { findCuts, writePiece } from "./text-cuts.ts";
import type { EngineAnswer, EngineFailure, EngineRequest, EngineRow, EngineStatement } from "./engine-protocol.ts";

const { JsonDuckDBValueConverter } = await import("@duckdb/node-api");

type Ran = Omit<Extract<EngineAnswer, { ok: true }>, "id" | "ok" | "cpuMs">;

/** DuckDB quotes the row that it could not read: a long one must not push out the name of its file behind it. */
export const shortened = (message: string): string =>
  message
    .split("\n")
    .map((line) => (line.length > 500 ? `${line.slice(0, 500)}...` : line))
    .join("\n")
    .slice(0, 4_000);

export function failureOf(message: string): EngineFailure {
  if (message.startsWith("INTERRUPT")) return "interrupted";
  if (/No space left on device|max_temp_directory_size/.test(message)) return "no-space";
  return message.startsWith("Out of Memory") ? "out-of-memory" : "query";
}

export async function runStatements(
  connection: DuckDBConnection,
  request: Pick<EngineRequest, "statements" | "digestOf" | "spillFolder" | "pieces" | "cutsOf">,
  isInterrupted: () => boolean,
): Promise<Ran> {
  const { statements, digestOf, spillFolder, pieces = [], cutsOf = [] } = request;
  const checkInterrupted = (): void => {
    if (isInterrupted()) throw new Error("INTERRUPT");
  };
  for (const piece of pieces) {
    checkInterrupted();
    await writePiece(piece);
  }
  const spill = watchSpill(spillFolder);
  const rows: EngineRow[][] = [];
  try {
    for (const { sql: usual, other, rowsMax, batchesTo } of statements) {
      checkInterrupted();
      const [[isOther] = []] = other ? await read(connection, other.unless, 1) : [];
      const sql = other && isOther === true ? other.sql : usual;
      if (batchesTo) await writeBatches(connection, sql, batchesTo);
      else rows.push(rowsMax === undefined ? (await connection.run(sql), []) : await read(connection, sql, rowsMax));
    }
  } finally {
    await spill.stop();
  }
  const digest = digestOf === undefined ? {} : { digest: await digestFile(digestOf) };
  const cuts = [];
  for (const wish of cutsOf) {
    checkInterrupted();
    cuts.push(await findCuts(wish));
  }
  return { rows, ...digest, ...(cuts.length > 0 && { cuts }), spilledBytes: spill.mostBytes() };
}

const spillLookMs = 100;

/** DuckDB does not say how much it has spilled: its folder is looked at while it runs, and once more at the end. */
function watchSpill(folder: string): { stop(): Promise<void>; mostBytes(): number } {
  let most = 0;
  let looking: Promise<void> | undefined;
  const look = async (): Promise<void> => {
    let bytes = 0;
    for (const name of await readdir(folder).catch(() => [])) {
      const about = await stat(join(folder, name)).catch(() => undefined);
      // A temporary file has holes: what it takes on disk counts.
      bytes += (about?.blocks ?? 0) * 512;
    }
    most = Math.max(most, bytes);
  };
  const timer = setInterval(() => {
    looking ??= look().finally(() => (looking = undefined));
  }, spillLookMs);
  return {
    async stop() {
      clearInterval(timer);
      await looking;
      await look();
    },
    mostBytes: () => most,
  };
}

async function read(connection: DuckDBConnection, sql: string, rowsMax: number): Promise<EngineRow[]> {
  const result = await connection.stream(sql);
  const rows: EngineRow[] = [];
  while (rows.length <= rowsMax) {
    const chunk = await result.fetchChunk();
    if (!chunk || chunk.rowCount === 0) return rows;
    rows.push(...(chunk.convertRows(jsonValue) as EngineRow[]));
  }
  throw new Error(`Invalid Input Error: more than ${rowsMax} rows`);
}

async function writeBatches(
  connection: DuckDBConnection,
  sql: string,
  { path, rows: rowsMax }: NonNullable<EngineStatement["batchesTo"]>,
): Promise<void> {
  const result = await connection.stream(sql);
  await using file = await openFile(path, "wx", 0o600);
  let lists: unknown[][] = [];
  for (;;) {
    const chunk = await result.fetchChunk();
    const isEnd = !chunk || chunk.rowCount === 0;
    for (const [i, list] of isEnd ? [] : chunk.convertColumns(JsonDuckDBValueConverter).entries())
      (lists[i] ??= []).push(...list);
    for (let rows = lists[0]?.length ?? 0; rows >= rowsMax || (isEnd && rows > 0); rows = lists[0]?.length ?? 0) {
      await file.appendFile(`${JSON.stringify(lists.map((list) => list.slice(0, rowsMax)))}\n`);
      lists = lists.map((list) => list.slice(rowsMax));
    }
    if (isEnd) return;
  }
}

/** What planning and facts ask for: texts, numbers and truth. Whatever else there is, as text. */
function jsonValue(value: unknown): unknown {
  if (typeof value === "bigint") return String(value);
  const isPlain =
    value === null || typeof value === "boolean" || typeof value === "number" || typeof value === "string";
  return isPlain ? value : (value as { toString(): string }).toString();
}

async function digestFile(path: string): Promise<string> {
  const hash = createHash("sha256");
  for await (const part of createReadStream(path, { highWaterMark: 1024 * 1024 })) hash.update(part as Buffer);
  return `${hash.digest("hex")}/${(await stat(path)).size}`;
}
