/** What a worker does for this door: plans a query, plans a wave of stages, runs one part of a stage. */
import { createReadStream } from "node:fs";
import { stat } from "node:fs/promises";
import type { Digest } from "#base/digest.ts";
import { Fault, isFault } from "#base/fault.ts";
import { sha256Digest } from "#blobs/sha256.ts";
import type { BlobStore, Store } from "#blobs/store.ts";
import type { FailReason } from "#kernel/model/model.ts";
import type { Planners, RunContext, RunOutcome, Runners } from "#worker/runner.ts";
import type { LinkCache } from "#worker/stage/link-cache.ts";
import { encodeDocument, type StageDocument, type StageInput, type TaskResult, type TaskSpec } from "./documents.ts";
import { kinds, readJob } from "./plan.ts";
import { planWave, type PlanResult } from "./plan-wave.ts";
import { Documents, type ReadBy } from "./run/documents-cache.ts";
import { EngineError, type Engines } from "./run/engines.ts";
import { prepareQuery } from "./run/prepare.ts";
import { packIn, runPart, type TaskFiles, type TaskLimits } from "./run/task.ts";

export type BatchPorts = {
  /** The node's own: what one task writes, others of the job read, wherever they run. */
  readonly blobs: BlobStore;
  /** What a tenant may fetch: plans and results. */
  readonly store: Pick<Store, "forTenant">;
  readonly engines: Engines;
  /** Packs as files. */
  readonly files: LinkCache;
  /** A fresh folder for one attempt, gone with it. */
  readonly scratch: (name: string) => Promise<AsyncDisposable & { readonly path: string }>;
  /** Of one task, before any ran out of it. */
  readonly memoryBytes: number;
  /** What a task gets at most, however often it ran out. */
  readonly memoryBytesMax: number;
  readonly spillBytes: number;
  /** Has a task done again whose pack is lost. */
  readonly invalidate: (taskId: string, generation: number, reason: string) => Promise<void>;
};

export function batchRunners(ports: BatchPorts, documents = new Documents()): Runners {
  return {
    [kinds.plan]: (context) => orFailed(context, () => planQuery(context, ports)),
    [kinds.part]: (context) => orFailed(context, () => runTask(context, ports, documents)),
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
  const document = await prepareQuery(job, { engines: ports.engines, signal, scratch: scratch.path });
  const bytes = encodeDocument(document);
  const plan = sha256Digest(bytes);
  await ports.blobs.write(plan, bytes);
  await ports.store.forTenant(task.tenant).blobs.write(plan, bytes);
  const result: PlanResult = { plan };
  return { kind: "done", payload: JSON.stringify(result), digests: [plan] };
}

async function runTask({ task, signal }: RunContext, ports: BatchPorts, documents: Documents): Promise<RunOutcome> {
  const { stage: digest, part } = JSON.parse(task.spec) as TaskSpec;
  const by = { tenant: task.tenant, blobs: ports.blobs };
  const document = await documents.stage(digest, by);
  await checkSources(document, part);
  const named = await packsOf(document, documents, by);
  using _held = await heldPacks(named, by.blobs, ports);
  const packs: TaskFiles["packs"] = new Map(
    [...named].map(([id, { types, digests }]) => [
      id,
      { types, paths: digests.map((one) => ports.files.path(one, false)) },
    ]),
  );
  await using scratch = await ports.scratch(task.taskId);
  const limits = limitsFor(task.outOfMemory ?? 0, ports);
  const result = await runPart(
    document,
    part,
    { packs, folder: scratch.path },
    { engines: ports.engines, limits, signal },
  );
  const bytes = () => createReadStream(packIn(scratch.path), { highWaterMark: 1024 * 1024 });
  await ports.blobs.write(result.pack, bytes());
  if (result.isResult) await ports.store.forTenant(task.tenant).blobs.write(result.pack, bytes());
  const done: TaskResult = { ...result, by: { task: task.taskId, generation: task.generation } };
  return { kind: "done", payload: JSON.stringify(done), digests: [result.pack] };
}

/** Doubled each time that it was not enough. */
const limitsFor = (outOfMemory: number, { memoryBytes, memoryBytesMax, spillBytes }: BatchPorts): TaskLimits => ({
  memoryBytes: Math.min(memoryBytesMax, memoryBytes * 2 ** Math.min(outOfMemory, 10)),
  spillBytes,
});

type Packs = ReadonlyMap<string, Pick<StageInput, "types" | "producers"> & { readonly digests: readonly Digest[] }>;

async function packsOf(document: StageDocument, documents: Documents, by: ReadBy): Promise<Packs> {
  const found = new Map<string, Pick<StageInput, "types" | "producers"> & { readonly digests: readonly Digest[] }>();
  for (const [id, { manifest, types, producers }] of Object.entries(document.inputs)) {
    const { packs } = await documents.manifest(manifest, by);
    found.set(id, { types, producers, digests: packs.map(({ digest }) => digest) });
  }
  return found;
}

/** Has all packs here as files. Those that are lost or damaged are asked for again, from exactly who wrote them. */
async function heldPacks(packs: Packs, blobs: BlobStore, { files, invalidate }: BatchPorts): Promise<Disposable> {
  const wanted = [...new Set([...packs.values()].flatMap(({ digests }) => digests))];
  const lost = new Set(await blobs.missing(wanted));
  try {
    if (lost.size === 0)
      return await files.hold(
        wanted.map((digest) => ({ digest, executable: false })),
        blobs,
      );
  } catch (error) {
    const digest = isFault(error) ? error.facts["digest"] : undefined;
    if (typeof digest !== "string" || !wanted.includes(digest)) throw error;
    lost.add(digest);
  }
  for (const { digests, producers } of packs.values())
    for (const [i, digest] of digests.entries()) {
      const by = producers[i];
      if (by && lost.has(digest)) await invalidate(by.task, by.generation, `its pack ${digest} is lost`);
    }
  throw new Fault("not-found", readPacks, { digest: [...lost][0], lost: lost.size });
}

const readPacks = "read packs";

/** Every attempt reads what was there when the job began, or none does. */
async function checkSources({ stage, sources, parts }: StageDocument, part: number): Promise<void> {
  const what = parts[part];
  for (const input of stage.branches[what?.branch ?? 0]?.inputs ?? []) {
    if (input.from !== "source") continue;
    const source = sources[input.source];
    const taken =
      what?.slice.by === "source" && input.take === "part" ? what.slice.split.map(({ file }) => file) : undefined;
    for (const [i, { path, bytes, modifiedMs }] of (source?.files ?? []).entries()) {
      if (taken && !taken.includes(i)) continue;
      const now = await stat(path).catch(() => undefined);
      if (now?.size !== bytes || Math.floor(now.mtimeMs) !== modifiedMs)
        throw new Fault("stale", "read source", { path, why: "it was changed or removed after the job began" });
    }
  }
}

const reasons: Readonly<Record<EngineError["why"], FailReason>> = {
  query: "user-failure",
  "out-of-memory": "out-of-memory",
  "no-space": "executor-lost",
  interrupted: "executor-lost",
  died: "executor-lost",
};

async function orFailed({ signal }: RunContext, run: () => Promise<RunOutcome>): Promise<RunOutcome> {
  try {
    return await run();
  } catch (error) {
    signal.throwIfAborted();
    const message = error instanceof Error ? error.message : String(error);
    if (error instanceof EngineError) return { kind: "failed", reason: reasons[error.why], message };
    if (isFault(error, "not-found") && error.doing === readPacks)
      return { kind: "failed", reason: "input-lost", message };
    if (isFault(error, "invalid") || isFault(error, "stale") || isFault(error, "not-found"))
      return { kind: "failed", reason: "user-failure", message };
    throw error;
  }
}
