import { followJob } from "#app/job-view.ts";
import type { WorkClient } from "#shard/client/client.ts";
import type { ExitCode, World } from "#door/command.ts";

/** Shows a job until it has ended: 0 when it succeeded. Ctrl-C ends the watching, never the job. */
export async function watchJob(
  work: Pick<WorkClient, "watch">,
  jobId: string,
  values: { readonly json?: boolean },
  world: World,
): Promise<ExitCode> {
  const abort = new AbortController();
  const stop = (): void => abort.abort(new Error("watching ended"));
  process.once("SIGINT", stop);
  const follower = followJob(jobId);
  try {
    for await (const message of work.watch(jobId, abort.signal)) {
      if (values.json) world.out(JSON.stringify({ jobId, ...message }));
      const lines = follower.lines(message);
      if (!values.json) for (const line of lines) world.out(line);
      if (!values.json) world.progress(follower.progress);
    }
  } catch (error) {
    if (!abort.signal.aborted) throw error;
    world.progress("");
    world.note(`${jobId} goes on by itself; watch it again with: millrace job watch ${jobId}`);
    return 0;
  } finally {
    process.off("SIGINT", stop);
  }
  world.progress("");
  return follower.phase === "SUCCEEDED" ? 0 : 1;
}
