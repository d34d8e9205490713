/**
 * Planning is claimed work: what the stages so far have written decides what the next wave of them is.
 *
 * BW1 What is planned depends on the job and on committed results alone: planned again, it is the same.
 * BW2 A task reads exactly the packs that a manifest names, and the manifest is named by its digest.
 */
import type { Digest } from "#base/digest.ts";
import { sha256Digest } from "#blobs/sha256.ts";
import type { BlobStore } from "#blobs/store.ts";
import type { Plan, TaskPlan } from "#kernel/model/model.ts";
import type { PlanInputs } from "#kernel/read/query.ts";
import {
  commitPayload,
  encodeDocument,
  engineName,
  type CommitDocument,
  type CommitSpec,
  type Producer,
  type PlanDocument,
  type StageDocument,
  type StageInput,
  type TaskResult,
  type TaskSpec,
} from "./documents.ts";
import { commitTemplate, partTemplate, planStage, readJob, wavesMax, type BatchJob } from "./plan.ts";
import { nearestNode } from "./locality.ts";
import { nextStages } from "./plan-stages.ts";
import type { Documents } from "./run/documents-cache.ts";
import { factsOf, manifestOf } from "./stage-facts.ts";
import { standingResults, type Results } from "./standing.ts";

/** What the task that plans the query says. */
export type PlanResult = {
  readonly plan: Digest;
  /** How many stages it will have, as far as the sources tell. */
  readonly stages?: number;
};

export type WavePorts = { readonly blobs: BlobStore; readonly documents: Documents; readonly tenant: string };

export async function planWave(inputs: PlanInputs, wave: number, ports: WavePorts): Promise<Plan> {
  const job = readJob(inputs.spec);
  const planned = inputs.results.find(({ stage }) => stage === planStage)?.result;
  if (!job || !planned) return { kind: "fail", reason: "the job is no query, or was not planned" };
  const document = await ports.documents.plan((JSON.parse(planned.payload) as PlanResult).plan, ports);
  const results = resultsOf(inputs);
  const facts = new Map([...results].map(([id, parts]) => [id, factsOf(parts)]));
  const next = nextStages(document, facts);
  if (next.isLast && next.stages.every(({ stage }) => results.has(stage.id)))
    return await afterwards({ ...document, ...outputOf(document, job) }, inputs, { results, ports });
  // What is written is written by a wave of its own.
  if (wave >= wavesMax && (!next.isLast || outputOf(document, job).output))
    return { kind: "fail", reason: `the query needs more than ${wavesMax} stages behind each other` };
  const tasks: TaskPlan[] = [];
  for (const stage of next.stages) for (const task of await tasksOf(stage, job, results, ports)) tasks.push(task);
  return { kind: "tasks", set: { template: partTemplate, tasks } };
}

type Made = { readonly results: Results; readonly ports: WavePorts };

/** The query is answered: its result is written where the job says, once. */
async function afterwards(
  { output, columns, asker }: PlanDocument,
  { results: all }: PlanInputs,
  { results, ports }: Made,
): Promise<Plan> {
  const isWritten = all.some(({ result }) => result && isCommit(result.payload));
  if (!output || isWritten) return { kind: "skip", reason: "the query is answered" };
  const last = [...results.values()].flat().filter(({ isResult }) => isResult);
  const document: CommitDocument = {
    version: 1,
    engine: engineName,
    folder: output.folder,
    ...(asker && { asker }),
    partitionBy: output.partitionBy,
    columns,
    packs: last.map(({ pack, rows }) => ({ digest: pack, rows })),
    producers: producersOf(last),
  };
  const spec: CommitSpec = { commit: await write(encodeDocument(document), ports.blobs) };
  return { kind: "tasks", set: { template: commitTemplate, tasks: [{ key: "commit", spec: JSON.stringify(spec) }] } };
}

/** Only what the planning task has checked counts; versions before it knew operators only. */
const outputOf = (document: PlanDocument, { output, folder }: BatchJob): Pick<PlanDocument, "output" | "asker"> =>
  document.asker ? document : { ...(output && { output }), asker: { isGranted: false, folder } };

const isCommit = (payload: string): boolean => payload.startsWith(commitPayload);

const resultsOf = ({ results }: PlanInputs): Results =>
  standingResults(
    results.flatMap(({ stage: wave, result }) =>
      wave === planStage || !result || isCommit(result.payload)
        ? []
        : [{ ...(JSON.parse(result.payload) as TaskResult), wave }],
    ),
  );

async function tasksOf(
  planned: StageDocument,
  { fresh }: BatchJob,
  results: Results,
  { blobs }: WavePorts,
): Promise<readonly TaskPlan[]> {
  const inputs: Record<string, StageInput> = {};
  for (const [id, { types }] of Object.entries(planned.inputs)) {
    const made = results.get(id) ?? [];
    const manifest = await write(encodeDocument(manifestOf(id, made)), blobs);
    inputs[id] = { manifest, types, producers: producersOf(made) };
  }
  const stage = await write(encodeDocument({ ...planned, inputs }), blobs);
  return planned.parts.map((taken, part) => {
    const spec: TaskSpec = { stage, part, ...(fresh && { fresh }) };
    const affinity = taken && nearestNode(planned.stage, taken, results);
    return {
      key: `${planned.stage.id} ${part}`,
      spec: JSON.stringify(spec),
      ...(affinity !== undefined && { affinity }),
    };
  });
}

/** Without their present generations: a pack that was written again, the same, changes no task that reads it. */
const producersOf = (results: readonly TaskResult[]): readonly Producer[] =>
  results.map(({ by: { task } }) => ({ task, generation: 1 }));

async function write(bytes: Uint8Array, blobs: BlobStore): Promise<Digest> {
  const digest = sha256Digest(bytes);
  const missing = await blobs.missing([digest]);
  if (missing.length > 0) await blobs.write(digest, bytes);
  return digest;
}
