/** Runs one part of a stage on an engine: files in, one pack out. It knows neither kernel nor store. */
import { join } from "node:path";
import type { PlanType } from "#doors/batch/plan/plan-json.ts";
import { taskSql } from "#doors/batch/plan/task-sql.ts";
import type { StageDocument, TaskResult } from "#doors/batch/documents.ts";
import type { Engines } from "./engines.ts";

export type TaskFiles = {
  /** By stage: the types of its columns and its packs, as files. */
  readonly packs: ReadonlyMap<string, { readonly types: readonly PlanType[]; readonly paths: readonly string[] }>;
  /** A folder of the task's own. */
  readonly folder: string;
};

export type TaskLimits = { readonly memoryBytes: number; readonly spillBytes: number };

export const packIn = (folder: string): string => join(folder, "pack.parquet");

export async function runPart(
  { stage, sources, parts }: StageDocument,
  part: number,
  { packs, folder }: TaskFiles,
  { engines, limits, signal }: { readonly engines: Engines; readonly limits: TaskLimits; readonly signal: AbortSignal },
): Promise<Omit<TaskResult, "by">> {
  const what = parts[part];
  if (!what) throw new Error(`the stage ${stage.id} has no part ${part}`);
  const output = packIn(folder);
  const { views, copy, facts } = taskSql(stage, what, { sources, packs, output });
  const inputs = stage.branches[what.branch]?.inputs ?? [];
  const paths = inputs.flatMap((input) =>
    input.from === "source"
      ? (sources[input.source]?.files ?? []).map(({ path }) => path)
      : (packs.get(input.stage)?.paths ?? []),
  );
  const { rows, digest, cpuMs } = await engines.run(
    {
      paths: [...new Set(paths), output],
      spillFolder: join(folder, "spill"),
      ...limits,
      settings: [],
      statements: [...views.map((sql) => ({ sql })), { sql: copy }, { sql: facts, rowsMax: 100_000 }],
      digestOf: output,
    },
    signal,
  );
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
  };
}

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
