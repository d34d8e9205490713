/** What the commands of this door share: a job is followed to its end, and read. */
import { Fault } from "#base/fault.ts";
import { nodeFlags, type Flags, type ServerFlagValues, type World } from "#door/command.ts";
import type { JobView } from "#kernel/read/query.ts";
import type { WorkClient } from "#shard/client/client.ts";
import { door } from "#doors/batch/plan.ts";
import { viewBatch, type BatchView } from "#doors/batch/view.ts";
import type { ReadBlob } from "./results.ts";

export const batchFlags = {
  ...nodeFlags,
  server: {
    type: "string",
    value: "URL",
    about: "where results are fetched from; left out: the data folder says ($MILLRACE_SERVER)",
  },
  token: { type: "string", value: "TOKEN", about: "who fetches; better said by $MILLRACE_TOKEN" },
} as const satisfies Flags;

/** Plans and results are fetched from the node's cache, over HTTP. */
export const blobsFrom =
  (values: ServerFlagValues, world: Pick<World, "http">): ReadBlob =>
  async (digest) => {
    const http = await world.http(values);
    const { body } = await http.ask(`/api/cache/blobs/${digest}`, "fetch result");
    return body ?? nothing();
  };

async function* nothing(): AsyncGenerator<Uint8Array> {}

export const tasksMax = 100_000;

/** Ctrl-C ends the watching, never the job. */
export async function followToEnd(
  work: Pick<WorkClient, "watch" | "job">,
  jobId: string,
  world: World,
): Promise<BatchView | undefined> {
  const abort = new AbortController();
  const stop = (): void => abort.abort(new Error("watching ended"));
  process.once("SIGINT", stop);
  try {
    let done = 0;
    let tasks = 0;
    for await (const message of work.watch(jobId, abort.signal)) {
      if (message.kind !== "events") continue;
      for (const event of message.events) {
        if (event.kind === "stage-planned") tasks += event.set.tasks.length;
        if (event.kind === "committed") done += 1;
      }
      world.progress(tasks === 0 ? "planning" : `${Math.min(done, tasks)} of ${tasks} tasks`);
    }
  } catch (error) {
    if (!abort.signal.aborted) throw error;
    world.progress("");
    world.note(`${jobId} goes on by itself; get its result with: millrace batch get ${jobId}`);
    return undefined;
  } finally {
    process.off("SIGINT", stop);
    world.progress("");
  }
  return viewBatch(await batchJob(work, jobId));
}

export async function batchJob(work: Pick<WorkClient, "job">, jobId: string): Promise<JobView> {
  const { view } = await work.job(jobId, { tasksMax });
  if (view.door !== door) throw new Fault("not-found", "look up query", { job: jobId, why: "that job is no query" });
  return view;
}
