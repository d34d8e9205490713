import { command, serverFlags } from "#door/command.ts";

export const kept = command({
  name: "kept",
  about: "List what is kept until a declared time, such as artifacts, and when it goes.",
  words: "[prefix]",
  positionalsMax: 1,
  takesRest: false,
  flags: { ...serverFlags, tenant: { type: "string", value: "NAME", about: "of this tenant" } },
  examples: ["millrace kept", "millrace kept ci.artifact/"],
  async run({ positionals: [prefix], values }, world) {
    const { apiOf } = await import("#cli/api.ts");
    const { listKept } = await import("#api/kept.ts");
    const { tableLines } = await import("#door/table.ts");
    const api = apiOf(values, world.env, "list what is kept");
    const { tenant } = values;
    const items = [];
    let cursor: string | undefined;
    do {
      const query = { limit: 100, ...(prefix !== undefined && { prefix }), ...(cursor !== undefined && { cursor }) };
      const page = await api(listKept, { query, ...(tenant !== undefined && { tenant }) });
      items.push(...page.items);
      cursor = page.next;
    } while (cursor !== undefined);
    if (values.json) for (const item of items) world.out(JSON.stringify(item));
    else if (items.length === 0) world.out("nothing is kept under a name");
    else
      for (const line of tableLines(
        ["NAME", "DOOR", "BYTES", "GOES"],
        items.map(({ name, door, bytes, until, lostAt }) => [
          name,
          door,
          String(bytes),
          lostAt === undefined ? until : `${until} (lost ${lostAt})`,
        ]),
      ))
        world.out(line);
    return 0;
  },
});
