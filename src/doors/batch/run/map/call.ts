/** Calls a user's function on the rows of one task: batches in a file, rows in another. */
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { Fault } from "#base/fault.ts";
import type { StageMap } from "#doors/batch/plan/map-function.ts";
import { EngineError } from "#doors/batch/run/engines.ts";
import { preloadFlags } from "#worker/process/preload-flags.ts";
import { fileHead } from "#worker/printed/file-head.ts";
import type { TaskOutput } from "#worker/printed/task-output.ts";
import type { CallBox, CallEnd } from "./call-box.ts";

export type CallFiles = {
  /** The batches; moved away. */
  readonly batches: string;
  readonly module: Uint8Array;
  /** Where its rows go. */
  readonly rows: string;
  /** For what it says at the end. */
  readonly folder: string;
};

export type Called = { readonly skipped: number };

type Outcome = { readonly skipped?: number; readonly failed?: string; readonly outOfMemory?: boolean };

const hosts = {
  javascript: fileURLToPath(new URL("./host.ts", import.meta.url)),
  python: fileURLToPath(new URL("./host.py", import.meta.url)),
} as const;
const MiB = 1024 * 1024;
/** What V8 prints when its heap is full. */
const heapMessage = /heap out of memory|Allocation failed/;
const outcomeBytesMax = 64 * 1024;

export async function callFunction(
  { function: called, columns }: StageMap,
  { batches, module, rows, folder }: CallFiles,
  box: CallBox,
  limits: { readonly memoryBytes: number; readonly spillBytes: number },
  signal: AbortSignal,
  printed?: TaskOutput,
): Promise<Called> {
  const { language, export: name, params, schema, batchMs, skipMax } = called;
  const { memoryBytes } = limits;
  const call = { export: name, params: JSON.parse(params) as unknown, columns, schema, batchMs, skipMax, memoryBytes };
  await box.give("call.json", JSON.stringify(call));
  await box.give(language === "python" ? "module.py" : "module.mjs", module);
  await box.take(batches, "in.jsonl");
  const heap = Math.max(64, Math.floor(memoryBytes / MiB));
  const argv =
    language === "python"
      ? ["python3", "-B", hosts.python]
      : [process.execPath, "--no-warnings", `--max-old-space-size=${heap}`, ...preloadFlags(), hosts.javascript];
  const end = await box.run(
    argv,
    { memoryBytes: memoryBytes + 256 * MiB, fileBytes: limits.spillBytes },
    signal,
    printed?.printing,
  );
  const outcome = await outcomeOf(box, join(folder, "outcome.json"));
  if (outcome?.outOfMemory || (!outcome && (end.isOutOfMemory || heapMessage.test(end.said))))
    throw new EngineError("out-of-memory", `the function ${name} used more than ${heap} MiB of memory`);
  if (end.output.totalBytes > 0) await printed?.kept(end.output);
  const why = await whyFailed(outcome, end, box, rows);
  if (why !== undefined) throw failed(name, why);
  return { skipped: outcome?.skipped ?? 0 };
}

async function whyFailed(
  outcome: Outcome | undefined,
  { said }: CallEnd,
  box: CallBox,
  rows: string,
): Promise<string | undefined> {
  if (!outcome) return said === "" ? "its process ended without a result" : said.slice(-1_500);
  if (outcome.failed !== undefined) return outcome.failed;
  return (await box.fetch("out.jsonl", rows)) ? undefined : "it removed its results";
}

const failed = (name: string, why: string): Fault => new Fault("invalid", "run function", { function: name, why });

async function outcomeOf(box: CallBox, path: string): Promise<Outcome | undefined> {
  if (!(await box.fetch("outcome.json", path))) return undefined;
  const text = (await fileHead(path, outcomeBytesMax)).toString("utf8");
  try {
    return JSON.parse(text) as Outcome;
  } catch {
    return undefined; // it was killed while writing, or wrote too much
  }
}
