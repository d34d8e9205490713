/**
 * A build by a workflow of CI: the build's job starts a run of the release's commit, waits for its end, and packs the
 * artifact that the run left. CI is asked by name (`DoorPorts.ask`): doors know nothing of each other.
 *
 * WB1 A build starts one run, however often it is planned: the build's job is the run's key.
 */
import { createWriteStream } from "node:fs";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { z } from "zod";
import { isFault } from "#base/fault.ts";
import type { BlobStore } from "#blobs/store.ts";
import type { JobPhase, Plan } from "#kernel/model/model.ts";
import type { PlanInputs } from "#kernel/read/query.ts";
import type { DoorPorts } from "#door/ports.ts";
import type { WorkClient } from "#shard/client/client.ts";
import type { Planner, RunContext, RunOutcome } from "#worker/runner.ts";
import { planUnpack, type BuildSpec, type UnpackSpec } from "#doors/deploy/plan.ts";
import { packedOutcome, type BuildPorts } from "./build.ts";
import { unzip } from "./unzip.ts";

export type WorkflowPorts = {
  readonly ask: DoorPorts["ask"];
  readonly client: Pick<WorkClient, "signal" | "job">;
};

const Started = z.object({ run: z.string() });
const Found = z.object({ parts: z.array(z.string()).nullable() });
/** The run's end is told; this is for notices that were lost. */
const lookEveryMs = 10_000;
const limits = { entriesMax: 200_000, bytesMax: 64 * 1024 ** 3 };

export const planWorkflow =
  ({ ask, client }: WorkflowPorts): Planner =>
  async ({ spec, signals }: PlanInputs, { task: { tenant, jobId } }): Promise<Plan> => {
    const about = JSON.parse(spec) as BuildSpec;
    const { build, sha } = about;
    if (!build || !("workflow" in build)) return { kind: "fail", reason: "the build names no workflow" };
    const started = signals.find(({ name }) => name === "started")?.payload;
    if (started !== undefined) return afterRun(about, started, (await client.job(started, { tasksMax: 0 })).view);
    const { repository, workflow, inputs } = build;
    const whenEnded = [{ jobId, stage: "build", name: "run" }];
    try {
      const asked = { tenant, repository, workflow, sha, inputs, actor: "deploy", key: `deploy ${jobId}`, whenEnded };
      const { run } = Started.parse(await ask("ci.start", asked)); // WB1
      await client.signal(jobId, "build", { name: "started", payload: run, id: "started" });
      return { kind: "wait", forMs: lookEveryMs, signals: ["ended:run"] };
    } catch (error) {
      // An unknown repository, workflow or input stays unknown.
      if (isFault(error, "invalid") || isFault(error, "not-found"))
        return { kind: "fail", reason: `start ${workflow} of ${repository}: ${error.message}` };
      throw error;
    }
  };

/** Pure: what a build does when it finds its run like this. */
export function afterRun(
  about: BuildSpec,
  run: string,
  { phase, reason }: { readonly phase: JobPhase; readonly reason: string },
): Plan {
  if (phase === "SUCCEEDED") return planUnpack(about, run);
  if (phase === "FAILED" || phase === "CANCELLED")
    return { kind: "fail", reason: `the run ${run} has ended ${phase}${reason === "" ? "" : `: ${reason}`}` };
  return { kind: "wait", forMs: lookEveryMs, signals: ["ended:run"] };
}

export const unpackRunner =
  ({ ask, ...ports }: BuildPorts & Pick<WorkflowPorts, "ask">) =>
  async (context: RunContext): Promise<RunOutcome> => {
    const { run, artifact, output, of } = JSON.parse(context.task.spec) as UnpackSpec;
    const { tenant } = context.task;
    const { parts } = Found.parse(await ask("ci.artifact", { tenant, run, name: artifact }));
    if (!parts) return failed(`the run ${run} left no artifact ${artifact}`);
    await using scratch = await ports.place.scratch(context.task.taskId);
    const archive = join(scratch.path, "artifact.zip");
    const { blobs } = ports.store.forTenant(tenant);
    await pipeline(Readable.from(bytesOf(blobs, parts)), createWriteStream(archive), { signal: context.signal });
    const folder = join(scratch.path, "artifact");
    await mkdir(folder);
    try {
      await unzip(archive, folder, limits);
    } catch (error) {
      if (isFault(error, "invalid")) return failed(error.message);
      throw error;
    }
    return await packedOutcome(join(folder, output), of, context, ports);
  };

async function* bytesOf(blobs: BlobStore, parts: readonly string[]): AsyncGenerator<Uint8Array> {
  for (const part of parts) for await (const bytes of blobs.read(part)) yield Uint8Array.from(bytes);
}

const failed = (message: string): RunOutcome => ({ kind: "failed", reason: "user-failure", message });
