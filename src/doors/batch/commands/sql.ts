import { command } from "#door/command.ts";
import { parseSizeBytes, sizeHelp } from "#base/units.ts";
import { batchFlags, followToEnd, type BlobReader } from "./ask.ts";

export const sqlCommand = (readBlob: BlobReader) =>
  command({
    name: "sql",
    about: "Run a query over files of the node's machine: Parquet, CSV or JSON, cut into tasks where it is large.",
    words: "<query>",
    positionalsMax: 1,
    takesRest: false,
    flags: {
      ...batchFlags,
      explain: { type: "boolean", about: "show the stages instead of running them" },
      verbose: { type: "boolean", about: "with --explain: the SQL of every stage as well" },
      out: { type: "string", value: "FILE", about: "write the result there: .parquet, .csv or .json by its name" },
      rows: { type: "string", value: "NUMBER", about: "how many rows to show (100)" },
      "split-size": { type: "string", value: "SIZE", about: "read files in pieces of about this size (64MiB)" },
      "broadcast-size": { type: "string", value: "SIZE", about: "give smaller sides of joins to every task whole (10MiB)" },
      partitions: { type: "string", value: "NUMBER", about: "how many partitions rows are hashed into; left out: by size" },
      key: { type: "string", value: "KEY", about: "the same key never makes a second job, however often it is submitted" },
      tenant: { type: "string", value: "NAME", about: "on whose behalf (default)" },
      detach: { type: "boolean", about: "do not wait for the result" },
    },
    examples: [
      "millrace sql \"select city, count(*) from 'data/*.parquet' group by city order by 2 desc\"",
      "millrace sql --out result.parquet \"select * from 'events.csv' where ms > 100\"",
      "millrace sql --explain \"select distinct user from 'data/*.parquet'\"",
    ],
    async run({ positionals: [sql], values }, world) {
      if (sql === undefined || sql.trim() === "") {
        world.note("sql: give a query, for example: millrace sql \"select count(*) from 'data/*.parquet'\"");
        return 2;
      }
      const sizes = {
        splitBytes: values["split-size"] === undefined ? undefined : parseSizeBytes(values["split-size"]),
        broadcastBytes: values["broadcast-size"] === undefined ? undefined : parseSizeBytes(values["broadcast-size"]),
      };
      if (values["split-size"] !== undefined && !sizes.splitBytes) return wrong("--split-size", sizeHelp, world);
      if (values["broadcast-size"] !== undefined && sizes.broadcastBytes === undefined)
        return wrong("--broadcast-size", sizeHelp, world);
      const partitions = Number(values.partitions ?? 0);
      if (!Number.isInteger(partitions) || partitions < 0 || partitions > 64)
        return wrong("--partitions", "write a number from 1 to 64", world);
      const rows = Number(values.rows ?? 100);
      if (!Number.isInteger(rows) || rows < 0) return wrong("--rows", "write a number of rows", world);
      const [{ planSubmit }, { cutDefaults }, { randomUUID }] = await Promise.all([
        import("#doors/batch/plan.ts"),
        import("#doors/batch/plan/settings.ts"),
        import("node:crypto"),
      ]);
      const { tenant = "default", key } = values;
      const settings = {
        ...cutDefaults,
        partitions,
        ...(sizes.splitBytes !== undefined && { splitBytes: sizes.splitBytes, reduceBytes: sizes.splitBytes }),
        ...(sizes.broadcastBytes !== undefined && { broadcastBytes: sizes.broadcastBytes }),
      };
      const job = { sql, folder: process.cwd(), settings, isExplained: values.explain === true };
      const order = planSubmit(job, { tenant, unique: randomUUID(), ...(key === undefined ? {} : { key }) });
      await using remote = await world.connect(values);
      const { jobId } = await remote.work.submit(order);
      if (values.detach) {
        world.out(values.json ? JSON.stringify({ kind: "submitted", jobId }) : `${jobId} submitted; get its result with: millrace batch get ${jobId}`);
        return 0;
      }
      const ended = await followToEnd(remote.work, jobId, world);
      if (!ended) return 0;
      const { showEnded } = await import("./show-ended.ts");
      return await showEnded(jobId, ended, values, { readBlob: (digest) => readBlob(digest, values, world.env), world });
    },
  });

function wrong(flag: string, why: string, world: { readonly note: (line: string) => void }): 2 {
  world.note(`sql: ${flag}: ${why}`);
  return 2;
}
