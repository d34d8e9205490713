import { command, serverFlags } from "#door/command.ts";

export const trailFlags = {
  ...serverFlags,
  tenant: { type: "string", value: "NAME", about: "of this tenant" },
  cluster: { type: "boolean", about: "what concerns the whole cluster instead: nodes, tenants, keys, sign-ins" },
} as const;

export const auditList = command({
  name: "audit list",
  about: "List the audit trail, newest first: who changed what, when and from where.",
  words: "",
  positionalsMax: 0,
  takesRest: false,
  flags: { ...trailFlags, limit: { type: "string", value: "NUMBER", about: "at most so many (50), up to 500" } },
  examples: ["millrace audit list", "millrace audit list --cluster --limit 10"],
  async run({ values }, world) {
    const limit = Number(values.limit ?? 50);
    if (!Number.isInteger(limit) || limit < 1 || limit > 500) {
      world.note("audit list: --limit is a whole number from 1 to 500");
      return 2;
    }
    const { apiOf } = await import("#cli/api.ts");
    const { listAudit } = await import("#api/audit.ts");
    const { tableLines } = await import("#door/table.ts");
    const { tenant, cluster } = values;
    const query = { limit, trail: cluster === true ? ("cluster" as const) : ("tenant" as const) };
    const of = { query, ...(tenant !== undefined && { tenant }) };
    const { items } = await apiOf(values, world.env, "list the audit trail")(listAudit, of);
    if (values.json) for (const item of items) world.out(JSON.stringify(item));
    else if (items.length === 0) world.out("nothing was changed yet");
    else {
      const rows = items.map(({ seq, at, who, call, of: named, outcome, why }) => [
        String(seq),
        at,
        `${who.name} (${who.address})`,
        call,
        Object.entries(named)
          .map(([name, value]) => `${name}=${value}`)
          .join(" "),
        outcome === "failed" ? `failed ${why ?? ""}` : outcome,
      ]);
      for (const line of tableLines(["SEQ", "AT", "WHO", "CALL", "OF", "OUTCOME"], rows)) world.out(line);
    }
    return 0;
  },
});
