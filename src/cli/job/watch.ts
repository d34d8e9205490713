import { command, serverFlags } from "#door/command.ts";
import { jobIdOf } from "./id.ts";

export const jobWatch = command({
  name: "job watch",
  about: "Show what happens to a job until it has ended, through restarts of the node.",
  words: "<job>",
  positionalsMax: 1,
  takesRest: false,
  flags: serverFlags,
  examples: ["millrace job watch j0-1"],
  async run({ positionals, values }, world) {
    const jobId = jobIdOf("job watch", positionals, world);
    if (jobId === undefined) return 2;
    const { followToEnd } = await import("./follow.ts");
    return await followToEnd(values, { jobId, json: values.json === true, output: false }, world);
  },
});
