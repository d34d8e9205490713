/** What the database says of a build afterwards: the log of all shards, and every name that was ever written. */
import pg from "pg";
import { systemClock } from "#door/system-clock.ts";
import { openSharedDirectory } from "#blobs/tiers/shared-directory.ts";
import { postgresJournal } from "#journal/postgres/postgres.ts";
import { JournalLog, type LoggedEvent } from "#e2e/chaos/journal-log.ts";

export type Findings = {
  readonly jobs: number;
  readonly attempts: number;
  readonly commits: number;
  /** Claims of workers that were suspended until these had expired. */
  readonly claimsLost: number;
  /** Names that were written, each time it was. */
  readonly writes: number;
  readonly violations: readonly string[];
};

/** When a node was suspended; by this machine's clock. */
export type Sleep = { readonly name: string; readonly fromMs: number; readonly toMs: number };

/** Makes the database record every change of a name from now on. Nodes must be up: they create the table. */
export async function auditNames(database: string): Promise<void> {
  await ask(
    database,
    `create table names_written (tenant text, space text, name text, digest text, at timestamptz default now());
     create function note_name() returns trigger language plpgsql as $$ begin
       insert into names_written values (new.tenant, new.space, new.name, new.digest); return new; end $$;
     create trigger note_name after insert or update on millrace.names
       for each row when (new.space like 'ac/%') execute function note_name();`,
  );
}

export async function findings(
  database: string,
  shared: string,
  { shards, sleeps }: { readonly shards: number; readonly sleeps: readonly Sleep[] },
): Promise<Findings> {
  const told = await allEvents(database, shared, shards);
  const rows = await ask(database, "select space, name, count(*)::int as times from names_written group by 1, 2");
  const names = rows.map(({ space, name, times }) => ({
    name: `${String(space)} ${String(name)}`,
    times: Number(times),
  }));
  return judge(told, names, sleeps);
}

async function allEvents(database: string, shared: string, shards: number): Promise<readonly LoggedEvent[]> {
  const told: LoggedEvent[] = [];
  const journal = postgresJournal({ url: database });
  try {
    const blobs = await openSharedDirectory(shared, systemClock, "tenants/_node");
    await new JournalLog({ journal, blobs }, shards, (each) => told.push(each)).catchUp();
  } finally {
    await journal.close();
  }
  return told;
}

/** How often the one task of a job was started, by the log. */
export async function attemptsOf(
  { shard, job }: { readonly shard: number; readonly job: number },
  database: string,
  shared: string,
): Promise<number> {
  const told = (await allEvents(database, shared, shard + 1)).filter((each) => each.shard === shard);
  const tasks = told.flatMap(({ event }) =>
    event.kind === "job-submitted" && event.job === job ? [event.firstTask] : [],
  );
  return begun(told).filter((task) => tasks.includes(task)).length;
}

/** The task of every started attempt: reported as started, or granted as started and not released. */
function begun(told: readonly LoggedEvent[]): readonly number[] {
  const tasks = new Map<string, number>();
  for (const { shard, event } of told) {
    const isBegun = event.kind === "started" || (event.kind === "claimed" && event.started);
    if (isBegun) tasks.set(`${shard}/${event.token}`, event.task);
    if (event.kind === "attempt-ended" && event.outcome === "released") tasks.delete(`${shard}/${event.token}`);
  }
  return [...tasks.values()];
}

/** Pure: the verdict from the log and the names. */
export function judge(
  told: readonly LoggedEvent[],
  names: readonly { readonly name: string; readonly times: number }[],
  sleeps: readonly Sleep[] = [],
): Findings {
  const count = (kind: LoggedEvent["event"]["kind"]): number => told.filter(({ event }) => event.kind === kind).length;
  const violations = [
    ...names.filter(({ times }) => times > 1).map(({ name, times }) => `${name} was written ${times} times`),
    ...[...committedTwice(told)].map((task) => `${task} has two results`),
    ...[...unended(told)].map((job) => `job ${job} has not ended`),
  ];
  const writes = names.reduce((sum, { times }) => sum + times, 0);
  return {
    jobs: count("job-submitted"),
    attempts: begun(told).length,
    commits: count("committed"),
    claimsLost: lostAsleep(told, sleeps),
    writes,
    violations,
  };
}

/** How many claims expired while their worker was suspended: whatever it reports about them later is too late. */
function lostAsleep(told: readonly LoggedEvent[], sleeps: readonly Sleep[]): number {
  const holders = new Map<string, string>();
  let lost = 0;
  for (const { shard, event } of told) {
    if (event.kind === "claimed") holders.set(`${shard}/${event.token}`, event.executor);
    if (event.kind !== "attempt-ended" || event.outcome !== "expired") continue;
    const holder = holders.get(`${shard}/${event.token}`);
    if (sleeps.some(({ name, fromMs, toMs }) => name === holder && fromMs < event.at && event.at < toMs)) lost += 1;
  }
  return lost;
}

function* committedTwice(told: readonly LoggedEvent[]): Generator<string> {
  const seen = new Set<string>();
  for (const { shard, event } of told) {
    if (event.kind !== "committed") continue;
    const task = `task ${shard}/${event.task}`;
    if (seen.has(task)) yield task;
    seen.add(task);
  }
}

function* unended(told: readonly LoggedEvent[]): Generator<string> {
  const open = new Set<string>();
  for (const { shard, event } of told) {
    if (event.kind === "job-submitted") open.add(`${shard}/${event.job}`);
    if (event.kind === "job-ended") open.delete(`${shard}/${event.job}`);
  }
  yield* open;
}

async function ask(database: string, sql: string): Promise<readonly Record<string, unknown>[]> {
  const client = new pg.Client(database);
  await client.connect();
  try {
    const { rows } = await client.query<Record<string, unknown>>(sql);
    return rows;
  } finally {
    await client.end();
  }
}
