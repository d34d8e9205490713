/**
 * One very large blob through a node as it is installed: uploaded, killed in the middle, resumed, read in ranges, split
 * into chunks and spliced again; with the node's memory measured all the time.
 */
import { deepEqual, equal, ok, rejects } from "node:assert/strict";
import { createHash } from "node:crypto";
import { Random } from "#base/random.ts";
import type { GrpcClient } from "#grpc/client.ts";
import {
  ContentAddressableStorage as Cas,
  type Digest,
} from "#wire/generated/build/bazel/remote/execution/v2/remote_execution.ts";
import { ByteStream, type WriteRequest } from "#wire/generated/google/bytestream/bytestream.ts";
import { LargeBytes } from "./large-bytes.ts";
import { MemoryWatch, type PhaseMemory } from "./memory-watch.ts";
import { NodeProcess } from "./node-process.ts";

export type LargeTrial = {
  readonly folder: string;
  readonly sizeBytes: number;
  readonly seed: string;
  readonly say: (line: string) => void;
};

export type LargeOutcome = { readonly committedAtKill: number; readonly phases: readonly PhaseMemory[] };

/** This much of what was sent may have been in flight: windows of the connection, and buffered writes. */
const onTheWayBytes = 64 * 1024 * 1024;
const messageBytes = 1024 * 1024;
const uuid = "5b8aa7d6-0d5c-4b60-9a1b-0c6c4a1f1a10";

export async function runLargeTrial({ folder, sizeBytes, seed, say }: LargeTrial): Promise<LargeOutcome> {
  const bytes = new LargeBytes(seed, sizeBytes);
  const name: Digest = { hash: await bytes.hash(), sizeBytes };
  // Three times the blob: itself, its chunks, and what is spliced from them.
  const sizeMax = `${Math.ceil((sizeBytes * 3.5) / 2 ** 20) + 512}MiB`;
  await using node = await NodeProcess.open(folder, { blobs: { kind: "disk", sizeMax } });
  using watch = new MemoryWatch(node, say);
  const { client } = node;

  watch.phase("idle");
  equal((await status(client, name)).committedSize, 0);
  watch.phase("upload until killed");
  const killAt = Math.floor(sizeBytes / 2);
  const begun = upload(client, { name, bytes, from: 0, sent: (at) => (at >= killAt ? void node.kill() : undefined) });
  await rejects(begun);
  await node.start();
  const { committedSize: committedAtKill, complete } = await status(client, name);
  ok(!complete);
  ok(committedAtKill > killAt - onTheWayBytes, `${committedAtKill} bytes are kept of more than ${killAt}`);
  say(`killed when ${killAt} bytes had been sent: ${committedAtKill} are kept`);
  watch.phase("upload gone on with");
  equal(await upload(client, { name, bytes, from: committedAtKill }), sizeBytes);
  equal((await status(client, name)).complete, true);

  watch.phase("ranged reads");
  await readRanges(client, bytes, name, [0, committedAtKill - 1_000, killAt, sizeBytes - 5_000]);
  watch.phase("read as a whole");
  equal(await hashOfRead(client, name), name.hash);
  watch.phase("split");
  const chunks = await split(client, bytes, name);
  say(`split into ${chunks.length} chunks`);
  watch.phase("spliced in another order");
  const turned = await splice(client, bytes, chunks);
  watch.phase("the spliced one read");
  equal(await hashOfRead(client, turned), turned.hash);
  return { committedAtKill, phases: watch.end() };
}

type Uploading = {
  readonly name: Digest;
  readonly bytes: LargeBytes;
  readonly from: number;
  readonly sent?: (at: number) => void;
};

const resourceOf = ({ hash, sizeBytes }: Digest): string => `uploads/${uuid}/blobs/${hash}/${sizeBytes}`;

async function upload(client: GrpcClient, { name, bytes, from, sent }: Uploading): Promise<number> {
  async function* requests(): AsyncGenerator<WriteRequest> {
    let at = from;
    for (const data of bytes.pieces(from, name.sizeBytes)) {
      ok(data.length <= messageBytes);
      const finishWrite = at + data.length === name.sizeBytes;
      yield { resourceName: at === from ? resourceOf(name) : "", writeOffset: at, finishWrite, data };
      at += data.length;
      sent?.(at);
    }
  }
  return (await client.clientStream(ByteStream.methods.write, requests())).committedSize;
}

const status = (client: GrpcClient, name: Digest) =>
  client.unary(ByteStream.methods.queryWriteStatus, { resourceName: resourceOf(name) });

async function* read(client: GrpcClient, { hash, sizeBytes }: Digest, readOffset = 0, readLimit = 0) {
  const request = { resourceName: `blobs/${hash}/${sizeBytes}`, readOffset, readLimit };
  for await (const { data } of client.serverStream(ByteStream.methods.read, request)) yield data;
}

async function hashOfRead(client: GrpcClient, name: Digest): Promise<string> {
  const hash = createHash("sha256");
  for await (const part of read(client, name)) hash.update(part);
  return hash.digest("hex");
}

/** At these offsets, and at random ones; with a limit, and to the end. */
async function readRanges(client: GrpcClient, bytes: LargeBytes, name: Digest, places: readonly number[]) {
  const random = new Random(name.hash);
  const further = Array.from({ length: 50 }, () => random.below(2 ** 31) % name.sizeBytes);
  for (const at of [...places, ...further]) {
    const length = Math.min(1 + random.below(3 * messageBytes), name.sizeBytes - at);
    const parts: Uint8Array[] = [];
    for await (const part of read(client, name, at, length)) parts.push(Uint8Array.from(part));
    ok(Buffer.concat(parts).equals(bytes.slice(at, at + length)), `${length} bytes at ${at}`);
  }
  const tail = Math.min(10_000_000, name.sizeBytes);
  const parts: Uint8Array[] = [];
  for await (const part of read(client, name, name.sizeBytes - tail)) parts.push(Uint8Array.from(part));
  ok(Buffer.concat(parts).equals(bytes.slice(name.sizeBytes - tail, name.sizeBytes)), "to its end");
}

type Chunk = Digest & { readonly at: number };

async function split(client: GrpcClient, bytes: LargeBytes, name: Digest): Promise<readonly Chunk[]> {
  const request = { instanceName: "", blobDigest: name, digestFunction: 0, chunkingFunction: 0 };
  const { chunkDigests } = await client.unary(Cas.methods.splitBlob, request);
  let at = 0;
  const chunks = chunkDigests.map(({ hash, sizeBytes }) => ({ hash, sizeBytes, at: (at += sizeBytes) - sizeBytes }));
  equal(at, name.sizeBytes);
  const step = Math.max(1, Math.floor(chunks.length / 200));
  for (const chunk of chunks.filter((_, i) => i % step === 0))
    equal(await bytes.hash([[chunk.at, chunk.at + chunk.sizeBytes]]), chunk.hash);
  const asked = { instanceName: "", blobDigests: chunkDigests, digestFunction: 0 };
  deepEqual((await client.unary(Cas.methods.findMissingBlobs, asked)).missingBlobDigests, []);
  return chunks;
}

/** The first chunk moved to the end: a blob that was never uploaded. */
async function splice(client: GrpcClient, bytes: LargeBytes, chunks: readonly Chunk[]): Promise<Digest> {
  const [first, ...rest] = chunks;
  ok(first && rest.length > 0, "more than one chunk");
  const { sizeBytes } = bytes;
  const hash = await bytes.hash([
    [first.sizeBytes, sizeBytes],
    [0, first.sizeBytes],
  ]);
  const blobDigest = { hash, sizeBytes };
  const chunkDigests = [...rest, first].map((chunk) => ({ hash: chunk.hash, sizeBytes: chunk.sizeBytes }));
  const request = { instanceName: "", blobDigest, chunkDigests, digestFunction: 0, chunkingFunction: 0 };
  deepEqual((await client.unary(Cas.methods.spliceBlob, request)).blobDigest, blobDigest);
  return blobDigest;
}
