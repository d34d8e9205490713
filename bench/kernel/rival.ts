/**
 * One contestant of the comparison of queues, in a separate process: in one process the garbage of the others would
 * make V8 discard the code of a waiting contestant, and each would start every round cold.
 */
import { systemClock } from "#door/system-clock.ts";
import { serverCpu, stretch, type ServerCpu, type Stretch } from "#bench/measure.ts";
import { answering } from "#bench/load-process.ts";
import { library } from "#bench/peers/libraries.ts";
import type { Peer } from "#bench/peers/peer.ts";
import { skipLocked } from "#bench/peers/skip-locked.ts";
import { Rig } from "./rig.ts";
import { drain, enqueue } from "./throughput.ts";
import type { Bringing } from "./work.ts";

export type OwnWay = { readonly history: boolean; readonly tasksPerJob: number; readonly bringing: Bringing };
/** Ours in one of its modes, the hand-written queue, or a library by its name. */
export type Who = { readonly own: OwnWay } | { readonly byHand: true } | { readonly library: string };

export type RivalAsked =
  | { readonly kind: "start"; readonly who: Who; readonly database: string; readonly tasks: number }
  | { readonly kind: "run" }
  | { readonly kind: "end" };
export type RivalStarted = { readonly name: string; readonly how: string } | { readonly missing: string };
export type Rate = { readonly perSecond: number; readonly cpuUs: number };

type Contestant = {
  readonly name: string;
  readonly how: string;
  run(): Promise<Rate>;
  end(): Promise<void>;
};

async function contestant(who: Who, database: string, tasks: number): Promise<Contestant | { missing: string }> {
  const cpu = await serverCpu({ url: () => database });
  const freshDatabase = (): Promise<string> => Promise.resolve(database);
  if ("own" in who) return await ownContestant(who.own, freshDatabase, tasks, cpu);
  if ("byHand" in who) return peerContestant(await skipLocked(database), tasks, cpu);
  const { found } = await library(who.library, freshDatabase);
  return "peer" in found ? peerContestant(found.peer, tasks, cpu) : found;
}

async function ownContestant(
  { history, tasksPerJob, bringing }: OwnWay,
  freshDatabase: () => Promise<string>,
  tasks: number,
  cpu: ServerCpu,
): Promise<Contestant> {
  const store = { kind: "postgres", server: { freshDatabase } } as const;
  const rig = await Rig.start({ store, history, projector: forgetting });
  const shape = tasksPerJob === 1 ? "" : `, ${tasksPerJob}-task`;
  return {
    name: `ours${shape}${bringing === "together" ? "" : `, ${bringing}`}, ${history ? "with" : "without"} history`,
    how: `in its process; claim ${atOnce.claim}, complete them ${bringing}, 3 digests each; every answer durable`,
    async run() {
      await restored(rig);
      await enqueue(rig, { tasksPerJob }, tasks);
      const measured = await drain(rig, cpu, { ...atOnce, bringing });
      return { perSecond: measured.perSecond, cpuUs: wholeCpu(measured) };
    },
    end: () => rig[Symbol.asyncDispose](),
  };
}

/** Each claims as many as the libraries' workers do. */
const atOnce = { executors: 8, claim: 500 };

/** A node keeps ended jobs for ten seconds; here that long a wait would come before every round. */
const forgetting = { endedKeepMs: 1_000, forgetEveryMs: 500 };

/** The background work of one round, history and forgetting, is done before the next begins. */
async function restored({ node }: Rig): Promise<void> {
  const isDone = (): boolean =>
    [...node.host.shards.values()].every(({ state }) => state.jobs.size === 0) &&
    node.status().shards.every(({ historyLagMs }) => historyLagMs === 0);
  while (!isDone()) await systemClock.sleep(50);
}

const peerContestant = (peer: Peer, tasks: number, cpu: ServerCpu): Contestant => ({
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
  end: () => peer.close(),
});

const wholeCpu = ({ cpuUs, serverCpuUs = 0 }: Stretch): number => cpuUs + serverCpuUs;

let here: Contestant | undefined;

async function perform(asked: RivalAsked): Promise<RivalStarted | Rate | object> {
  if (asked.kind === "start") {
    const started = await contestant(asked.who, asked.database, asked.tasks);
    if ("missing" in started) return started;
    here = started;
    return { name: here.name, how: here.how };
  }
  if (!here) throw new Error("nobody was started here");
  if (asked.kind === "run") return await here.run();
  await here.end();
  return {};
}

answering(perform);
