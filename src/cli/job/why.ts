import { command, serverFlags } from "#door/command.ts";
import { jobIdOf } from "./id.ts";

export const jobWhy = command({
  name: "job why",
  about: "Say why a job's tasks are where they are: what each one waits for. The same as why, for jobs alone.",
  words: "<job>",
  positionalsMax: 1,
  takesRest: false,
  flags: {
    ...serverFlags,
    task: { type: "string", value: "TASK", about: "only this task: its stage, stage/key, or its id" },
  },
  examples: ["millrace job why j0-1", "millrace job why j0-1 --task work/4711"],
  async run({ positionals, values }, world) {
    const job = jobIdOf("job why", positionals, world);
    if (job === undefined) return 2;
    const { explainJob } = await import("./explain-job.ts");
    return await explainJob(values, job, world);
  },
});
