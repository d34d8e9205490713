import { formatDuration } from "#base/units.ts";
import { command, serverFlags } from "#door/command.ts";

const phases = ["WAITING", "RUNNING", "CANCELLING", "SUCCEEDED", "FAILED", "CANCELLED"] as const;
const limitMax = 500;

export const jobList = command({
  name: "job list",
  about: "List jobs, newest first.",
  words: "",
  positionalsMax: 0,
  takesRest: false,
  flags: {
    ...serverFlags,
    limit: { type: "string", value: "NUMBER", about: `at most so many (20), up to ${limitMax}` },
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
    if (!Number.isInteger(limit) || limit < 1 || limit > limitMax) {
      world.note(`job list: --limit is a whole number from 1 to ${limitMax}`);
      return 2;
    }
    const { apiOf } = await import("#cli/api.ts");
    const { listJobs } = await import("#api/jobs.ts");
    const { tenant, cursor } = values;
    const { items, next, unreachable } = await apiOf(
      values,
      world.env,
      "list jobs",
    )(listJobs, {
      query: { limit, phase, ...(cursor !== undefined && { cursor }) },
      ...(tenant !== undefined && { tenant }),
    });
    if (unreachable.length > 0)
      world.note(`shards ${unreachable.join(", ")} did not answer: their living jobs are not listed`);
    if (values.json) {
      for (const item of items) world.out(JSON.stringify({ jobId: item.job, ...item }));
      if (next !== undefined) world.out(JSON.stringify({ kind: "more", cursor: next }));
      return 0;
    }
    if (items.length === 0) world.out("no jobs yet; submit one with: millrace job submit -- echo hello");
    else {
      const { tableLines } = await import("#door/table.ts");
      const rows = items.map((item) => {
        const tookMs = Date.parse(item.endedAt ?? new Date().toISOString()) - Date.parse(item.submittedAt);
        const done = item.tasks === undefined ? "" : `${item.done}/${item.tasks}`;
        return [item.job, item.phase, done, formatDuration(Math.max(0, tookMs)), item.name];
      });
      for (const line of tableLines(["JOB", "PHASE", "DONE", "TIME", "NAME"], rows)) world.out(line);
    }
    if (next !== undefined) world.note(`more: millrace job list --cursor ${next}`);
    return 0;
  },
});
