import { command, serverFlags } from "#door/command.ts";

export const workerTokens = command({
  name: "worker tokens",
  about: "List the tokens that register workers; what they are is not shown again.",
  words: "",
  positionalsMax: 0,
  takesRest: false,
  flags: serverFlags,
  examples: ["millrace worker tokens"],
  async run({ values }, world) {
    const { apiOf } = await import("#cli/api.ts");
    const { listWorkerTokens } = await import("#api/workers.ts");
    const { tableLines } = await import("#door/table.ts");
    const api = apiOf(values, world.env, "list workers' tokens");
    const { items } = await api(listWorkerTokens, { query: { limit: 500 } });
    if (values.json) for (const item of items) world.out(JSON.stringify(item));
    else {
      const rows = items.map((each) => [
        each.id,
        each.tenant,
        each.usesLeft,
        each.until,
        [...each.pools.map((pool) => `pool=${pool}`), ...each.labels].join(" "),
        each.by,
      ]);
      for (const line of tableLines(["ID", "TENANT", "USES LEFT", "UNTIL", "LABELS", "MADE BY"], rows)) world.out(line);
    }
    return 0;
  },
});
