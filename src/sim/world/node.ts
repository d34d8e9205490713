/** The real node, on a simulated machine. */
import { FeedDesk } from "#feed/desk.ts";
import { Feed } from "#feed/feed.ts";
import { createNode } from "#shard/node.ts";
import type { State } from "#kernel/model/state.ts";
import { schedulesOf, startTimer } from "#sim/actors/schedules.ts";
import type { Cluster } from "./cluster.ts";
import type { Life } from "./machine.ts";

export type RunningNode = {
  stop(): Promise<void>;
  /** The shard as this node serves it, if nothing of it is in progress. */
  hosted(shard: number): { readonly state: State; readonly seq: number } | undefined;
};

export async function startNode(cluster: Cluster, life: Life): Promise<RunningNode> {
  const { world, profile, database, network, desks, pins, board, limits } = cluster;
  const { endedKeepMs, feed: settings } = profile;
  const journal = database.connect(life);
  const blobs = pins.connect(life, () => cluster.blobLatencyMs());
  const report = (doing: string, error: unknown): void => world.say(`${life.name} reports: ${doing}: ${String(error)}`);
  const random = world.random.fork(life.name);
  const feedDesk = new FeedDesk(life.clock, settings.desk);
  const node = createNode({
    id: life.machine.name,
    clock: life.clock,
    journal,
    blobs,
    random,
    transport: network.transport(life),
    cluster: { shards: profile.shards, clusterId: "sim" },
    limits: () => limits,
    keeper: { leaseMs: profile.ownerLeaseMs, renewRetryMs: profile.ownerLeaseMs / 8 },
    host: { tickMs: 400, pinMs: profile.pinMs },
    inlineLengthMax: cluster.inlineLengthMax,
    projector: { endedKeepMs, gatherMs: endedKeepMs / 10, forgetEveryMs: Math.max(20, (endedKeepMs * 2) / 3) },
    snapshots: { logBytesMin: profile.snapshotBytes, chunkSize: 2_000 },
    archiver: { segmentBytes: 4_000 },
    broker: { sliceMs: 4_000 },
    outbox: { atOnceMax: 2, tryMsMax: 3_000, backoffMsMax: 2_000 },
    publisher: board.connect(life, profile.latencyMs),
    observers: [feedDesk],
    report,
  });
  const feed = new Feed({
    clock: life.clock,
    node,
    desk: feedDesk,
    journal,
    blobs,
    limits: () => limits,
    ask: desks.askFeed(life),
    settings,
    report,
  });
  // A database that cannot be reached at the start is tried again, as a supervisor would.
  for (;;)
    try {
      await node.start();
      desks.offer({ life, work: node.ready, feedDesk, feed });
      if (profile.schedules.length > 0) {
        const schedules = schedulesOf(journal, life);
        startTimer(life, { node, schedules, router: cluster.router(life), say: (line) => world.say(line) });
      }
      break;
    } catch (error) {
      world.say(`${life.name} could not start: ${String(error)}`);
      await life.clock.sleep(1_000);
    }
  return {
    stop: () => node.stop(),
    hosted(shard) {
      const hosted = node.host.shards.get(shard);
      if (!hosted || hosted.phase !== "serving" || hosted.inFlight || !hosted.open.isEmpty) return undefined;
      return { state: hosted.state, seq: hosted.durableSeq };
    },
  };
}
