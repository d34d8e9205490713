/** Serves the output of jobs: /v1/jobs/{job}/logs, and what happens to a job beside it: /v1/jobs/{job}/follow. */
import type { z } from "zod";
import type { Clock } from "#base/clock.ts";
import { Fault } from "#base/fault.ts";
import { parseJob, parseTask } from "#base/ids.ts";
import type { JobFollowed, JobOutput } from "#api/jobs.ts";
import type { Door } from "#door/door.ts";
import type { ServerEvent } from "#http/live/sse.ts";
import type { JobView } from "#kernel/read/query.ts";
import type { WorkClient } from "#shard/client/client.ts";
import { followOutput, type Followed, type Piece } from "#worker/follow/job-output.ts";
import type { LiveSource } from "#worker/printed/live-source.ts";
import { Position } from "#worker/follow/position.ts";
import type { PrintedByDoor } from "#worker/follow/printed.ts";
import { followJob } from "#app/job-view.ts";

export type OutputPorts = {
  readonly work: WorkClient;
  readonly clock: Clock;
  readonly live: LiveSource | undefined;
  readonly doors: readonly Door[];
  /** By the name that a door's jobs carry. Left out for work whose output no door here knows to find. */
  readonly printed: Readonly<Record<string, PrintedByDoor>>;
};

export type OutputQuery = {
  readonly jobId: string;
  readonly view: JobView;
  readonly task?: number | undefined;
  readonly follow: boolean;
  readonly lastEventId: string | undefined;
  readonly signal: AbortSignal;
};

type OutputEvent = ServerEvent<z.input<typeof JobOutput>>;
type FollowedEvent = ServerEvent<z.input<typeof JobFollowed>>;

const decoder = new TextDecoder();

function outputOf({ position: id, bytes, ...piece }: Positioned<Piece>, { view, task }: OutputQuery): OutputEvent {
  const several = task === undefined && (view.stages.length > 1 || (view.stages[0]?.tasks ?? 0) > 1);
  return { id, data: { ...piece, text: decoder.decode(bytes), several } };
}

type Positioned<T> = T & { readonly position: string };

export async function* logEvents(ports: OutputPorts, query: OutputQuery): AsyncGenerator<OutputEvent> {
  for await (const one of followed(ports, query)) if (one.kind === "output") yield outputOf(one, query);
}

/** Output, and what happened to the job in lines for people, in the order in which both came. */
export async function* followEvents(
  ports: OutputPorts,
  query: OutputQuery & { readonly output: boolean },
): AsyncGenerator<FollowedEvent> {
  const follower = followJob(query.jobId, { besideOutput: query.output, of: ports.doors });
  const all = query.output ? followed(ports, query) : heard(ports, query);
  for await (const one of all) {
    if (one.kind === "output") {
      yield outputOf(one, query);
      continue;
    }
    const lines = [...follower.lines(one.message)];
    const { phase, progress } = follower;
    if (lines.length > 0 || one.ended)
      yield { id: one.position, data: { kind: "state", phase, ended: one.ended, lines, progress } };
  }
}

function followed({ work, clock, live, printed }: OutputPorts, query: OutputQuery): AsyncGenerator<Followed> {
  const { jobId, view, task, follow, lastEventId, signal } = query;
  const from = (lastEventId === undefined ? undefined : Position.parse(lastEventId)) ?? Position.start();
  const ports = {
    client: work,
    clock,
    live,
    printed: Object.hasOwn(printed, view.door) ? printed[view.door] : undefined,
  };
  const options = { task, follow, from, signal };
  return followOutput(ports, { jobId, tenant: view.tenant }, options);
}

/** The same without output. */
async function* heard({ work }: OutputPorts, { jobId, signal }: OutputQuery): AsyncGenerator<Followed> {
  const position = Position.start().text;
  let ended = false;
  for await (const message of work.watch(jobId, signal)) {
    if (message.kind === "heartbeat" || message.kind === "rejected") continue;
    ended =
      message.kind === "end" ||
      (message.kind === "snapshot" && message.view.endedAtMs !== undefined) ||
      (message.kind === "events" && message.events.some(({ kind }) => kind === "job-ended"));
    yield { kind: "heard", message, ended, position };
    if (ended) return;
  }
}

/** By its id, or by its stage and key; a stage with one task is name enough for it. */
export function taskNamed(jobId: string, { stages, tasks }: JobView, named: string): number {
  const given = parseTask(named);
  const ref = given?.shard === parseJob(jobId)?.shard ? given : undefined;
  const matches = tasks.filter(({ planning, task, stage, key }) => {
    const name = stages.find((one) => one.stage === stage)?.name ?? "";
    return !planning && (ref ? ref.task === task : named === name || named === `${name}/${key}`);
  });
  const [found, another] = matches;
  if (found && !another) return found.task;
  const inArray = another ? undefined : arrayTask(stages, ref?.task ?? named);
  if (inArray !== undefined) return inArray;
  if (ref && tasks.length >= tasksListed) return ref.task;
  const why = another ? "several tasks have that name; name one as stage/key" : "the job has no such task";
  throw new Fault(another ? "invalid" : "not-found", "find task", { job: jobId, task: named.slice(0, 200), why });
}

/** Of an array the list shows only tasks that run or failed; the others are known by their number or index. */
function arrayTask(stages: JobView["stages"], wanted: number | string): number | undefined {
  for (const { name, arrays = [] } of stages)
    for (const { task, count, first } of arrays) {
      const index = typeof wanted === "string" && wanted.startsWith(`${name}/`) ? wanted.slice(name.length + 1) : "";
      const place = typeof wanted === "number" ? wanted - task : /^\d{1,9}$/.test(index) ? Number(index) - first : -1;
      if (place >= 0 && place < count) return task + place;
    }
  return undefined;
}

/** Of a job with more tasks than a list shows, a task is known by its id alone. */
export const tasksListed = 1_000;
