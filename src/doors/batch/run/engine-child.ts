/**
 * The process that DuckDB runs in: a query that eats memory, hangs or crashes takes this one down and no other. It is
 * told what to do over its IPC channel and ends with it.
 *
 * BE1 A statement reads and writes the files of its request and no others, and changes no setting: external access is
 *     switched off and the configuration locked before the first one.
 */
import { mkdir, rm } from "node:fs/promises";
import type { DuckDBConnection, DuckDBInstance as Instance } from "@duckdb/node-api";
import type { EngineAnswer, EngineRequest, ToEngine } from "./engine-protocol.ts";
import { failureOf, runStatements, shortened } from "./statements.ts";

const { DuckDBInstance } = await import("@duckdb/node-api");

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
  stopRefilling();
  try {
    return await run(request);
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    const why = isInterrupted ? "interrupted" : failureOf(message);
    return { id: request.id, ok: false, why, message: shortened(message) };
  } finally {
    running = undefined;
    await rm(request.spillFolder, { recursive: true, force: true }).catch(() => {});
    refillLater();
  }
}

async function run(request: EngineRequest): Promise<EngineAnswer> {
  const before = process.cpuUsage();
  const { instance, connection } = await open(request);
  try {
    running = connection;
    const ran = await runStatements(connection, request, () => isInterrupted);
    const { user, system } = process.cpuUsage(before);
    return { id: request.id, ok: true, ...ran, cpuMs: Math.round((user + system) / 1_000) };
  } finally {
    running = undefined;
    connection.closeSync();
    instance.closeSync();
  }
}

/** One thread: then the same task writes the same bytes, and costs less in all. */
async function open(request: EngineRequest): Promise<{ instance: Instance; connection: DuckDBConnection }> {
  const { paths, folders = [], spillFolder, memoryBytes, spillBytes, settings } = request;
  await mkdir(spillFolder, { recursive: true, mode: 0o700 });
  const instance = await (spares.pop() ?? fresh());
  const connection = await instance.connect();
  const statements = [
    "set timezone='UTC'",
    "set parquet_metadata_cache=true",
    `set memory_limit='${memoryBytes}B'`,
    `set temp_directory=${quoted(spillFolder)}`,
    `set max_temp_directory_size='${spillBytes}B'`,
    ...settings,
    `set allowed_paths=${list(paths)}`,
    `set allowed_directories=${list(folders)}`,
    "set enable_external_access=false",
    "set lock_configuration=true",
  ];
  await connection.run(statements.join("; "));
  return { instance, connection };
}

const list = (paths: readonly string[]): string => `[${paths.map(quoted).join(", ")}]`;

const quoted = (path: string): string => `'${path.replaceAll("'", "''")}'`;

/**
 * Databases that no request has used yet: opening one takes most of the time of a small request, so some are opened
 * while nothing else is to do.
 */
const spares: Promise<Instance>[] = [];
const sparesMax = 4;
const idleMs = 20;
let refilling: NodeJS.Timeout | undefined;

const fresh = (): Promise<Instance> =>
  DuckDBInstance.create(":memory:", {
    threads: "1",
    memory_limit: "64MB",
    autoinstall_known_extensions: "false",
    autoload_known_extensions: "false",
    allow_community_extensions: "false",
    preserve_insertion_order: "true",
  });

const stopRefilling = (): void => clearTimeout(refilling);

function refillLater(): void {
  if (spares.length >= sparesMax) return;
  refilling = setTimeout(() => {
    const one = fresh();
    spares.push(one);
    // One that cannot be opened is tried again by the request that needs it.
    one.then(refillLater, () => void spares.splice(spares.indexOf(one), 1));
  }, idleMs);
  refilling.unref();
}
