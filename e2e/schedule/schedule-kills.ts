/**
 * For tests: kills the owner of a schedule at its instants, again and again, and counts jobs per instant. An instant is
 * made due by setting the schedule's record back while no node runs, as if nodes had been away: one more instant for
 * each kill, and those that were settled before are asked for again. A schedule catches up on 100 instants at most:
 * with the minutes that pass meanwhile, there must not be more.
 */
import { spawn, type ChildProcess } from "node:child_process";
import { randomInt } from "node:crypto";
import { mkdtemp } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { sqliteJournal } from "#journal/sqlite/sqlite.ts";
import { watchedRecords } from "#records/watch.ts";
import { schedulesIn, type Schedule } from "#schedules/schedule.ts";
import { clearAway } from "#testing/clear-away.ts";
import { cliLine } from "#testing/cli-line.ts";
import { endChild } from "#testing/end-child.ts";
import { realClock } from "#testing/real-clock.ts";
import { until } from "#testing/until.ts";

const main = fileURLToPath(new URL("../../src/cli/main.ts", import.meta.url));
const name = "tick";
const minute = 60_000;

export type Counted = { readonly instants: number; readonly jobs: number; readonly unfinished: number };

class Owner {
  readonly #data: string;
  #child: ChildProcess | undefined;
  text = "";

  constructor(data: string) {
    this.#data = data;
  }

  start(): void {
    this.text = "";
    const env = { ...process.env, MILLRACE_DATA: this.#data };
    const set = ["edge.listen=127.0.0.1:0", "cluster.shards=2", "worker.enabled=false", "cluster.ownerLease=1s"];
    const args = [main, "up", ...set.flatMap((each) => ["--set", each])];
    const child = (this.#child = spawn(process.execPath, args, { env, stdio: ["ignore", "pipe", "pipe"] }));
    for (const stream of [child.stdout, child.stderr])
      stream?.on("data", (chunk: Buffer) => (this.text += chunk.toString()));
  }

  up = (): Promise<void> =>
    until("it is up", () => this.text.includes("Ctrl-C stops it"), { limitMs: 240_000 }).catch((error: unknown) => {
      throw new Error(`the node does not start: ${this.text}`, { cause: error });
    });
  kill = (): Promise<void> => endChild(this.#child, "SIGKILL");
}

/** `kills` owners die, up to 50; the last one settles what they left. */
export async function killAtInstants(data: string, kills: number): Promise<Counted> {
  const owner = new Owner(data);
  try {
    owner.start();
    await owner.up();
    const words = ["schedule", "add", name, "--cron", "* * * * *", "--catch-up", "all", "--data", data, "--", "true"];
    const added = await cliLine(data, ...words);
    if (added.code !== 0) throw new Error(added.notes.join());
    await owner.kill();
    const startMs = Math.floor(Date.now() / minute) * minute;
    let unfinished = 0;
    for (let n = 0; n < kills; n += 1) {
      const was = await changed(data, (value) => ({ ...value, settledMs: startMs - (n + 1) * minute }));
      if (was.starting) unfinished += 1;
      owner.start();
      await owner.up();
      // Some die before they look, some between two instants, some in the middle of one.
      const untilMono = performance.now() + randomInt(0, 1_500);
      await until("it is time", () => performance.now() >= untilMono, { everyMs: 2 });
      await owner.kill();
    }
    owner.start();
    await owner.up();
    await until("all instants are settled", () => isSettled(data), { limitMs: 60_000, everyMs: 200 });
    const listed = await cliLine(data, "job", "list", "--limit", "500", "--json");
    await owner.kill();
    const { settledMs } = await changed(data, (value) => value);
    return { instants: (settledMs - startMs) / minute + kills, jobs: listed.out.length, unfinished };
  } finally {
    await owner.kill();
  }
}

async function isSettled(data: string): Promise<boolean> {
  const { out } = await cliLine(data, "schedule", "show", name, "--json");
  const { last } = JSON.parse(out[0] ?? "{}") as { last?: { at: string } };
  return last !== undefined && Date.parse(last.at) > Date.now() - minute;
}

/** While no node runs. The value that was there before. */
async function changed(data: string, to: (was: Schedule) => Schedule): Promise<Schedule> {
  const journal = sqliteJournal({ directory: join(data, "journal") });
  try {
    const schedules = schedulesIn(watchedRecords(journal.records, realClock));
    const was = (await schedules.read("default", name))?.value;
    await schedules.update("default", name, to);
    if (!was) throw new Error("the schedule is gone");
    return was;
  } finally {
    await journal.close();
  }
}

if (import.meta.main) {
  const folder = await mkdtemp(join(tmpdir(), "millrace-schedule-kills-"));
  try {
    const kills = Number(process.argv[2] ?? 50);
    const found = await killAtInstants(join(folder, "data"), kills);
    console.log(`${kills} kills: ${JSON.stringify(found)}`);
    process.exitCode = found.jobs === found.instants ? 0 : 1;
  } finally {
    clearAway(folder);
  }
}
