import { command, nodeFlags } from "#door/command.ts";
import { jobIdOf } from "./job-id.ts";

export const jobCancel = command({
  name: "job cancel",
  about: "Stop a job and everything of it that runs.",
  words: "<job>",
  positionalsMax: 1,
  takesRest: false,
  flags: { ...nodeFlags, reason: { type: "string", value: "TEXT", about: "shown to whoever submitted it" } },
  examples: ["millrace job cancel j0-1 --reason 'wrong branch'"],
  async run({ positionals, values }, world) {
    const jobId = jobIdOf("job cancel", positionals, world);
    if (jobId === undefined) return 2;
    await using remote = await world.connect(values);
    const { view } = await remote.work.job(jobId, { tasksMax: 0 });
    const hadEnded = view.endedAtMs !== undefined;
    const phase = hadEnded ? view.phase : await remote.work.cancel(jobId, values.reason ?? "cancelled by hand");
    if (values.json) world.out(JSON.stringify({ jobId, phase, cancelled: !hadEnded }));
    else world.out(hadEnded ? `${jobId} had already ended: ${phase}` : `${jobId} ${phase}`);
    return hadEnded ? 1 : 0;
  },
});
