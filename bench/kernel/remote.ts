/**
 * The kernel as clients reach it: a node with PostgreSQL and its port in one process, submitters and executors in
 * another, compared with queues on the same PostgreSQL. End to end: from the first submission to the last commit.
 */
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { systemClock } from "#door/system-clock.ts";
import type { PostgresServer } from "#testing/postgres.ts";
import { LoadProcess } from "#bench/load-process.ts";
import { median, processCpuUs, serverCpu, type ServerCpu } from "#bench/measure.ts";
import { figureKey, isJudged, isOf, libraries, type Library } from "#bench/peers/libraries.ts";
import type { Peer } from "#bench/peers/peer.ts";
import { skipLocked } from "#bench/peers/skip-locked.ts";
import type { RemoteDone, RemoteWork } from "./remote-load.ts";
import type { Figure, Report } from "#bench/report.ts";
import { notAsked } from "./rivals.ts";
import type { BenchOptions } from "#bench/suite.ts";

const full = { tasks: 24_000, oneByOne: 8_000, rounds: 5 };
const warmUp = 2;
const brief = { tasks: 1_000, oneByOne: 200, rounds: 1 };

export async function remote(
  report: Report,
  server: PostgresServer | undefined,
  { smoke, peers }: BenchOptions,
): Promise<void> {
  if (!server) return judge(report, [], notAsked);
  const sizes = smoke ? brief : full;
  await using undo = new AsyncDisposableStack();
  const cpu = await serverCpu(server);
  const load = undo.adopt(
    new LoadProcess<RemoteWork, RemoteDone>(join(import.meta.dirname, "remote-load.ts")),
    (process) => process.stop(),
  );
  const startNode = async (history: History): Promise<RemoteNode> =>
    undo.use(await RemoteNode.start(await server.freshDatabase(), history));
  const byHand = undo.adopt(await skipLocked(await server.freshDatabase()), (peer) => peer.close());
  const found = peers ? await libraries(() => server.freshDatabase()) : notAsked;
  const others = found.flatMap(({ found: one }) => ("peer" in one ? [one.peer] : []));
  for (const peer of others) undo.defer(() => peer.close());
  const nodes = { history: await startNode("history"), bare: await startNode("bare") };
  const own = (name: string, how: string, history: History, work: Work): Contestant => ({
    name,
    how,
    run: (share = 1) => nodes[history].measure(load, { ...work, tasks: Math.round(work.tasks * share) }, cpu),
  });
  const batched = { tasks: sizes.tasks, tasksPerJob: 1, batch: 100, submitters: 16, executors: 16 };
  const single = { tasks: sizes.oneByOne, tasksPerJob: 1, batch: 1, submitters: 200, executors: 200 };
  const contestants: readonly Contestant[] = [
    own("ours, with history", "one-task jobs; submit 100, claim 100, commit 100 a request", "history", batched),
    own("ours, without history", "the same", "bare", batched),
    own("ours, 100-task, with", "a job of 100 tasks a request", "history", { ...batched, tasksPerJob: 100 }),
    own("ours, 100-task, without", "the same", "bare", { ...batched, tasksPerJob: 100 }),
    own("ours, one by one, with", "submit, claim and commit a request each", "history", single),
    own("ours, one by one, without", "the same", "bare", single),
    ...[byHand, ...others].map((peer) => contestantOf(peer, sizes.tasks, cpu)),
  ];
  const rates = new Map<string, Rate[]>(contestants.map(({ name }) => [name, []]));
  const busyUs = (): number => (cpu() ?? 0) + nodes.history.cpuUs() + nodes.bare.cpuUs();
  // A long-running server is not judged by its first seconds, on code that is not compiled yet and on cold tables.
  for (const { run } of contestants) await run(warmUp);
  for (let round = 0; round < sizes.rounds; round += 1)
    for (const { name, run } of contestants) {
      await quiet(busyUs);
      rates.get(name)?.push(await run());
    }
  judge(
    report,
    contestants.map(({ name, how }) => ({ name, how, ...middle(rates.get(name) ?? []) })),
    found,
  );
}

/** Background work that is left, such as history and forgetting, must not slow down the next contestant. */
async function quiet(busyUs: () => number): Promise<void> {
  const stepMs = 200;
  for (let tries = 0; tries < 50; tries += 1) {
    const before = busyUs();
    await systemClock.sleep(stepMs);
    if (busyUs() - before < (stepMs * 1_000) / 10) return;
  }
}

type History = "history" | "bare";
type Work = Omit<RemoteWork, "kind" | "address" | "token" | "digests">;
type Load = LoadProcess<RemoteWork, RemoteDone>;

/** CPU per task: of the node, of the PostgreSQL server, and of the clients. */
type Rate = {
  readonly perSecond: number;
  readonly nodeUs: number;
  readonly storeUs: number;
  readonly clientUs: number;
};
/** `share`: of the tasks that it is measured with. */
type Contestant = { readonly name: string; readonly how: string; readonly run: (share?: number) => Promise<Rate> };
type Row = Omit<Contestant, "run"> & Rate;

const middle = (rates: readonly Rate[]): Rate => ({
  perSecond: median(rates.map((one) => one.perSecond)),
  nodeUs: median(rates.map((one) => one.nodeUs)),
  storeUs: median(rates.map((one) => one.storeUs)),
  clientUs: median(rates.map((one) => one.clientUs)),
});

/** A node in a separate process, for as long as the benchmark lasts. */
class RemoteNode implements Disposable {
  readonly #child: ChildProcess;
  readonly #reached: Pick<RemoteWork, "address" | "token" | "digests">;

  private constructor(child: ChildProcess, reached: Pick<RemoteWork, "address" | "token" | "digests">) {
    this.#child = child;
    this.#reached = reached;
  }

  static async start(url: string, history: History): Promise<RemoteNode> {
    const child = fork(join(import.meta.dirname, "remote-node.ts"), [url, history]);
    const [reached] = (await once(child, "message")) as [Pick<RemoteWork, "address" | "token" | "digests">];
    return new RemoteNode(child, reached);
  }

  async measure(load: Load, work: Work, cpu: ServerCpu): Promise<Rate> {
    const used = (): readonly number[] => [this.#child.pid ?? 0, load.pid].map(processCpuUs);
    const [nodeBefore = 0, clientBefore = 0] = used();
    const storeBefore = cpu() ?? Number.NaN;
    const done = await load.ask({ kind: "work", ...this.#reached, ...work });
    const [nodeAfter = 0, clientAfter = 0] = used();
    const { tasks } = work;
    return {
      perSecond: tasks / done.seconds,
      nodeUs: (nodeAfter - nodeBefore) / tasks,
      storeUs: ((cpu() ?? Number.NaN) - storeBefore) / tasks,
      clientUs: (clientAfter - clientBefore) / tasks,
    };
  }

  cpuUs(): number {
    return processCpuUs(this.#child.pid ?? 0);
  }

  [Symbol.dispose](): void {
    this.#child.kill();
  }
}

/** Its client is in this process; it has no node. */
const contestantOf = (peer: Peer, tasks: number, cpu: ServerCpu): Contestant => ({
  name: peer.name,
  how: peer.how,
  async run(share = 1) {
    const count = Math.round(tasks * share);
    const storeBefore = cpu() ?? Number.NaN;
    const clientBefore = processCpuUs(process.pid);
    const startedMono = performance.now();
    await peer.fill(count);
    const filledMs = performance.now() - startedMono;
    const drainedMs = await peer.drain(count);
    return {
      perSecond: (count * 1_000) / (filledMs + drainedMs),
      nodeUs: 0,
      storeUs: ((cpu() ?? Number.NaN) - storeBefore) / count,
      clientUs: (processCpuUs(process.pid) - clientBefore) / count,
    };
  },
});

function judge(report: Report, rows: readonly Row[], found: readonly Library[]): void {
  const [history, bare, stages, bareStages, oneByOne, , byHand, ...others] = rows;
  const absent = found.flatMap(({ name, found: one }): (readonly Figure[])[] =>
    "missing" in one ? [[name, "not shown", "", "", "", "", one.missing]] : [],
  );
  report.table(
    "End to end through the work protocol, from other processes, on one PostgreSQL; CPU us a task",
    ["", "tasks/s", "node", "store", "client", "100-task, one-task / it", "how"],
    [
      ...rows.map(({ name, perSecond, nodeUs, storeUs, clientUs, how }): readonly Figure[] => {
        const ratio = [stages, history]
          .map((ours) => `${((ours?.perSecond ?? NaN) / perSecond).toFixed(2)}x`)
          .join(", ");
        return [name, perSecond, nodeUs, storeUs, clientUs, ratio, how];
      }),
      ...absent,
    ],
  );
  const missing = "needs PostgreSQL";
  report.figure("remote_100_task_per_s", stages?.perSecond ?? Number.NaN);
  report.figure("remote_100_task_bare_per_s", bareStages?.perSecond ?? Number.NaN);
  report.figure("remote_one_task_per_s", history?.perSecond ?? Number.NaN);
  report.figure("remote_one_task_bare_per_s", bare?.perSecond ?? Number.NaN);
  report.figure("remote_one_by_one_cpu_us", oneByOne?.nodeUs ?? Number.NaN);
  report.target({
    what: "tasks/s end to end from other processes, 100-task jobs, with history",
    atLeast: 30_000,
    got: stages?.perSecond,
    missing,
  });
  const hand = history && byHand ? history.perSecond / byHand.perSecond : Number.NaN;
  report.figure("remote_ratio_to_hand_written", hand);
  for (const { name, found: one } of found) {
    const rival = others.find((other) => isOf(name, other));
    const ratio = rival && stages && stages.perSecond / rival.perSecond;
    const why = "missing" in one ? one.missing : "it gave no figure";
    const what = `end to end of 100-task jobs, with history / ${name}`;
    if (isJudged(name)) report.target({ what, atLeast: 3, got: ratio, missing: why });
    if (ratio !== undefined) report.figure(`remote_ratio_to_${figureKey(name)}`, ratio);
  }
}
