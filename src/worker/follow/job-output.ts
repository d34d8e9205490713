/**
 * What the tasks of a job print, of all of them at once, from whichever node asks: live from the workers that run them,
 * then from the store. Memory is bounded: few attempts are read at a time, and a reader that is slow makes them wait.
 *
 * W5 The end of an attempt is passed on only after all that the attempt printed.
 */
import type { Clock } from "#base/clock.ts";
import { Fault, isFault } from "#base/fault.ts";
import { formatTask, parseJob } from "#base/ids.ts";
import type { Event } from "#kernel/model/event.ts";
import type { JobView, TaskView } from "#kernel/read/query.ts";
import type { WorkClient } from "#shard/client/client.ts";
import type { Watched } from "#shard/router/router.ts";
import { attemptBytes } from "./attempt-reader.ts";
import { wholeCharacters } from "./characters.ts";
import type { LiveSource } from "#worker/printed/live-source.ts";
import type { Position } from "./position.ts";
import type { AttemptEnd, Printed, PrintedByDoor } from "./printed.ts";
import { PieceQueue } from "./queue.ts";
import { placedTasks } from "#kernel/model/task-set.ts";
import { ArrayNames } from "#kernel/read/array-names.ts";

export type FollowPorts = {
  readonly client: Pick<WorkClient, "watch" | "job" | "task" | "attempts">;
  readonly live: LiveSource | undefined;
  readonly printed: PrintedByDoor | undefined;
  readonly clock: Clock;
};

export type FollowOptions = {
  /** The number of one task; left out: all of the job's. */
  readonly task?: number | undefined;
  /** Go on until the job has ended; otherwise only what is there now. */
  readonly follow: boolean;
  readonly from: Position;
  readonly signal: AbortSignal;
};

export type Piece = {
  readonly kind: "output";
  readonly task: string;
  readonly stage: string;
  readonly key: string;
  readonly stream: string;
  readonly offset: number;
  readonly bytes: Uint8Array;
};

/** What the job's shard says, after the output before it; `ended` with the last of it. */
export type Heard = { readonly kind: "heard"; readonly message: Watched; readonly ended: boolean };

/** With where to go on after it. */
export type Followed = (Piece | Heard) & { readonly position: string };

const readingMax = 16;
const piecesMax = 32;
/** Of one task pieces come one after the other: more would only wait in memory. */
const piecesOfTaskMax = 4;
/** Of a job with more, the output of the first is shown; each of the others by its name. */
export const tasksFollowedMax = 1_000;

export async function* followOutput(
  ports: FollowPorts,
  job: { readonly jobId: string; readonly tenant: string },
  options: FollowOptions,
): AsyncGenerator<Followed> {
  const pieces = new PieceQueue<Followed>(options.task === undefined ? piecesMax : piecesOfTaskMax);
  const left = new AbortController();
  const signal = AbortSignal.any([options.signal, left.signal]);
  const reading = new JobReading(ports, job, { ...options, signal }, pieces);
  const done = reading.run().then(
    () => pieces.end(),
    (error: unknown) => pieces.end(signal.aborted ? {} : { error }),
  );
  try {
    yield* pieces;
  } finally {
    left.abort();
    await done;
  }
}

type Name = { readonly stage: string; readonly key: string };
type Attempt = {
  readonly task: number;
  readonly token: number;
  readonly worker: string | undefined;
  readonly over: AbortController;
  readonly end: PromiseWithResolvers<AttemptEnd | undefined>;
  read: Promise<void> | undefined;
};

class JobReading {
  readonly #ports: FollowPorts;
  readonly #jobId: string;
  readonly #tenant: string;
  readonly #shard: number;
  readonly #options: FollowOptions;
  readonly #pieces: PieceQueue<Followed>;
  readonly #names = new Map<number, Name>();
  readonly #arrays = new ArrayNames();
  readonly #planning = new Set<number>();
  readonly #attempts = new Map<string, Attempt>();
  #stages: readonly string[] = [];
  #reading = 0;

  constructor(
    ports: FollowPorts,
    { jobId, tenant }: { readonly jobId: string; readonly tenant: string },
    options: FollowOptions,
    pieces: PieceQueue<Followed>,
  ) {
    this.#ports = ports;
    this.#jobId = jobId;
    this.#tenant = tenant;
    this.#shard = parseJob(jobId)?.shard ?? 0;
    this.#options = options;
    this.#pieces = pieces;
  }

  async run(): Promise<void> {
    if (!this.#options.follow) return await this.#snapshot(await this.#view());
    for await (const message of this.#ports.client.watch(this.#jobId, this.#options.signal)) {
      if (await this.#heard(message)) return;
    }
  }

  get #position(): Position {
    return this.#options.from;
  }

  async #view(): Promise<JobView> {
    const { signal } = this.#options;
    return (await this.#ports.client.job(this.#jobId, { tasksMax: tasksFollowedMax, signal })).view;
  }

  /** True when the job has ended. */
  async #heard(message: Watched): Promise<boolean> {
    if (message.kind === "heartbeat" || message.kind === "rejected") return false;
    let ended = message.kind === "end";
    if (message.kind === "snapshot") {
      const view = await this.#view(); // a snapshot has fewer tasks
      await this.#snapshot(view);
      ended = view.endedAtMs !== undefined;
    }
    if (message.kind === "events") {
      for (const event of message.events) await this.#event(event);
      ended = message.events.some(({ kind }) => kind === "job-ended");
    }
    await this.#pieces.push({ kind: "heard", message, ended, position: this.#position.text });
    return ended;
  }

  async #snapshot(view: JobView): Promise<void> {
    this.#stages = view.stages.map(({ name }) => name);
    this.#arrays.see(view.stages);
    const tasks = view.tasks.filter(({ planning }) => !planning);
    for (const { task, stage, key } of tasks) this.#name(task, stage, key);
    for (const { task, planning } of view.tasks) if (planning) this.#planning.add(task);
    const named = this.#options.task;
    const shown = tasks.some(({ task }) => task === named) || named === undefined ? tasks : [await this.#find(named)];
    for (const task of shown) if (this.#isWanted(task.task)) await this.#look(task, view.endedAtMs !== undefined);
  }

  /** A task of a large job that no list shows. */
  async #find(task: number): Promise<TaskView> {
    const found = await this.#ports.client.task(formatTask(this.#shard, task), { signal: this.#options.signal });
    if (found.jobId !== this.#jobId)
      throw new Fault("not-found", "find task", { job: this.#jobId, task: formatTask(this.#shard, task) });
    this.#name(task, found.stage, found.key);
    return found;
  }

  async #look(view: TaskView, hasJobEnded: boolean): Promise<void> {
    const { task, claims, phase } = view;
    for (const attempt of this.#attempts.values())
      if (attempt.task === task && !claims.some(({ token }) => token === attempt.token))
        await this.#close(attempt, endOf(view));
    for (const { token, executor } of claims) {
      const attempt = this.#open(task, token, executor);
      if (!this.#options.follow) await this.#close(attempt, undefined);
    }
    if (claims.length > 0 || !endedPhases.has(phase) || this.#position.isWhole(task)) return;
    await this.#readEnded(task, endOf(view), hasJobEnded);
    this.#position.finish(task);
  }

  /** An attempt of which nothing was heard while it ran. */
  async #readEnded(task: number, end: AttemptEnd | undefined, hasJobEnded: boolean): Promise<void> {
    const printed = await this.#printed(end);
    const last =
      printed || !hasJobEnded
        ? undefined
        : (await this.#ports.client.attempts(this.#jobId)).findLast((row) => row.task === task);
    const token = printed?.token ?? last?.token ?? this.#position.tokenOf(task) ?? 0;
    await this.#close(this.#attempt(task, token, last?.executor), end);
  }

  async #event(event: Event): Promise<void> {
    switch (event.kind) {
      case "stage-ready":
        if (event.planTask !== undefined) this.#planning.add(event.planTask);
        return;
      case "stage-planned":
        for (const { place, key } of placedTasks(event)) this.#name(event.firstTask + place, event.stage, key);
        this.#arrays.planned(event);
        return;
      case "claimed":
        if (this.#isWanted(event.task)) this.#open(event.task, event.token, event.executor);
        return;
      case "committed":
        return await this.#ended(event.task, event.token, { result: event.result });
      case "attempt-ended":
        return await this.#ended(event.task, event.token, { failure: event.message, left: event.result });
      case "invalidated":
        return this.#position.reopen(event.task);
      case "job-ended":
        for (const attempt of this.#attempts.values()) await this.#close(attempt, undefined);
        return;
      default:
    }
  }

  async #ended(task: number, token: number, end: AttemptEnd): Promise<void> {
    if (!this.#isWanted(task) || this.#position.isWhole(task)) return;
    await this.#close(this.#attempts.get(`${task}#${token}`) ?? this.#attempt(task, token, undefined), end);
    if ("result" in end) this.#position.finish(task);
  }

  #isWanted(task: number): boolean {
    const { task: named } = this.#options;
    return !this.#planning.has(task) && (named === undefined || named === task);
  }

  #name(task: number, stage: number, key: string): void {
    this.#names.set(task, { stage: this.#stages[stage] ?? String(stage), key });
  }

  #named(task: number): Name | undefined {
    const found = this.#arrays.find(task);
    return found ? { stage: this.#stages[found.stage] ?? String(found.stage), key: found.key } : this.#names.get(task);
  }

  #attempt = (task: number, token: number, worker: string | undefined): Attempt => ({
    task,
    token,
    worker,
    over: new AbortController(),
    end: Promise.withResolvers(),
    read: undefined,
  });

  /** Reads it now, or when fewer are being read; those that wait for that are read from the store in the end. */
  #open(task: number, token: number, worker: string): Attempt {
    const key = `${task}#${token}`;
    const known = this.#attempts.get(key);
    if (known) return known;
    const attempt = this.#attempt(task, token, worker);
    this.#attempts.set(key, attempt);
    this.#startSome();
    return attempt;
  }

  #startSome(): void {
    for (const attempt of this.#attempts.values()) {
      if (this.#reading >= readingMax) return;
      if (attempt.read) continue;
      this.#reading += 1;
      attempt.read = this.#read(attempt).finally(() => (this.#reading -= 1));
      attempt.read.catch((error: unknown) => this.#pieces.end({ error }));
    }
  }

  async #close(attempt: Attempt, end: AttemptEnd | undefined): Promise<void> {
    attempt.end.resolve(end);
    attempt.over.abort();
    await (attempt.read ?? this.#read(attempt));
    this.#attempts.delete(`${attempt.task}#${attempt.token}`);
    this.#startSome();
  }

  async #read(attempt: Attempt): Promise<void> {
    const names = this.#ports.printed?.names ?? [];
    await Promise.all(names.map((name, i) => this.#readStream(attempt, name, i)));
  }

  async #readStream({ task, token, worker, over, end }: Attempt, stream: string, index: number): Promise<void> {
    const { signal } = this.#options;
    const taskId = formatTask(this.#shard, task);
    let offset = this.#position.offsetOf(task, token, index);
    const key = { tenant: this.#tenant, task: taskId, token, name: stream };
    const ended = async (): Promise<Printed | undefined> => this.#printed(await end.promise, token);
    const bytes = attemptBytes(this.#ports, { key, worker, offset }, over.signal, ended, signal);
    for await (const part of wholeCharacters(orNothing(bytes))) {
      const { stage, key: name } = this.#named(task) ?? (await this.#nameOf(task));
      const at = offset;
      offset += part.length;
      this.#position.read(task, { token, stream: index, offset });
      const piece = { kind: "output", task: taskId, stage, key: name, stream, offset: at, bytes: part } as const;
      await this.#pieces.push({ ...piece, position: this.#position.text });
    }
  }

  async #nameOf(task: number): Promise<Name> {
    await this.#find(task);
    return this.#names.get(task) ?? { stage: "", key: String(task) };
  }

  /** What another attempt printed is not this one's. */
  async #printed(end: AttemptEnd | undefined, token?: number): Promise<Printed | undefined> {
    const printed = end && (await this.#ports.printed?.find(end, this.#tenant));
    const isOther = token !== undefined && token > 0 && printed?.token !== undefined && printed.token !== token;
    return isOther ? undefined : printed;
  }
}

/** A blob that is not in the store any more has no output to show; that ends nothing else. */
async function* orNothing(bytes: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  try {
    yield* bytes;
  } catch (error) {
    if (!isFault(error, "not-found")) throw error;
  }
}

const endedPhases: ReadonlySet<string> = new Set(["SUCCEEDED", "FAILED", "CANCELLED", "SKIPPED"]);

const endOf = ({ result, lastFailure }: TaskView): AttemptEnd | undefined =>
  result ? { result } : lastFailure && { failure: lastFailure.message, left: lastFailure.result };
