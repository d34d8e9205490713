import { command, serverFlags } from "#door/command.ts";

export const artifactList = command({
  name: "artifact list",
  about: "List the artifacts of a job, or of the job that this runs in.",
  words: "",
  positionalsMax: 0,
  takesRest: false,
  flags: {
    ...serverFlags,
    job: { type: "string", value: "JOB", about: "whose artifacts; left out: of the job that this runs in" },
  },
  examples: ["millrace artifact list --job j3-1", "millrace artifact list"],
  async run({ values }, world) {
    const { apiOf } = await import("#cli/api.ts");
    const { listArtifacts, listOwnArtifacts } = await import("#api/task-calls.ts");
    const { tableLines } = await import("#door/table.ts");
    const api = apiOf(values, world.env, "list artifacts");
    const { job } = values;
    const rows: string[][] = [];
    for (let cursor: string | undefined; ;) {
      const query = { limit: 200, ...(cursor !== undefined && { cursor }) };
      const page =
        job === undefined
          ? await api(listOwnArtifacts, { query })
          : await api(listArtifacts, { params: { job }, query });
      for (const each of page.items)
        if (values.json) world.out(JSON.stringify(each));
        else rows.push([each.name, String(each.sizeBytes), each.task, each.keptUntil]);
      cursor = page.next;
      if (cursor === undefined) break;
    }
    if (!values.json) for (const line of tableLines(["NAME", "BYTES", "TASK", "KEPT UNTIL"], rows)) world.out(line);
    return 0;
  },
});
