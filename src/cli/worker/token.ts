import { command, serverFlags } from "#door/command.ts";

export const workerToken = command({
  name: "worker token",
  about: "Make a token that registers workers on other machines; it is shown once.",
  words: "",
  positionalsMax: 0,
  takesRest: false,
  flags: {
    ...serverFlags,
    tenant: { type: "string", value: "TENANT", about: "whose work they take; left out: the caller's" },
    "every-tenant": { type: "boolean", about: "they take work of all tenants" },
    pool: { type: "strings", value: "POOL", about: "which pools they serve; left out: default; may be repeated" },
    labels: {
      type: "strings",
      value: "NAME=VALUE",
      about: "what they offer besides, such as door=shell, gpu=yes, place=*; may be repeated",
    },
    ttl: { type: "string", value: "DURATION", about: "how long it registers; left out: 1h" },
    uses: { type: "string", value: "N", about: "how many workers it registers; left out: 1" },
    ephemeral: { type: "boolean", about: "each runs one task, and is then gone" },
    name: { type: "string", value: "NAME", about: "what their names begin with; left out: worker" },
  },
  examples: [
    "millrace worker token --labels door=shell --ttl 1h",
    "millrace worker token --pool gpu --labels door=shell,gpu=yes --uses 10 --ephemeral",
  ],
  async run({ values }, world) {
    const { apiOf } = await import("#cli/api.ts");
    const { createWorkerToken } = await import("#api/workers.ts");
    const { parseDurationMs } = await import("#base/units.ts");
    const { wrong } = await import("./worker.ts");
    const { tenant, pool, name } = values;
    const ttlMs = parseDurationMs(values.ttl ?? "1h");
    if (ttlMs === undefined) throw wrong("write a duration, such as 1h", { flag: "--ttl" });
    const uses = Number(values.uses ?? 1);
    if (!Number.isInteger(uses) || uses < 1) throw wrong("write a number", { flag: "--uses" });
    const body = {
      labels: (values.labels ?? []).flatMap((text) => text.split(",")),
      ttlMs,
      uses,
      ephemeral: values.ephemeral ?? false,
      everyTenant: values["every-tenant"] ?? false,
      ...(pool && { pools: [...pool] }),
      ...(name !== undefined && { name }),
    };
    const api = apiOf(values, world.env, "make a worker's token");
    const made = await api(createWorkerToken, { body, ...(tenant !== undefined && { tenant }) });
    world.out(values.json ? JSON.stringify(made) : made.token);
    if (!values.json) world.note(`${made.id}: ${made.usesLeft} worker(s), until ${made.until}; it is not shown again`);
    return 0;
  },
});
