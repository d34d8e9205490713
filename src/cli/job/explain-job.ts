/** What each unfinished task of a job waits for, in a line for each. */
import { showJob, whyJob } from "#api/jobs.ts";
import type { ExitCode, World } from "#door/command.ts";
import { apiOf } from "#cli/api.ts";
import type { ServerFlagValues } from "#door/command.ts";

export async function explainJob(
  values: ServerFlagValues & { readonly json?: boolean; readonly task?: string | undefined },
  job: string,
  world: World,
): Promise<ExitCode> {
  const api = apiOf(values, world.env, "ask why");
  const { tasks, lines } = await api(whyJob, {
    params: { job },
    query: values.task === undefined ? {} : { task: values.task },
  });
  if (values.json) {
    for (const task of tasks) world.out(JSON.stringify({ jobId: job, ...task }));
    return 0;
  }
  for (const { task, stage, key, phase, says } of tasks) world.out(`${task}  ${stage}/${key}  ${phase}: ${says}`);
  if (tasks.length === 0) {
    const { phase, reason } = await api(showJob, { params: { job } });
    world.out(`${job} ${phase}${reason === "" ? "" : `: ${reason}`}`);
  }
  for (const line of lines) world.out(line);
  return 0;
}
