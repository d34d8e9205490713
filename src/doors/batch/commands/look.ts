import { command, type World } from "#door/command.ts";
import { tableLines } from "#door/table.ts";
import { progressText } from "./progress.ts";
import { batchFlags, blobsFrom, cancelQuery, followToEnd, queryView } from "./ask.ts";

const named = (what: string, [jobId]: readonly string[], world: World): string | undefined => {
  if (jobId === undefined) world.note(`${what}: name the job, for example: millrace ${what} j0-1`);
  return jobId;
};

type Listed = { readonly items: readonly { readonly job: string; readonly phase: string; readonly name: string }[] };

export const batchList = command({
  name: "batch list",
  about: "List queries, the newest first.",
  words: "",
  positionalsMax: 0,
  takesRest: false,
  flags: { ...batchFlags, limit: { type: "string", value: "NUMBER", about: "how many (20)" } },
  examples: ["millrace batch list"],
  async run({ values }, world) {
    const limit = Number(values.limit ?? 20);
    if (!Number.isInteger(limit) || limit < 1 || limit > 500) {
      world.note("batch list: --limit is a number from 1 to 500");
      return 2;
    }
    const http = await world.http(values);
    const { items } = (await (await http.ask(`/v1/jobs?door=batch&limit=${limit}`, "list queries")).json()) as Listed;
    if (values.json) for (const item of items) world.out(JSON.stringify({ jobId: item.job, ...item }));
    else if (items.length === 0) world.out("no queries yet; submit one with: millrace sql 'select 1'");
    else {
      const rows = items.map(({ job, phase, name }) => [job, phase, name]);
      for (const line of tableLines(["JOB", "PHASE", "NAME"], rows)) world.out(line);
    }
    return 0;
  },
});

export const batchShow = command({
  name: "batch show",
  about: "Show a query's stages: tasks, rows, bytes and time.",
  words: "<job>",
  positionalsMax: 1,
  takesRest: false,
  flags: batchFlags,
  examples: ["millrace batch show j0-1"],
  async run({ positionals, values }, world) {
    const jobId = named("batch show", positionals, world);
    if (jobId === undefined) return 2;
    const view = await queryView(jobId, values, world);
    if (values.json) {
      world.out(JSON.stringify({ jobId, ...view }));
      return 0;
    }
    const { stageText } = await import("#doors/batch/view.ts");
    world.out(`${jobId}  ${view.phase}  ${view.name}`);
    for (const stage of view.stages) world.out(stageText(stage));
    if (!view.ended) world.out(`  ${progressText(view)}`);
    if (view.written) world.out(`  ${view.written.rows} rows written to ${view.written.folder}`);
    if (view.failure !== undefined && view.phase === "FAILED") world.out(`  ${view.failure}`);
    return 0;
  },
});

export const batchWhy = command({
  name: "batch why",
  about: "Show what of a query was reused from earlier ones, what was computed, and which input differs.",
  words: "<job>",
  positionalsMax: 1,
  takesRest: false,
  flags: batchFlags,
  examples: ["millrace batch why j0-1"],
  async run({ positionals, values }, world) {
    const jobId = named("batch why", positionals, world);
    if (jobId === undefined) return 2;
    const { stages, phase, failure } = await queryView(jobId, values, world);
    if (values.json) {
      for (const { id, about, tasks, reused, why } of stages)
        world.out(JSON.stringify({ jobId, stage: id, about, tasks, reused, why }));
      return 0;
    }
    world.out(`${jobId}  ${phase}${failure === undefined ? "" : `: ${failure}`}`);
    for (const { wave, about, tasks, reused, why } of stages) {
      world.out(`  wave ${wave}: ${about}: ${tasks} ${tasks === 1 ? "task" : "tasks"}, ${reused} reused`);
      for (const reason of why) world.out(`    computed: ${reason}`);
    }
    return 0;
  },
});

export const batchCancel = command({
  name: "batch cancel",
  about: "Stop a query: tasks that run are stopped, others never start, nothing is written.",
  words: "<job>",
  positionalsMax: 1,
  takesRest: false,
  flags: { ...batchFlags, reason: { type: "string", value: "TEXT", about: "shown to whoever submitted it" } },
  examples: ["millrace batch cancel j0-1"],
  async run({ positionals, values }, world) {
    const jobId = named("batch cancel", positionals, world);
    if (jobId === undefined) return 2;
    await queryView(jobId, values, world); // of this door, and the caller's
    await cancelQuery(jobId, values.reason ?? "", values, world);
    world.out(values.json ? JSON.stringify({ jobId, kind: "cancelling" }) : `${jobId} is being cancelled`);
    return 0;
  },
});

export const batchGet = command({
  name: "batch get",
  about: "Wait for a query and show its result, as `millrace sql` does.",
  words: "<job>",
  positionalsMax: 1,
  takesRest: false,
  flags: {
    ...batchFlags,
    out: { type: "string", value: "FILE", about: "write the result there: .parquet, .csv or .json by its name" },
    rows: { type: "string", value: "NUMBER", about: "how many rows to show (100)" },
  },
  examples: ["millrace batch get j0-1"],
  async run({ positionals, values }, world) {
    const jobId = named("batch get", positionals, world);
    if (jobId === undefined) return 2;
    const ended = await followToEnd(jobId, values, world);
    if (!ended) return 0;
    const { showEnded } = await import("./show-ended.ts");
    return await showEnded(jobId, ended, values, { readBlob: blobsFrom(values, world), world });
  },
});

export const batchExplain = command({
  name: "batch explain",
  about: "Show how a query was planned: its sources, stages and what they read and write.",
  words: "<job>",
  positionalsMax: 1,
  takesRest: false,
  flags: { ...batchFlags, verbose: { type: "boolean", about: "the SQL of every stage as well" } },
  examples: ["millrace batch explain j0-1"],
  async run({ positionals, values }, world) {
    const jobId = named("batch explain", positionals, world);
    if (jobId === undefined) return 2;
    const [{ readPlan }, { explainPlan }] = await Promise.all([
      import("#doors/batch/api/fetched.ts"),
      import("#doors/batch/explain.ts"),
    ]);
    const { plan, failure } = await queryView(jobId, values, world);
    if (plan === undefined) {
      world.note(`${jobId} has no plan${failure === undefined ? "" : `: ${failure}`}`);
      return 1;
    }
    const document = await readPlan(plan, blobsFrom(values, world));
    const lines = explainPlan(document, { withSql: values.verbose === true });
    if (values.json) world.out(JSON.stringify({ jobId, plan, columns: document.columns, lines }));
    else for (const line of lines) world.out(line);
    return 0;
  },
});
