/**
 * Schedules in the world: an operator makes them, each with some instants that are due already, and every node runs the
 * real timer. What is started says its schedule and instant in its name.
 */
import { hash32, Random } from "#base/random.ts";
import { watchedRecords } from "#records/watch.ts";
import type { Submit } from "#kernel/model/command.ts";
import type { Replies } from "#kernel/model/reply.ts";
import { schedulesIn, type Schedules } from "#schedules/schedule.ts";
import { keyOf, ScheduleTimer } from "#schedules/timer.ts";
import { shardOf } from "#shard/client/client.ts";
import type { Router } from "#shard/router/router.ts";
import type { Node } from "#shard/node.ts";
import type { Journal } from "#journal/journal.ts";
import type { ScheduleProfile as Wanted } from "#sim/profile.ts";
import { epochMs, type Life } from "#sim/world/machine.ts";
import { shapes } from "./workloads.ts";

export const minuteMs = 60_000;

export const scheduleName = (index: number): string => `s${index}`;
export const instantName = (schedule: string, atMs: number): string => `instant ${schedule} ${atMs}`;

export const schedulesOf = (journal: Pick<Journal, "records">, life: Life): Schedules =>
  schedulesIn(watchedRecords(journal.records, life.clock));

/** Tries until each is there; none is made twice. */
export async function makeSchedules(life: Life, schedules: Schedules, wanted: readonly Wanted[]): Promise<void> {
  for (const [i, { tenant, catchUp, dueBefore }] of wanted.entries())
    await insist(life, () =>
      schedules.create(tenant, scheduleName(i), {
        cron: "* * * * *",
        zone: "UTC",
        catchUp,
        command: ["true"],
        priority: 0,
        id: `id-${i}`,
        paused: false,
        by: "operator",
        settledMs: epochMs - dueBefore * minuteMs,
      }),
    );
}

/** A world whose schedules go on for ever would never be done. */
export async function pauseSchedules(life: Life, schedules: Schedules, wanted: readonly Wanted[]): Promise<void> {
  for (const [i, { tenant }] of wanted.entries())
    await insist(life, () => schedules.update(tenant, scheduleName(i), (was) => ({ ...was, paused: true })));
}

async function insist(life: Life, change: () => Promise<unknown>): Promise<void> {
  for (;;)
    try {
      await change();
      return;
    } catch {
      await life.clock.sleep(500);
    }
}

export function startTimer(
  life: Life,
  {
    node,
    schedules,
    router,
    say,
  }: {
    readonly node: Pick<Node, "keeper" | "cluster">;
    readonly schedules: Schedules;
    readonly router: Router;
    readonly say: (line: string) => void;
  },
): void {
  // It never stops by itself: only its machine crashes.
  void new ScheduleTimer({
    schedules,
    clock: life.clock,
    owns: (key) => node.keeper.held.has(shardOf(`schedule ${key}`, node.cluster.shards)),
    async start(schedule, { atMs, key }) {
      const shard = hash32(key) % node.cluster.shards;
      const command = jobOf(schedule.tenant, instantName(keyOf(schedule), atMs), key);
      const got = await router.request({ kind: "command", shard, command }, { deadlineMs: 5_000 });
      if (got.kind !== "reply") throw new Error(`refused: ${JSON.stringify(got)}`);
      return { jobId: String((got.reply as Replies["submit"]).job) };
    },
    log: (line) => say(`${life.name} timer: ${line}`),
  });
}

/** The same key always makes the same job. */
function jobOf(tenant: string, name: string, key: string): Submit {
  const drawn = shapes.single({ random: new Random(key), tenant, name, leaseMs: 3_000, labels: ["os=linux"] });
  return { ...drawn.submit, requestKey: key, payloadHash: key };
}
