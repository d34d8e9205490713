/**
 * What an action prints, read by ByteStream while it runs, from whichever node runs it, and from its result when it has
 * ended. Both agree: what was read live is how the result begins.
 */
import { digestText, parseDigest, type Digest } from "#base/digest.ts";
import { isFault } from "#base/fault.ts";
import { formatTask, parseJob } from "#base/ids.ts";
import type { BlobStore } from "#blobs/store.ts";
import type { Event } from "#kernel/model/event.ts";
import type { TaskView } from "#kernel/read/query.ts";
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

const waitMs = 5_000;
const againMs = 500;

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
    let at = offset;
    const found = await this.#find();
    const worker = claimOf(found.task, this.#name.token)?.executor;
    const over = new AbortController();
    const leave = new AbortController();
    // Ends by itself when the call does.
    void this.#end(found, AbortSignal.any([this.#call.signal, leave.signal])).finally(() => over.abort());
    try {
      while (worker !== undefined && !over.signal.aborted) {
        const bytes = await this.#pull(worker, found, at, over.signal);
        if (bytes?.length) yield bytes;
        at += bytes?.length ?? 0;
        if (!bytes) await this.#ports.build.clock.sleep(againMs, over.signal).catch(() => {});
        this.#call.signal.throwIfAborted();
      }
    } finally {
      leave.abort();
    }
    yield* this.#rest(worker, found, at);
  }

  /** Others' and unknown ones are not there (50). Of a build, the claim says which of its actions is meant. */
  async #find(): Promise<Printing> {
    const { instance, jobId, token } = this.#name;
    const { job } = await this.#ports.operations.find(operationName(instance, jobId), this.#call, alsoBuilds);
    const { tenant, tasks } = job.view;
    const task =
      tasks.find((one) => claimOf(one, token)) ?? tasks.find(({ result }) => readOutcome(result)?.token === token);
    return { tenant, task, tasks };
  }

  /** When the claim is over, or nothing more can be heard of it. */
  async #end({ task }: Printing, signal: AbortSignal): Promise<void> {
    const { jobId, token } = this.#name;
    try {
      for await (const message of this.#ports.execution.client.watch(jobId, signal)) {
        // Of a large build a snapshot has the first actions only.
        if (message.kind === "snapshot" && !claimOf((await this.#find()).task, token)) return;
        if (message.kind === "events" && message.events.some((event) => isEnd(event, task?.task, token))) return;
      }
    } catch (error) {
      if (!signal.aborted) this.#ports.build.report("follow an action's output", error);
    }
  }

  async #pull(worker: string, { tenant, task }: Printing, at: number, over: AbortSignal) {
    const { jobId, token, name } = this.#name;
    const key = { tenant, task: formatTask(parseJob(jobId)?.shard ?? 0, task?.task ?? 0), token, name };
    const signal = AbortSignal.any([this.#call.signal, over]);
    try {
      return await this.#ports.execution.live?.pull(worker, key, at, { waitMs: over.aborted ? 0 : waitMs, signal });
    } catch (error) {
      if (!isFault(error) && !signal.aborted) throw error;
      return undefined;
    }
  }

  /** From the result, if it is this claim's; otherwise nobody has more of it than was said. */
  async *#rest(worker: string | undefined, found: Printing, at: number): AsyncGenerator<Uint8Array> {
    const now = worker === undefined ? found : await this.#find();
    const answer = readOutcome(now.task?.result) ?? failedAnswer(found.task, now.tasks);
    if (!answer) return;
    const { blobs } = storeOf(this.#ports.build, this.#call);
    const digest = await this.#digest(answer, blobs);
    if (digest && at < digest.sizeBytes) yield* blobs.read(digest.text, { offset: at });
  }

  async #digest({ action, ...answer }: AnswerAt & { readonly action: Digest }, blobs: BlobStore) {
    const { result } = await readAnswer(answer, blobs);
    const wire = this.#name.name === "stdout" ? result?.stdoutDigest : result?.stderrDigest;
    const { fn = "sha256" } = parseDigest(action) ?? {};
    return wire && { text: digestText(fn, wire.hash, wire.sizeBytes), sizeBytes: wire.sizeBytes };
  }
}

/** The task whose claim it is, or whose result was made under it; and all there are. */
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

/** An action of a build that failed has no result: its failure says where the answer is, and not under which claim. */
function failedAnswer(before: TaskView | undefined, tasks: readonly TaskView[]) {
  const now = tasks.find(({ task }) => task === before?.task);
  if (now?.phase !== "FAILED" || now.attempts !== before?.attempts || !now.lastFailure) return undefined;
  const { action, answer } = readFailure(now.lastFailure.message);
  return answer && { ...answer, action };
}
