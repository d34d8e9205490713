/** Snapshots in PostgreSQL, one row per chunk. */
import type { ShardId } from "#base/ids.ts";
import { attempted, overtaken, pointedAt, pointerOf } from "#journal/engine/engine-snapshots.ts";
import * as guards from "#journal/engine/guards.ts";
import type { Ports } from "./ownership.ts";
import { lockedShard, putShard, shardRowOf, storedTail } from "./rows.ts";
import type { SnapshotStore } from "#journal/engine/snapshots.ts";

const sweepChunksMax = 16;

export function snapshotsIn({ lane, schema, offsetMs }: Ports): SnapshotStore {
  const at = (shard: ShardId) => ({ schema, shard, offsetMs: offsetMs(), doing: "save snapshot" });
  return {
    begin: (shard, wanted) =>
      lane.transaction("save snapshot", async (run) => {
        const { row } = await lockedShard(run, at(shard));
        guards.checkSnapshot(row, wanted, await storedTail(run, schema, row));
        const begun = attempted(row);
        await putShard(run, schema, begun);
        return begun.attemptId;
      }),
    async put({ shard, snapshot, index }, bytes) {
      const rows = await lane.write("save snapshot", {
        name: "put-chunk",
        text: `insert into ${schema}.chunks (shard, snapshot, index, record)
          select $1::int4, $2::int8, $3::int4, $4::bytea
          where exists (select from ${schema}.shards where shard = $1 and attempt_id = $2) returning index`,
        values: [shard, snapshot, index, Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)],
      });
      if (rows.length === 0) throw overtaken(shard);
    },
    commit: (shard, pointer) =>
      lane.transaction("save snapshot", async (run) => {
        const { row } = await lockedShard(run, at(shard));
        guards.checkSnapshot(row, pointer, await storedTail(run, schema, row));
        if (row.attemptId !== pointer.id) throw overtaken(shard);
        await putShard(run, schema, pointedAt(row, pointer));
      }),
    async sweep(shard) {
      const rows = await lane.write("sweep snapshots", {
        text: `delete from ${schema}.chunks c using ${schema}.shards s where s.shard = c.shard and c.ctid = any (array(
            select o.ctid from ${schema}.chunks o join ${schema}.shards p using (shard)
            where o.shard = $1::int4 and o.snapshot <> p.snapshot_id and o.snapshot <> p.attempt_id limit $2::int4))
          and c.snapshot <> s.snapshot_id and c.snapshot <> s.attempt_id returning c.index`,
        values: [shard, sweepChunksMax],
      });
      return rows.length;
    },
    async pointer(shard) {
      const [found] = await lane.read("load snapshot", {
        text: `select * from ${schema}.shards where shard = $1::int4`,
        values: [shard],
      });
      if (!found) throw guards.unknownShard("load snapshot", shard);
      return pointerOf(shardRowOf(found));
    },
    async chunk({ shard, snapshot, index }) {
      const [found] = await lane.read<{ record: Uint8Array }>("load snapshot", {
        name: "chunk",
        text: `select record from ${schema}.chunks where shard = $1::int4 and snapshot = $2::int8 and index = $3::int4`,
        values: [shard, snapshot, index],
      });
      return found?.record;
    },
  };
}
