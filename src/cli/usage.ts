import { command, serverFlags } from "#door/command.ts";

export const usage = command({
  name: "usage",
  about: "Show what was used, by tenant and door, repository or pool: slot time, tasks, bytes, cost.",
  words: "",
  positionalsMax: 0,
  takesRest: false,
  flags: {
    ...serverFlags,
    tenant: { type: "string", value: "NAME", about: "of this tenant" },
    by: { type: "string", value: "WHAT", about: "door, repository or pool; left out: door" },
    from: { type: "string", value: "DAY", about: "the first day, such as 2026-11-01 (the first of this month)" },
    to: { type: "string", value: "DAY", about: "the last day (today)" },
  },
  examples: [
    "millrace usage",
    "millrace usage --by repository",
    "millrace usage --from 2026-10-01 --to 2026-10-31 --json",
  ],
  async run({ values }, world) {
    const { apiOf } = await import("#cli/api.ts");
    const { showUsage } = await import("#api/usage.ts");
    const { tableLines } = await import("#door/table.ts");
    const api = apiOf(values, world.env, "show usage");
    const { tenant, from, to } = values;
    const by = (["door", "repository", "pool"] as const).find((one) => one === (values.by ?? "door"));
    if (by === undefined) return (world.note("usage: --by is door, repository or pool"), 2);
    const query = { by, ...(from !== undefined && { from }), ...(to !== undefined && { to }) };
    const shown = await api(showUsage, { query, ...(tenant !== undefined && { tenant }) });
    if (values.json) for (const item of shown.items) world.out(JSON.stringify(item));
    else if (shown.items.length === 0) world.out(`nothing was used from ${shown.from} to ${shown.to}`);
    else
      for (const line of tableLines(
        [
          "TENANT",
          "DOOR",
          ...(by === "door" ? [] : [by.toUpperCase()]),
          "SLOT SECONDS",
          "CPU SECONDS",
          "TASKS",
          "ATTEMPTS",
          "OUTPUT BYTES",
          "KEPT BYTES",
          "COST",
        ],
        shown.items.map((item) => [
          item.tenant,
          item.door,
          ...(by === "door" ? [] : [item.repository ?? item.pool ?? ""]),
          item.slotSeconds.toFixed(1),
          item.cpuSeconds.toFixed(1),
          String(item.tasks),
          String(item.attempts),
          String(item.outputBytes),
          String(item.keptBytes),
          item.cost === undefined ? "" : item.cost.toFixed(2),
        ]),
      ))
        world.out(line);
    return 0;
  },
});
