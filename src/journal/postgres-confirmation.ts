/**
 * What keeps K7 and K8 through a fail-over of PostgreSQL (ADR 0036): nothing counts before the synchronous standby has
 * it. A commit waits for the standby after it was written here, and shows its effects to others only then. But the
 * wait can be cut short: by a cancel or a terminate, by a restart of the primary. The commit stays, everybody sees it,
 * and the standby may never get it. So what is seen is not what will survive; a later commit that waited to its end
 * proves that everything before it will, because the standby takes the log in order.
 */
import type pg from "pg";

/**
 * A column that makes a read count as a commit: the answer comes when the standby has all that the statement saw.
 * Where commits wait for no standby it costs nothing.
 */
export const confirmation = `(select case when current_setting('synchronous_standby_names') <> ''
  then pg_logical_emit_message(true, 'millrace', '') end) as confirmed`;

/** Warnings about numbers that run out. They come with every transaction for weeks, and are about something else. */
const harmless: ReadonlySet<string | undefined> = new Set(["GetNewTransactionId", "GetNewMultiXactId"]);

type NoticeFields = { readonly code?: string | undefined; readonly routine?: string | undefined };

/**
 * A wait for the standby that was cancelled is told as a mere warning, after which the commit succeeds. Its SQLSTATE
 * is the one of warnings in general, and its text is translated: any warning that is not known as harmless counts.
 */
export const isDoubt = ({ code = "", routine }: NoticeFields): boolean =>
  /^(01|57)/.test(code) && !harmless.has(routine);

/**
 * Defaults of the role, the database or the server must not weaken it: neither how long commits wait, nor whether
 * the warning is sent. "remote_apply" waits for more than we need, and stays.
 */
export async function waitForStandby(client: pg.ClientBase): Promise<void> {
  await client.query(`set client_min_messages = warning;
    select set_config('synchronous_commit', 'on', false)
    where current_setting('synchronous_commit') <> 'remote_apply'`);
}

/** A standby answers reads with what was true some time ago: an owner that has passed would seem to be current (K8). */
export async function refuseStandby(client: pg.ClientBase): Promise<void> {
  const { rows } = await client.query<{ recovering: string | boolean }>(
    "select pg_is_in_recovery()::text as recovering",
  );
  if (rows[0]?.recovering === "true")
    throw new Error("this server is a standby, which takes no writes: connect to the primary");
}

/**
 * A session that waits for the standby does not notice that its client has gone. Each call that gave up would leave
 * one behind, until the server has no connection to spare.
 */
export async function endLostWaits(client: pg.ClientBase, name: string, live: ReadonlySet<number>): Promise<void> {
  await client.query({
    text: `select pg_terminate_backend(pid) from pg_stat_activity
      where application_name = $1 and wait_event = 'SyncRep' and pid <> all ($2::int4[])`,
    values: [name, [...live]],
  });
}
