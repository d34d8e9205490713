/**
 * The process that DuckDB runs in: a query that eats memory, hangs or crashes takes this one down and no other. It is
 * told what to do over its IPC channel and ends with it.
 *
 * BE1 A statement reads and writes the files of its request and no others, and changes no setting: external access is
 *     switched off and the configuration locked before the first one.
 */
import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { mkdir, open as openFile, readdir, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import type { DuckDBConnection } from "@duckdb/node-api";
import type {
  EngineAnswer,
  EngineFailure,
  EngineRequest,
  EngineRow,
  EngineStatement,
  ToEngine,
} from "./engine-protocol.ts";

const { DuckDBInstance, JsonDuckDBValueConverter } = await import("@duckdb/node-api");

let running: DuckDBConnection | undefined;
let isInterrupted = false;

process.on("message", (message: ToEngine) => {
  if (message.do === "interrupt") {
    isInterrupted = true;
    running?.interrupt();
    return;
  }
  isInterrupted = false;
  void answer(message.request).then((told) => process.send?.(told));
});
process.on("disconnect", () => process.exit(0));
process.send?.({ ready: true });

async function answer(request: EngineRequest): Promise<EngineAnswer> {
  try {
    return await run(request);
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    return { id: request.id, ok: false, why: failureOf(message), message: shortened(message) };
  } finally {
    running = undefined;
    await rm(request.spillFolder, { recursive: true, force: true }).catch(() => {});
  }
}

/** DuckDB quotes the row that it could not read: a long one must not push out the name of its file behind it. */
const shortened = (message: string): string =>
  message
    .split("\n")
    .map((line) => (line.length > 500 ? `${line.slice(0, 500)}...` : line))
    .join("\n")
    .slice(0, 4_000);

function failureOf(message: string): EngineFailure {
  if (isInterrupted || message.startsWith("INTERRUPT")) return "interrupted";
  if (/No space left on device|max_temp_directory_size/.test(message)) return "no-space";
  return message.startsWith("Out of Memory") ? "out-of-memory" : "query";
}

async function run(request: EngineRequest): Promise<EngineAnswer> {
  const { id, statements, digestOf } = request;
  const before = process.cpuUsage();
  const connection = await open(request);
  const spill = watchSpill(request.spillFolder);
  const rows: EngineRow[][] = [];
  try {
    running = connection;
    for (const { sql, rowsMax, batchesTo } of statements) {
      if (isInterrupted) throw new Error("INTERRUPT");
      if (batchesTo) await writeBatches(connection, sql, batchesTo);
      else rows.push(rowsMax === undefined ? (await connection.run(sql), []) : await read(connection, sql, rowsMax));
    }
  } finally {
    running = undefined;
    await spill.stop();
    connection.closeSync();
  }
  const digest = digestOf === undefined ? {} : { digest: await digestFile(digestOf) };
  const { user, system } = process.cpuUsage(before);
  return { id, ok: true, rows, ...digest, cpuMs: Math.round((user + system) / 1_000), spilledBytes: spill.mostBytes() };
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

/** One thread: then the same task writes the same bytes, and costs less in all. */
async function open({
  paths,
  folders = [],
  spillFolder,
  memoryBytes,
  spillBytes,
  settings,
}: EngineRequest): Promise<DuckDBConnection> {
  await mkdir(spillFolder, { recursive: true, mode: 0o700 });
  const instance = await DuckDBInstance.create(":memory:", {
    threads: "1",
    memory_limit: `${memoryBytes}B`,
    temp_directory: spillFolder,
    max_temp_directory_size: `${spillBytes}B`,
    autoinstall_known_extensions: "false",
    autoload_known_extensions: "false",
    allow_community_extensions: "false",
    preserve_insertion_order: "true",
  });
  const connection = await instance.connect();
  for (const sql of [
    "set timezone='UTC'",
    "set parquet_metadata_cache=true",
    ...settings,
    `set allowed_paths=${list(paths)}`,
    `set allowed_directories=${list(folders)}`,
    "set enable_external_access=false",
    "set lock_configuration=true",
  ])
    await connection.run(sql);
  return connection;
}

const list = (paths: readonly string[]): string =>
  `[${paths.map((path) => `'${path.replaceAll("'", "''")}'`).join(", ")}]`;

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
