/**
 * How every session with PostgreSQL must be set up so that a fail-over of the server loses nothing (K7, K8, ADR 0036):
 * nothing counts before the synchronous standby has it.
 *
 * A commit waits for the standby after it was written on the primary, and becomes visible to others only then. But the
 * wait can be cut short, by a cancel, a terminate or a restart of the primary: the commit stays, everybody sees it, and
 * the standby may never get it. So a visible commit may still be lost. A later commit that waited to its end proves
 * that all earlier ones survive, because the standby receives the log in order.
 */

/**
 * A column that makes a read wait like a commit: it answers when the standby has everything that the statement saw. If
 * commits wait for no standby it costs nothing.
 */
export const confirmation = `(select case when current_setting('synchronous_standby_names') <> ''
  then pg_logical_emit_message(true, 'millrace', '') end) as confirmed`;

/** The error text when `isDoubt` made the outcome of a commit unknown. */
export const notConfirmed = "the synchronous standby did not confirm the commit";

/** Warnings that transaction numbers run out. They come with every transaction for weeks, whatever its outcome. */
const harmless: ReadonlySet<string | undefined> = new Set(["GetNewTransactionId", "GetNewMultiXactId"]);

type Notice = { readonly code?: string | undefined; readonly routine?: string | undefined };

/**
 * A cancelled wait for the standby is reported only as a warning, after which the commit succeeds. Its SQLSTATE is the
 * general one for warnings, and its text is translated: so every warning that is not known to be harmless counts.
 */
export const isDoubt = ({ code = "", routine }: Notice): boolean => /^(01|57)/.test(code) && !harmless.has(routine);

export type Query = (text: string, values?: unknown[]) => Promise<{ readonly rows: readonly unknown[] }>;

/** Prepares a new session. `live`: the server processes that still have their client. */
export async function prepareSession(query: Query, name: string, live: ReadonlySet<number>): Promise<void> {
  await query(settings);
  await waitForStandby(query);
  const { rows } = await query("select 1 where pg_is_in_recovery()");
  // A standby may be behind: an outdated epoch would seem to be current (K8).
  if (rows.length > 0) throw new Error("this server is a standby, which takes no writes: connect to the primary");
  // A session that waits for the standby does not notice that its client has gone. Each call that timed out would leave
  // one behind, until the server has no connections left.
  await query(
    `select pg_terminate_backend(pid) from pg_stat_activity
      where application_name = $1 and wait_event = 'SyncRep' and pid <> all ($2::int4[])`,
    [name, [...live]],
  );
}

/**
 * Every statement of ours can use an index and is prepared once: a plan made while the tables were empty would scan
 * them, and be kept when they are full. And warnings must be sent, whatever the server's default is: see `isDoubt`.
 */
const settings = `set enable_seqscan = off; set plan_cache_mode = force_generic_plan; set jit = off;
  set client_min_messages = warning`;

/** Defaults of the role, the database or the server must not weaken it. "remote_apply" waits for more, and stays. */
export async function waitForStandby(query: Query): Promise<void> {
  await query(`select set_config('synchronous_commit', 'on', false)
    where current_setting('synchronous_commit') <> 'remote_apply'`);
}
