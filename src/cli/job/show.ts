import { command, serverFlags } from "#door/command.ts";
import { jobIdOf } from "./id.ts";

export const jobShow = command({
  name: "job show",
  about: "Show a job: its stages, what runs, what failed and why.",
  words: "<job>",
  positionalsMax: 1,
  takesRest: false,
  flags: serverFlags,
  examples: ["millrace job show j0-1"],
  async run({ positionals, values }, world) {
    const job = jobIdOf("job show", positionals, world);
    if (job === undefined) return 2;
    const { apiOf } = await import("#cli/api.ts");
    const { showJob } = await import("#api/jobs.ts");
    const { shown, ...details } = await apiOf(values, world.env, "show job")(showJob, { params: { job } });
    if (values.json) world.out(JSON.stringify({ jobId: job, ...details }));
    else for (const line of shown) world.out(line);
    return 0;
  },
});
