/**
 * What an action prints, read by ByteStream while it runs, from whichever node runs it, and from its result when it has
 * ended. Both agree: what was read live is how the result begins.
 */
import { digestText, parseDigest } from "#base/digest.ts";
import { isFault } from "#base/fault.ts";
import { formatTask, parseJob } from "#base/ids.ts";
import type { BlobStore } from "#blobs/store.ts";
import type { StreamKey } from "#blobs/streams.ts";
import type { ReadRequest, ReadResponse } from "#wire/generated/google/bytestream/bytestream.ts";
import { need } from "./caller.ts";
import { storeOf, type BuildCall, type BuildPorts } from "./door.ts";
import type { ExecutionPorts } from "./execution-ports.ts";
import { operationName, type StreamName } from "./operation-names.ts";
import type { Found, OperationsService } from "./operations.ts";
import { invalid, outOfRange } from "./refusals.ts";
import { readAnswer, readOutcome, type ActionOutcome } from "./run-outcome.ts";
import { ExecutionFollower } from "./view.ts";

export type LiveSource = {
  /**
   * What there is from the offset on, a part of it at most, as soon as there is some; nothing when the time is over.
   * Undefined: there is no such worker, or it cannot be reached.
   */
  pull(worker: string, key: StreamKey, offset: number, options: PullOptions): Promise<Uint8Array | undefined>;
};

export type PullOptions = { readonly waitMs: number; readonly signal: AbortSignal };

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
  need(call.caller, "work.read");
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
    const worker = workerOf(found, this.#name.token);
    const over = new AbortController();
    const leave = new AbortController();
    // Ends by itself when the call does.
    void this.#end(AbortSignal.any([this.#call.signal, leave.signal])).finally(() => over.abort());
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

  /** Others' and unknown ones are not there (50). */
  #find(): Promise<Found> {
    const { instance, jobId } = this.#name;
    return this.#ports.operations.find(operationName(instance, jobId), this.#call);
  }

  /** When the claim is over, or nothing more can be heard of it. */
  async #end(signal: AbortSignal): Promise<void> {
    const { jobId, token } = this.#name;
    const follower = new ExecutionFollower();
    try {
      for await (const message of this.#ports.execution.client.watch(jobId, signal)) {
        follower.hear(message);
        if (follower.ended || follower.progress.token !== token) return;
      }
    } catch (error) {
      if (!signal.aborted) this.#ports.build.report("follow an action's output", error);
    }
  }

  async #pull(worker: string, { job }: Found, at: number, over: AbortSignal): Promise<Uint8Array | undefined> {
    const { jobId, token, name } = this.#name;
    const task = job.view.tasks.find(({ planning }) => !planning)?.task ?? 0;
    const key = { tenant: job.view.tenant, task: formatTask(parseJob(jobId)?.shard ?? 0, task), token, name };
    const signal = AbortSignal.any([this.#call.signal, over]);
    try {
      return await this.#ports.execution.live?.pull(worker, key, at, { waitMs: over.aborted ? 0 : waitMs, signal });
    } catch (error) {
      if (!isFault(error) && !signal.aborted) throw error;
      return undefined;
    }
  }

  /** From the result, if it is this claim's; otherwise nobody has more of it than was said. */
  async *#rest(worker: string | undefined, found: Found, at: number): AsyncGenerator<Uint8Array> {
    const { job } = worker === undefined ? found : await this.#find();
    const outcome = readOutcome(job.view.tasks.find(({ planning }) => !planning)?.result);
    if (!outcome || outcome.token !== this.#name.token) return;
    const { blobs } = storeOf(this.#ports.build, this.#call);
    const digest = await this.#digest(outcome, blobs);
    if (digest && at < digest.sizeBytes) yield* blobs.read(digest.text, { offset: at });
  }

  async #digest(outcome: ActionOutcome, blobs: BlobStore) {
    const { result } = await readAnswer(outcome, blobs);
    const wire = this.#name.name === "stdout" ? result?.stdoutDigest : result?.stderrDigest;
    const { fn = "sha256" } = parseDigest(outcome.action) ?? {};
    return wire && { text: digestText(fn, wire.hash, wire.sizeBytes), sizeBytes: wire.sizeBytes };
  }
}

const workerOf = ({ job }: Found, token: number): string | undefined =>
  job.view.tasks.flatMap(({ claims }) => claims).find((claim) => claim.token === token)?.executor;
