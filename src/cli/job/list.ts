import { formatDuration } from "#base/units.ts";
import { command, serverFlags, type World } from "#door/command.ts";

const phases = ["WAITING", "RUNNING", "CANCELLING", "SUCCEEDED", "FAILED", "CANCELLED"] as const;
const limitMax = 500;

type Counted = { readonly jobs: number; readonly phases: Readonly<Record<string, number>>; readonly capped: boolean };

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
    tag: { type: "strings", value: "NAME=VALUE", about: "only jobs with this tag; several: with all of them" },
    door: { type: "string", value: "NAME", about: "only of this door" },
    from: {
      type: "string",
      value: "TIME",
      about: "only submitted at this time or later, such as 2026-11-15T08:00:00Z",
    },
    to: { type: "string", value: "TIME", about: "only submitted before this time" },
    count: { type: "boolean", about: "say how many there are in each phase, instead of listing them" },
    tenant: { type: "string", value: "NAME", about: "only this tenant's" },
    cursor: { type: "string", value: "CURSOR", about: "go on where the last list ended" },
  },
  examples: [
    "millrace job list",
    "millrace job list --phase FAILED --limit 5",
    "millrace job list --tag repository=mill --tag branch=main",
    "millrace job list --tag repository=mill --count",
  ],
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
    const { countJobs, listJobs } = await import("#api/jobs.ts");
    const { tenant, cursor, tag, door, from, to } = values;
    const filters = { phase, door, from, to, ...(tag && { tag: [...tag] }) };
    const whose = tenant !== undefined && { tenant };
    const api = apiOf(values, world.env, "list jobs");
    if (values.count) {
      const counted = await api(countJobs, { query: filters, ...whose });
      missing(counted.unreachable, world);
      for (const line of countLines(counted, values.json === true)) world.out(line);
      return 0;
    }
    const query = { limit, ...filters, ...(cursor !== undefined && { cursor }) };
    const { items, next, unreachable } = await api(listJobs, { query, ...whose });
    missing(unreachable, world);
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
        const name = item.number === undefined ? item.name : `${item.name} #${item.number}`;
        return [item.job, item.phase, done, formatDuration(Math.max(0, tookMs)), name];
      });
      for (const line of tableLines(["JOB", "PHASE", "DONE", "TIME", "NAME"], rows)) world.out(line);
    }
    if (next !== undefined) world.note(`more: millrace job list --cursor ${next}`);
    return 0;
  },
});

function missing(unreachable: readonly number[], world: Pick<World, "note">): void {
  if (unreachable.length > 0)
    world.note(`shards ${unreachable.join(", ")} did not answer: their living jobs are not among these`);
}

function countLines({ jobs, phases, capped }: Counted, asJson: boolean): readonly string[] {
  if (asJson) return [JSON.stringify({ kind: "count", jobs, phases, capped })];
  const least = capped ? "at least " : "";
  return [...Object.entries(phases).map(([phase, count]) => `${phase} ${least}${count}`), `all ${least}${jobs}`];
}
