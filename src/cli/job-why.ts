import { command, nodeFlags } from "#door/command.ts";
import { jobIdOf } from "./job-id.ts";

export const jobWhy = command({
  name: "job why",
  about: "Say why a job's tasks are where they are: what each one waits for.",
  words: "<job>",
  positionalsMax: 1,
  takesRest: false,
  flags: nodeFlags,
  examples: ["millrace job why j0-1"],
  async run({ positionals, values }, world) {
    const jobId = jobIdOf("job why", positionals, world);
    if (jobId === undefined) return 2;
    await using remote = await world.connect(values);
    const { view } = await remote.work.job(jobId, { tasksMax: 0 });
    const why = view.endedAtMs === undefined ? await remote.work.why(jobId) : [];
    if (values.json) {
      for (const each of why) world.out(JSON.stringify({ jobId, ...each }));
      return 0;
    }
    const { showWhy } = await import("#app/job-view.ts");
    if (why.length === 0) world.out(`${jobId} ${view.phase}${view.reason === "" ? "" : `: ${view.reason}`}`);
    for (const { taskId, stage, key, phase, because } of why)
      world.out(`${taskId}  ${view.stages[stage]?.name ?? stage}/${key}  ${phase}: ${showWhy(because)}`);
    return 0;
  },
});
