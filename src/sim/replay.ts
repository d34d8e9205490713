/** Memory against log: a state restored from snapshot and log must answer like the owner's own state. */
import { apply } from "#kernel/apply/apply.ts";
import { answer } from "#kernel/read/answer.ts";
import { Restorer } from "#kernel/snapshot/restore.ts";
import { createState, type State } from "#kernel/model/state.ts";
import { decodeTexts } from "#shard/codec/snapshot.ts";
import { decodeEvents } from "#shard/codec/codec.ts";
import { nonsenseTaken } from "./check/refusals.ts";
import type { Cluster } from "./world/cluster.ts";
import { poisonWord } from "./faults/poison.ts";

export async function replayDiffers(cluster: Cluster): Promise<string | undefined> {
  const { court, nodes } = cluster;
  for (const { shard, seq } of court.models) {
    const hosted = nodes.flatMap((node) => node.running()?.hosted(shard) ?? []).at(0);
    if (!hosted || hosted.seq !== seq) continue;
    const replayed = await readBack(cluster, shard);
    const live = canonical(hosted.state);
    const read = canonical(replayed);
    if (live !== read) return `shard ${shard} at ${seq}: ${firstDifference(live, read)}`;
    const threw = hosted.state.faults.find((fault) => !fault.startsWith(poisonWord));
    if (threw !== undefined) return `shard ${shard}: what follows a command threw: ${threw}`;
    const taken = nonsenseTaken(replayed, canonical);
    if (taken !== undefined) return taken;
  }
  return undefined;
}

async function readBack(cluster: Cluster, shard: number): Promise<State> {
  const journal = cluster.database.store.connect();
  const snapshot = await journal.loadSnapshot(shard);
  let state = createState(shard, cluster.limits);
  if (snapshot) {
    const restorer = new Restorer(shard, cluster.limits);
    for await (const text of decodeTexts(snapshot.chunks)) restorer.add(text);
    state = restorer.finish();
  }
  for await (const { payload } of journal.read(shard, (snapshot?.seq ?? 0) + 1))
    for (const event of decodeEvents(payload)) apply(state, event);
  return state;
}

/** What can be observed of a state, without what the log does not record (renewals). */
function canonical(state: State): string {
  const jobs = [...state.jobs.keys()].toSorted((a, b) => a - b);
  const soft = new Set(["expiresInMs", "nowMs", "executors", "stateBytes", "retryInMs"]);
  const views = [
    ...jobs.map((job) => answer(state, { kind: "job", job, tasksMax: 1_000 }, state.nowMs)),
    answer(state, { kind: "stats" }, state.nowMs),
    [...state.tenants.values()]
      .map(({ name, weight, runningMax, queuedMax, home, queued, ready, running }) => ({
        name,
        weight,
        runningMax,
        queuedMax,
        home,
        queued,
        ready,
        running,
      }))
      .toSorted((a, b) => (a.name < b.name ? -1 : 1)),
    [...state.locks.byKey.values()]
      .map(({ key, limit, holders, queue }) => ({ key, limit, holders: holders.length, queue: queue.length }))
      .toSorted((a, b) => (a.key < b.key ? -1 : 1)),
    { nextJob: state.nextJob, nextTask: state.nextTask, nextToken: state.nextToken, epoch: state.epoch },
  ];
  return JSON.stringify(views, (name, value: unknown) => {
    // Memory's clock has gone on since the last event of the log.
    if (name === "agoMs") return state.nowMs - (value as number);
    return soft.has(name) ? undefined : value;
  });
}

function firstDifference(a: string, b: string): string {
  let at = 0;
  while (at < a.length && a[at] === b[at]) at += 1;
  const from = Math.max(0, at - 200);
  return `memory says ...${a.slice(from, at + 200)}\nlog says ...${b.slice(from, at + 200)}`;
}
