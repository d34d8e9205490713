import { command, serverFlags } from "#door/command.ts";
import { jobIdOf } from "./id.ts";

export const jobLogs = command({
  name: "job logs",
  about: "Show what the tasks of a job print, while they run and afterwards.",
  words: "<job>",
  positionalsMax: 1,
  takesRest: false,
  flags: {
    ...serverFlags,
    follow: { type: "boolean", short: "f", about: "go on until the job has ended" },
    task: { type: "string", value: "TASK", about: "only this task: its stage, stage/key, or its id" },
  },
  examples: ["millrace job logs j0-1", "millrace job logs -f j0-1", "millrace job logs j0-1 --task test/3"],
  async run({ positionals, values }, world) {
    const jobId = jobIdOf("job logs", positionals, world);
    if (jobId === undefined) return 2;
    const { showLogs } = await import("./follow.ts");
    const { json = false, follow = false, task } = values;
    return await showLogs(values, { jobId, json, follow, ...(task !== undefined && { task }) }, world);
  },
});
