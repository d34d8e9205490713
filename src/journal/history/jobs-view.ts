/**
 * The view `jobs_view`: jobs with the columns that operators know from job tables, on every SQL store. Rows of tracked
 * jobs are there from their submission on; `last_heartbeat` is when the row was last known to be true.
 */

/** What the two dialects spell differently. */
type Dialect = {
  /** A time from milliseconds. */
  readonly time: (ms: string) => string;
  /** A relation with one column, `value`: the entries of a list. */
  readonly entries: (list: string) => string;
};

export const postgresDialect: Dialect = {
  time: (ms) => `to_timestamp(${ms} / 1000.0)`,
  entries: (list) => `json_array_elements_text(nullif(${list}, '')::json) as entry(value)`,
};

export const sqliteDialect: Dialect = {
  time: (ms) => `strftime('%Y-%m-%dT%H:%M:%fZ', ${ms} / 1000.0, 'unixepoch')`,
  entries: (list) => `json_each(nullif(${list}, '')) as entry`,
};

const digits = "0123456789abcdefghijklmnopqrstuvwxyz";
/** As many as the largest number of a job needs. */
const digitsMax = 11;

/** A whole number as ids spell it (base/ids.ts). */
function inBase36(column: string): string {
  const places = Array.from({ length: digitsMax }, (_, i) => 36 ** (digitsMax - 1 - i));
  const spelled = places.map((place) => `substr('${digits}', cast(${column} / ${place} % 36 as integer) + 1, 1)`);
  return `coalesce(nullif(ltrim(${spelled.join(" || ")}, '0'), ''), '0')`;
}

/** Doors name the commit of a job in one of these tags. */
const commitTags = ["commit", "sha"];

export function jobsViewSql({ time, entries }: Dialect, schema = ""): string {
  const isCommit = commitTags.map((name) => `entry.value like '${name}=%'`).join(" or ");
  const after = commitTags.map(
    (name) => `when entry.value like '${name}=%' then substr(entry.value, ${name.length + 2})`,
  );
  return `create view ${schema}jobs_view as select
    'j' || ${inBase36("shard")} || '-' || ${inBase36("job")} as id,
    ${time("submitted_at_ms")} as created_at,
    (select case ${after.join(" ")} end from ${entries("tags")} where ${isCommit} limit 1) as commit_sha,
    name,
    case phase when 'WAITING' then 'queued' when 'RUNNING' then 'running' when 'CANCELLING' then 'running'
      when 'SUCCEEDED' then 'succeeded' else 'failed' end as status,
    ${time("seen_at_ms")} as last_heartbeat,
    ended_at_ms = 0 as live, tenant, door
    from ${schema}jobs`;
}
