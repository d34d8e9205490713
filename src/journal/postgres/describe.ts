/** What this server promises, for the log at start: K7 and K8 hold only as far as its settings do. */
import { must } from "#base/assert.ts";
import type { Journal } from "#journal/journal.ts";
import type { Lane } from "./lane.ts";

export type ServerFacts = {
  readonly version: string;
  readonly fsync: string;
  readonly commit: string;
  /** The default for sessions that do not set it. */
  readonly commitDefault: string;
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
      (select reset_val from pg_settings where name = 'synchronous_commit') as "commitDefault",
      current_setting('synchronous_standby_names') as synchronous, pg_is_in_recovery() as recovering,
      (select count(*)::int4 from pg_stat_replication) as standbys`,
  });
  return { kind: "postgres", ...judgeServer(must(facts, "row")) };
}

export function judgeServer(facts: ServerFacts): { durable: boolean; notes: string[] } {
  const { version, fsync, commit, commitDefault, fullPageWrites, recovering } = facts;
  const notes = [`PostgreSQL ${version}, fsync=${fsync}, synchronous_commit=${commit}`];
  if (fsync !== "on") notes.push("WARNING: fsync is off: a crash of the server can lose what was acknowledged (K7)");
  if (commit === "off")
    notes.push("WARNING: synchronous_commit is off: a crash of the server can lose what was acknowledged (K7)");
  if (fullPageWrites !== "on") notes.push("WARNING: full_page_writes is off: a loss of power can damage the tables");
  if (recovering) notes.push("WARNING: this server is a standby and takes no writes");
  notes.push(...standbyNotes(facts));
  if (commitDefault !== commit)
    notes.push(`the default of synchronous_commit is ${commitDefault}; Millrace's own sessions use ${commit}`);
  return { durable: fsync === "on" && commit !== "off" && !recovering, notes };
}

function standbyNotes({ commit, synchronous, standbys }: ServerFacts): readonly string[] {
  if (synchronous !== "" && commit !== "local" && commit !== "off") {
    const waits = `commits wait for a synchronous standby (${synchronous})`;
    return standbys > 0
      ? [waits]
      : [waits, "WARNING: no standby is connected: nothing is acknowledged until one is, or is no longer waited for"];
  }
  if (standbys === 0) return ["no standby is connected: fail-over is not covered"];
  return [
    `WARNING: ${standbys} standby(s), none of them synchronous: fail-over can lose what was acknowledged (K7) ` +
      "and bring back an old owner's epoch (K8)",
  ];
}
