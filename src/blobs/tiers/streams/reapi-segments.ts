/**
 * Segments in a REAPI server: the bytes as a blob, their name as an entry of its action cache. Nothing can be removed
 * there, so a removed segment is an entry of a command that failed; the server evicts both by its own rules.
 */
import { hash } from "node:crypto";
import type { Random } from "#base/random.ts";
import type { Clock } from "#base/clock.ts";
import { digestText, type Digest } from "#base/digest.ts";
import { Fault, isFault } from "#base/fault.ts";
import { partsOf } from "#blobs/hashing.ts";
import { sha256Digest } from "#blobs/sha256.ts";
import type { BlobStore } from "#blobs/store.ts";
import { asFault } from "#blobs/tiers/reapi/reapi-fault.ts";
import { retrying, retryPolicyDefault } from "#blobs/tiers/retry.ts";
import { bytesOf } from "#blobs/tiers/s3/http-call.ts";
import type { GrpcClient } from "#grpc/client.ts";
import {
  ActionCache,
  DigestFunction_Value as functions,
  type ActionResult,
} from "#wire/generated/build/bazel/remote/execution/v2/remote_execution.ts";
import { segmentBytesMax, type Segments } from "./segments.ts";

export type ReapiSegmentsOptions = {
  readonly clock: Clock;
  readonly random: Random;
  readonly client: GrpcClient;
  readonly blobs: BlobStore;
  readonly instance: string;
  readonly callMs: number;
};

const objectBytesMax = segmentBytesMax + 1024;
const nothing: ActionResult = {
  outputFiles: [],
  outputDirectories: [],
  exitCode: 0,
  stdoutRaw: new Uint8Array(),
  stderrRaw: new Uint8Array(),
  outputFileSymlinks: [],
  outputDirectorySymlinks: [],
  outputSymlinks: [],
};
const removed = 1;

export function reapiSegments({ clock, random, client, blobs, instance, callMs }: ReapiSegmentsOptions): Segments {
  const common = { instanceName: instance, digestFunction: functions.SHA256 };
  const again = <T>(doing: string, attempt: () => Promise<T>): Promise<T> =>
    retrying({ clock, random, policy: { withinMs: callMs, ...retryPolicyDefault } }, () =>
      attempt().catch((error: unknown) => {
        throw asFault(error, doing);
      }),
    );
  const enter = async (name: string, actionResult: ActionResult): Promise<void> => {
    const request = { ...common, actionDigest: actionOf(name), actionResult };
    await again("write stream", () =>
      client.unary(ActionCache.methods.updateActionResult, request, { deadlineMs: callMs }),
    );
  };
  const find = async (name: string): Promise<ActionResult | undefined> => {
    const request = {
      ...common,
      actionDigest: actionOf(name),
      inlineStdout: false,
      inlineStderr: false,
      inlineOutputFiles: [],
    };
    try {
      return await again("read stream", () =>
        client.unary(ActionCache.methods.getActionResult, request, { deadlineMs: callMs }),
      );
    } catch (error) {
      if (isFault(error, "not-found")) return undefined;
      throw error;
    }
  };
  const replace = async (name: string, bytes: Uint8Array): Promise<void> => {
    const digest = sha256Digest(bytes);
    await blobs.write(digest, bytes);
    await enter(name, { ...nothing, stdoutDigest: wireOf(digest) });
  };
  return {
    everyMs: 250,
    async put(name, bytes) {
      await replace(name, bytes);
      return "written";
    },
    replace,
    async get(name) {
      const found = await find(name);
      if (!found || found.exitCode === removed) return undefined;
      if (found.stdoutRaw.length > 0) return found.stdoutRaw;
      const { stdoutDigest: digest } = found;
      if (!digest) return new Uint8Array();
      return await bytesOf(blobs.read(digestText("sha256", digest.hash, digest.sizeBytes)), objectBytesMax);
    },
    remove: (name) => enter(name, { ...nothing, exitCode: removed }),
  };
}

/** Whether a server can do it: it may not let this caller write to its action cache. */
export async function whyNoSegments(segments: Segments): Promise<string | undefined> {
  try {
    await segments.replace("probe", Buffer.from("probe"));
    const found = await segments.get("probe");
    return found && Buffer.from(found).toString() === "probe" ? undefined : "its action cache forgets at once";
  } catch (error) {
    if (isFault(error, "unavailable") || !(error instanceof Fault)) throw error;
    return String(error.facts["why"] ?? error.message);
  }
}

function actionOf(name: string) {
  const text = `millrace stream segment ${name}`;
  return { hash: hash("sha256", text, "hex"), sizeBytes: Buffer.byteLength(text) };
}

function wireOf(digest: Digest) {
  const parts = partsOf(digest);
  return { hash: parts.hash, sizeBytes: parts.sizeBytes };
}
