/**
 * Leases, nodes and the feature level in PostgreSQL, by the server's own clock (J4).
 *
 * Everything that a shard waits for when it changes owner is one statement each: a node that has just joined is busy
 * reading logs, and every further round trip would wait for its event loop, with rows locked that others wait for.
 */
import { assert, must } from "#base/assert.ts";
import { confirmation } from "#base/postgres-session.ts";
import { notOpened } from "#journal/engine/engine-rows.ts";
import { unknownShard } from "#journal/engine/guards.ts";
import type { Cluster, Journal, NodeSeen } from "#journal/journal.ts";
import * as lease from "#journal/engine/ownership.ts";
import { storeNow } from "./append.ts";
import type { Lane, Row, Run } from "./lane.ts";
import { seenRowOf, shardRowOf } from "./rows.ts";
import { int4Array, int8Array } from "./values.ts";

type Ownerships = Pick<
  Journal,
  "cluster" | "acquire" | "renew" | "release" | "ownerships" | "announce" | "nodes" | "raiseFeatureLevel" | "confirm"
>;
export type Ports = { readonly lane: Lane; readonly schema: string; readonly offsetMs: () => number };

export function ownershipIn({ lane, schema, offsetMs }: Ports): Ownerships {
  const nodeRows = `select row, seen_at_ms, ttl_ms, ${storeNow("$1")} as now from ${schema}.nodes`;

  async function clusterRow(run: Run, lock = ""): Promise<Cluster> {
    const [found] = await run({ text: `${clusterSql(schema)} ${lock}` });
    if (!found) throw notOpened();
    return clusterOf(found);
  }

  async function seenNodes(run: Run): Promise<NodeSeen[]> {
    const rows = await run({ name: "nodes", text: nodeRows, values: [offsetMs()] });
    return rows.map((row) => lease.seen(seenRowOf(row), Number(row["now"])));
  }

  async function levels(run: Run, lock?: string): Promise<{ readonly current: number; readonly raised: number }> {
    const { featureLevel: current } = await clusterRow(run, lock);
    return { current, raised: lease.raisedLevel(current, await seenNodes(run)) };
  }

  async function raise(run: Run): Promise<number> {
    const { current, raised } = await levels(run, "for update");
    if (raised !== current)
      await run({ text: `update ${schema}.cluster set feature_level = $1::int4`, values: [raised] });
    return raised;
  }

  return {
    cluster: () => clusterRow((statement) => lane.read("read cluster", statement)),

    async confirm(owned) {
      const rows = await lane.read<{ current: boolean }>("confirm epochs", {
        name: "confirm",
        text: `select coalesce(s.epoch = w.epoch, false) as current, ${confirmation}
          from unnest($1::int4[], $2::int8[]) with ordinality as w (shard, epoch, n)
          left join ${schema}.shards s using (shard) order by w.n`,
        values: [int4Array(owned.map(({ shard }) => shard)), int8Array(owned.map(({ epoch }) => epoch))],
      });
      return rows.map(({ current }) => current);
    },

    async acquire(shard, node, { leaseMs, features }) {
      const [found] = await lane.write("acquire shard", {
        name: "acquire",
        text: acquireSql(schema),
        values: [shard, node, leaseMs, features, offsetMs()],
      });
      if (!found) throw unknownShard("acquire shard", shard);
      const featureLevel = Number(found["feature_level"]);
      const wanted = { node, leaseMs, features };
      const { answer } = lease.acquireLease(shardRowOf(found), wanted, { featureLevel }, Number(found["now"]));
      assert((answer.kind === "acquired") === found["taken"], "the statement takes what the rules give");
      return answer;
    },

    async renew(node, held, leaseMs) {
      const rows = await lane.write<{ shard: number | null; now: number }>("renew leases", {
        name: "renew",
        text: `with held as materialized (
            select s.shard from ${schema}.shards s
            join unnest($1::int4[], $2::int8[]) as w (shard, epoch) on s.shard = w.shard and s.epoch = w.epoch
            where s.owner = $3::text order by s.shard for no key update of s
          ), clock as materialized (select ${storeNow("$5")} as now from (select count(*) from held) as locked
          ), renewed as (
            update ${schema}.shards s set lease_until_ms = clock.now + $4::float8
            from held, clock where s.shard = held.shard returning s.shard
          ) select renewed.shard, clock.now from clock left join renewed on true order by renewed.shard`,
        values: [
          int4Array(held.map(({ shard }) => shard)),
          int8Array(held.map(({ epoch }) => epoch)),
          node,
          leaseMs,
          offsetMs(),
        ],
      });
      return { held: rows.flatMap(({ shard }) => shard ?? []), storeNowMs: must(rows[0], "row").now };
    },

    async release(shard, epoch, successor) {
      const { node = null, reservedMs = 0 } = successor ?? {};
      const [known] = await lane.write("release shard", {
        name: "release",
        text: `with released as (
            update ${schema}.shards set epoch = epoch + 1, owner = null, lease_until_ms = 0, reserved_for = $3::text,
              reserved_until_ms = case when $3::text is null then 0 else ${storeNow("$5")} + $4::float8 end
            where shard = $1::int4 and epoch = $2::int8 and owner is not null
          ) select shard from ${schema}.shards where shard = $1::int4`,
        values: [shard, epoch, node, reservedMs, offsetMs()],
      });
      if (!known) throw unknownShard("release shard", shard);
    },

    async ownerships() {
      const rows = await lane.read<{
        shard: number;
        epoch: number;
        owner: string | null;
        lease: number;
        row: string | null;
        now: number;
      }>("read ownerships", {
        name: "ownerships",
        text: `select s.shard, s.epoch, s.owner, s.lease_until_ms as lease, n.row, ${storeNow("$1")} as now
          from ${schema}.shards s left join ${schema}.nodes n on n.node = s.owner order by s.shard`,
        values: [offsetMs()],
      });
      const nodes = rows.flatMap(({ row }) => (row === null ? [] : seenRowOf({ row, seen_at_ms: 0, ttl_ms: 0 })));
      const leases = rows.map(({ lease: leaseUntilMs, ...row }) => ({ ...row, leaseUntilMs }));
      return lease.ownershipsOf(leases, nodes, rows[0]?.now ?? 0);
    },

    async announce(row, ttlMs) {
      await lane.write("announce node", {
        name: "announce",
        text: `insert into ${schema}.nodes (node, row, seen_at_ms, ttl_ms)
          values ($1::text, $2::text, ${storeNow("$3")}, $4::float8)
          on conflict (node) do update
            set row = excluded.row, seen_at_ms = excluded.seen_at_ms, ttl_ms = excluded.ttl_ms`,
        values: [row.node, JSON.stringify(row), offsetMs(), ttlMs],
      });
    },

    nodes: () => seenNodes((statement) => lane.read("read nodes", statement)),

    async raiseFeatureLevel() {
      // Acquiring a shard reads the cluster's row: it is locked only if there is something to write.
      const seen = await levels((statement) => lane.read("read feature level", statement));
      const level = seen.raised === seen.current ? seen.current : await lane.transaction("raise feature level", raise);
      await lane.write("forget nodes", {
        name: "forget-nodes",
        text: `delete from ${schema}.nodes where seen_at_ms < ${storeNow("$1")}`,
        values: [offsetMs() - lease.nodeForgottenMs],
      });
      return level;
    },
  };
}

/**
 * Takes the shard if `lease.acquireLease` would; returns the rows that it decides on, and whether the shard was taken.
 */
const acquireSql = (schema: string): string => `
  with level as materialized (select feature_level from ${schema}.cluster for share
  ), held as materialized (select * from ${schema}.shards where shard = $1::int4 for no key update
  ), seen as materialized (select held.*, level.feature_level, ${storeNow("$5")} as now from held, level
  ), taken as (
    update ${schema}.shards s set epoch = seen.epoch + 1, owner = $2::text, lease_until_ms = seen.now + $3::float8,
      reserved_for = null, reserved_until_ms = 0
    from seen where s.shard = seen.shard and $4::int4 >= seen.feature_level
      and (seen.owner is null or seen.owner = $2::text or seen.lease_until_ms <= seen.now)
      and (seen.reserved_for is null or seen.reserved_for = $2::text or seen.reserved_until_ms <= seen.now)
    returning s.shard
  ) select seen.*, taken.shard is not null as taken from seen left join taken on true`;

export const clusterSql = (schema: string): string => `select *, ${confirmation} from ${schema}.cluster`;

export const clusterOf = (row: Row): Cluster => ({
  clusterId: String(row["cluster_id"]),
  shards: Number(row["shards"]),
  featureLevel: Number(row["feature_level"]),
});
