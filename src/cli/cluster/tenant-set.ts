import { command, serverFlags } from "#door/command.ts";

export const tenantSet = command({
  name: "tenant set",
  about: "Set a tenant's share of the fleet, and how much of it may run and wait at once.",
  words: "<tenant>",
  positionalsMax: 1,
  takesRest: false,
  flags: {
    ...serverFlags,
    weight: { type: "string", value: "NUMBER", about: "its share next to other tenants' (1)" },
    running: { type: "string", value: "NUMBER", about: "tasks that may run at once, over all shards (0: no limit)" },
    queued: {
      type: "string",
      value: "NUMBER",
      about: "tasks that may wait at once, in each shard (0: cluster.queuedMax)",
    },
  },
  examples: ["millrace tenant set night --weight 1 --running 20", "millrace tenant set day --weight 4"],
  async run({ positionals: [tenant], values }, world) {
    if (tenant === undefined) {
      world.note("tenant set: name the tenant, for example: millrace tenant set night --running 20");
      return 2;
    }
    const standing = {
      weight: Number(values.weight ?? 1),
      runningMax: Number(values.running ?? 0),
      queuedMax: Number(values.queued ?? 0),
    };
    if (Object.values(standing).some((value) => !Number.isSafeInteger(value))) {
      world.note("tenant set: --weight, --running and --queued take whole numbers");
      return 2;
    }
    const { apiOf } = await import("#cli/api.ts");
    const { setTenant } = await import("#api/tenants.ts");
    await apiOf(values, world.env, "set tenant")(setTenant, { params: { name: tenant }, body: standing });
    if (values.json) world.out(JSON.stringify({ tenant, ...standing }));
    else
      world.out(
        `${tenant}: weight ${standing.weight}, ${limit("running", standing.runningMax)}, ${queued(standing.queuedMax)}`,
      );
    return 0;
  },
});

const queued = (max: number): string => (max === 0 ? "queued as cluster.queuedMax says" : limit("queued", max));

const limit = (what: string, max: number): string => (max === 0 ? `${what} without limit` : `at most ${max} ${what}`);
