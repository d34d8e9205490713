/** Asks a server for its capabilities, once. */
import type { GrpcClient } from "#grpc/client.ts";
import { Capabilities, Compressor_Value } from "#wire/generated/build/bazel/remote/execution/v2/remote_execution.ts";
import { asFault } from "./reapi-fault.ts";

export type Offer = {
  readonly batchBytesMax: number;
  /** Whether it takes zstd in ByteStream calls. */
  readonly zstd: boolean;
};

export type OfferOptions = { readonly client: GrpcClient; readonly instance: string; readonly callMs: number };

/** gRPC's usual limit is 4 MiB per message: this leaves space for what surrounds the blobs. */
const batchBytesUsual = 3 * 1024 * 1024;

export function reapiOffer({ client, instance, callMs }: OfferOptions): () => Promise<Offer> {
  let asking: Promise<Offer> | undefined;
  const ask = async (): Promise<Offer> => {
    const request = { instanceName: instance };
    const said = await client.unary(Capabilities.methods.getCapabilities, request, { deadlineMs: callMs });
    const { maxBatchTotalSizeBytes = 0, supportedCompressors = [] } = said.cacheCapabilities ?? {};
    const batchBytesMax = maxBatchTotalSizeBytes > 0 ? maxBatchTotalSizeBytes : batchBytesUsual;
    return {
      batchBytesMax: Math.min(batchBytesMax, batchBytesUsual),
      zstd: supportedCompressors.includes(Compressor_Value.ZSTD),
    };
  };
  return () => {
    asking ??= ask().catch((error: unknown) => {
      asking = undefined; // so that the next call asks again
      throw asFault(error, "ask a server what it can");
    });
    return asking;
  };
}
