/** Runs one part of a stage on an engine: files in, one pack out. It knows neither kernel nor store. */
import { join } from "node:path";
import type { PlanType } from "#doors/batch/plan/plan-json.ts";
import type { Digest } from "#base/digest.ts";
import { Fault } from "#base/fault.ts";
import type { StageMap } from "#doors/batch/plan/map-function.ts";
import { mapSql, piecePath, taskSql } from "#doors/batch/plan/task-sql.ts";
import type { TaskPart } from "#doors/batch/plan/tasks.ts";
import type { StageDocument, TaskResult } from "#doors/batch/documents.ts";
import type { TaskOutput } from "#worker/printed/task-output.ts";
import { EngineError, withNames, type EngineResult, type RunsWork } from "./engines.ts";
import type { CallBox } from "./map/call-box.ts";
import { filesIn } from "./inputs.ts";
import type { TextPiece } from "./text-cuts.ts";
import { callFunction } from "./map/call.ts";

export type TaskFiles = {
  /** By stage: the types of its columns and its packs, as files. */
  readonly packs: ReadonlyMap<string, { readonly types: readonly PlanType[]; readonly paths: readonly string[] }>;
  /** A folder of the task's own. */
  readonly folder: string;
};

export type TaskLimits = { readonly memoryBytes: number; readonly spillBytes: number };

export const packIn = (folder: string): string => join(folder, "pack.parquet");

export type PartPorts = {
  readonly engines: RunsWork;
  readonly limits: TaskLimits;
  readonly signal: AbortSignal;
  /** For stages that call a function. */
  readonly functions?: FunctionPorts;
};

export type FunctionPorts = {
  readonly open: (signal: AbortSignal) => Promise<CallBox>;
  readonly module: (digest: Digest) => Promise<Uint8Array>;
  /** For what it prints. */
  readonly printed?: TaskOutput;
};

type Written = Pick<EngineResult, "rows" | "digest" | "cpuMs" | "spilledBytes"> & { readonly skipped?: number };

export async function runPart(
  document: StageDocument,
  part: number,
  files: TaskFiles,
  ports: PartPorts,
): Promise<Omit<TaskResult, "by">> {
  const { stage, parts } = document;
  const what = parts[part];
  if (!what) throw new Error(`the stage ${stage.id} has no part ${part}`);
  const {
    rows,
    digest,
    cpuMs,
    spilledBytes,
    skipped = 0,
  } = stage.map ? await runMap(document, what, stage.map, files, ports) : await runSql(document, what, files, ports);
  const told = (rows.at(-1) ?? []) as readonly (readonly [kind: string, key: string, value: string])[];
  const pack = digest ?? "";
  return {
    stage: stage.id,
    about: stage.about.slice(0, 100),
    isResult: stage.output.kind === "result",
    part,
    pack,
    rows: told.filter(([kind]) => kind === "rows").reduce((sum, [, , value]) => sum + Number(value), 0),
    bytes: Number(pack.slice(pack.indexOf("/") + 1)),
    shares: stage.output.kind === "hash" ? sharesOf(told, stage.output.partitions) : "",
    cuts: told.filter(([kind]) => kind === "cut").map(([, , value]) => value.slice(0, cutLengthMax)),
    cpuMs,
    ...(spilledBytes > 0 && { spilled: spilledBytes }),
    ...(skipped > 0 && { skipped }),
  };
}

async function runSql(
  document: StageDocument,
  what: TaskPart,
  { packs, folder }: TaskFiles,
  { engines, limits, signal }: PartPorts,
): Promise<Written> {
  const { stage, sources, packs: form } = document;
  const output = packIn(folder);
  const { views, copy, other, facts } = taskSql(stage, what, { sources, packs, output, pieces: folder, form });
  const pieces = piecesOf(document, what, folder);
  const work = {
    paths: [...pathsOf(document, what, packs), ...pieces.map(({ as }) => as), output],
    spillFolder: join(folder, "spill"),
    ...limits,
    settings: [],
    pieces,
    statements: [
      ...views.map((sql) => ({ sql })),
      { sql: copy, ...(other && { other: { unless: other.unless, sql: other.copy } }) },
      { sql: facts, rowsMax: 100_000 },
    ],
    digestOf: output,
  };
  return await engines.run(work, signal).catch(withPieces(pieces));
}

/** The engine writes batches, the function rows, and the engine the pack: it is never in one process with the code. */
async function runMap(
  document: StageDocument,
  what: TaskPart,
  map: StageMap,
  { packs, folder }: TaskFiles,
  { engines, limits, signal, functions }: PartPorts,
): Promise<Written> {
  if (!functions)
    throw new Fault("invalid", "run function", { why: "this node has no sandbox for functions of tenants" });
  const { stage, sources, packs: form } = document;
  const output = packIn(folder);
  const [batches, rows] = [join(folder, "batches.jsonl"), join(folder, "rows.jsonl")];
  const sql = mapSql(stage, map, what, {
    sources,
    packs,
    output,
    pieces: folder,
    form,
    rows,
    rowBytesMax: Math.max(1024 * 1024, Math.floor(limits.memoryBytes / 16)),
  });
  const spillFolder = join(folder, "spill");
  const views = sql.views.map((one) => ({ sql: one }));
  const batchesTo = { path: batches, rows: map.function.batchRows };
  const pieces = piecesOf(document, what, folder);
  const work = {
    paths: [...pathsOf(document, what, packs), ...pieces.map(({ as }) => as)],
    spillFolder,
    ...limits,
    settings: [],
    pieces,
    statements: [...views, { sql: sql.batches, batchesTo }],
  };
  const read = await engines.run(work, signal).catch(withPieces(pieces));
  await using box = await functions.open(signal);
  const module = await functions.module(map.function.module);
  const { skipped } = await callFunction(
    map,
    { batches, module, rows, folder },
    box,
    limits,
    signal,
    functions.printed,
  );
  const statements = [{ sql: sql.copy }, { sql: sql.facts, rowsMax: 100_000 }];
  const written = await engines
    .run({ paths: [rows, output], spillFolder, ...limits, settings: [], statements, digestOf: output }, signal)
    .catch((error: unknown) => {
      throw error instanceof EngineError && error.why === "query"
        ? new EngineError("query", `the function ${map.function.export} returned a wrong value: ${error.message}`)
        : error;
    });
  const spilledBytes = Math.max(read.spilledBytes, written.spilledBytes);
  return { ...written, cpuMs: read.cpuMs + written.cpuMs, spilledBytes, skipped };
}

/** The files of this task, and none of others. */
function pathsOf(document: StageDocument, what: TaskPart, packs: TaskFiles["packs"]): readonly string[] {
  const inputs = document.stage.branches[what.branch]?.inputs ?? [];
  const written = inputs.flatMap((input) => (input.from === "stage" ? (packs.get(input.stage)?.paths ?? []) : []));
  return [...new Set([...filesIn(document, what).map(({ path }) => path), ...written])];
}

/** Pieces of text files that this task reads, as files of its folder. */
function piecesOf({ stage, sources }: StageDocument, what: TaskPart, folder: string): readonly TextPiece[] {
  const { slice } = what;
  if (slice.by !== "source") return [];
  return (stage.branches[what.branch]?.inputs ?? []).flatMap((input) => {
    if (input.from !== "source" || input.take !== "part") return [];
    const { files = [] } = sources[input.source] ?? {};
    return slice.split.flatMap(({ file, bytes }) => {
      const { path, cuts } = files[file] ?? {};
      if (!bytes || path === undefined) return [];
      const [from, to] = bytes;
      return [{ path, head: cuts?.head ?? 0, from, to, as: piecePath(folder, file, from) }];
    });
  });
}

/** A complaint about a piece names the file that it is of; its lines are counted from there. */
const withPieces =
  (pieces: readonly TextPiece[]) =>
  (error: unknown): never => {
    const named = (text: string): string =>
      pieces.reduce((all, { as, path, from }) => all.replaceAll(as, `${path} (from byte ${from} on)`), text);
    throw withNames(error, [{ named }]);
  };

/** A cut may be anywhere between keys: a prefix is one as well. */
const cutLengthMax = 64;

function sharesOf(told: readonly (readonly [string, string, string])[], partitions: number): string {
  const counts = Array.from({ length: partitions }, () => 0);
  for (const [, partition, count] of told) counts[Number(partition)] = Number(count);
  const most = Math.max(1, ...counts);
  return counts
    .map((count) =>
      Math.ceil((count * 255) / most)
        .toString(16)
        .padStart(2, "0"),
    )
    .join("");
}
