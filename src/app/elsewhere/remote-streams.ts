/** Streams that a node keeps for an executor elsewhere. Reading is for readers, who ask a node themselves. */
import { Fault } from "#base/fault.ts";
import type { StreamKey, Streams as StreamStore } from "#blobs/streams.ts";
import { asFault } from "#blobs/tiers/reapi/reapi-fault.ts";
import type { GrpcClient } from "#grpc/client.ts";
import { grpcCode, GrpcError } from "#grpc/status.ts";
import { Streams, type StreamName } from "#wire/generated/millrace/work/v1/streams.ts";

const callMs = 30_000;

export function remoteStreams(client: GrpcClient, executor: string): StreamStore {
  const nameOf = ({ task, token, name }: StreamKey): StreamName => ({ executor, task, token, name });
  const withFault = async <T>(doing: string, call: Promise<T>): Promise<T> => {
    try {
      return await call;
    } catch (error) {
      if (error instanceof GrpcError && error.code === grpcCode.failedPrecondition)
        throw new Fault("stale", doing, { why: error.message }, error);
      throw asFault(error, doing);
    }
  };
  const options = { deadlineMs: callMs };
  const { append, seal, drop } = Streams.methods;
  return {
    everyMs: 100,
    async append(key, offset, data) {
      await withFault("append to stream", client.unary(append, { stream: nameOf(key), offset, data }, options));
    },
    async seal(key) {
      const long = { deadlineMs: sealMs };
      return (await withFault("seal stream", client.unary(seal, { stream: nameOf(key) }, long))).digest;
    },
    async remove(key) {
      await withFault("remove stream", client.unary(drop, { stream: nameOf(key) }, options));
    },
    // eslint-disable-next-line require-yield
    async *read() {
      throw new Fault("invalid", "read stream", { why: "ask a node" });
    },
    async state() {
      throw new Fault("invalid", "read stream", { why: "ask a node" });
    },
  };
}

/** Large streams are hashed and copied. */
const sealMs = 300_000;
