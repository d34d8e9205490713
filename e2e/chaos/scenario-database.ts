import { setTimeout as pause } from "node:timers/promises";
import { until } from "#testing/until.ts";
import { readAttempts } from "./attempts.ts";
import { rerun } from "./check.ts";
import { timeToAnswer } from "./probe.ts";
import { recovery } from "./scenario-kill.ts";
import type { Round, Run, Scenario } from "./scenario.ts";

const leasesOut = 3;
const tasksAtOnce = 200;
const grace = { leaseMs: 5_000, graceMs: 120_000 };

/** The database is down for several leases. Executors go on; what they did counts when it is back. */
export const database: Scenario = {
  name: "database",
  about: `stop PostgreSQL for ${leasesOut} leases while ${tasksAtOnce} tasks run, and start it again`,
  rounds: { full: 3, smoke: 1 },
  cluster: { nodes: 3, shards: 12, leaseMs: 5_000, nodeSlots: 6, workers: 2, slots: 110 },
  smokeCluster: { leaseMs: 2_000 },
  traffic: { submitters: 2, pauseMsMax: 300, waitMsMax: 300, ...grace },
  round: databaseRound,
  judge: ({ attempts }) =>
    [...rerun(attempts)].map(
      ([task, each]) =>
        `${task} was begun ${each.length} times: ${each.map(({ attempt, pid }) => `${attempt} by ${pid}`).join(", ")}`,
    ),
  sum: (rounds, { attempts }) => ({
    outages: rounds.length,
    tasksThroughOutage: rounds.reduce((sum, { figures }) => sum + Number(figures?.["running"] ?? 0), 0),
    begunAgain: rerun(attempts).size,
    ...recovery(rounds),
  }),
};

export async function databaseRound({ cluster, traffic, random }: Run, round: number): Promise<Round> {
  const outageMs = cluster.plan.leaseMs * leasesOut;
  const shortMs = outageMs / 2;
  const before = traffic.acknowledged.length;
  const submit = (i: number): Promise<void> => {
    const key = `long-${round}-${i}-${random.next32().toString(36)}`;
    // Some end while the database is down, some after.
    return traffic.submit("one", { key, ...grace, waitMsMin: shortMs, waitMsMax: outageMs + 10_000 }, random);
  };
  await Promise.all(Array.from({ length: tasksAtOnce }, (_, i) => submit(i)));
  const running = await untilRunning(cluster.attemptsFolder, tasksAtOnce);
  const how = random.pick(["fast", "immediate"] as const);
  const owned = (await cluster.journal.ownerships()).filter(({ remainingMs }) => remainingMs > 0);
  await cluster.postgres.stop(how);
  await pause(outageMs);
  await cluster.postgres.start();
  const backMono = performance.now();
  const recoveryMs = await timeToAnswer(cluster.edge.router, owned, backMono, 60_000);
  await cluster.untilServed();
  const meanwhile = traffic.acknowledged.length - before - tasksAtOnce;
  return {
    what: `stopped PostgreSQL (${how}) for ${outageMs / 1_000} s with ${running} tasks running, ${meanwhile} more jobs taken in`,
    recoveryMs,
    figures: { running },
  };
}

async function untilRunning(folder: string, wanted: number): Promise<number> {
  let running = 0;
  await until(
    `${wanted} tasks run`,
    () => {
      running = readAttempts(folder).all.filter(({ isOver }) => !isOver).length;
      return running >= wanted;
    },
    { limitMs: 20_000, everyMs: 100 },
  );
  return running;
}
