/** One seed: a world drawn from it, a storm of faults, then calm, and the verdict. */
import { Random } from "#base/random.ts";
import { Cluster } from "./world/cluster.ts";
import type { Tally } from "./check/court.ts";
import { instantsMissed } from "./check/schedules.ts";
import { unleash } from "./faults/faults.ts";
import { notKept } from "./actors/keeping.ts";
import { drawProfile, type Focus, type Profile } from "./profile.ts";
import { replayDiffers } from "./replay.ts";
import { Trace } from "./trace.ts";
import { Violation } from "./check/violation.ts";
import { World } from "./world/world.ts";

export type SeedResult = {
  readonly seed: number;
  readonly hash: string;
  readonly violation: Violation | undefined;
  readonly lastLines: readonly string[];
  readonly simulatedMs: number;
  readonly turns: number;
  readonly tally: Tally;
  readonly profile: Profile;
};

export type RunOptions = {
  readonly linesKept?: number;
  readonly sink?: (line: string) => void;
  readonly focus?: Focus;
};

/** After the storm: the longest time without any job ending while there is something to do. */
const standstillMsMax = 30 * 60_000;

/** How long readers of the event feed and schedules may take to catch up after the storm. */
const catchUpMsMax = 5 * 60_000;

export async function runSeed(seed: number, options: RunOptions = {}): Promise<SeedResult> {
  const random = new Random(seed);
  const profile = drawProfile(random.fork("profile"), options.focus);
  const trace = new Trace(options.linesKept ?? 400, options.sink);
  const world = new World(random, trace);
  world.say(`profile ${describeProfile(profile)}`);
  const cluster = new Cluster(world, profile);
  const violation = await live(cluster).then(
    () => undefined,
    (error: unknown) => {
      if (error instanceof Violation) return error;
      throw error;
    },
  );
  return {
    seed,
    hash: trace.hash(),
    violation,
    lastLines: trace.last(options.linesKept ?? 400),
    simulatedMs: world.nowMs,
    turns: world.turns,
    tally: cluster.tally,
    profile,
  };
}

async function live(cluster: Cluster): Promise<void> {
  const { world, court, profile } = cluster;
  cluster.start();
  const endFaults = unleash(cluster, profile.faults, profile.stormMs);
  await world.run(profile.stormMs);
  endFaults();
  cluster.heal();
  const isDone = (): boolean =>
    cluster.clients.every(({ done }) => done) &&
    court.models.every(({ liveJobs, unpublished, owed }) => liveJobs === 0 && unpublished === 0 && owed.size === 0);
  const ended = (): number => endings.reduce((sum, kind) => sum + (cluster.tally.events.get(kind) ?? 0), 0);
  // A single executor may need hours for everything that the storm has left.
  for (let before = -1; before < ended() && !isDone() && !world.violation;) {
    before = ended();
    await world.run(world.nowMs + standstillMsMax, isDone);
  }
  court.close();
  // Let work in progress settle; then memory and log must agree.
  if (!world.violation) await world.run(world.nowMs + 2_000);
  const missing = (): string | undefined => cluster.readings.map((notes) => notes.missing()).find(Boolean);
  if (!world.violation) await world.run(world.nowMs + catchUpMsMax, () => missing() === undefined);
  const missed = world.violation ? undefined : await missedAtLast(cluster);
  if (missed !== undefined) world.violate("SC2", missed);
  const unread = world.violation ? undefined : missing();
  if (unread !== undefined) world.violate("FR1", `readers of the feed catch up: ${unread}`);
  if (!world.violation) {
    const differs = await replayDiffers(cluster);
    if (differs !== undefined) world.violate("replay", differs);
    const lost = await notKept(cluster);
    if (lost !== undefined) world.violate("K7", lost);
  }
  if (world.violation) throw world.violation;
}

/** An instant of a schedule that has no job although there was time for it. */
async function missedAtLast(cluster: Cluster): Promise<string | undefined> {
  const { world, profile } = cluster;
  if (profile.schedules.length === 0) return undefined;
  for (const untilMs = world.nowMs + catchUpMsMax; ;) {
    const missed = await instantsMissed(cluster);
    if (missed === undefined || world.nowMs >= untilMs) return missed;
    await world.run(world.nowMs + 2_000);
  }
}

/** Each task and each job has exactly one of these. */
const endings = ["committed", "task-failed", "job-ended"];

const describeProfile = (profile: Profile): string =>
  JSON.stringify(profile, (_, value: unknown) => (value instanceof Map ? Object.fromEntries(value) : value));
