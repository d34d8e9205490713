import { command, serverFlags } from "#door/command.ts";

export const secretList = command({
  name: "secret list",
  about: "List names and sizes of secrets; values are never shown.",
  words: "[prefix]",
  positionalsMax: 1,
  takesRest: false,
  flags: { ...serverFlags, tenant: { type: "string", value: "NAME", about: "of this tenant" } },
  examples: ["millrace secret list", "millrace secret list deploy/"],
  async run({ positionals: [prefix], values }, world) {
    const { apiOf } = await import("#cli/api.ts");
    const { listSecrets } = await import("#api/secrets.ts");
    const { tableLines } = await import("#door/table.ts");
    const api = apiOf(values, world.env, "list secrets");
    const { tenant } = values;
    const items = [];
    let cursor: string | undefined;
    do {
      const query = { limit: 500, ...(prefix !== undefined && { prefix }), ...(cursor !== undefined && { cursor }) };
      const page = await api(listSecrets, { query, ...(tenant !== undefined && { tenant }) });
      items.push(...page.items);
      cursor = page.next;
    } while (cursor !== undefined);
    if (values.json) for (const item of items) world.out(JSON.stringify(item));
    else if (items.length === 0) world.out("no secrets; set one with: millrace secret set <name> < file");
    else {
      const rows = items.map(({ name, version, bytes, key, by, changedAt }) => [
        name,
        String(version),
        String(bytes),
        key,
        by,
        changedAt,
      ]);
      for (const line of tableLines(["NAME", "VERSION", "BYTES", "KEY", "SET BY", "CHANGED"], rows)) world.out(line);
    }
    return 0;
  },
});
