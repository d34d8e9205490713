import { command, serverFlags, type ExitCode, type ServerFlagValues, type World } from "#door/command.ts";

export const shardsIsolate = command({
  name: "shards isolate",
  about: "Keep a node for one shard, for that of a job, or for a tenant: the node's other shards go to other nodes.",
  words: "[<shard or job>]",
  positionalsMax: 1,
  takesRest: false,
  flags: {
    ...serverFlags,
    on: { type: "string", value: "NODE", about: "the node to keep for it; the one that owns it if left out" },
    tenant: { type: "string", value: "NAME", about: "instead of a shard: those that are mostly this tenant's work" },
  },
  examples: [
    "millrace shards isolate 17",
    "millrace shards isolate 17 --on big-machine",
    "millrace shards isolate --tenant acme --on big-machine",
  ],
  async run({ positionals: [wanted], values }, world) {
    if (values.tenant !== undefined) return await isolateOne(values.tenant, wanted, values, world);
    const shard = shardOf(wanted);
    if (shard === undefined) {
      world.note("shards isolate: name a shard by its number, or a job by its id: millrace shards isolate 17");
      return 2;
    }
    const { apiOf } = await import("#cli/api.ts");
    const { isolateShard } = await import("#api/cluster.ts");
    const body = values.on === undefined ? {} : { node: values.on };
    const isolated = await apiOf(values, world.env, "isolate shard")(isolateShard, { params: { shard }, body });
    if (values.json) world.out(JSON.stringify(isolated));
    else world.out(`shard ${isolated.shard}: ${isolated.node} is kept for it; its other shards move to other nodes`);
    return 0;
  },
});

export const shardsRelease = command({
  name: "shards release",
  about: "Undo `shards isolate`: shards are spread evenly again.",
  words: "[<shard or job>]",
  positionalsMax: 1,
  takesRest: false,
  flags: {
    ...serverFlags,
    tenant: { type: "string", value: "NAME", about: "instead of a shard: the tenant that a node is kept for" },
  },
  examples: ["millrace shards release 17", "millrace shards release --tenant acme"],
  async run({ positionals: [wanted], values }, world) {
    if (values.tenant !== undefined) return await releaseOne(values.tenant, wanted, values, world);
    const shard = shardOf(wanted);
    if (shard === undefined) {
      world.note("shards release: name a shard by its number, or a job by its id: millrace shards release 17");
      return 2;
    }
    const { apiOf } = await import("#cli/api.ts");
    const { releaseShard } = await import("#api/cluster.ts");
    const { released } = await apiOf(values, world.env, "release shard")(releaseShard, { params: { shard } });
    if (values.json) world.out(JSON.stringify({ shard: Number(shard), released }));
    else world.out(released ? `shard ${shard}: no node is kept for it any more` : `shard ${shard} was not isolated`);
    return 0;
  },
});

/** A job's id has its shard: `j17-4` is in shard 17. */
function shardOf(wanted: string | undefined): string | undefined {
  return /^(?:j(\d{1,4})-\d+|(\d{1,4}))$/
    .exec(wanted ?? "")
    ?.slice(1)
    .find((part) => part !== undefined);
}

type ServerValues = ServerFlagValues & { readonly on?: string; readonly json?: boolean };

async function isolateOne(
  tenant: string,
  shard: string | undefined,
  values: ServerValues,
  world: World,
): Promise<ExitCode> {
  if (shard !== undefined || values.on === undefined) {
    world.note(
      "shards isolate: name the tenant and its node, and no shard: millrace shards isolate --tenant acme --on NODE",
    );
    return 2;
  }
  const { apiOf } = await import("#cli/api.ts");
  const { isolateTenant } = await import("#api/cluster.ts");
  const body = { node: values.on };
  const isolated = await apiOf(values, world.env, "isolate tenant")(isolateTenant, { params: { tenant }, body });
  if (values.json) world.out(JSON.stringify(isolated));
  else world.out(`tenant ${tenant}: shards that are mostly its work move to ${isolated.node} within a minute`);
  return 0;
}

async function releaseOne(
  tenant: string,
  shard: string | undefined,
  values: ServerValues,
  world: World,
): Promise<ExitCode> {
  if (shard !== undefined) {
    world.note("shards release: name a shard or a tenant, not both: millrace shards release --tenant acme");
    return 2;
  }
  const { apiOf } = await import("#cli/api.ts");
  const { releaseTenant } = await import("#api/cluster.ts");
  const answer = await apiOf(values, world.env, "release tenant")(releaseTenant, { params: { tenant } });
  if (values.json) world.out(JSON.stringify(answer));
  else world.out(answer.released ? `tenant ${tenant}: no node is kept for it any more` : `${tenant} was not isolated`);
  return 0;
}
