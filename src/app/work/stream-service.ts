/**
 * What executors elsewhere print, taken by this node and made durable before it is acknowledged. A caller reaches only
 * streams of claims that it holds: the shard says who holds a claim, and whose task it is.
 */
import type { Clock } from "#base/clock.ts";
import { isFault } from "#base/fault.ts";
import type { StreamKey, Streams as StreamStore } from "#blobs/streams.ts";
import type { Admission, Admitted } from "#edge/port/admission.ts";
import type { GrpcServer } from "#grpc/server.ts";
import { grpcCode, GrpcError } from "#grpc/status.ts";
import type { WorkClient } from "#shard/client/client.ts";
import { isRejected } from "#shard/work/rejected.ts";
import { statusOfFault } from "#shard/work/rejections.ts";
import type { Action } from "#access/policy.ts";
import { Streams, type StreamName } from "#wire/generated/millrace/work/v1/streams.ts";
import { executorName } from "./work-policy.ts";

export type StreamServicePorts = {
  readonly streams: StreamStore;
  readonly client: Pick<WorkClient, "task" | "job">;
  readonly clock: Clock;
  /** Of one stream. */
  readonly bytesMax: number;
};

/** How long a claim counts as held after the shard said so, and how long its streams may be dropped after it. */
const heldMs = 2_000;
const droppedMs = 600_000;
const claimsMax = 10_000;
const dataBytesMax = 1024 * 1024;
const nameLengthMax = 100;
/** Behind the limit there is room for the line that says what was left out. */
const marginBytes = 4_096;

type Known = { readonly tenant: string; readonly atMs: number };

export function serveStreams(
  server: GrpcServer<Admitted>,
  admission: Admission,
  ports: StreamServicePorts,
): ReadonlyMap<string, Action> {
  const desk = new StreamDesk(admission, ports);
  const { streams, bytesMax } = ports;
  server.add(Streams, {
    async append({ stream, offset, data }, { caller }) {
      if (data.length > dataBytesMax)
        throw new GrpcError(grpcCode.invalidArgument, `data has at most ${dataBytesMax} bytes`);
      const key = await desk.keyOf(caller, stream, heldMs);
      if (offset + data.length > bytesMax + marginBytes)
        throw new GrpcError(grpcCode.resourceExhausted, `a stream has at most ${bytesMax} bytes (worker.printedMax)`);
      await withStatus(streams.append(key, offset, Uint8Array.from(data)));
      return {};
    },
    async seal({ stream }, { caller }) {
      return { digest: await withStatus(streams.seal(await desk.keyOf(caller, stream, heldMs))) };
    },
    async drop({ stream }, { caller }) {
      await withStatus(streams.remove(await desk.keyOf(caller, stream, droppedMs)));
      return {};
    },
  });
  return new Map(Object.values(Streams.methods).map(({ path }) => [path, "service.describe"] as const));
}

async function withStatus<T>(work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (error) {
    if (!isFault(error)) throw error;
    const { code, message, details } = statusOfFault(error);
    throw new GrpcError(code, message, details);
  }
}

class StreamDesk {
  readonly #admission: Admission;
  readonly #ports: StreamServicePorts;
  /** Claims that were seen held, oldest first. */
  readonly #known = new Map<string, Known>();

  constructor(admission: Admission, ports: StreamServicePorts) {
    this.#admission = admission;
    this.#ports = ports;
  }

  /** Throws if the caller does not hold the claim, or did not within this time. */
  async keyOf(caller: Admitted, stream: StreamName | undefined, withinMs: number): Promise<StreamKey> {
    if (!stream || stream.name === "" || stream.name.length > nameLengthMax)
      throw new GrpcError(grpcCode.invalidArgument, "name a stream");
    const { task, token, name } = stream;
    const executor = executorName(caller, stream.executor);
    const { clock } = this.#ports;
    const claim = `${task} ${token} ${executor}`;
    let known = this.#known.get(claim);
    if (!known || clock.monotonicMs() - known.atMs > withinMs) known = await this.#look(task, token, executor);
    this.#admission.require(caller, "work.execute", known.tenant);
    this.#known.delete(claim);
    this.#known.set(claim, known);
    for (const oldest of this.#known.keys()) {
      if (this.#known.size <= claimsMax) break;
      this.#known.delete(oldest);
    }
    return { tenant: known.tenant, task, token, name };
  }

  async #look(taskId: string, token: number, executor: string): Promise<Known> {
    const { client, clock } = this.#ports;
    const atMs = clock.monotonicMs();
    try {
      const { claims, jobId } = await client.task(taskId);
      const isHeld = claims.some((claim) => claim.token === token && claim.executor === executor);
      if (isHeld) return { tenant: (await client.job(jobId, { tasksMax: 0 })).view.tenant, atMs };
    } catch (error) {
      if (isFault(error, "unavailable")) throw new GrpcError(grpcCode.unavailable, error.message);
      if (!isFault(error) && !isRejected(error)) throw error;
    }
    // The same for a claim that is over, one of another executor, and a task that does not exist.
    throw new GrpcError(grpcCode.failedPrecondition, "the claim is not held by this executor");
  }
}
