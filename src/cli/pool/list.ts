import { command, serverFlags } from "#door/command.ts";

export const poolList = command({
  name: "pool list",
  about: "List pools of machines: what waits for them, and how many machines there are.",
  words: "",
  positionalsMax: 0,
  takesRest: false,
  flags: serverFlags,
  examples: ["millrace pool list"],
  async run({ values }, world) {
    const { apiOf } = await import("#cli/api.ts");
    const { listPools } = await import("#api/pools.ts");
    const { tableLines } = await import("#door/table.ts");
    const { items } = await apiOf(values, world.env, "list pools")(listPools, {});
    if (values.json) for (const item of items) world.out(JSON.stringify(item));
    else if (items.length === 0) world.out("there are no pools: docs/how-to/pools.md");
    else {
      const rows = items.map((one) => [
        one.pool,
        one.spot ? `${one.kind}, spot` : one.kind,
        one.tenant ?? "all",
        one.waiting,
        one.busy,
        one.idle,
        one.starting,
        `${one.desired} of ${one.max}`,
        one.templates.flatMap(({ runsOn }) => runsOn).join(" "),
      ]);
      const head = ["POOL", "KIND", "TENANT", "WAITING", "BUSY", "IDLE", "STARTING", "DESIRED", "RUNS-ON"];
      for (const line of tableLines(head, rows)) world.out(line);
    }
    return 0;
  },
});
