/** Leases, nodes and the feature level in PostgreSQL, by the server's own clock (J4). */
import { must } from "#base/assert.ts";
import { notOpened } from "./engine-rows.ts";
import type { Cluster, Journal } from "./journal.ts";
import * as lease from "./ownership.ts";
import { storeNow } from "./postgres-append.ts";
import type { Lane } from "./postgres-lane.ts";
import { lockedShard, putShard, seenRowOf } from "./postgres-rows.ts";
import { int4Array, int8Array } from "./postgres-values.ts";

type Ownerships = Pick<
  Journal,
  "cluster" | "acquire" | "renew" | "release" | "ownerships" | "announce" | "nodes" | "raiseFeatureLevel" | "confirm"
>;
export type Ports = { readonly lane: Lane; readonly schema: string; readonly offsetMs: () => number };

export function ownershipIn({ lane, schema, offsetMs }: Ports): Ownerships {
  const nodeRows = `select row, seen_at_ms, ttl_ms, ${storeNow("$1")} as now from ${schema}.nodes`;
  return {
    async cluster() {
      const [found] = await lane.read<Cluster>("read cluster", { text: clusterSql(schema) });
      if (!found) throw notOpened();
      return found;
    },

    async confirm(owned) {
      const rows = await lane.read<{ current: boolean }>("confirm epochs", {
        name: "confirm",
        text: `select coalesce(s.epoch = w.epoch, false) as current
          from unnest($1::int4[], $2::int8[]) with ordinality as w (shard, epoch, n)
          left join ${schema}.shards s using (shard) order by w.n`,
        values: [int4Array(owned.map(({ shard }) => shard)), int8Array(owned.map(({ epoch }) => epoch))],
      });
      return rows.map(({ current }) => current);
    },

    acquire: (shard, node, wanted) =>
      lane.transaction("acquire shard", async (run) => {
        const at = { schema, shard, offsetMs: offsetMs(), doing: "acquire shard" };
        const { row, nowMs, featureLevel } = await lockedShard(run, at);
        const taken = lease.acquireLease(row, { node, ...wanted }, { featureLevel }, nowMs);
        if (taken.row) await putShard(run, schema, taken.row);
        return taken.answer;
      }),

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

    release: (shard, epoch, successor) =>
      lane.transaction("release shard", async (run) => {
        const at = { schema, shard, offsetMs: offsetMs(), doing: "release shard" };
        const { row, nowMs } = await lockedShard(run, at);
        const released = lease.releaseLease(row, epoch, successor, nowMs);
        if (released) await putShard(run, schema, released);
      }),

    async ownerships() {
      const rows = await lane.read<{
        shard: number;
        epoch: number;
        owner: string | null;
        lease: number;
        row: string | null;
        now: number;
      }>("read ownerships", {
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

    async nodes() {
      const rows = await lane.read("read nodes", { name: "nodes", text: nodeRows, values: [offsetMs()] });
      return rows.map((row) => lease.seen(seenRowOf(row), Number(row["now"])));
    },

    raiseFeatureLevel: () =>
      lane.transaction("raise feature level", async (run) => {
        const [cluster] = await run<Cluster>({ text: `${clusterSql(schema)} for update` });
        if (!cluster) throw notOpened();
        const rows = await run({ text: nodeRows, values: [offsetMs()] });
        const nodes = rows.map((row) => lease.seen(seenRowOf(row), Number(row["now"])));
        const level = lease.raisedLevel(cluster.featureLevel, nodes);
        if (level !== cluster.featureLevel)
          await run({ text: `update ${schema}.cluster set feature_level = $1::int4`, values: [level] });
        await run({
          text: `delete from ${schema}.nodes where seen_at_ms < ${storeNow("$1")}`,
          values: [offsetMs() - lease.nodeForgottenMs],
        });
        return level;
      }),
  };
}

export const clusterSql = (schema: string): string =>
  `select cluster_id as "clusterId", shards, feature_level as "featureLevel" from ${schema}.cluster`;
