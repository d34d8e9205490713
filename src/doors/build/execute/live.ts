/**
 * What an action prints, read by ByteStream while it runs, from whichever node runs it, and from its result after it
 * has ended. Both agree: what was read live is a prefix of the result.
 */
import { digestText, parseDigest, type Digest } from "#base/digest.ts";
import { formatTask, parseJob } from "#base/ids.ts";
import type { BlobStore } from "#blobs/store.ts";
import type { Event } from "#kernel/model/event.ts";
import type { TaskView } from "#kernel/read/query.ts";
import { attemptBytes } from "#worker/follow/attempt-reader.ts";
import type { Printed } from "#worker/follow/printed.ts";
import type { ReadRequest, ReadResponse } from "#wire/generated/google/bytestream/bytestream.ts";
import { readFailure } from "#doors/build/builds/failure-text.ts";
import { buildsDoor } from "#doors/build/builds/plan-build.ts";
import { needToFollow } from "#doors/build/caller.ts";
import { storeOf, type BuildCall, type BuildPorts } from "#doors/build/call.ts";
import type { ExecutionPorts } from "./execution-ports.ts";
import { operationName, type StreamName } from "./operation-names.ts";
import type { OperationsService } from "./operations.ts";
import { door } from "#doors/build/plan.ts";
import { invalid, outOfRange } from "#doors/build/refusals.ts";
import { readAnswer, readOutcome, type AnswerAt } from "#doors/build/run/outcome.ts";

export type LivePorts = {
  readonly build: BuildPorts;
  readonly execution: ExecutionPorts;
  readonly operations: OperationsService;
};

export async function* readLive(
  ports: LivePorts,
  name: StreamName,
  { readOffset, readLimit }: ReadRequest,
  call: BuildCall,
): AsyncGenerator<ReadResponse> {
  needToFollow(call.caller);
  if (readOffset < 0) throw outOfRange(`read_offset ${readOffset} is negative`);
  if (readLimit < 0) throw invalid(`read_limit ${readLimit} is negative`);
  let left = readLimit > 0 ? readLimit : Infinity;
  for await (const bytes of new LiveRead(ports, name, call).from(readOffset)) {
    const data = bytes.subarray(0, left);
    left -= data.length;
    yield { data };
    if (left <= 0) return;
  }
}

class LiveRead {
  readonly #ports: LivePorts;
  readonly #name: StreamName;
  readonly #call: BuildCall;

  constructor(ports: LivePorts, name: StreamName, call: BuildCall) {
    this.#ports = ports;
    this.#name = name;
    this.#call = call;
  }

  async *from(offset: number): AsyncGenerator<Uint8Array> {
    const { jobId, token, name } = this.#name;
    const { signal } = this.#call;
    const found = await this.#find();
    const worker = claimOf(found.task, token)?.executor;
    const over = new AbortController();
    const leave = new AbortController();
    // Ends by itself when the call does.
    void this.#end(found, AbortSignal.any([signal, leave.signal])).finally(() => over.abort());
    const task = formatTask(parseJob(jobId)?.shard ?? 0, found.task?.task ?? 0);
    const key = { tenant: found.tenant, task, token, name };
    const ports = { live: this.#ports.execution.live, clock: this.#ports.build.clock };
    const ended = (): Promise<Printed> => this.#printed(worker, found);
    try {
      yield* attemptBytes(ports, { key, worker, offset }, over.signal, ended, signal);
      signal.throwIfAborted();
    } finally {
      leave.abort();
    }
  }

  /** Foreign and unknown names are not found (REAPI-50). For a build, the claim tells which of its actions is meant. */
  async #find(): Promise<Printing> {
    const { instance, jobId, token } = this.#name;
    const { job } = await this.#ports.operations.find(operationName(instance, jobId), this.#call, alsoBuilds);
    const { tenant, tasks } = job.view;
    const task =
      tasks.find((one) => claimOf(one, token)) ?? tasks.find(({ result }) => readOutcome(result)?.token === token);
    return { tenant, task, tasks };
  }

  /** Resolves when the claim is over, or nothing more can be learnt of it. */
  async #end({ task }: Printing, signal: AbortSignal): Promise<void> {
    const { jobId, token } = this.#name;
    try {
      for await (const message of this.#ports.execution.client.watch(jobId, signal)) {
        // For a large build a snapshot has only the first actions.
        if (message.kind === "snapshot" && !claimOf((await this.#find()).task, token)) return;
        if (message.kind === "events" && message.events.some((event) => isEnd(event, task?.task, token))) return;
      }
    } catch (error) {
      if (!signal.aborted) this.#ports.build.report("follow an action's output", error);
    }
  }

  /** From the result, if it is this claim's; otherwise there is no more than was read. */
  async #printed(worker: string | undefined, found: Printing): Promise<Printed> {
    const now = worker === undefined ? found : await this.#find();
    const answer = readOutcome(now.task?.result) ?? failedAnswer(found.task, now.tasks);
    const { blobs } = storeOf(this.#ports.build, this.#call);
    const digest = answer && (await this.#digest(answer, blobs));
    return { streams: digest === undefined ? {} : { [this.#name.name]: digest }, blobs };
  }

  async #digest({ action, ...answer }: AnswerAt & { readonly action: Digest }, blobs: BlobStore) {
    const { result } = await readAnswer(answer, blobs);
    const wire = this.#name.name === "stdout" ? result?.stdoutDigest : result?.stderrDigest;
    const { fn = "sha256" } = parseDigest(action) ?? {};
    return wire && digestText(fn, wire.hash, wire.sizeBytes);
  }
}

/** The task with this claim, or whose result was made under it; and all tasks. */
type Printing = {
  readonly tenant: string;
  readonly task: TaskView | undefined;
  readonly tasks: readonly TaskView[];
};

const alsoBuilds = { doors: [door, buildsDoor], tasksMax: 10_000 } as const;

const claimOf = (task: TaskView | undefined, token: number) => task?.claims.find((claim) => claim.token === token);

function isEnd(event: Event, task: number | undefined, token: number): boolean {
  if (event.kind === "committed" || event.kind === "attempt-ended") return event.task === task && event.token === token;
  return event.kind === "job-ended" || (event.kind === "invalidated" && event.task === task);
}

/** A failed action of a build has no result: its failure says where the answer is, but not under which claim. */
function failedAnswer(before: TaskView | undefined, tasks: readonly TaskView[]) {
  const now = tasks.find(({ task }) => task === before?.task);
  if (now?.phase !== "FAILED" || now.attempts !== before?.attempts || !now.lastFailure) return undefined;
  const { action, answer } = readFailure(now.lastFailure.message);
  return answer && { ...answer, action };
}
