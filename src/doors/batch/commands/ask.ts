/** What the commands of this door share: a job is submitted, followed to its end, and read. */
import { setTimeout as pause } from "node:timers/promises";
import { serverFlags, type ServerFlagValues, type World } from "#door/command.ts";
import type { QueryView } from "#doors/batch/endpoints.ts";
import { pauseAfter } from "#doors/batch/api/job.ts";
import { progressText } from "./progress.ts";
import type { ReadBlob } from "#doors/batch/api/fetched.ts";

export const batchFlags = serverFlags;

/** Plans and results are fetched from the node's cache, over HTTP. */
export const blobsFrom =
  (values: ServerFlagValues, world: Pick<World, "http">): ReadBlob =>
  async (digest) => {
    const http = await world.http(values);
    const { body } = await http.ask(`/v1/build-cache/blobs/${digest}`, "fetch result");
    return body ?? nothing();
  };

async function* nothing(): AsyncGenerator<Uint8Array> {}

export async function queryView(
  jobId: string,
  values: ServerFlagValues,
  world: Pick<World, "http">,
): Promise<QueryView> {
  const http = await world.http(values);
  return (await (await http.ask(`/v1/batch/queries/${encodeURIComponent(jobId)}`, "show query")).json()) as QueryView;
}

export async function cancelQuery(
  jobId: string,
  reason: string,
  values: ServerFlagValues,
  world: Pick<World, "http">,
): Promise<void> {
  const http = await world.http(values);
  const init = { method: "POST", body: JSON.stringify({ reason }), headers: { "content-type": "application/json" } };
  await http.ask(`/v1/jobs/${encodeURIComponent(jobId)}/cancel`, "cancel query", init);
}

/** Ctrl-C ends the watching, never the job: undefined then. */
export async function followToEnd(
  jobId: string,
  values: ServerFlagValues,
  world: World,
  signal?: AbortSignal,
): Promise<QueryView | undefined> {
  const abort = new AbortController();
  const stop = (): void => abort.abort();
  process.once("SIGINT", stop);
  signal?.addEventListener("abort", stop, { once: true });
  try {
    for (const startedMs = performance.now(); ;) {
      const view = await queryView(jobId, values, world);
      if (view.ended) return view;
      world.progress(progressText(view));
      await pause(pauseAfter(performance.now() - startedMs), undefined, { signal: abort.signal });
    }
  } catch (error) {
    if (signal?.aborted) {
      await cancelQuery(jobId, "the shell was interrupted", values, world);
      world.note(`${jobId} is being cancelled`);
      return undefined;
    }
    if (!abort.signal.aborted) throw error;
    world.progress("");
    world.note(`${jobId} goes on by itself; get its result with: millrace batch get ${jobId}`);
    return undefined;
  } finally {
    process.off("SIGINT", stop);
    signal?.removeEventListener("abort", stop);
    world.progress("");
  }
}
