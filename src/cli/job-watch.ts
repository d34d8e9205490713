import { command, nodeFlags } from "#door/command.ts";
import { jobIdOf } from "./job-id.ts";

export const jobWatch = command({
  name: "job watch",
  about: "Show what happens to a job until it has ended, through restarts of the node.",
  words: "<job>",
  positionalsMax: 1,
  takesRest: false,
  flags: nodeFlags,
  examples: ["millrace job watch j0-1"],
  async run({ positionals, values }, world) {
    const jobId = jobIdOf("job watch", positionals, world);
    if (jobId === undefined) return 2;
    const { watchJob } = await import("./watching.ts");
    await using remote = await world.connect(values);
    return await watchJob(remote.work, jobId, values, world);
  },
});
