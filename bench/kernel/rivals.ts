/**
 * Claim + complete compared with other queues on the same PostgreSQL: each in a separate process, in turns, so that
 * noise affects all alike.
 */
import { join } from "node:path";
import type { PostgresServer } from "#testing/postgres.ts";
import { LoadProcess } from "#bench/load-process.ts";
import { median } from "#bench/measure.ts";
import { figureKey, isJudged, isOf, libraryNames, type Library } from "#bench/peers/libraries.ts";
import type { Figure, Report } from "#bench/report.ts";
import type { OwnWay, Rate, RivalAsked, RivalStarted, Who } from "./rival.ts";

export type RivalOptions = {
  readonly tasks: number;
  readonly rounds: number;
  /** No round begins later than this, apart from the first. */
  readonly untilMs: number;
  readonly peers: boolean;
};

export async function compare(report: Report, server: PostgresServer, options: RivalOptions): Promise<void> {
  const { tasks, rounds, untilMs, peers } = options;
  await using processes = new AsyncDisposableStack();
  const start = async (who: Who): Promise<Rival | { readonly missing: string }> => {
    const child = processes.adopt(
      new LoadProcess<RivalAsked, object>(join(import.meta.dirname, "rival.ts")),
      async (process) => {
        await process.ask({ kind: "end" }).catch(() => {});
        process.stop();
      },
    );
    const started = await child.ask<RivalStarted>({
      kind: "start",
      who,
      database: await server.freshDatabase(),
      tasks: "own" in who ? ownTasks * tasks : tasks,
    });
    if ("missing" in started) return started;
    return { ...started, rates: [], run: () => child.ask<Rate>({ kind: "run" }) };
  };
  const must = async (who: Who): Promise<Rival> => {
    const rival = await start(who);
    if ("missing" in rival) throw new Error(rival.missing);
    return rival;
  };
  const history = await must({ own: ways.history });
  const bare = await must({ own: ways.bare });
  const stages = await must({ own: ways.stages });
  const more = [await must({ own: ways.oneByOne }), await must({ own: ways.bareStages })];
  const byHand = await must({ byHand: true });
  const asked: { readonly name: string; readonly it: Rival | { readonly missing: string } }[] = [];
  // One after the other: the first one installs them.
  for (const name of peers ? libraryNames : []) asked.push({ name, it: await start({ library: name }) });
  const found = asked.flatMap(({ it }) => ("missing" in it ? [] : [it]));
  const all = [history, bare, stages, ...more, byHand, ...found];
  // The first rounds of each do not count: they run on code that is not compiled yet, and on cold tables.
  for (let round = 0; round < warmUps; round += 1) for (const { run } of all) await run();
  for (let round = 0; round < rounds && (round === 0 || report.elapsedMs < untilMs); round += 1)
    for (const { rates, run } of all) rates.push(await run());
  const absent = peers ? asked.flatMap(({ name, it }) => ("missing" in it ? [{ name, found: it }] : [])) : notAsked;
  const ours = { history: summary(history), bare: summary(bare), stages: summary(stages) };
  judge(report, { ...ours, byHand: summary(byHand) }, all.map(summary), absent);
}

const ways = {
  history: { history: true, tasksPerJob: 1, bringing: "together" },
  bare: { history: false, tasksPerJob: 1, bringing: "together" },
  oneByOne: { history: false, tasksPerJob: 1, bringing: "one by one" },
  stages: { history: true, tasksPerJob: 100, bringing: "together" },
  bareStages: { history: false, tasksPerJob: 100, bringing: "together" },
} as const satisfies Record<string, OwnWay>;

const warmUps = 2;

/** This many tasks for each one of the others', so that a round of ours, too, lasts longer than a second. */
const ownTasks = 3;

export const notAsked: readonly Library[] = libraryNames.map((name) => ({
  name,
  found: { missing: "run with --peers" },
}));

type Rival = { readonly name: string; readonly how: string; readonly rates: Rate[]; readonly run: () => Promise<Rate> };
type Summary = Rate & { readonly name: string; readonly how: string; readonly min: number; readonly max: number };

function summary({ name, how, rates }: Rival): Summary {
  const perSecond = rates.map((one) => one.perSecond);
  const cpuUs = median(rates.map((one) => one.cpuUs));
  return { name, how, cpuUs, perSecond: median(perSecond), min: Math.min(...perSecond), max: Math.max(...perSecond) };
}

type Judged = Readonly<Record<"history" | "bare" | "stages" | "byHand", Summary>>;

function judge(
  report: Report,
  { history, bare, stages, byHand }: Judged,
  all: readonly Summary[],
  absent: readonly Library[],
): void {
  const rows = all.map(({ name, perSecond, min, max, cpuUs, how }): readonly Figure[] => {
    const ratio = [stages, history, bare].map((own) => `${(own.perSecond / perSecond).toFixed(2)}x`).join(" / ");
    return [name, perSecond, min, max, cpuUs, ratio, how];
  });
  const why = ({ found }: Library): string => ("missing" in found ? found.missing : "it gave no figure");
  report.table(
    "Claim + complete on one PostgreSQL, in turns; ratio of ours: 100-task / one-task / one-task without history",
    ["", "tasks/s", "min", "max", "CPU us", "ratio", "how"],
    [...rows, ...absent.map((one): readonly Figure[] => [one.name, "not shown", "", "", "", "", why(one)])],
  );
  report.say("CPU is the contestant's process and the server together.");
  report.figure("hand_written_per_s", byHand.perSecond);
  report.figure("ratio_to_hand_written", bare.perSecond / byHand.perSecond);
  const what = "claim+complete without history / SKIP LOCKED by hand";
  report.target({ what, atLeast: 1.5, got: bare.perSecond / byHand.perSecond });
  // A hundred queued tasks are one job here. Jobs of one task each can be cancelled, listed and awaited one by one,
  // which costs as much again: both ratios are shown.
  for (const name of libraryNames) {
    const rival = all.find((one) => isOf(name, one));
    const missing = absent.filter((one) => one.name === name).map(why)[0] ?? "it gave no figure";
    const ratio = rival && stages.perSecond / rival.perSecond;
    const what = `claim+complete of 100-task jobs, with history / ${name}`;
    if (isJudged(name)) report.target({ what, atLeast: 5, got: ratio, missing });
    if (!rival || ratio === undefined) continue;
    report.figure(`ratio_to_${figureKey(name)}`, ratio);
    report.figure(`one_task_ratio_to_${figureKey(name)}`, history.perSecond / rival.perSecond);
  }
}
