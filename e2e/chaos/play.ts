/** Plays one scenario from an empty database to the verdict. */
import { cpSync } from "node:fs";
import { Random } from "#base/random.ts";
import type { PostgresServer } from "#testing/postgres.ts";
import { findViolations, gather, rerun, type Evidence } from "./check.ts";
import { Cluster } from "./cluster.ts";
import { spread, type Figures } from "./figures.ts";
import type { Processes } from "./processes.ts";
import type { Round, Run, Scenario } from "./scenario.ts";
import { Traffic } from "./traffic.ts";

export type PlayOptions = {
  readonly rounds: number;
  /** No round begins after this time. */
  readonly forMs: number;
  readonly smoke: boolean;
  readonly seed: number;
  readonly keepLogsIn: string | undefined;
  readonly say: (line: string) => void;
};

export type Played = { readonly figures: Figures; readonly violations: readonly string[] };

const roundMsMax = 5 * 60_000;
const endMsMax = 90_000;
const noTraffic = { submitters: 0, pauseMsMax: 0, waitMsMax: 0, leaseMs: 5_000, graceMs: 0 };

export async function play(
  scenario: Scenario,
  ports: { readonly processes: Processes; readonly postgres: PostgresServer },
  options: PlayOptions,
): Promise<Played> {
  const { say, smoke } = options;
  const random = new Random(`${scenario.name} ${options.seed}`);
  const plan = { ...scenario.cluster, ...(smoke ? scenario.smokeCluster : {}) };
  const cluster = await Cluster.start({ plan, ...ports, random });
  const traffic = new Traffic(cluster, scenario.traffic ?? noTraffic, random.fork("traffic"));
  const run: Run = { cluster, traffic, random, say };
  try {
    traffic.start();
    await scenario.prepare?.(run);
    const rounds = await playRounds(scenario, run, options);
    await traffic.stop();
    const evidence = await gather(cluster, traffic.acknowledged, endMsMax);
    const violations = [
      ...rounds.flatMap((round) => round.violations ?? []),
      ...findViolations(evidence),
      ...(scenario.judge?.(evidence) ?? []),
    ];
    return { figures: sum(scenario, rounds, evidence, traffic, violations.length), violations };
  } finally {
    if (options.keepLogsIn !== undefined)
      cpSync(cluster.folder, options.keepLogsIn, { recursive: true, filter: isPlain });
    await ports.postgres.start().catch(() => {}); // an outage that was interrupted
    await cluster.remove();
  }
}

async function playRounds(
  scenario: Scenario,
  run: Run,
  { rounds, forMs, say }: PlayOptions,
): Promise<readonly Round[]> {
  const played: Round[] = [];
  const startedMono = performance.now();
  for (let i = 1; i <= rounds && performance.now() - startedMono < forMs; i += 1) {
    const roundMono = performance.now();
    const round = await bounded(`round ${i} of ${scenario.name}`, roundMsMax, scenario.round(run, i));
    played.push(round);
    const { p50, max } = spread(round.recoveryMs);
    const tookMs = Math.round(performance.now() - roundMono);
    say(
      `${scenario.name} ${i}: ${round.what}; answered again after ${p50} ms, the last after ${max} ms (round ${tookMs} ms)`,
    );
    for (const violation of round.violations ?? []) say(`  VIOLATION ${violation}`);
  }
  return played;
}

function sum(
  scenario: Scenario,
  rounds: readonly Round[],
  evidence: Evidence,
  traffic: Traffic,
  violations: number,
): Figures {
  const { record, attempts, acknowledged } = evidence;
  return {
    ...scenario.sum(rounds, evidence),
    acknowledgedJobs: acknowledged.length,
    submitsRetried: traffic.retried,
    attempts: attempts.all.length,
    attemptsRerun: [...rerun(attempts).values()].reduce((more, each) => more + each.length - 1, 0),
    committed: [...record.tasks.values()].reduce((more, { committed }) => more + committed.length, 0),
    takeOvers: record.takeOvers,
    events: record.events,
    violations,
  };
}

async function bounded<T>(what: string, limitMs: number, promise: Promise<T>): Promise<T> {
  const late = Promise.withResolvers<never>();
  const timer = setTimeout(() => late.reject(new Error(`${what} took more than ${limitMs} ms`)), limitMs);
  try {
    return await Promise.race([promise, late.promise]);
  } finally {
    clearTimeout(timer);
  }
}

const isPlain = (path: string): boolean => !path.endsWith(".sock");
