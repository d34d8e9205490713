import { command, serverFlags } from "#door/command.ts";
import { jobIdOf } from "./id.ts";

export const jobCancel = command({
  name: "job cancel",
  about: "Stop a job and everything of it that runs; what cleans up after it still gets its turn.",
  words: "<job>",
  positionalsMax: 1,
  takesRest: false,
  flags: {
    ...serverFlags,
    reason: { type: "string", value: "TEXT", about: "shown to who looks at the job" },
    hard: { type: "boolean", about: "at once: stages that clean up do not run" },
    stage: { type: "string", value: "NAME", about: "stop only this stage" },
  },
  examples: ["millrace job cancel j0-1 --reason 'wrong branch'", "millrace job cancel j0-1 --hard"],
  async run({ positionals, values }, world) {
    const job = jobIdOf("job cancel", positionals, world);
    if (job === undefined) return 2;
    const { apiOf } = await import("#cli/api.ts");
    const { cancelJob, showJob } = await import("#api/jobs.ts");
    const api = apiOf(values, world.env, "cancel job");
    const before = await api(showJob, { params: { job } });
    const hadEnded = before.endedAt !== undefined;
    const { phase } = hadEnded
      ? before
      : await api(cancelJob, {
          params: { job },
          body: {
            reason: values.reason ?? "",
            hard: values.hard ?? false,
            ...(values.stage !== undefined && { stage: values.stage }),
          },
        });
    if (values.json) world.out(JSON.stringify({ jobId: job, phase, cancelled: !hadEnded }));
    else world.out(hadEnded ? `${job} had already ended: ${phase}` : `${job} ${phase}`);
    return hadEnded ? 1 : 0;
  },
});
