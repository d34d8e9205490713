import { command, serverFlags } from "#door/command.ts";

export const scheduleList = command({
  name: "schedule list",
  about: "List schedules, by name, with their next instants.",
  words: "[prefix]",
  positionalsMax: 1,
  takesRest: false,
  flags: { ...serverFlags, tenant: { type: "string", value: "NAME", about: "of this tenant" } },
  examples: ["millrace schedule list"],
  async run({ positionals: [prefix], values }, world) {
    const { apiOf } = await import("#cli/api.ts");
    const { listSchedules } = await import("#api/schedules.ts");
    const { scheduleTable } = await import("./lines.ts");
    const api = apiOf(values, world.env, "list schedules");
    const { tenant } = values;
    const items = [];
    let cursor: string | undefined;
    do {
      const query = { limit: 100, ...(prefix !== undefined && { prefix }), ...(cursor !== undefined && { cursor }) };
      const page = await api(listSchedules, { query, ...(tenant !== undefined && { tenant }) });
      items.push(...page.items);
      cursor = page.next;
    } while (cursor !== undefined);
    const none = ["no schedules; add one with: millrace schedule add"];
    const lines = values.json ? items.map((item) => JSON.stringify(item)) : scheduleTable(items);
    for (const line of items.length === 0 && values.json !== true ? none : lines) world.out(line);
    return 0;
  },
});
