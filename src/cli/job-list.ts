import { formatDuration } from "#base/units.ts";
import { command, nodeFlags } from "#door/command.ts";

const phases = ["WAITING", "RUNNING", "CANCELLING", "SUCCEEDED", "FAILED", "CANCELLED"] as const;

export const jobList = command({
  name: "job list",
  about: "List jobs: what runs and waits first, then what has ended.",
  words: "",
  positionalsMax: 0,
  takesRest: false,
  flags: {
    ...nodeFlags,
    limit: { type: "string", value: "NUMBER", about: "at most so many (20)" },
    phase: { type: "string", value: "PHASE", about: `only ${phases.join(", ")}` },
    tenant: { type: "string", value: "NAME", about: "only this tenant's" },
    cursor: { type: "string", value: "CURSOR", about: "go on where the last list ended" },
  },
  examples: ["millrace job list", "millrace job list --phase FAILED --limit 5"],
  async run({ values }, world) {
    const limit = Number(values.limit ?? 20);
    const phase = phases.find((each) => each === values.phase?.toUpperCase());
    if (values.phase !== undefined && phase === undefined) {
      world.note(`job list: --phase is one of ${phases.join(", ")}`);
      return 2;
    }
    if (!Number.isInteger(limit) || limit < 1) {
      world.note("job list: --limit is a whole number from 1");
      return 2;
    }
    await using remote = await world.connect(values);
    const { jobs, cursor, unreachable } = await remote.work.jobs({
      limit,
      ...(phase === undefined ? {} : { phase }),
      ...(values.tenant === undefined ? {} : { tenant: values.tenant }),
      ...(values.cursor === undefined ? {} : { cursor: values.cursor }),
    });
    if (unreachable.length > 0)
      world.note(`shards ${unreachable.join(", ")} did not answer: their living jobs are not listed`);
    if (values.json) {
      for (const job of jobs) world.out(JSON.stringify(job));
      if (cursor !== undefined) world.out(JSON.stringify({ kind: "more", cursor }));
      return 0;
    }
    if (jobs.length === 0) world.out("no jobs yet; submit one with: millrace job submit -- echo hello");
    for (const { jobId, phase: now, name, done, tasks, submittedAtMs, endedAtMs } of jobs) {
      const tookMs = Math.max(0, (endedAtMs ?? Date.now()) - submittedAtMs);
      const counts = tasks === undefined ? "" : `${done}/${tasks}`;
      world.out(
        `${jobId.padEnd(10)} ${now.padEnd(10)} ${counts.padEnd(9)} ${formatDuration(tookMs).padEnd(8)} ${name}`,
      );
    }
    if (cursor !== undefined) world.note(`more: millrace job list --cursor ${cursor}`);
    return 0;
  },
});
