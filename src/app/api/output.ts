/** Serves /v1/jobs/{job}/output: live from the nodes that run the tasks, and from results for what has ended. */
import type { z } from "zod";
import type { Clock } from "#base/clock.ts";
import { Fault, isFault } from "#base/fault.ts";
import { formatTask, parseJob } from "#base/ids.ts";
import { watchOutput, type TaskOutput } from "#api/output.ts";
import type { LiveSource } from "#doors/build/execute/live.ts";
import { route, type Route } from "#http/route.ts";
import type { ServerEvent } from "#http/sse.ts";
import type { JobView, TaskView } from "#kernel/read/query.ts";
import type { WorkClient } from "#shard/client/client.ts";
import { isRejected } from "#shard/work/rejected.ts";
import { liveNames } from "#worker/live-output.ts";
import { nameOf } from "./jobs-view.ts";

export type OutputPorts = {
  readonly work: Pick<WorkClient, "job">;
  readonly clock: Clock;
  readonly live: LiveSource | undefined;
};

type Printed = ServerEvent<z.input<typeof TaskOutput>>;

const tasksShown = 200;
/** How often the job is looked at, and how long one look waits for output. */
const roundMs = 500;
/** Streams that are asked for in one round. */
const streamsMax = 32;

export const outputRoutes = (ports: OutputPorts): readonly Route[] => [
  route(watchOutput, async ({ params: { job }, tenant, signal }) => {
    await viewOf(ports, job, tenant, signal); // a missing job is a 404, not an empty stream
    return { body: printed(ports, job, tenant, signal) };
  }),
];

async function viewOf({ work }: OutputPorts, job: string, tenant: string, signal: AbortSignal): Promise<JobView> {
  try {
    const { view } = await work.job(job, { tasksMax: tasksShown, signal });
    if (view.tenant === tenant) return view;
  } catch (error) {
    if (!isRejected(error, "job-unknown") && !isFault(error, "invalid")) throw error;
  }
  throw new Fault("not-found", "find job", { job });
}

async function* printed(ports: OutputPorts, job: string, tenant: string, signal: AbortSignal): AsyncGenerator<Printed> {
  const sent = new Map<string, number>(); // by task, token and stream
  const ended = new Set<string>();
  const shard = parseJob(job)?.shard ?? 0;
  while (!signal.aborted) {
    const view = await viewOf(ports, job, tenant, signal);
    const about = (task: TaskView) => {
      const { key, stage } = task;
      return { task: formatTask(shard, task.task), stage: nameOf(stage, view.stages), key };
    };
    for (const task of view.tasks) {
      const id = formatTask(shard, task.task);
      const text = ended.has(id) ? undefined : tailOf(task);
      if (text === undefined) continue;
      ended.add(id);
      const hasSeen = [...sent].some(([name, bytes]) => name.startsWith(`${id} `) && bytes > 0);
      if (!hasSeen && text !== "") yield { data: { ...about(task), stream: "output", offset: 0, text } };
    }
    if (view.endedAtMs !== undefined) return;
    const running = view.tasks.flatMap((task) => task.claims.map((claim) => ({ task, claim })));
    const wanted = running.flatMap((one) => liveNames.map((name) => ({ ...one, name }))).slice(0, streamsMax);
    const round = ports.clock.sleep(roundMs, signal).catch(() => {});
    const pieces = await Promise.all(
      wanted.map(async ({ task, claim: { executor, token }, name }) => {
        const key = { tenant, task: formatTask(shard, task.task), token, name };
        const stream = `${key.task} ${token} ${name}`;
        const offset = sent.get(stream) ?? 0;
        const options = { waitMs: roundMs, signal };
        const bytes = await ports.live?.pull(executor, key, offset, options).catch(() => undefined);
        sent.set(stream, offset + (bytes?.length ?? 0));
        const text = Buffer.from(bytes ?? []).toString("utf8");
        return { ...about(task), stream: name, offset, text };
      }),
    );
    for (const data of pieces) if (data.text !== "") yield { data };
    await round;
  }
}

/** The end of what a task printed, once it is known; the runners of several doors record it as `tail`. */
function tailOf({ result, lastFailure, phase }: TaskView): string | undefined {
  if (phase === "FAILED") return lastFailure?.message ?? "";
  if (!result) return undefined;
  try {
    const { tail } = JSON.parse(result.payload) as { readonly tail?: unknown };
    return typeof tail === "string" ? tail : "";
  } catch {
    return "";
  }
}
