import { command, serverFlags } from "#door/command.ts";
import { callEndpoint } from "#http/client.ts";
import { exportRuns, searchArtifacts } from "#doors/ci/export/endpoints.ts";
import { fetchOf, usage } from "./node-call.ts";

export const ciExport = command({
  name: "ci export",
  about: "Print all runs of the tenant with jobs, steps, artifacts and test reports: a JSON object a run, or CSV.",
  words: "",
  positionalsMax: 0,
  takesRest: false,
  flags: {
    ...serverFlags,
    from: { type: "string", value: "DAY", about: "from this day on, such as 2026-11-01" },
    to: { type: "string", value: "DAY", about: "the last day (today)" },
    csv: { type: "boolean", about: "a table with a row for each job" },
  },
  examples: ["millrace ci export --from 2026-11-01", "millrace ci export --csv"],
  async run({ values }, world) {
    const { csvHead, csvRows } = await import("#doors/ci/export/csv.ts");
    const { from, to } = values;
    const query = { ...(from !== undefined && { from }), ...(to !== undefined && { to }) };
    const runs = await callEndpoint(await fetchOf(values, world), exportRuns, { query });
    if (values.csv) world.out(csvHead());
    for await (const run of runs) for (const line of values.csv ? csvRows(run) : [JSON.stringify(run)]) world.out(line);
    return 0;
  },
});

export const ciArtifacts = command({
  name: "ci artifacts",
  about: "Find artifacts of all runs by a part of their name.",
  words: "<text>",
  positionalsMax: 1,
  takesRest: false,
  flags: { ...serverFlags, repository: { type: "string", value: "OWNER/NAME", about: "only of this one" } },
  examples: ["millrace ci artifacts coverage", "millrace ci artifacts report --repository mill/flour"],
  async run({ positionals: [text], values }, world) {
    if (text === undefined) return usage(world, "ci artifacts coverage");
    const { tableLines } = await import("#door/table.ts");
    const { repository } = values;
    const query = { text, ...(repository !== undefined && { repository }) };
    const { items, isCut } = await callEndpoint(await fetchOf(values, world), searchArtifacts, { query });
    if (values.json) for (const item of items) world.out(JSON.stringify(item));
    else {
      const rows = items.map((one) => [one.run, one.repository, one.name, one.sizeBytes, one.createdAt]);
      for (const line of tableLines(["RUN", "REPOSITORY", "NAME", "BYTES", "MADE"], rows)) world.out(line);
      if (isCut) world.note("there are more: name the repository, or more of the name");
    }
    return 0;
  },
});
