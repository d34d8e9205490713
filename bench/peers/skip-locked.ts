/**
 * The queue that a good engineer writes by hand on PostgreSQL: claim a thousand with SKIP LOCKED, complete a thousand
 * at once, from four connections. It has no leases, retries, fairness, dependencies, results or history.
 */
import pg from "pg";
import { inThousands, type Peer } from "./peer.ts";

const claimers = 4;
const batch = 1_000;

export async function skipLocked(url: string): Promise<Peer> {
  const pool = new pg.Pool({ connectionString: url, max: claimers });
  pool.on("error", () => {});
  await pool.query(`create table queue (id bigint generated always as identity primary key, payload text not null,
    state smallint not null default 0, worker text, token bigint, done_at timestamptz)`);
  await pool.query("create index queue_ready on queue (id) where state = 0");
  const { rows } = await pool.query<{ on: string }>("select current_setting('synchronous_commit') as on");
  if (rows[0]?.on !== "on") throw new Error("the comparison needs synchronous_commit = on");

  async function claimer(no: number, done: { count: number }, tasks: number): Promise<void> {
    const client = await pool.connect();
    try {
      while (done.count < tasks) {
        const claimed = await client.query<{ id: string }>({
          name: "claim",
          text: `update queue q set state = 1, worker = $1, token = coalesce(token, 0) + 1 from
            (select id from queue where state = 0 order by id limit $2 for update skip locked) as next
            where q.id = next.id returning q.id, q.payload, q.token`,
          values: [`worker-${no}`, batch],
        });
        if (claimed.rows.length === 0) return;
        const completed = await client.query({
          name: "complete",
          text: `update queue q set state = 2, done_at = now() from unnest($1::bigint[]) as d (id)
            where q.id = d.id and q.state = 1 and q.worker = $2`,
          values: [claimed.rows.map(({ id }) => id), `worker-${no}`],
        });
        done.count += completed.rowCount ?? 0;
      }
    } finally {
      client.release();
    }
  }

  return {
    name: "SKIP LOCKED by hand",
    how: `pg, claim ${batch}, complete ${batch} by unnest, ${claimers} connections, synchronous_commit on`,
    async fill(tasks) {
      await pool.query("truncate queue");
      const text = "insert into queue (payload) select * from unnest($1::text[])";
      await inThousands(
        tasks,
        (no) => `task ${no}`,
        (payloads) => pool.query({ name: "fill", text, values: [payloads] }),
      );
    },
    async drain(tasks) {
      const done = { count: 0 };
      const startedMono = performance.now();
      await Promise.all(Array.from({ length: claimers }, (_, no) => claimer(no, done, tasks)));
      if (done.count !== tasks) throw new Error(`${done.count} of ${tasks} tasks were completed`);
      return performance.now() - startedMono;
    },
    close: () => pool.end(),
  };
}
