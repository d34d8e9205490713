/**
 * The load of `bench cache`, in a process of its own, for any server of the Remote Execution API: small calls as bytes
 * laid out beforehand (bench/h2/load.ts), what goes before them and bulk by our own client.
 */
import { createHash } from "node:crypto";
import { frame } from "#grpc/outgoing.ts";
import { GrpcClient } from "#grpc/client.ts";
import { connectH2 } from "#h2/client.ts";
import { systemClock as realClock } from "#door/system-clock.ts";
import {
  ActionCache,
  ContentAddressableStorage,
  GetActionResultRequest,
} from "#wire/generated/build/bazel/remote/execution/v2/remote_execution.ts";
import { ByteStream, ReadRequest, WriteRequest } from "#wire/generated/google/bytestream/bytestream.ts";
import { prepareLoad } from "#bench/h2/load.ts";
import { answering } from "#bench/load-process.ts";
import { percentile } from "#bench/measure.ts";

export type CacheAsked =
  | { readonly kind: "fill"; readonly port: number; readonly blobs: number; readonly sizeBytes: number }
  | { readonly kind: "fill-actions"; readonly port: number; readonly actions: number }
  | ({ readonly kind: "read" | "write"; readonly sizeBytes: number; readonly round: number } & Calls)
  | ({ readonly kind: "action" } & Calls)
  | ({ readonly kind: "find"; readonly digests: number } & Calls)
  | { readonly kind: "bulk-write" | "bulk-read"; readonly port: number; readonly mib: number; readonly round: number };

type Calls = {
  readonly port: number;
  readonly connections: number;
  readonly streams: number;
  readonly calls: number;
  /** How many different blobs or actions the calls ask for. */
  readonly of: number;
};

export type CacheDid = {
  /** Calls, blobs or MiB. */
  readonly count: number;
  readonly seconds: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly bytesEach: number;
};

const sha256 = (bytes: string | Uint8Array): string => createHash("sha256").update(bytes).digest("hex");

/** The same for every server, and different from each other. */
function blob(kind: string, no: number, sizeBytes: number): Buffer {
  const bytes = Buffer.alloc(sizeBytes);
  const seed = createHash("sha512").update(`${kind} ${no}`).digest();
  for (let at = 0; at < sizeBytes; at += seed.length) seed.copy(bytes, at);
  return bytes;
}

const names = new Map<string, string>();

function hashOf(kind: string, no: number, sizeBytes: number): string {
  const key = `${kind} ${no} ${sizeBytes}`;
  let hash = names.get(key);
  if (hash === undefined) names.set(key, (hash = sha256(blob(kind, no, sizeBytes))));
  return hash;
}

const clientOf = (port: number): GrpcClient =>
  new GrpcClient({
    clock: realClock,
    connect: () => connectH2({ host: "127.0.0.1", port, clock: realClock }),
    authority: `127.0.0.1:${port}`,
  });

const batchBytes = 2 * 1024 * 1024;

async function fill(port: number, blobs: number, sizeBytes: number): Promise<CacheDid> {
  const client = clientOf(port);
  const startedMono = performance.now();
  const each = Math.min(5_000, Math.max(1, Math.floor(batchBytes / (sizeBytes + 80))));
  let next = 0;
  const lane = async (): Promise<void> => {
    while (next < blobs) {
      const [from, to] = [next, (next = Math.min(blobs, next + each))];
      const requests = Array.from({ length: to - from }, (_, i) => {
        const data = blob("blob", from + i, sizeBytes);
        return { digest: { hash: sha256(data), sizeBytes }, data, compressor: 0 };
      });
      const { responses } = await client.unary(ContentAddressableStorage.methods.batchUpdateBlobs, {
        instanceName: "",
        requests,
        digestFunction: 0,
      });
      const wrong = responses.find(({ status }) => (status?.code ?? 0) !== 0);
      if (wrong) throw new Error(`a blob was not taken: ${wrong.status?.message}`);
    }
  };
  await Promise.all(Array.from({ length: 4 }, lane));
  client.close();
  return did(blobs, startedMono);
}

const outputBytes = 512;
const actionHash = (no: number): string => sha256(`action ${no}`);

async function fillActions(port: number, actions: number): Promise<CacheDid> {
  const client = clientOf(port);
  await fill(port, actions * 3, outputBytes);
  const startedMono = performance.now();
  let next = 0;
  const lane = async (): Promise<void> => {
    while (next < actions) {
      const no = next++;
      await client.unary(ActionCache.methods.updateActionResult, {
        instanceName: "",
        actionDigest: { hash: actionHash(no), sizeBytes: 142 },
        actionResult: {
          ...emptyResult,
          outputFiles: [0, 1, 2].map((i) => ({
            path: `bazel-out/k8-fastbuild/bin/some/package/of/it/file_${no}_${i}.o`,
            digest: { hash: hashOf("blob", no * 3 + i, outputBytes), sizeBytes: outputBytes },
            isExecutable: i === 0,
            contents: Buffer.alloc(0),
            nodeProperties: undefined,
          })),
        },
        resultsCachePolicy: undefined,
        digestFunction: 0,
      });
    }
  };
  await Promise.all(Array.from({ length: 32 }, lane));
  client.close();
  return did(actions, startedMono);
}

const emptyResult = {
  outputFileSymlinks: [],
  outputSymlinks: [],
  outputDirectories: [],
  outputDirectorySymlinks: [],
  exitCode: 0,
  stdoutRaw: Buffer.alloc(0),
  stdoutDigest: undefined,
  stderrRaw: Buffer.alloc(0),
  stderrDigest: undefined,
  executionMetadata: undefined,
} as const;

/** Which one a call asks for: all of them, in an order without neighbours. */
const pick = (call: number, of: number): number => (call * 7_919) % of;

async function small(path: string, calls: Calls, bodyOf: (call: number) => Buffer): Promise<CacheDid> {
  const { port, connections, streams, calls: count } = calls;
  const bodies = (at: number, call: number): Buffer => bodyOf(call * connections + at);
  const shape = { ports: [port], profile: "changing", connections, streams, calls: count } as const;
  const run = await prepareLoad({ ...shape, path, anonymous: true, bodies });
  const { calls: made, seconds, tookMs, dataBytes } = await run();
  const took = Array.from(tookMs);
  return {
    count: made,
    seconds,
    p50Ms: percentile(took, 0.5),
    p99Ms: percentile(took, 0.99),
    bytesEach: dataBytes / made,
  };
}

const read = (asked: Calls & { readonly sizeBytes: number }): Promise<CacheDid> =>
  small(ByteStream.methods.read.path, asked, (call) => {
    const hash = hashOf("blob", pick(call, asked.of), asked.sizeBytes);
    return frame(ReadRequest, { resourceName: `blobs/${hash}/${asked.sizeBytes}`, readOffset: 0, readLimit: 0 });
  });

const write = (asked: Calls & { readonly sizeBytes: number; readonly round: number }): Promise<CacheDid> =>
  small(ByteStream.methods.write.path, asked, (call) => {
    const data = blob(`round ${asked.round}`, call, asked.sizeBytes);
    const uuid = `00000000-0000-4000-8000-${String(asked.round * 1_000_000 + call).padStart(12, "0")}`;
    const resourceName = `uploads/${uuid}/blobs/${sha256(data)}/${asked.sizeBytes}`;
    return frame(WriteRequest, { resourceName, writeOffset: 0, finishWrite: true, data });
  });

const action = (asked: Calls): Promise<CacheDid> =>
  small(ActionCache.methods.getActionResult.path, asked, (call) =>
    frame(GetActionResultRequest, {
      instanceName: "",
      actionDigest: { hash: actionHash(pick(call, asked.of)), sizeBytes: 142 },
      inlineStdout: false,
      inlineStderr: false,
      inlineOutputFiles: [],
      digestFunction: 0,
    }),
  );

type Digests = readonly { readonly hash: string; readonly sizeBytes: number }[];

export const findSizeBytes = 16;

/** Half of them missing; the existing ones from all over the index. */
const findDigests = (no: number, digests: number, of: number): Digests =>
  Array.from({ length: digests }, (_, i) =>
    i % 2 === 0
      ? { hash: hashOf("blob", pick(no * digests + i, of), findSizeBytes), sizeBytes: findSizeBytes }
      : { hash: sha256(`missing ${no} ${i}`), sizeBytes: findSizeBytes },
  );

/** Too large for a server's initial window, so by a client that respects it. A few calls, over and over. */
async function find({ port, connections, streams, calls, of, digests }: Calls & { readonly digests: number }) {
  const asked = Array.from({ length: 8 }, (_, no) => findDigests(no, digests, of));
  const clients = Array.from({ length: connections }, () => clientOf(port));
  const startedMono = performance.now();
  let next = 0;
  const lane = async (client: GrpcClient): Promise<void> => {
    while (next < calls) {
      const blobDigests = asked[next++ % asked.length] ?? [];
      const request = { instanceName: "", blobDigests, digestFunction: 0 } as const;
      const { missingBlobDigests } = await client.unary(ContentAddressableStorage.methods.findMissingBlobs, request);
      if (missingBlobDigests.length !== digests / 2)
        throw new Error(`${missingBlobDigests.length} were said to be missing instead of ${digests / 2}`);
    }
  };
  await Promise.all(clients.flatMap((client) => Array.from({ length: streams }, () => lane(client))));
  clients.forEach((client) => client.close());
  return did(calls * digests, startedMono);
}

const chunkBytes = 64 * 1024;

/** One large blob that no server has seen, or the one that was written before. */
function* bulkChunks(mib: number, round: number): Generator<Buffer> {
  const chunk = blob(`bulk ${round}`, 0, chunkBytes);
  for (let no = 0; no < mib * 16; no += 1) {
    chunk.writeUInt32BE(no, 0);
    yield chunk;
  }
}

function bulkName(mib: number, round: number): string {
  const hash = createHash("sha256");
  for (const chunk of bulkChunks(mib, round)) hash.update(chunk);
  return `${hash.digest("hex")}/${mib * 1024 * 1024}`;
}

async function bulkWrite(port: number, mib: number, round: number): Promise<CacheDid> {
  const client = clientOf(port);
  const resourceName = `uploads/00000000-0000-4000-8000-${String(round).padStart(12, "0")}/blobs/${bulkName(mib, round)}`;
  const startedMono = performance.now();
  const requests = async function* () {
    let no = 0;
    for (const chunk of bulkChunks(mib, round)) {
      const isLast = no === mib * 16 - 1;
      yield {
        resourceName: no === 0 ? resourceName : "",
        writeOffset: no * chunkBytes,
        finishWrite: isLast,
        data: chunk,
      };
      no += 1;
    }
  };
  const { committedSize } = await client.clientStream(ByteStream.methods.write, requests());
  client.close();
  if (committedSize !== mib * 2 ** 20) throw new Error(`${committedSize} bytes were taken instead of ${mib} MiB`);
  return did(mib, startedMono);
}

async function bulkRead(port: number, mib: number, round: number): Promise<CacheDid> {
  const client = clientOf(port);
  const resourceName = `blobs/${bulkName(mib, round)}`;
  const startedMono = performance.now();
  let bytes = 0;
  const answers = client.serverStream(ByteStream.methods.read, { resourceName, readOffset: 0, readLimit: 0 });
  for await (const { data } of answers) bytes += data.length;
  client.close();
  if (bytes !== mib * 2 ** 20) throw new Error(`${bytes} bytes came instead of ${mib} MiB`);
  return did(mib, startedMono);
}

const did = (count: number, startedMono: number): CacheDid => ({
  count,
  seconds: (performance.now() - startedMono) / 1_000,
  p50Ms: Number.NaN,
  p99Ms: Number.NaN,
  bytesEach: Number.NaN,
});

function perform(asked: CacheAsked): Promise<CacheDid> {
  switch (asked.kind) {
    case "fill":
      return fill(asked.port, asked.blobs, asked.sizeBytes);
    case "fill-actions":
      return fillActions(asked.port, asked.actions);
    case "read":
      return read(asked);
    case "write":
      return write(asked);
    case "action":
      return action(asked);
    case "find":
      return find(asked);
    case "bulk-write":
      return bulkWrite(asked.port, asked.mib, asked.round);
    case "bulk-read":
      return bulkRead(asked.port, asked.mib, asked.round);
  }
}

answering(perform);
