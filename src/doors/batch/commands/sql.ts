import { command, type ExitCode, type Flags, type ServerFlagValues, type World } from "#door/command.ts";
import { parseSizeBytes, sizeHelp } from "#base/units.ts";
import type { CutSettings } from "#doors/batch/plan/settings.ts";
import type { Ask } from "#doors/batch/api/connect.ts";
import type { Submission } from "#doors/batch/api/job.ts";
import { batchFlags, blobsFrom, followToEnd } from "./ask.ts";
import type { ShellHow } from "./shell.ts";
import { isFileName } from "./file-names.ts";

const flags = {
  ...batchFlags,
  explain: { type: "boolean", about: "show the stages instead of running them" },
  verbose: { type: "boolean", about: "with --explain: the SQL of every stage as well" },
  out: {
    type: "string",
    value: "FILE",
    about: "write the result there: .parquet, .csv or .json by its name, else a folder of Parquet files, by the node",
  },
  "partition-by": {
    type: "string",
    value: "COLUMNS",
    about: "with --out FOLDER: files are kept apart by these, as a,b",
  },
  rows: { type: "string", value: "NUMBER", about: "how many rows to show (100)" },
  "split-size": { type: "string", value: "SIZE", about: "read files in pieces of about this size (64MiB)" },
  "broadcast-size": { type: "string", value: "SIZE", about: "give smaller sides of joins to every task whole (10MiB)" },
  partitions: { type: "string", value: "NUMBER", about: "how many partitions rows are hashed into; left out: by size" },
  key: { type: "string", value: "KEY", about: "the same key never makes a second job, however often it is submitted" },
  priority: { type: "string", value: "NUMBER", about: "-100 to 100; higher runs first, within the tenant (0)" },
  tenant: { type: "string", value: "NAME", about: "on whose behalf (default)" },
  fresh: { type: "boolean", about: "compute all of it, whatever was computed before" },
  detach: { type: "boolean", about: "do not wait for the result" },
} as const satisfies Flags;

/** The document of a job, or as much of it as a file says. */
export type JobDocument = Submission & { readonly folder?: string };

type Values = {
  readonly [K in keyof typeof flags]?: (typeof flags)[K]["type"] extends "boolean" ? boolean : string;
};

export const sqlCommand = command({
  name: "sql",
  about: "Run a query over files: Parquet, CSV or JSON, cut into tasks where it is large. Without one: a shell.",
  words: "[query]",
  positionalsMax: 1,
  takesRest: false,
  flags,
  examples: [
    "millrace sql 'select city, count(*) from read_parquet($$data/*.parquet$$) group by city'",
    "millrace sql --out slow.parquet 'select * from read_csv($$events.csv$$) where ms > 100'",
    "millrace sql --explain 'select distinct city from read_parquet($$data/*.parquet$$)'",
  ],
  async run({ positionals: [sql], values }, world) {
    if (sql === undefined) {
      const { shell } = await import("./shell.ts");
      const run = (text: string, { json, explain }: ShellHow, signal: AbortSignal): Promise<ExitCode> =>
        runQuery(
          "sql",
          async () => ({ sql: text }),
          { ...values, ...(json && { json }), ...(explain && { explain }) },
          world,
          signal,
        );
      const { stdin: input, stdout: output } = process;
      return await shell({ world, isTerminal: input.isTTY && output.isTTY, input, output, run });
    }
    if (sql.trim() === "") {
      world.note("sql: give a query, for example: millrace sql \"select count(*) from 'data/*.parquet'\"");
      return 2;
    }
    return await runQuery("sql", async () => ({ sql }), values, world);
  },
});

export const batchRun = command({
  name: "batch run",
  about: "Run the query of a job file (TypeScript, YAML or JSON), as `millrace sql` would.",
  words: "<file>",
  positionalsMax: 1,
  takesRest: false,
  flags: { ...flags, watch: { type: "boolean", about: "run it again whenever the file changes, until Ctrl-C" } },
  examples: ["millrace batch run job.ts", "millrace batch run --explain job.yaml", "millrace batch run --watch job.ts"],
  async run({ positionals: [file], values }, world) {
    if (file === undefined) {
      world.note("batch run: name a file, for example: millrace batch run job.ts");
      return 2;
    }
    const once = (): Promise<ExitCode> => runQuery("batch run", () => readJob(file, values, world), values, world);
    if (!values.watch) return await once();
    return await (await import("./watch-file.ts")).againOnChange(file, once, world);
  },
});

export const batchSubmit = command({
  name: "batch submit",
  about: "Submit the query of a job file (TypeScript, YAML or JSON) and do not wait.",
  words: "<file>",
  positionalsMax: 1,
  takesRest: false,
  flags,
  examples: ["millrace batch submit job.yaml", "millrace batch submit --key nightly-2026-11-18 job.ts"],
  async run({ positionals: [file], values }, world) {
    if (file === undefined) {
      world.note("batch submit: name a file, for example: millrace batch submit job.yaml");
      return 2;
    }
    const detached = { ...values, detach: true };
    return await runQuery("batch submit", () => readJob(file, values, world), detached, world);
  },
});

async function readJob(file: string, values: ServerFlagValues, world: World): Promise<JobDocument> {
  if (/\.(ya?ml|json)$/.test(file)) return await (await import("./job-document.ts")).readJobDocument(file);
  const [{ readJobFile }, { connectWith }] = await Promise.all([
    import("#doors/batch/api/job-file.ts"),
    import("#doors/batch/api/connect.ts"),
  ]);
  // What the file itself collects, it asks the same node for.
  connectWith(async (options) => {
    const http = await world.http({ ...values, ...options });
    return (path, doing, init) => http.ask(path, doing, init);
  });
  return await readJobFile(file);
}

/** Functions of a program's job file are bundled and sent; those of a document were sent before. */
async function mapsOf(maps: NonNullable<JobDocument["maps"]>, ask: Ask, tenant: string | undefined): Promise<object> {
  if (maps.length === 0) return {};
  const { uploadMaps } = await import("#doors/batch/api/map-batches.ts");
  return { maps: await uploadMaps(maps, ask, tenant) };
}

/** What the flags change, or what is wrong with them. */
function settingsIn(values: Values): Partial<CutSettings> | string {
  const { "split-size": split, "broadcast-size": broadcast, partitions: count, rows = "100" } = values;
  const splitBytes = split === undefined ? undefined : parseSizeBytes(split);
  const broadcastBytes = broadcast === undefined ? undefined : parseSizeBytes(broadcast);
  if (split !== undefined && !splitBytes) return `--split-size: ${sizeHelp}`;
  if (broadcast !== undefined && broadcastBytes === undefined) return `--broadcast-size: ${sizeHelp}`;
  const partitions = Number(count ?? 0);
  if (!Number.isInteger(partitions) || partitions < 0 || partitions > 64)
    return "--partitions: write a number from 1 to 64";
  if (!/^\d{1,9}$/.test(rows)) return "--rows: write a number of rows";
  return {
    ...(count !== undefined && { partitions }),
    ...(splitBytes !== undefined && { splitBytes, reduceBytes: splitBytes }),
    ...(broadcastBytes !== undefined && { broadcastBytes }),
  };
}

async function runQuery(
  name: string,
  readQuery: () => Promise<JobDocument>,
  values: Values,
  world: World,
  signal?: AbortSignal,
): Promise<ExitCode> {
  const said = settingsIn(values);
  if (typeof said !== "object") {
    world.note(`${name}: ${said}`);
    return 2;
  }
  const { tenant, key, explain = false, out, ...rest } = values;
  const priority = Number(rest.priority ?? 0);
  if (!Number.isInteger(priority) || Math.abs(priority) > 100) {
    world.note(`${name}: --priority: write a whole number from -100 to 100`);
    return 2;
  }
  const isFolder = out !== undefined && (!isFileName(out) || rest["partition-by"] !== undefined);
  const partitionBy = (rest["partition-by"] ?? "").split(",").filter((column) => column !== "");
  if (partitionBy.length > 0 && out === undefined) {
    world.note(`${name}: --partition-by needs --out FOLDER`);
    return 2;
  }
  const output = isFolder ? { output: { folder: out, partitionBy } } : {};
  const http = await world.http(values);
  const { maps = [], ...query } = await readQuery();
  const document = {
    folder: process.cwd(),
    ...query,
    ...(await mapsOf(maps, (path, doing, init) => http.ask(path, doing, init), tenant)),
    ...output,
    explain,
    ...(values.fresh && { fresh: true }),
    ...said,
  };
  const body = JSON.stringify({ door: "batch", document, priority, ...(key !== undefined && { key }) });
  const path = `/v1/jobs${tenant === undefined ? "" : `?tenant=${encodeURIComponent(tenant)}`}`;
  const headers = { "content-type": "application/json" };
  const response = await http.ask(path, "submit query", { method: "POST", body, headers });
  const { job: jobId } = (await response.json()) as { readonly job: string };
  if (values.detach) {
    const next = `get its result with: millrace batch get ${jobId}`;
    world.out(values.json ? JSON.stringify({ kind: "submitted", jobId }) : `${jobId} submitted; ${next}`);
    return 0;
  }
  const ended = await followToEnd(jobId, values, world, signal);
  if (!ended) return 0;
  const { showEnded } = await import("./show-ended.ts");
  return await showEnded(jobId, ended, values, { readBlob: blobsFrom(values, world), world });
}
