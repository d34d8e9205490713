import { command, serverFlags } from "#door/command.ts";

export const usage = command({
  name: "usage",
  about: "Show what was used, by tenant and door: slot time, tasks, bytes.",
  words: "",
  positionalsMax: 0,
  takesRest: false,
  flags: {
    ...serverFlags,
    tenant: { type: "string", value: "NAME", about: "of this tenant" },
    from: { type: "string", value: "DAY", about: "the first day, such as 2026-11-01 (the first of this month)" },
    to: { type: "string", value: "DAY", about: "the last day (today)" },
  },
  examples: ["millrace usage", "millrace usage --from 2026-10-01 --to 2026-10-31 --json"],
  async run({ values }, world) {
    const { apiOf } = await import("#cli/api.ts");
    const { showUsage } = await import("#api/usage.ts");
    const { tableLines } = await import("#door/table.ts");
    const api = apiOf(values, world.env, "show usage");
    const { tenant, from, to } = values;
    const query = { ...(from !== undefined && { from }), ...(to !== undefined && { to }) };
    const shown = await api(showUsage, { query, ...(tenant !== undefined && { tenant }) });
    if (values.json) for (const item of shown.items) world.out(JSON.stringify(item));
    else if (shown.items.length === 0) world.out(`nothing was used from ${shown.from} to ${shown.to}`);
    else
      for (const line of tableLines(
        ["TENANT", "DOOR", "SLOT SECONDS", "TASKS", "ATTEMPTS", "OUTPUT BYTES", "KEPT BYTES"],
        shown.items.map((item) => [
          item.tenant,
          item.door,
          item.slotSeconds.toFixed(1),
          String(item.tasks),
          String(item.attempts),
          String(item.outputBytes),
          String(item.keptBytes),
        ]),
      ))
        world.out(line);
    return 0;
  },
});
