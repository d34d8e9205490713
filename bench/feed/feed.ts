/** What the event feed costs a node: no reader, one, and a hundred, while jobs go through it. */
import { join } from "node:path";
import type { RemoteDone, RemoteWork } from "#bench/kernel/remote-load.ts";
import { LoadProcess } from "#bench/load-process.ts";
import { NodeProcess } from "#bench/node-process.ts";
import type { Figure, Report } from "#bench/report.ts";
import type { Suite } from "#bench/suite.ts";
import type { SubscribersAsked, SubscribersDid } from "./subscribers.ts";

const root = join(import.meta.dirname, "..", "..");
const readersMost = 100;

export const feed: Suite = {
  name: "feed",
  about: "the event feed of a node: events a second to a hundred subscribers, and what they cost",
  notMeasured: [
    "a network: subscribers and node are on one machine, and share its cores",
    "readers that are behind, and so read the log: src/feed/feed.test.ts counts how many batches they replay",
    "readers on other nodes than the owner's",
  ],
  async run(report, { smoke }) {
    await using node = await NodeProcess.start(["worker.enabled=false"]);
    const load = new LoadProcess<RemoteWork, RemoteDone>(join(root, "bench/kernel/remote-load.ts"));
    const readers = new LoadProcess<SubscribersAsked, SubscribersDid>(join(import.meta.dirname, "subscribers.ts"));
    using _stop = { [Symbol.dispose]: () => [load, readers].forEach((one) => one.stop()) };
    const tasks = smoke ? 1_000 : 20_000;
    await measure(node, { load, readers, count: 1, tasks }); // on code that is not compiled yet
    const rounds: Round[] = [];
    for (const count of [0, 1, readersMost]) rounds.push(await measure(node, { load, readers, count, tasks }));
    show(report, rounds, tasks);
  },
};

type Round = {
  readonly count: number;
  /** Until the last subscriber had the last event. */
  readonly seconds: number;
  readonly nodeUs: number;
  readonly events: number;
  readonly bytes: number;
};

type Parts = {
  readonly load: LoadProcess<RemoteWork, RemoteDone>;
  readonly readers: LoadProcess<SubscribersAsked, SubscribersDid>;
  readonly count: number;
  readonly tasks: number;
};

/** A task is ready, started and committed; a job of a hundred has four events more: submitted, ready, ended twice. */
const eventsOf = (tasks: number): number => tasks * 3 + (tasks / tasksPerJob) * 4;
const tasksPerJob = 100;

async function measure(node: NodeProcess, { load, readers, count, tasks }: Parts): Promise<Round> {
  const { port, token } = node;
  await readers.ask({ kind: "subscribe", port, token, count });
  const work = { kind: "work", digests: [], tasks, tasksPerJob, batch: 100, submitters: 4, executors: 4 } as const;
  const cpuBefore = node.cpuUs();
  const startedMono = performance.now();
  await load.ask({ ...work, address: `grpc:127.0.0.1:${port}`, token });
  // A mark that was cut in two was not counted.
  const each = Math.floor(eventsOf(tasks) * 0.995);
  const { events, bytes, least } = await readers.ask({ kind: "received", each, withinMs: 120_000 });
  if (count > 0 && least < each) throw new Error(`a subscriber has ${least} of ${eventsOf(tasks)} events`);
  const seconds = (performance.now() - startedMono) / 1_000;
  const nodeUs = node.cpuUs() - cpuBefore;
  await readers.ask({ kind: "leave" });
  return { count, seconds, nodeUs, events, bytes };
}

function show(report: Report, rounds: readonly Round[], tasks: number): void {
  const [none] = rounds;
  const extraUs = ({ events, nodeUs }: Round): number => (events === 0 ? 0 : (nodeUs - (none?.nodeUs ?? 0)) / events);
  report.table(
    `The event feed while ${tasks} tasks go through a node on SQLite, in jobs of ${tasksPerJob}`,
    ["subscribers", "tasks/s", "events/s to all", "MiB/s", "node CPU us a task", "more CPU us a delivered event"],
    rounds.map((round): readonly Figure[] => [
      round.count,
      tasks / round.seconds,
      round.events / round.seconds,
      round.bytes / round.seconds / (1024 * 1024),
      round.nodeUs / tasks,
      extraUs(round),
    ]),
  );
  const most = rounds.at(-1);
  if (!most) return;
  report.figure("feed_events_per_s", most.events / most.seconds);
  report.figure("feed_cpu_us_per_event", extraUs(most));
}
