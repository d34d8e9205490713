/** Claim + complete against other queues on the same PostgreSQL, in turns, so that a noisy neighbour hits all alike. */
import { systemClock } from "#app/system-clock.ts";
import { median, serverCpu, stretch, type ServerCpu, type Stretch } from "./measure.ts";
import { libraries, type Library } from "./peers/libraries.ts";
import type { Peer } from "./peers/peer.ts";
import { skipLocked } from "./peers/skip-locked.ts";
import type { Figure, Report } from "./report.ts";
import { Rig } from "./rig.ts";
import { drain, enqueue } from "./throughput.ts";
import type { Bringing } from "./work.ts";
import type { PostgresServer } from "#test/postgres.ts";

export type RivalOptions = {
  readonly tasks: number;
  readonly rounds: number;
  /** No round begins later than this, apart from the first. */
  readonly untilMs: number;
  readonly peers: boolean;
};

export async function compare(report: Report, server: PostgresServer, options: RivalOptions): Promise<void> {
  const { tasks, rounds, untilMs, peers } = options;
  const cpu = await serverCpu(server);
  const byHand = await skipLocked(await server.freshDatabase());
  const found = peers ? await libraries(() => server.freshDatabase()) : notAsked;
  await using nodes = new AsyncDisposableStack();
  const own = async (name: string, { history, tasksPerJob, bringing }: Wanted): Promise<Contestant> => {
    const rig = nodes.use(await Rig.start({ store: { kind: "postgres", server }, history, projector: forgetting }));
    return {
      name,
      how: `in this process; claim 100, complete them ${bringing}, 3 digests each; every answer durable`,
      async run() {
        await restored(rig);
        await enqueue(rig, { tasksPerJob }, tasks);
        const measured = await drain(rig, cpu, bringing);
        return { perSecond: measured.perSecond, cpuUs: wholeCpu(measured) };
      },
    };
  };
  const contestants: readonly Contestant[] = [
    await own("ours, with history", { history: true, tasksPerJob: 1, bringing: "together" }),
    await own("ours, without history", { history: false, tasksPerJob: 1, bringing: "together" }),
    await own("ours, one by one, without", { history: false, tasksPerJob: 1, bringing: "one by one" }),
    await own("ours, 100-task, without", { history: false, tasksPerJob: 100, bringing: "together" }),
    contestantOf(byHand, tasks, cpu),
    ...found.flatMap(({ found: one }) => ("peer" in one ? [contestantOf(one.peer, tasks, cpu)] : [])),
  ];
  const rates = new Map<string, Rate[]>(contestants.map(({ name }) => [name, []]));
  // The first rounds of each do not count: they run on code that is not compiled yet, and on cold tables.
  for (let round = 0; round < warmUps; round += 1) for (const { run } of contestants) await run();
  for (let round = 0; round < rounds && (round === 0 || report.elapsedMs < untilMs); round += 1)
    for (const { name, run } of contestants) rates.get(name)?.push(await run());
  for (const peer of [byHand, ...found.flatMap(({ found: one }) => ("peer" in one ? [one.peer] : []))])
    await peer.close();
  judge(
    report,
    contestants.map(({ name, how }) => summary(name, how, rates.get(name) ?? [])),
    found,
  );
}

const warmUps = 2;
/** A node keeps what has ended for ten seconds; here that long a wait would come before every round. */
const forgetting = { endedKeepMs: 1_000, forgetEveryMs: 500 };

export const notAsked: readonly Library[] = ["graphile-worker", "pg-boss", "BullMQ"].map((name) => ({
  name,
  found: { missing: "run with --peers" },
}));

type Rate = { readonly perSecond: number; readonly cpuUs: number };
type Contestant = { readonly name: string; readonly how: string; readonly run: () => Promise<Rate> };
type Summary = Rate & { readonly name: string; readonly how: string; readonly min: number; readonly max: number };

const contestantOf = (peer: Peer, tasks: number, cpu: ServerCpu): Contestant => ({
  name: peer.name,
  how: peer.how,
  async run() {
    await peer.fill(tasks);
    let tookMs = Number.NaN;
    const measured = await stretch(async () => {
      tookMs = await peer.drain(tasks);
      return tasks;
    }, cpu);
    return { perSecond: (tasks * 1_000) / tookMs, cpuUs: wholeCpu(measured) };
  },
});

const wholeCpu = ({ cpuUs, serverCpuUs = 0 }: Stretch): number => cpuUs + serverCpuUs;

type Wanted = { readonly history: boolean; readonly tasksPerJob: number; readonly bringing: Bringing };

/**
 * The same node runs all its rounds, like the peers' servers and clients do: a new one would begin on code that V8 has
 * thrown away together with the last one's objects. What one round leaves to do, history and forgetting, is done
 * before the next begins.
 */
async function restored({ node }: Rig): Promise<void> {
  const isDone = (): boolean =>
    [...node.host.shards.values()].every(({ state }) => state.jobs.size === 0) &&
    node.status().shards.every(({ historyLagMs }) => historyLagMs === 0);
  while (!isDone()) await systemClock.sleep(50);
}

function summary(name: string, how: string, rates: readonly Rate[]): Summary {
  const perSecond = rates.map((one) => one.perSecond);
  const cpuUs = median(rates.map((one) => one.cpuUs));
  return { name, how, cpuUs, perSecond: median(perSecond), min: Math.min(...perSecond), max: Math.max(...perSecond) };
}

function judge(report: Report, all: readonly Summary[], found: readonly Library[]): void {
  const [history, bare, _oneByOne, _stages, ...others] = all;
  if (!history || !bare) return;
  const rows = all.map(({ name, perSecond, min, max, cpuUs, how }): readonly Figure[] => {
    const ratio = `${(history.perSecond / perSecond).toFixed(2)}x / ${(bare.perSecond / perSecond).toFixed(2)}x`;
    return [name, perSecond, min, max, cpuUs, ratio, how];
  });
  const absent = found.flatMap(({ name, found: one }): (readonly Figure[])[] =>
    "missing" in one ? [[name, "not shown", "", "", "", "", one.missing]] : [],
  );
  report.table(
    "Claim + complete on one PostgreSQL, in turns; ratio of ours with / without history",
    ["", "tasks/s", "min", "max", "CPU us", "ratio", "how"],
    [...rows, ...absent],
  );
  report.say("CPU is this process and the server together.");
  const byHand = others[0]?.perSecond ?? Number.NaN;
  report.figure("hand_written_per_s", byHand);
  report.figure("ratio_to_hand_written", bare.perSecond / byHand);
  const what = "claim+complete without history / SKIP LOCKED by hand";
  report.target({ what, atLeast: 1.5, got: bare.perSecond / byHand });
  for (const { name, found: one } of found) {
    const rival = others.find((other) => other.name.startsWith(name));
    const ratio = rival && history.perSecond / rival.perSecond;
    const missing = "missing" in one ? one.missing : "it gave no figure";
    report.target({ what: `claim+complete with history / ${name}`, atLeast: 5, got: ratio, missing });
    if (ratio !== undefined) report.figure(`ratio_to_${name.toLowerCase().replaceAll("-", "_")}`, ratio);
  }
}
