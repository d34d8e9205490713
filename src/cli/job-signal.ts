import { command, nodeFlags } from "#door/command.ts";

export const jobSignal = command({
  name: "job signal",
  about: "Tell a stage something it waits for, such as approve or reject.",
  words: "<job> <stage> <signal>",
  positionalsMax: 3,
  takesRest: false,
  flags: { ...nodeFlags, payload: { type: "string", value: "TEXT", about: "what else there is to say" } },
  examples: [
    "millrace job signal j0-1 release approve",
    "millrace job signal j0-1 release reject --payload 'not on a Friday'",
  ],
  async run({ positionals: [jobId, stage, name], values }, world) {
    if (jobId === undefined || stage === undefined || name === undefined) {
      world.note(
        "job signal: name the job, the stage and the signal, for example: millrace job signal j0-1 release approve",
      );
      return 2;
    }
    await using remote = await world.connect(values);
    const recorded = await remote.work.signal(jobId, stage, { name, payload: values.payload ?? "" });
    if (values.json) world.out(JSON.stringify({ jobId, stage, signal: name, recorded }));
    else world.out(recorded ? `${jobId} ${stage}: ${name} recorded` : `${jobId} ${stage}: ${name} came too late`);
    return recorded ? 0 : 1;
  },
});
