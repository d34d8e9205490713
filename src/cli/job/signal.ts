import { randomUUID } from "node:crypto";
import { command, serverFlags } from "#door/command.ts";

export const jobSignal = command({
  name: "job signal",
  about: "Send a stage a signal that it waits for, such as approve or reject.",
  words: "<job> <stage> <signal>",
  positionalsMax: 3,
  takesRest: false,
  flags: {
    ...serverFlags,
    payload: { type: "string", value: "TEXT", about: "a reason, or what else there is to say" },
  },
  examples: [
    "millrace job signal j0-1 release approve",
    "millrace job signal j0-1 release reject --payload 'not on a Friday'",
  ],
  async run({ positionals: [job, stage, name], values }, world) {
    if (job === undefined || stage === undefined || name === undefined) {
      world.note(
        "job signal: name the job, the stage and the signal, for example: millrace job signal j0-1 release approve",
      );
      return 2;
    }
    const { apiOf, withPatience } = await import("#cli/api.ts");
    const { signalJob } = await import("#api/jobs.ts");
    const body = { stage, name, payload: values.payload ?? "", id: randomUUID() };
    const api = apiOf(values, world.env, "signal job");
    const { recorded } = await withPatience(5_000, () => api(signalJob, { params: { job }, body }));
    if (values.json) world.out(JSON.stringify({ jobId: job, stage, signal: name, recorded }));
    else world.out(recorded ? `${job} ${stage}: ${name} recorded` : `${job} ${stage}: ${name} came too late`);
    return recorded ? 0 : 1;
  },
});
