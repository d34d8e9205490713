import { command, nodeFlags } from "#door/command.ts";
import { jobIdOf } from "./job-id.ts";

export const jobShow = command({
  name: "job show",
  about: "Show a job: its stages, what runs, what failed and why.",
  words: "<job>",
  positionalsMax: 1,
  takesRest: false,
  flags: nodeFlags,
  examples: ["millrace job show j0-1"],
  async run({ positionals, values }, world) {
    const jobId = jobIdOf("job show", positionals, world);
    if (jobId === undefined) return 2;
    await using remote = await world.connect(values);
    const job = await remote.work.job(jobId);
    if (values.json) {
      world.out(JSON.stringify({ jobId, live: job.live, ...job.view }));
      return 0;
    }
    const { showJob } = await import("#app/job-view.ts");
    for (const line of showJob(jobId, job.view, Date.now())) world.out(line);
    return 0;
  },
});
