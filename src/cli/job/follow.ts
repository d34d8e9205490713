/** Shows a job, or what its tasks print, until it has ended; goes on through restarts of the node. */
import { followJob, logsOfJob, showJob, type JobFollowed } from "#api/jobs.ts";
import { Fault, isFault } from "#base/fault.ts";
import type { ExitCode, World } from "#door/command.ts";
import type { z } from "zod";
import { apiOf, untilInterrupted } from "#cli/api.ts";
import { OutputPrinter } from "./output-printer.ts";
import type { ServerFlagValues } from "#door/command.ts";

type Followed = z.output<typeof JobFollowed>;

export type FollowOptions = {
  readonly jobId: string;
  readonly json: boolean;
  /** Shows what tasks print, and less of what happens to them. */
  readonly output: boolean;
};

/** Returns 0 when the job succeeded. Events of the job go to stderr, the output of its tasks to stdout. */
export async function followToEnd(
  values: ServerFlagValues,
  { jobId, json, output }: FollowOptions,
  world: World,
): Promise<ExitCode> {
  const printer = new OutputPrinter(world);
  const say = output ? world.note : world.out;
  let phase = "";
  const show = (event: Followed): void => {
    if (json) world.out(JSON.stringify({ jobId, ...event }));
    else if (event.kind === "output") printer.print(event);
    else {
      if (event.ended) printer.end();
      for (const line of event.lines) say(line);
      world.progress(event.ended ? "" : event.progress);
    }
    if (event.kind === "state") phase = event.phase;
  };
  const open = async (lastEventId: string | undefined, signal: AbortSignal) =>
    await apiOf(
      values,
      world.env,
      "follow job",
    )(followJob, {
      params: { job: jobId },
      query: { output: output ? "true" : "false" },
      ...(lastEventId !== undefined && { lastEventId }),
      signal,
    });
  const isEnd = (event: Followed): boolean => event.kind === "state" && event.ended;
  return await untilInterrupted<ExitCode>(
    async (signal) => {
      const isComplete = async (): Promise<boolean> => false;
      await followed(open, { show, isEnd, isComplete, signal, waits: () => world.note(waiting) });
      return phase === "SUCCEEDED" ? 0 : 1;
    },
    ({ note }) => {
      note(`${jobId} goes on by itself; watch it again with: millrace job watch ${jobId}`);
      return 0;
    },
    world,
  );
}

export type LogOptions = {
  readonly jobId: string;
  readonly json: boolean;
  readonly follow: boolean;
  readonly task?: string;
};

export async function showLogs(
  values: ServerFlagValues,
  { jobId, json, follow, task }: LogOptions,
  world: World,
): Promise<ExitCode> {
  const printer = new OutputPrinter(world);
  const open = async (lastEventId: string | undefined, signal: AbortSignal) =>
    await apiOf(
      values,
      world.env,
      "read logs",
    )(logsOfJob, {
      params: { job: jobId },
      query: { follow: follow ? "true" : "false", ...(task !== undefined && { task }) },
      ...(lastEventId !== undefined && { lastEventId }),
      signal,
    });
  const show = (event: Extract<Followed, { kind: "output" }>): void =>
    json ? world.out(JSON.stringify({ jobId, ...event })) : printer.print(event);
  const isComplete = async (): Promise<boolean> => {
    if (!follow) return true;
    const { endedAt } = await apiOf(values, world.env, "read logs")(showJob, { params: { job: jobId } });
    return endedAt !== undefined;
  };
  const run = async (signal: AbortSignal): Promise<ExitCode> => {
    await followed(open, { show, isComplete, signal, waits: follow ? () => world.note(waiting) : undefined });
    printer.end();
    return 0;
  };
  return await untilInterrupted<ExitCode>(run, () => 0, world);
}

/** How long to wait for a node that has answered before, and for one that has not (it may be starting). */
const patienceMs = { heard: 60_000, unheard: 15_000 } as const;
const againMs = 500;

const waiting = "no node answers; waiting for one to come back";

type Feed<T> = AsyncIterable<{ readonly id?: string; readonly data: T }>;
type Following<T> = {
  readonly show: (event: T) => void;
  /** Whether nothing comes after it. */
  readonly isEnd?: (event: T) => boolean;
  /** Called when an answer ends: a node that stops ends its answers, too. */
  readonly isComplete: () => Promise<boolean>;
  readonly signal: AbortSignal;
  /** Called when it has to wait for a node; left out: it does not wait. */
  readonly waits?: (() => void) | undefined;
};

/** A connection that is lost is opened again where it ended, as long as a node may come back. */
export async function followed<T>(
  open: (lastEventId: string | undefined, signal: AbortSignal) => Promise<Feed<T>>,
  { show, isEnd, isComplete, signal, waits }: Following<T>,
): Promise<void> {
  let lastEventId: string | undefined;
  for (let lostMono: number | undefined; ;) {
    try {
      for await (const { id, data } of await open(lastEventId, signal)) {
        lostMono = undefined;
        lastEventId = id ?? lastEventId;
        show(data);
        if (isEnd?.(data) === true) return;
      }
      if (await isComplete()) return;
      throw new Fault("unavailable", "follow job", { why: "the node ended the answer before the job ended" });
    } catch (error) {
      signal.throwIfAborted();
      const isLost = isFault(error, "unavailable") || isBroken(error);
      if (!isLost || !waits) throw error;
      if (lostMono === undefined) waits();
      lostMono ??= performance.now();
      const forMs = lastEventId === undefined ? patienceMs.unheard : patienceMs.heard;
      if (performance.now() - lostMono > forMs) throw error;
    }
    await new Promise((resolve) => setTimeout(resolve, againMs));
  }
}

/** The connection broke in the middle of an answer: fetch says so by a TypeError, our TLS by the socket's error. */
const isBroken = (error: unknown): boolean =>
  error instanceof TypeError || (error instanceof Error && "code" in error && !isFault(error));
