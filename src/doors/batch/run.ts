/** What a worker does for this door: plans a query, plans a wave of stages, runs one part of a stage. */
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import type { Digest } from "#base/digest.ts";
import { Fault, isFault } from "#base/fault.ts";
import { formatSize } from "#base/units.ts";
import { keepFile } from "#blobs/keep-file.ts";
import { sha256Digest } from "#blobs/sha256.ts";
import type { BlobStore, Store } from "#blobs/store.ts";
import { wholeBlob } from "#blobs/whole-blob.ts";
import type { FailReason } from "#kernel/model/model.ts";
import { pinSliceMs } from "#retention/keeps.ts";
import { withOutput } from "#worker/printed/failure-output.ts";
import { TaskOutput, type OutputPorts } from "#worker/printed/task-output.ts";
import type { Planners, RunContext, RunOutcome, Runners } from "#worker/runner.ts";
import { askerOf, encodeDocument, type PackForm, type TaskResult, type TaskSpec } from "./documents.ts";
import type { OpenBucket } from "./grants/buckets.ts";
import { resolveName, type Asker } from "./grants/resolve.ts";
import { sourceFiles, type FilesPorts } from "./grants/source-files.ts";
import { lookUp, twinsPack, type Known, type MemoLookup } from "./memo/look-up.ts";
import { keepMemo, type MemoResult } from "./memo/memo.ts";
import { foreseeStages } from "./plan/cut/cut.ts";
import { commitTask } from "./output/commit-task.ts";
import type { TaskCounts } from "./metrics.ts";
import { kinds, readJob } from "./plan.ts";
import { planWave, type PlanResult } from "./plan-wave.ts";
import { readsOf } from "./standing.ts";
import { Documents } from "./run/documents-cache.ts";
import { EngineError, withNames, type Engines } from "./run/engines.ts";
import { checkSources, filesOf, heldPacks, packsOf, readPacks, type PackPorts } from "./run/inputs.ts";
import type { OpenCallBox } from "./run/map/call-box.ts";
import { keepModules } from "./run/map/modules.ts";
import type { Memory } from "./run/memory.ts";
import { hereAs, prepareQuery } from "./run/prepare.ts";
import { wantedRows } from "./run/packs/wanted.ts";
import { packIn, runPart, type PartPorts, type TaskFiles, type TaskLimits } from "./run/task.ts";

export type BatchPorts = PackPorts &
  FilesPorts & {
    /** This node's name. */
    readonly node: string;
    /** How packs are compressed that travel far; left out: as is best on one machine. */
    readonly packForm?: PackForm | undefined;
    /** The node's own: what one task writes, others of the job read, wherever they run. */
    readonly blobs: BlobStore;
    /** What a tenant may fetch: plans and results. */
    readonly store: Pick<Store, "forTenant">;
    readonly engines: Engines;
    /** A fresh folder for one attempt, gone with it. */
    readonly scratch: (name: string) => Promise<AsyncDisposable & { readonly path: string }>;
    /** Of one task, before any ran out of it. */
    readonly memoryBytes: number;
    /** What tasks of this node get together, and one at most, however often it ran out. */
    readonly memory: Memory;
    readonly spillBytes: number;
    /** Where functions of users run; left out: nowhere. */
    readonly callBox?: OpenCallBox;
    /** Where what functions print can be read while they run; left out: it is there when they have ended. */
    readonly live?: OutputPorts | undefined;
    /** Whether that is a sandbox: functions of others than operators run nowhere else. */
    readonly isBoxed?: boolean;
    readonly openBucket?: OpenBucket;
    readonly counts: TaskCounts;
    /** Since some instant; for how long something took. */
    readonly nowMs: () => number;
    readonly warn: (event: string, fields: { readonly task: string; readonly reason: string }) => void;
    /** Left out: nothing is looked up, and nothing is kept for others. */
    readonly memo?: MemoLookup;
  };

export function batchRunners(ports: BatchPorts, documents = new Documents()): Runners {
  return {
    [kinds.plan]: (context) => orFailed(context, () => planQuery(context, ports)),
    [kinds.commit]: (context) =>
      orFailed(context, () => commitTask(context, ports, documents, limitsFor(context.task.outOfMemory ?? 0, ports))),
    [kinds.part]: (context) => {
      const printed = new TaskOutput(context, ports.live);
      return orFailed(context, () => runTask(context, ports, documents, printed), printed);
    },
  };
}

export function batchPlanners({ blobs }: Pick<BatchPorts, "blobs">, documents = new Documents()): Planners {
  return {
    [kinds.wave]: (inputs, { task }) => planWave(inputs, task.stage, { blobs, documents, tenant: task.tenant }),
  };
}

async function planQuery({ task, signal }: RunContext, ports: BatchPorts): Promise<RunOutcome> {
  const job = readJob(task.spec);
  if (!job) return { kind: "failed", reason: "user-failure", message: "the job is no query" };
  await using scratch = await ports.scratch(task.taskId);
  const modules = await keepModules(job, task.tenant, ports);
  const { isGranted = false, folder, output } = job;
  const asker = { tenant: task.tenant, isGranted, folder };
  if (output) resolveName(output.folder, asker, ports.grants, true); // or it has no place to go to
  const files = sourceFiles(asker, ports);
  const prepared = await prepareQuery(job, { engines: ports.engines, files, signal, scratch: scratch.path });
  const far = ports.packForm && { packs: ports.packForm };
  const document = { ...prepared, ...far, asker: { isGranted, folder }, ...(output && { output }) };
  const bytes = encodeDocument(document);
  const plan = sha256Digest(bytes);
  await ports.blobs.write(plan, bytes);
  await ports.store.forTenant(task.tenant).blobs.write(plan, bytes);
  const stages = document.how.kind === "one" ? 1 : foreseeStages(document).flatMap((wave) => wave.stages).length;
  const result: PlanResult = { plan, stages };
  return { kind: "done", payload: JSON.stringify(result), digests: [plan, ...modules] };
}

async function runTask(
  context: RunContext,
  ports: BatchPorts,
  documents: Documents,
  printed: TaskOutput,
): Promise<RunOutcome> {
  const { task, signal } = context;
  const { stage: digest, part, fresh = false } = JSON.parse(task.spec) as TaskSpec;
  const by = { tenant: task.tenant, blobs: ports.blobs };
  const document = await documents.stage(digest, by);
  await checkSources(document, part);
  const named = await packsOf(document, documents, by);
  const known = { tenant: task.tenant, document, part, named, signal };
  const memo = await lookUp(known, ports);
  // Another generation is wanted because the bytes of the one before could not be read.
  if (memo?.found && task.generation === 1 && !fresh) return await reusedOutcome(memo.found, known, task, ports);
  const startedMs = ports.nowMs();
  await using scratch = await ports.scratch(task.taskId);
  const rows = wantedRows(document, part, named);
  await using held = await heldPacks(rows.packs, by.blobs, ports, { of: rows.of, folder: scratch.path });
  const packs: TaskFiles["packs"] = new Map(
    [...named].map(([id, { types, digests }]) => [id, { types, paths: digests.map((one) => held.pathOf(one)) }]),
  );
  const asker = askerOf(document, task.tenant);
  using here = await sourceFiles(asker, ports).hold(filesOf(document, part), "task", signal);
  const local = { ...document, sources: document.sources.map((source) => hereAs(source, here)) };
  const { result, folder } = await withMemory(context, ports, async (limits, times) => {
    const own = join(scratch.path, String(times));
    await mkdir(own, { mode: 0o700 });
    const more = { engines: ports.engines, limits, signal, ...functionsOf(context, ports, asker, printed) };
    return { folder: own, result: await runPart(local, part, { packs, folder: own }, more) };
  }).catch((error: unknown) => {
    throw withNames(error, [here]);
  });
  await keepFile(ports.blobs, result.pack, packIn(folder));
  if (result.isResult) await giveResult(result.pack, task.tenant, ports);
  // What was read is what was there when the job began, until the end.
  await checkSources(document, part);
  const ms = Math.round(ports.nowMs() - startedMs);
  const before = memo && (memo.before ?? (await twinsPack(memo.key, task.tenant, ms, ports)));
  const isOther = before !== undefined && before !== result.pack;
  if (isOther) ports.counts.nondeterministic();
  if (isOther) ports.warn("batch-nondeterministic", { task: task.taskId, reason: `wrote ${before} before` });
  const why = memo && { why: isOther ? `not deterministic: wrote ${before} before` : memo.why };
  ports.counts.computed(result, ms);
  const done: TaskResult = {
    ...result,
    ms,
    ...why,
    ...readsOf(named),
    at: ports.node,
    by: { task: task.taskId, generation: task.generation },
    ...(printed.last && { output: printed.last.digest, token: task.token }),
  };
  const kept = memo && (await keepMemo(memo.key, result, ports.blobs));
  return {
    kind: "done",
    payload: JSON.stringify(done),
    digests: [result.pack, ...(kept ? [kept.memo] : []), ...(printed.last ? [printed.last.digest] : [])],
    ...(printed.last && { outputs: printed.last.outputs }),
    ...(kept && { publish: kept.publish }),
  };
}

/**
 * BR1 A task that runs out of memory is run again with twice as much, in the same attempt: the machine is not to blame.
 *     It fails when it had as much as any task of this node gets, and says how much that was.
 */
async function withMemory<T>(
  { task, signal }: RunContext,
  ports: BatchPorts,
  run: (limits: TaskLimits, times: number) => Promise<T>,
): Promise<T> {
  for (let times = task.outOfMemory ?? 0; ; times += 1) {
    const limits = limitsFor(times, ports);
    using _held = await ports.memory.take(limits.memoryBytes, signal);
    try {
      return await run(limits, times);
    } catch (error) {
      if (!(error instanceof EngineError) || error.why !== "out-of-memory") throw error;
      ports.counts.outOfMemory();
      if (limits.memoryBytes >= ports.memory.totalBytes)
        throw new Fault("invalid", "run task", {
          memory: formatSize(limits.memoryBytes),
          why: `it needs more memory than that, which is all that tasks of this node have: ${error.message}`,
        });
    }
  }
}

const functionsOf = (
  context: RunContext,
  { callBox, isBoxed, blobs }: BatchPorts,
  { isGranted }: Asker,
  printed: TaskOutput,
): Pick<PartPorts, "functions"> =>
  callBox && (isBoxed || !isGranted)
    ? {
        functions: {
          open: (signal) => callBox({ task: context.task, signal }),
          module: (digest) => wholeBlob(blobs, digest),
          printed,
        },
      }
    : {};

/** The same pack under this job's own names. */
async function reusedOutcome(
  found: MemoResult,
  { tenant, document, part, named }: Known,
  task: RunContext["task"],
  ports: BatchPorts,
): Promise<RunOutcome> {
  const { stage } = document;
  const isResult = stage.output.kind === "result";
  if (isResult) await giveResult(found.pack, tenant, ports);
  ports.counts.reused();
  const done: TaskResult = {
    ...found,
    cpuMs: 0,
    stage: stage.id,
    about: stage.about.slice(0, 100),
    isResult,
    part,
    reused: true,
    ...readsOf(named),
    by: { task: task.taskId, generation: task.generation },
  };
  return { kind: "done", payload: JSON.stringify(done), digests: [found.pack] };
}

/** What the tenant asked for is its own, and is kept (`Door.keepsResults`): pinned until that is looked at first. */
async function giveResult(pack: Digest, tenant: string, { blobs: own, store }: BatchPorts): Promise<void> {
  const { blobs } = store.forTenant(tenant);
  const missing = await blobs.missing([pack]);
  if (missing.length > 0) await blobs.write(pack, own.read(pack));
  await blobs.pin([pack], pinSliceMs).catch((error: unknown) => {
    if (!isFault(error, "invalid")) throw error; // a store that allows only shorter pins
  });
}

/** Doubled each time that it was not enough. */
const limitsFor = (outOfMemory: number, { memoryBytes, memory, spillBytes }: BatchPorts): TaskLimits => ({
  memoryBytes: Math.min(memory.totalBytes, memoryBytes * 2 ** Math.min(outOfMemory, 10)),
  spillBytes,
});

const reasons: Readonly<Record<EngineError["why"], FailReason>> = {
  query: "user-failure",
  "out-of-memory": "out-of-memory",
  "no-space": "executor-lost",
  interrupted: "executor-lost",
  died: "executor-lost",
};

async function orFailed(
  { signal }: RunContext,
  run: () => Promise<RunOutcome>,
  printed?: TaskOutput,
): Promise<RunOutcome> {
  try {
    return await run();
  } catch (error) {
    signal.throwIfAborted();
    const reason = reasonOf(error);
    if (reason === undefined) throw error;
    const message = error instanceof Error ? error.message : String(error);
    if (!printed?.last) return { kind: "failed", reason, message };
    const { digest, outputs } = printed.last;
    const left = { payload: JSON.stringify({ output: digest }), outputs, digests: [digest] };
    return { kind: "failed", reason, message: withOutput(message, digest), left };
  }
}

/** Undefined: this machine, or the program, is at fault. */
function reasonOf(error: unknown): FailReason | undefined {
  if (error instanceof EngineError) return reasons[error.why];
  if (isFault(error, "not-found") && error.doing === readPacks) return "input-lost";
  if (isFault(error, "invalid") || isFault(error, "stale") || isFault(error, "not-found")) return "user-failure";
  return undefined;
}
