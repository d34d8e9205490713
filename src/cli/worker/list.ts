import { command, serverFlags } from "#door/command.ts";

export const workers = command({
  name: "workers",
  about: "List workers on other machines that registered, with their last contact.",
  words: "",
  positionalsMax: 0,
  takesRest: false,
  flags: serverFlags,
  examples: ["millrace workers", "millrace workers --json"],
  async run({ values }, world) {
    const { apiOf } = await import("#cli/api.ts");
    const { listWorkers } = await import("#api/workers.ts");
    const { tableLines } = await import("#door/table.ts");
    const api = apiOf(values, world.env, "list workers");
    const { items } = await api(listWorkers, { query: { limit: 500 } });
    if (values.json) for (const item of items) world.out(JSON.stringify(item));
    else if (items.length === 0) world.out("no workers registered; make a token with: millrace worker token");
    else {
      const rows = items.map((each) => [
        each.id,
        each.name,
        each.tenant,
        each.slots,
        each.version,
        each.seenAt,
        [...each.pools.map((pool) => `pool=${pool}`), ...each.labels].join(" "),
      ]);
      for (const line of tableLines(["ID", "NAME", "TENANT", "SLOTS", "VERSION", "SEEN", "LABELS"], rows))
        world.out(line);
    }
    return 0;
  },
});
