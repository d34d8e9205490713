/** The task that writes a query's result where the job says, once. */
import { mkdir, realpath } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { Fault } from "#base/fault.ts";
import type { BlobStore } from "#blobs/store.ts";
import type { S3Client } from "#blobs/tiers/s3/s3-client.ts";
import { askerOf, type CommitDocument, type CommitResult, type CommitSpec } from "#doors/batch/documents.ts";
import { orRefused, type OpenBucket } from "#doors/batch/grants/buckets.ts";
import { resolveName, type Place } from "#doors/batch/grants/resolve.ts";
import type { FilesPorts } from "#doors/batch/grants/source-files.ts";
import { commitInBucket, refuseForeign } from "#doors/batch/grants/versions-in-bucket.ts";
import type { Documents } from "#doors/batch/run/documents-cache.ts";
import type { Engines } from "#doors/batch/run/engines.ts";
import { heldPacks, type PackPorts } from "#doors/batch/run/inputs.ts";
import type { TaskLimits } from "#doors/batch/run/task.ts";
import type { RunContext, RunOutcome } from "#worker/runner.ts";
import { stageOutput, type CommitPorts, type StagedOutput } from "./commit.ts";
import { commitVersion, openStaging } from "./versions.ts";
import { upload } from "./upload.ts";

type Ports = PackPorts &
  FilesPorts & {
    readonly blobs: BlobStore;
    readonly engines: Engines;
    readonly scratch: (name: string) => Promise<AsyncDisposable & { readonly path: string }>;
    readonly openBucket?: OpenBucket;
  };

export async function commitTask(
  { task, signal, leftMs, started }: RunContext,
  ports: Ports,
  documents: Documents,
  limits: TaskLimits,
): Promise<RunOutcome> {
  const { commit } = JSON.parse(task.spec) as CommitSpec;
  const document = await documents.commit(commit, { tenant: task.tenant, blobs: ports.blobs });
  const place = resolveName(document.folder, askerOf(document, task.tenant), ports.grants, true);
  const digests = document.packs.map(({ digest }) => digest);
  const packs = new Map([["result", { types: [], producers: document.producers, digests }]]);
  await using held = await heldPacks(packs, ports.blobs, ports);
  await using scratch = await ports.scratch(task.taskId);
  const { engines } = ports;
  const own: CommitPorts = { engines, limits, signal, scratch: scratch.path };
  const paths = digests.map((digest) => held.pathOf(digest));
  const mayCommit = async (): Promise<void> => {
    await started?.();
    signal.throwIfAborted();
    if ((leftMs?.() ?? 1) <= 0) throw new Error("the claim has run out");
  };
  const stage = (staging: string): Promise<StagedOutput> => stageOutput(document, paths, staging, own);
  const attempt = `${task.taskId}-${task.token}`;
  const written =
    place.kind === "file"
      ? await toFolder(place, attempt, stage, mayCommit)
      : await toBucket(place, document, task.tenant, {
          open: ports.openBucket,
          signal,
          scratch: scratch.path,
          stage,
          mayCommit,
        });
  return { kind: "done", payload: JSON.stringify({ written } satisfies CommitResult) };
}

async function toFolder(
  { path, within }: Extract<Place, { kind: "file" }>,
  attempt: string,
  stage: (staging: string) => Promise<StagedOutput>,
  mayCommit: () => Promise<void>,
): Promise<CommitResult["written"]> {
  const folder = within === undefined ? path : await reallyWithin(path, within);
  await using staging = await openStaging(folder, attempt);
  const { version, rows, files } = await stage(staging.path);
  await commitVersion(folder, staging.path, version, mayCommit);
  return { folder, version, files: files.length, rows };
}

/** No link above it leads out of what is granted. */
async function reallyWithin(path: string, within: string): Promise<string> {
  const root = await realpath(within);
  let above = dirname(path);
  const missing: string[] = [];
  let real = await realpath(above).catch(() => undefined);
  for (; real === undefined && above !== dirname(above); real = await realpath(above).catch(() => undefined)) {
    missing.unshift(basename(above));
    above = dirname(above);
  }
  const home = join(real ?? "/", ...missing);
  if (home !== root && !home.startsWith(`${root}/`))
    throw new Fault("invalid", "write result", { folder: path, why: "a link leads out of what is granted" });
  await mkdir(home, { recursive: true });
  return join(home, basename(path));
}

type BucketPorts = {
  readonly open: OpenBucket | undefined;
  readonly signal: AbortSignal;
  readonly scratch: string;
  readonly stage: (staging: string) => Promise<StagedOutput>;
  readonly mayCommit: () => Promise<void>;
};

async function toBucket(
  { bucket, key }: Extract<Place, { kind: "object" }>,
  document: CommitDocument,
  tenant: string,
  { open, signal, scratch, stage, mayCommit }: BucketPorts,
): Promise<CommitResult["written"]> {
  if (!open) throw new Fault("unavailable", "write result", { why: "buckets are not written here" });
  const prefix = `${key.replace(/\/+$/, "")}/`;
  const folder = `s3://${bucket.bucket}/${prefix}`;
  using client: S3Client = await open(bucket, tenant);
  return await orRefused(folder, async () => {
    await refuseForeign(client, prefix);
    const staging = join(scratch, "staging");
    await mkdir(staging);
    const { manifest, version, rows, files } = await stage(staging);
    for (const { path, bytes } of files)
      await upload(client, { from: join(staging, path), bytes, key: `${prefix}${path}` }, signal);
    await commitInBucket(client, prefix, { ...manifest, files: [...files] }, mayCommit);
    return { folder, version, files: files.length, rows };
  });
}
