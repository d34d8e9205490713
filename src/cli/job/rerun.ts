import { randomUUID } from "node:crypto";
import { command, serverFlags } from "#door/command.ts";
import { jobIdOf } from "./id.ts";

export const jobRerun = command({
  name: "job rerun",
  about: "Submit a job again, as it was submitted: its stages, specs and tags come from history.",
  words: "<job>",
  positionalsMax: 1,
  takesRest: false,
  flags: {
    ...serverFlags,
    reuse: { type: "boolean", about: "take over the results of tasks that succeeded; run the others" },
    follow: { type: "boolean", about: "show what it prints until it has ended" },
  },
  examples: ["millrace job rerun j0-1", "millrace job rerun j0-1 --reuse --follow"],
  async run({ positionals, values }, world) {
    const job = jobIdOf("job rerun", positionals, world);
    if (job === undefined) return 2;
    const { apiOf } = await import("#cli/api.ts");
    const { rerunJob } = await import("#api/jobs.ts");
    const again = await apiOf(
      values,
      world.env,
      "repeat job",
    )(rerunJob, { params: { job }, body: { reuse: values.reuse ?? false }, idempotencyKey: randomUUID() });
    if (values.json) world.out(JSON.stringify({ kind: "submitted", jobId: again.job, of: job, number: again.number }));
    else if (values.follow) world.note(`${again.job} repeats ${job}`);
    else world.out(again.job);
    if (!values.follow) return 0;
    const { followToEnd } = await import("./follow.ts");
    return await followToEnd(values, { jobId: again.job, json: values.json === true, output: true }, world);
  },
});
