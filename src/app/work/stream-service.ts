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
import { statusOfFault } from "#shard/work/rejections.ts";
import type { Action } from "#access/policy.ts";
import { Streams, type StreamName } from "#wire/generated/millrace/work/v1/streams.ts";
import { HeldClaims } from "./held-claims.ts";

export type StreamServicePorts = {
  readonly streams: StreamStore;
  readonly client: Pick<WorkClient, "task" | "job">;
  readonly clock: Clock;
  /** Of one stream. */
  readonly bytesMax: number;
};

/** How long the streams of a claim may be dropped after it. */
const droppedMs = 600_000;
const dataBytesMax = 1024 * 1024;
const nameLengthMax = 100;
/** Behind the limit there is room for the line that says what was left out. */
const marginBytes = 4_096;

export function serveStreams(
  server: GrpcServer<Admitted>,
  admission: Admission,
  ports: StreamServicePorts,
): ReadonlyMap<string, Action> {
  const held = new HeldClaims(admission, ports);
  const { streams, bytesMax } = ports;
  server.add(Streams, {
    async append({ stream, offset, data }, { caller }) {
      if (data.length > dataBytesMax)
        throw new GrpcError(grpcCode.invalidArgument, `data has at most ${dataBytesMax} bytes`);
      const key = await keyOf(held, caller, stream);
      if (offset + data.length > bytesMax + marginBytes)
        throw new GrpcError(grpcCode.resourceExhausted, `a stream has at most ${bytesMax} bytes (worker.printedMax)`);
      await withStatus(streams.append(key, offset, Uint8Array.from(data)));
      return {};
    },
    async seal({ stream }, { caller }) {
      return { digest: await withStatus(streams.seal(await keyOf(held, caller, stream))) };
    },
    async drop({ stream }, { caller }) {
      await withStatus(streams.remove(await keyOf(held, caller, stream, droppedMs)));
      return {};
    },
  });
  return new Map(Object.values(Streams.methods).map(({ path }) => [path, "service.describe"] as const));
}

export async function withStatus<T>(work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (error) {
    if (!isFault(error)) throw error;
    const { code, message, details } = statusOfFault(error);
    throw new GrpcError(code, message, details);
  }
}

/** Throws if the caller does not hold the claim of this stream, or did not within this time. */
async function keyOf(
  held: HeldClaims,
  caller: Admitted,
  stream: StreamName | undefined,
  withinMs?: number,
): Promise<StreamKey> {
  if (!stream || stream.name === "" || stream.name.length > nameLengthMax)
    throw new GrpcError(grpcCode.invalidArgument, "name a stream");
  const { task, token, name } = stream;
  const { claim } = await held.require(caller, stream, withinMs);
  return { tenant: claim.tenant, task, token, name };
}
