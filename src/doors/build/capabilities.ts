/** What is served, to which caller. Pure. */
import {
  Compressor_Value,
  DigestFunction_Value,
  SymlinkAbsolutePathStrategy_Value,
  type ExecutionCapabilities,
  type ServerCapabilities,
} from "#wire/generated/build/bazel/remote/execution/v2/remote_execution.ts";
import { fastCdcDefault } from "#blobs/chunking/fast-cdc.ts";
import type { BuildCaller } from "./caller.ts";
import { servedFunctions } from "./digests.ts";
import { priorityRange } from "./plan.ts";
import type { BuildSettings } from "./settings.ts";

const version = (major: number, minor: number) => ({ major, minor, patch: 0, prerelease: "" });

/** What is served of execution, if anything is. */
export type ExecutionOffer = { readonly hasWorkers: boolean };

export function capabilitiesFor(
  caller: BuildCaller,
  settings: BuildSettings,
  offer?: ExecutionOffer,
): ServerCapabilities {
  return {
    cacheCapabilities: {
      digestFunctions: servedFunctions,
      // With updates disabled Bazel does not even try, which avoids refusals in its log.
      actionCacheUpdateCapabilities: { updateEnabled: caller.may("action-cache.write") && caller.may("cache.write") },
      cachePriorityCapabilities: { priorities: [{ minPriority: 0, maxPriority: 0 }] },
      maxBatchTotalSizeBytes: settings.batchBytesMax,
      symlinkAbsolutePathStrategy: SymlinkAbsolutePathStrategy_Value.ALLOWED,
      supportedCompressors: [Compressor_Value.ZSTD],
      supportedBatchUpdateCompressors: [Compressor_Value.ZSTD],
      maxCasBlobSizeBytes: settings.blobBytesMax,
      splitBlobSupport: true,
      spliceBlobSupport: true,
      fastCdc2020Params: { avgChunkSizeBytes: fastCdcDefault.avgBytes, seed: fastCdcDefault.seed },
      repMaxCdcParams: undefined,
    },
    executionCapabilities: offer && executionFor(caller, offer),
    deprecatedApiVersion: undefined,
    lowApiVersion: version(2, 0),
    highApiVersion: version(2, 12),
  };
}

/** Bazel uses the cache's list of functions; the single number is for clients before 2.7. */
const executionFor = (caller: BuildCaller, { hasWorkers }: ExecutionOffer): ExecutionCapabilities => ({
  digestFunction: DigestFunction_Value.SHA256,
  execEnabled: hasWorkers && caller.may("build.execute"),
  executionPriorityCapabilities: {
    priorities: [{ minPriority: priorityRange.min, maxPriority: priorityRange.max }],
  },
  supportedNodeProperties: ["mtime", "unix_mode"],
  digestFunctions: servedFunctions,
});
