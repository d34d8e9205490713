/** The cost of decoding and encoding messages: our generated code compared with libraries. */
import { createHash } from "node:crypto";
import type { Command, CommandOf } from "#kernel/model/command.ts";
import type { Grant } from "#kernel/model/model.ts";
import type { ShardRequest, ShardResponse } from "#shard/transport/protocol.ts";
import { callOf } from "#shard/work/calls.ts";
import { requestMessage } from "#shard/work/plain/requests.ts";
import { plainAnswer, responseMessage } from "#shard/work/plain/responses.ts";
import {
  Directory,
  FindMissingBlobsRequest,
  FindMissingBlobsResponse,
} from "#wire/generated/build/bazel/remote/execution/v2/remote_execution.ts";
import { answerRaw, rawFindMissingRequest, rawFindMissingResponse, type RawLookup } from "#wire/find-missing-raw.ts";
import { ReadResponse } from "#wire/generated/google/bytestream/bytestream.ts";
import { decode, encode, type Message } from "#wire/message.ts";
import { median } from "./measure.ts";
import { protobufJs, protobufPeers, type Codec } from "#bench/peers/protobuf.ts";
import type { Figure, Report } from "./report.ts";
import type { BenchOptions, Suite } from "./suite.ts";
import { jobOf } from "#bench/kernel/work.ts";

export const protobuf: Suite = {
  name: "protobuf",
  about: "decoding and encoding: our generated code beside protobufjs, protobuf-es and pbf",
  notMeasured: [
    "anything around the messages: HTTP/2, handlers, the kernel",
    "memory and garbage collection apart from the CPU that they take",
    "libraries that need a compiler of their own to be run first",
  ],
  async run(report: Report, options: BenchOptions) {
    await compareLibraries(report, options);
    measureByHand(report, options);
    measureWork(report, options);
  },
};

type Sample = {
  readonly name: string;
  readonly type: Message<never>;
  readonly message: unknown;
  readonly count: number;
};

const hash = (text: string): string => createHash("sha256").update(text).digest("hex");
const digest = (text: string, sizeBytes: number) => ({ hash: hash(text), sizeBytes });

const samples: readonly Sample[] = [
  {
    name: "FindMissingBlobs, 3 digests",
    type: FindMissingBlobsRequest as Message<never>,
    message: {
      instanceName: "main",
      blobDigests: [1, 2, 3].map((i) => digest(`blob ${i}`, i * 1_000)),
      digestFunction: 1,
    } satisfies FindMissingBlobsRequest,
    count: 20_000,
  },
  {
    name: "Directory, 100 entries",
    type: Directory as Message<never>,
    message: {
      files: Array.from({ length: 80 }, (_, i) => ({
        name: `source_file_number_${i}.cc`,
        digest: digest(`file ${i}`, 37 + i * 37),
        isExecutable: i % 4 === 0,
      })),
      directories: Array.from({ length: 20 }, (_, i) => ({ name: `part${i}`, digest: digest(`part ${i}`, 91 + i) })),
      symlinks: [],
    } satisfies Directory,
    count: 500,
  },
  {
    name: "ByteStream chunk, 64 KiB",
    type: ReadResponse as Message<never>,
    message: { data: Buffer.alloc(64 * 1024, 7) } satisfies ReadResponse,
    count: 4_000,
  },
];

const protoPaths = [
  "build/bazel/remote/execution/v2/remote_execution.proto",
  "google/bytestream/bytestream.proto",
] as const;

const ours: Codec = {
  name: "generated",
  type: (typeName) => {
    const type = samples.find((sample) => sample.type.typeName === typeName)?.type as Message<unknown>;
    return { decode: (bytes) => decode(type, bytes), encode: (message) => encode(type, message) };
  },
};

async function compareLibraries(report: Report, { smoke, peers }: BenchOptions): Promise<void> {
  const more = peers ? await protobufPeers(protoPaths) : "run with --peers";
  const codecs = [ours, protobufJs(protoPaths), ...(typeof more === "string" ? [] : more)];
  const rows: Figure[][] = [];
  for (const sample of samples) {
    const bytes = encode(sample.type, sample.message as never);
    const contestants = codecs.map((codec) => contestantOf(codec, sample, bytes));
    const times = inTurns(contestants, { count: sample.count, rounds: smoke ? 2 : 15 });
    const [own, first] = times;
    for (const [i, { decodeUs, encodeUs }] of times.entries())
      rows.push([
        i === 0 ? `${sample.name}, ${bytes.length} bytes` : "",
        contestants[i]?.name ?? "",
        decodeUs,
        encodeUs,
      ]);
    if (!own || !first || sample !== samples[0]) continue;
    report.figure("find_decode_us", own.decodeUs);
    report.figure("find_encode_us", own.encodeUs);
    const ratio = (first.decodeUs + first.encodeUs) / (own.decodeUs + own.encodeUs);
    report.figure("ratio_to_protobufjs", ratio);
    report.target({ what: "FindMissingBlobs, protobufjs / generated", atLeast: 1.3, got: ratio });
  }
  report.table("CPU of one message, microseconds", ["", "", "decode", "encode"], rows);
  if (typeof more === "string") report.say(`Not shown: protobuf-es and pbf (${more}).`);
}

type Contestant = { readonly name: string; readonly decode: () => unknown; readonly encode: () => unknown };
type Times = { readonly decodeUs: number; readonly encodeUs: number };

/** A library that writes other bytes would do something else. */
function contestantOf(codec: Codec, { type: { typeName } }: Sample, bytes: Buffer): Contestant {
  const type = codec.type(typeName);
  const message = type.decode(bytes);
  if (Buffer.compare(type.encode(message), bytes) !== 0) throw new Error(`${codec.name}: other bytes for ${typeName}`);
  return { name: codec.name, decode: () => type.decode(bytes), encode: () => type.encode(message) };
}

function inTurns(contestants: readonly Contestant[], { count, rounds }: { count: number; rounds: number }): Times[] {
  const all = contestants.map(() => ({ decodeUs: [] as number[], encodeUs: [] as number[] }));
  for (let round = 0; round <= rounds; round += 1)
    for (const [i, contestant] of contestants.entries()) {
      const decodeUs = cpuOf(contestant.decode, count);
      const encodeUs = cpuOf(contestant.encode, count);
      if (round === 0) continue; // the code is being compiled
      all[i]?.decodeUs.push(decodeUs);
      all[i]?.encodeUs.push(encodeUs);
    }
  return all.map(({ decodeUs, encodeUs }) => ({ decodeUs: median(decodeUs), encodeUs: median(encodeUs) }));
}

let sink: unknown;

function cpuOf(run: () => unknown, count: number): number {
  const before = process.cpuUsage();
  for (let i = 0; i < count; i += 1) sink = run();
  const { user, system } = process.cpuUsage(before);
  void sink;
  return (user + system) / count;
}

/** A call of FindMissingBlobs: from bytes to the store's digests, and back. */
function measureByHand(report: Report, { smoke }: BenchOptions): void {
  const [sample] = samples;
  if (!sample) return;
  const bytes = encode(sample.type, sample.message as never);
  const { blobDigests } = decode(FindMissingBlobsRequest, bytes);
  const digests = blobDigests.map((one) => `${one.hash}/${one.sizeBytes}`);
  const lookup: RawLookup = { hexLength: 64, find: () => {}, checkEmpty: () => {} };
  const answer = Buffer.from(answerRaw(decode(rawFindMissingRequest, bytes), lookup));
  const contestants: readonly Contestant[] = [
    {
      name: "generated, and what must follow",
      decode: () => decode(FindMissingBlobsRequest, bytes).blobDigests.map((one) => `${one.hash}/${one.sizeBytes}`),
      encode: () => encode(FindMissingBlobsResponse, { missingBlobDigests: digests.map(partsOf) }),
    },
    {
      name: "by hand",
      decode: () => answerRaw(decode(rawFindMissingRequest, bytes), lookup),
      encode: () => encode(rawFindMissingResponse, answer),
    },
  ];
  const times = inTurns(contestants, { count: sample.count, rounds: smoke ? 2 : 15 });
  const [generated, byHand] = times.map(({ decodeUs, encodeUs }) => decodeUs + encodeUs);
  const rows = times.map(({ decodeUs, encodeUs }, i) => [contestants[i]?.name ?? "", decodeUs, encodeUs]);
  report.table("FindMissingBlobs with the store's digests, microseconds", ["", "decode", "encode"], rows);
  report.figure("by_hand_us", byHand ?? Number.NaN);
  const got = generated !== undefined && byHand !== undefined ? generated / byHand : undefined;
  report.target({ what: "FindMissingBlobs, generated / by hand", atLeast: 1.2, got });
}

function partsOf(digest: string): { readonly hash: string; readonly sizeBytes: number } {
  const slash = digest.lastIndexOf("/");
  return { hash: digest.slice(0, slash), sizeBytes: Number(digest.slice(slash + 1)) };
}

/** From bytes to the shard host's request and back to bytes, compared with JSON. */
function measureWork(report: Report, { smoke }: BenchOptions): void {
  const exchanges = [submitMany(), commitOne(), commitMany(), reserveMany()];
  const rows = exchanges.flatMap(({ name, each, request, response }): Figure[][] => {
    const call = callOf(request);
    const requestBytes = encode(call.method.request, call.writeRequest(request));
    const answered = call.writeResponse(request, response);
    if (!answered.ok) throw new Error("the benchmark's own answer is a refusal");
    const responseBytes = encode(call.method.response, answered.message);
    const [requestJson, responseJson] = [JSON.stringify(request), JSON.stringify(response)];
    const [plainRequest, plainResponse] = [requestMessage(call, (error) => error), responseMessage(call)];
    const contestants: readonly Contestant[] = [
      {
        name: "straight from the wire",
        decode: () => decode(plainRequest, requestBytes),
        encode: () => encode(plainResponse, plainAnswer(request, response)),
      },
      {
        name: "generated, and what must follow",
        decode: () => call.readRequest(decode(call.method.request, requestBytes)),
        encode: () => {
          const again = call.writeResponse(request, response);
          return again.ok && encode(call.method.response, again.message);
        },
      },
      {
        name: "JSON",
        decode: () => JSON.parse(Buffer.from(requestJson).toString()) as unknown,
        encode: () => Buffer.from(JSON.stringify(response)),
      },
    ];
    const sizes = [
      [requestBytes.length, responseBytes.length],
      [requestBytes.length, responseBytes.length],
      [requestJson.length, responseJson.length],
    ];
    return inTurns(contestants, { count: Math.ceil(20_000 / each), rounds: smoke ? 2 : 10 }).map(
      ({ decodeUs, encodeUs }, i) => {
        if (i === 0) report.figure(`${name.split(/[ :]/)[0]}_us`, (decodeUs + encodeUs) / each);
        const [requestSize = 0, responseSize = 0] = sizes[i] ?? [];
        const label = i === 0 ? name : "";
        const { name: by = "" } = contestants[i] ?? {};
        return [label, by, requestSize / each, decodeUs / each, responseSize / each, encodeUs / each];
      },
    );
  });
  const columns = ["a node's part, for each command", "", "bytes in", "read, us", "bytes out", "write, us"];
  report.table("The work protocol, from bytes to the shard's request and from its response to bytes", columns, rows);
}

type Exchange = {
  readonly name: string;
  readonly each: number;
  readonly request: ShardRequest;
  readonly response: ShardResponse;
};

const stamp = { epoch: 7, seq: 123_456 };
const hundred = Array.from({ length: 100 }, (_, i) => i);

const submitMany = (): Exchange => ({
  name: "submit_many: 100 jobs of a task",
  each: 100,
  request: { kind: "commands", shard: 3, commands: hundred.map((i): Command => jobOf(`job-${100_000 + i}`, 1)) },
  response: {
    kind: "said",
    stamp,
    said: hundred.map((i) => ({ kind: "reply", stamp, reply: { job: 500_000 + i, created: true, merged: false } })),
  },
});

const commit = (i: number): CommandOf<"commit"> => ({
  kind: "commit",
  executor: "worker-17.example",
  task: 1_000_000 + i,
  token: 2_000_000 + i,
  result: { payload: '{"exitCode":0}', digests: [1, 2, 3].map((n) => `${hash(`${i} ${n}`)}/${n * 1_000}`) },
  evidence: { digests: [], pinnedForMs: 0 },
});

const committed = (): { kind: "reply"; stamp: typeof stamp; reply: { committed: boolean; generation: number } } => ({
  kind: "reply",
  stamp,
  reply: { committed: true, generation: 1 },
});

const commitOne = (): Exchange => ({
  name: "commit_one with 3 digests",
  each: 1,
  request: { kind: "command", shard: 3, command: commit(0) },
  response: committed(),
});

const commitMany = (): Exchange => ({
  name: "commit_many: 100 in a batch",
  each: 100,
  request: { kind: "commands", shard: 3, commands: hundred.map((i): Command => commit(i)) },
  response: { kind: "said", stamp, said: hundred.map(committed) },
});

const grant = (i: number): Grant => ({
  task: 1_000_000 + i,
  token: 2_000_000 + i,
  job: 500_000 + i,
  stage: 0,
  stageName: "build",
  tenant: "acme",
  door: "shell",
  kind: "shell",
  key: `task-${i}`,
  spec: JSON.stringify({ command: "make", args: ["-j", "4", `target-${i}`] }),
  planning: false,
  generation: 1,
  attempt: 1,
  leaseMs: 30_000,
  graceMs: 10_000,
  attemptMs: 3_600_000,
  effects: "pure",
});

const reserveMany = (): Exchange => ({
  name: "reserve_many: 100 grants",
  each: 100,
  request: {
    kind: "command",
    shard: 3,
    command: {
      kind: "reserve",
      executor: "worker-17.example",
      offers: ["arch=x64", "os=linux"],
      prefer: [],
      count: 100,
      start: true,
      nonce: "1f",
    },
  },
  response: { kind: "reply", stamp, reply: { grants: hundred.map(grant) } },
});
