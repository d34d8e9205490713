/**
 * What a node tells a runner elsewhere about a job that it holds the claim of. All of it follows from the run and from
 * the task's place in it, as the shard has them: of what the runner says, only how it reaches the node counts.
 */
import { spawn } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import type { ClaimOf } from "#access/principal.ts";
import type { Clock } from "#base/clock.ts";
import type { Digest } from "#base/digest.ts";
import { Fault } from "#base/fault.ts";
import type { Spool } from "#blobs/spool.ts";
import type { Streams } from "#blobs/streams.ts";
import type { TaskAnswer } from "#door/door.ts";
import type { Stored } from "#door/ports.ts";
import type { WorkClient } from "#shard/client/client.ts";
import type { CellTask } from "#doors/ci/cell-task.ts";
import { planStage } from "#doors/ci/plan.ts";
import { findRun } from "#doors/ci/runs/look.ts";
import { readRun, type StoredRun } from "#doors/ci/runs/record.ts";
import { runFacts, withRunFacts } from "#doors/ci/runs/run-facts.ts";
import { inputsOf, withNeeds } from "#doors/ci/runs/stage-inputs.ts";
import { jobKnown, type JobKnown, type KnownPorts } from "./known.ts";
import { logName } from "./log/log-sender.ts";
import type { JobRequest } from "./request.ts";

export const questions = { job: "ci.job", log: "ci.log" } as const;

export type AnswerPorts = KnownPorts & {
  readonly client: Pick<WorkClient, "job" | "task">;
  readonly clock: Clock;
  readonly stored: Stored;
  readonly spool: Spool;
  /** For what is laid before it is packed. */
  readonly folder: string;
};

const JobAsked = z.strictObject({
  /** How the runner reaches a node. */
  server: z.url({ protocol: /^https?$/ }).max(1_000),
  isCommitWanted: z.boolean(),
  /** By `owner/repo@ref`: what an earlier attempt at the job has used; its own machine may say any commit anyway. */
  commits: z
    .record(z.string().max(500), z.string().regex(/^[\da-f]{40}(?:[\da-f]{24})?$/))
    .refine((all) => Object.keys(all).length <= 200)
    .default({}),
});
const LogAsked = z.strictObject({ token: z.int().min(0), offset: z.int().min(0), bytes: z.int().min(1) });

export type JobAnswer = JobKnown & {
  readonly actions: NonNullable<JobRequest["actions"]>;
  /** A tar file with the commit and the actions; left out: there is nothing to bring. */
  readonly pack?: Digest | undefined;
};

/** A pack is read at once; a job that starts late asks again. */
const packMs = 3_600_000;
const attemptMs = 5 * 24 * 3_600_000;
const logBytesEach = 512 * 1024;

export const ciAnswers = (ports: AnswerPorts): Readonly<Record<string, TaskAnswer>> => ({
  [questions.job]: async (claim, body) => await answerJob(claim, JobAsked.parse(body), ports),
  [questions.log]: async (claim, body) => await answerLog(claim, LogAsked.parse(body), ports.stored.streams),
});

async function answerJob(
  claim: ClaimOf,
  { server, isCommitWanted, commits }: z.output<typeof JobAsked>,
  ports: AnswerPorts,
): Promise<JobAnswer> {
  const { tenant, job: jobId, task: taskId, token } = claim;
  const { blobs } = ports.stored;
  const task = { tenant, jobId, taskId, token, attemptMs };
  const at = { task, blobs, clock: ports.clock, origin: new URL(server).origin };
  const { bring, ...known } = await jobKnown(await cellTaskOf(claim, ports), at, ports);
  const folder = await mkdtemp(join(ports.folder, "ci-pack-"));
  try {
    const actions = await bring(folder, { isCommitWanted, commits });
    return { ...known, actions, pack: await packed(folder, tenant, ports) };
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** Planned again, a stage is the same (P1): so the task's spec is known without asking the runner for it. */
async function cellTaskOf({ tenant, job, task }: ClaimOf, { client, stored }: AnswerPorts): Promise<CellTask> {
  const { view } = await findRun(client, job, tenant);
  const run = JSON.parse(view.spec) as StoredRun;
  const record = withRunFacts(await readRun(stored.blobs, run), await runFacts(client, job, run.about));
  const { stage: number, key } = await client.task(task);
  const whole = withNeeds(view, record);
  const stage = whole.stages.find((one) => one.stage === number);
  const plan = stage && planStage(await inputsOf(stage, { view: whole, stored: run }, stored.blobs), record);
  const tasks = plan?.kind === "tasks" ? (plan.sets ?? []).flatMap((set) => set.tasks ?? []) : [];
  const found = tasks.find((one) => one.key === key);
  if (!found) throw new Fault("not-found", "find the job of a task", { task, key });
  return JSON.parse(found.spec) as CellTask;
}

async function packed(folder: string, tenant: string, { spool, stored }: AnswerPorts): Promise<Digest> {
  const { blobs } = stored.store.forTenant(tenant);
  const child = spawn("tar", ["-C", folder, "-c", "--owner=0", "--group=0", "."], {
    stdio: ["ignore", "pipe", "ignore"],
  });
  const ended = new Promise<number | null>((resolve, reject) => child.on("error", reject).on("close", resolve));
  ended.catch(() => {}); // it is awaited below
  await using spooled = await spool.take(child.stdout, { tenant, principal: "ci" });
  if ((await ended) !== 0) throw new Fault("unavailable", "pack a job's commit and actions", { program: "tar" });
  await blobs.write(spooled.digest, spooled.content());
  await blobs.pin([spooled.digest], packMs);
  return spooled.digest;
}

/** Of an attempt at the same task: what of its log this node has. */
async function answerLog(
  { tenant, task }: ClaimOf,
  { token, offset, bytes }: z.output<typeof LogAsked>,
  streams: Streams | undefined,
): Promise<{ readonly base64: string }> {
  const key = { tenant, task, token, name: logName };
  const { sizeBytes = 0 } = (await streams?.state(key)) ?? {};
  const parts: Uint8Array[] = [];
  // at the end of a stream that is not sealed it would wait for more, which never comes
  let left = Math.min(bytes, logBytesEach, sizeBytes - offset);
  const over = AbortSignal.timeout(10_000);
  for await (const part of left > 0 && streams ? streams.read(key, offset, over) : []) {
    parts.push(Uint8Array.from(part.subarray(0, left)));
    left -= Math.min(left, part.length);
    if (left === 0) break;
  }
  return { base64: Buffer.concat(parts).toString("base64") };
}
