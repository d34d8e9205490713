/** What this server promises, said aloud: K7 and K8 hold as far as its settings do. */
import { must } from "#base/assert.ts";
import type { Journal } from "./journal.ts";
import type { Lane } from "./postgres-lane.ts";

export type ServerFacts = {
  readonly version: string;
  readonly fsync: string;
  readonly commit: string;
  readonly fullPageWrites: string;
  /** Names of standbys that commits wait for. */
  readonly synchronous: string;
  readonly standbys: number;
  readonly recovering: boolean;
};

export async function describeServer(lane: Lane): ReturnType<Journal["describe"]> {
  const [facts] = await lane.read<ServerFacts>("describe server", {
    text: `select current_setting('server_version') as version, current_setting('fsync') as fsync,
      current_setting('synchronous_commit') as commit, current_setting('full_page_writes') as "fullPageWrites",
      current_setting('synchronous_standby_names') as synchronous, pg_is_in_recovery() as recovering,
      (select count(*)::int4 from pg_stat_replication) as standbys`,
  });
  return { kind: "postgres", ...judgeServer(must(facts, "row")) };
}

export function judgeServer(facts: ServerFacts): { durable: boolean; notes: string[] } {
  const { version, fsync, commit, fullPageWrites, synchronous, standbys, recovering } = facts;
  const notes = [`PostgreSQL ${version}, fsync=${fsync}, synchronous_commit=${commit}`];
  if (fsync !== "on") notes.push("WARNING: fsync is off: a crash of the server can lose what was acknowledged (K7)");
  if (commit === "off")
    notes.push("WARNING: synchronous_commit is off: a crash of the server can lose what was acknowledged (K7)");
  if (fullPageWrites !== "on") notes.push("WARNING: full_page_writes is off: a loss of power can damage the tables");
  if (recovering) notes.push("WARNING: this server is a standby and takes no writes");
  const waits = synchronous !== "" && commit !== "local" && commit !== "off";
  if (waits) notes.push(`commits wait for a synchronous standby (${synchronous})`);
  else if (standbys > 0)
    notes.push(
      `WARNING: ${standbys} standby(s), none of them synchronous: fail-over can lose what was acknowledged (K7) ` +
        "and bring back an old owner's epoch (K8)",
    );
  else notes.push("no standby is connected: fail-over is not covered");
  return { durable: fsync === "on" && commit !== "off" && !recovering, notes };
}
