/** The front door: what a call and a MiB cost the server, beside other servers in the same run. */
import { EdgeLoad, startNghttpd, startServer, withBenchFile, type Serving } from "./contestants.ts";
import type { ChunkSize } from "#bench/peers/blobs.ts";
import type { ServerKind } from "./server.ts";
import type { Profile } from "#bench/h2/load.ts";
import { median } from "#bench/measure.ts";
import type { Figure, Report } from "#bench/report.ts";
import type { Suite } from "#bench/suite.ts";

export const edge: Suite = {
  name: "edge",
  about: "HTTP/2 and gRPC: server CPU of small calls and of bulk, beside grpc-js, node:http2 and nghttpd",
  notMeasured: [
    "clients on another machine: all goes over loopback, which shares these cores",
    "work behind a call: an answer is what was asked, blobs come from memory or the page cache, and go nowhere",
    "more than two server processes: there is a port for each, and connections go to them in turn",
    "compressed messages, deadlines that pass, calls that are called off, connections that come and go",
    "nghttpd speaks no gRPC: it serves a file of the answer's size, and takes no upload",
  ],
  async run(report, { smoke }) {
    const sizes = smoke ? brief : full;
    const load = new EdgeLoad();
    const bench = { report, load, sizes };
    try {
      await unary(bench);
      await twoProcesses(bench);
      await withBenchFile(sizes.mib, () => bulk(bench));
      await tls(bench);
      await idle(bench);
    } finally {
      load.stop();
    }
  },
};

const full = { calls: 160_000, forMs: 500, rounds: 3, bulkRounds: 5, mib: 256, slowMib: 64, connections: 1_000 };
const brief = { calls: 4_000, forMs: 60, rounds: 1, bulkRounds: 1, mib: 8, slowMib: 8, connections: 50 };

type Bench = { readonly report: Report; readonly load: EdgeLoad; readonly sizes: typeof full };

/** FindMissingBlobs with three digests, all of them missing, the message's prefix included. */
const answerBytes = 218;

type Contestant = {
  readonly name: string;
  readonly how: string;
  readonly start: (processes: number, blobMib: number) => Promise<Serving | undefined>;
  /** A fraction of the bulk is enough to measure it. */
  readonly slow?: boolean;
  /** Answers with other bytes. */
  readonly foreign?: boolean;
};

const onNode = (name: string, kind: ServerKind, how: string, slow = false): Contestant => ({
  name,
  how,
  slow,
  start: (processes) => startServer(kind, processes),
});

const ours = {
  edgeGenerated: onNode("edge, generated", "edge-generated", "a node's port: token, policy, metrics, limits"),
  edgeAsync: onNode("edge, generated, async", "edge-async", "the same; the handler answers with a promise"),
  edgeHand: onNode("edge, by hand", "edge-hand", "the same; messages by src/wire/find-missing-raw.ts, as a node does"),
  generated: onNode("room, generated", "generated", "HTTP/2 and gRPC alone, limits on, everybody let in"),
  hand: onNode("room, by hand", "hand", "the same; messages by src/wire/find-missing-raw.ts"),
} as const;

const grpcJs = onNode("grpc-js 1.14", "grpc-js", "messages by protobufjs", true);
const http2 = onNode("node:http2", "http2", "framed by hand, messages by generated code", true);
const nghttpd: Contestant = {
  name: "nghttpd",
  how: "a file of the answer's size; no gRPC",
  foreign: true,
  start: (processes, blobMib) => startNghttpd(answerBytes, blobMib, processes),
};

const all: readonly Contestant[] = [...Object.values(ours), grpcJs, http2, nghttpd];

type Measured = { readonly perSecond: number; readonly p99Ms: number; readonly cpuUs: number };

/** Medians of the rounds. */
const middle = (rounds: readonly Measured[]): Measured => ({
  perSecond: median(rounds.map((one) => one.perSecond)),
  p99Ms: median(rounds.map((one) => one.p99Ms)),
  cpuUs: median(rounds.map((one) => one.cpuUs)),
});

type Shape = {
  readonly profile: Profile;
  readonly connections: number;
  readonly streams: number;
  readonly tls?: boolean;
};

async function measureCalls(
  { load, sizes }: Bench,
  who: Contestant,
  serving: Serving,
  shape: Shape,
): Promise<Measured> {
  const { calls, forMs } = sizes;
  const before = serving.cpuUs;
  const did = await load.calls({ kind: "unary", ports: serving.ports, ...shape, calls, forMs });
  if (!who.foreign && did.bytesEach !== answerBytes)
    throw new Error(`${who.name} answered with ${did.bytesEach} bytes a call instead of ${answerBytes}`);
  return { perSecond: did.count / did.seconds, p99Ms: did.p99Ms, cpuUs: (serving.cpuUs - before) / did.count };
}

type Started = { readonly who: Contestant; readonly serving: Serving };

/** The available ones; the table says which are missing. */
async function startAll(
  wanted: readonly Contestant[],
  blobMib: number,
  processes = 1,
): Promise<{
  readonly started: readonly Started[];
  readonly absent: readonly Contestant[];
  readonly stop: () => void;
}> {
  const started: Started[] = [];
  const absent: Contestant[] = [];
  for (const who of wanted) {
    const serving = await who.start(processes, blobMib);
    if (serving) started.push({ who, serving });
    else absent.push(who);
  }
  return { started, absent, stop: () => started.forEach(({ serving }) => serving.stop()) };
}

/** All of them, in turns; the first round is a warm-up and does not count. */
async function inTurns<T>(
  started: readonly Started[],
  rounds: number,
  measure: (one: Started) => Promise<T>,
): Promise<ReadonlyMap<Contestant, readonly T[]>> {
  const found = new Map<Contestant, T[]>(started.map(({ who }) => [who, []]));
  for (let round = -1; round < rounds; round += 1)
    for (const one of started) {
      const measured = await measure(one);
      if (round >= 0) found.get(one.who)?.push(measured);
    }
  return found;
}

const notInstalled = "not installed: Debian's nghttp2-server";
const many = { connections: 4, streams: 64 };
const single = { connections: 1, streams: 1 };

async function unary(bench: Bench): Promise<void> {
  const { report, sizes } = bench;
  const { started, absent, stop } = await startAll(all, 1);
  const measured = await inTurns(started, sizes.rounds, async ({ who, serving }) => ({
    constant: await measureCalls(bench, who, serving, { profile: "constant", ...many }),
    changing: await measureCalls(bench, who, serving, { profile: "changing", ...many }),
    single: await measureCalls(bench, who, serving, { profile: "constant", ...single }),
  }));
  const memory = new Map(started.map(({ who, serving }) => [who, serving.memoryMb]));
  stop();
  const of = (who: Contestant, shape: "constant" | "changing" | "single"): Measured =>
    middle((measured.get(who) ?? []).map((one) => one[shape]));
  report.table(
    "FindMissingBlobs, 3 digests, 218 bytes each way, 4 connections x 64 streams; headers constant | a build client's",
    ["", "calls/s", "p99 ms", "CPU us", "calls/s", "p99 ms", "CPU us", "MB", "how"],
    [
      ...started.map(({ who }): readonly Figure[] => {
        const [constant, changing] = [of(who, "constant"), of(who, "changing")];
        const first = [constant.perSecond, constant.p99Ms, constant.cpuUs];
        const second = [changing.perSecond, changing.p99Ms, changing.cpuUs];
        return [who.name, ...first, ...second, memory.get(who) ?? Number.NaN, who.how];
      }),
      ...absent.map((who) => [who.name, "not shown", "", "", "", "", "", "", notInstalled]),
    ],
  );
  const alone = of(grpcJs, "single").perSecond;
  report.table(
    "The same calls one by one: 1 connection x 1 stream, constant headers",
    ["", "calls/s", "p99 ms", "CPU us", "/ grpc-js"],
    started.map(({ who }) => {
      const { perSecond, p99Ms, cpuUs } = of(who, "single");
      return [who.name, perSecond, p99Ms, cpuUs, `${(perSecond / alone).toFixed(2)}x`];
    }),
  );
  report.say("CPU is the server's, all threads of its process. Answers that are not whole end the run.");
  judgeCalls(report, of);
  if (absent.includes(nghttpd))
    report.target({ what: "nghttpd in the same run", atLeast: 1, got: undefined, missing: notInstalled });
}

function judgeCalls(report: Report, of: (who: Contestant, shape: "constant" | "changing" | "single") => Measured) {
  const limits = { generated: { constant: 10, changing: 16 }, hand: { constant: 5, changing: 11 } } as const;
  for (const shape of ["constant", "changing"] as const) {
    const generated = of(ours.edgeGenerated, shape).cpuUs;
    const hand = of(ours.edgeHand, shape).cpuUs;
    report.figure(`generated_${shape}_cpu_us`, generated);
    report.figure(`by_hand_${shape}_cpu_us`, hand);
    report.target({ what: `CPU us a call, ${shape}, generated`, atMost: limits.generated[shape], got: generated });
    report.target({ what: `CPU us a call, ${shape}, by hand`, atMost: limits.hand[shape], got: hand });
    const ratio = of(grpcJs, shape).cpuUs / generated;
    report.figure(`grpc_js_${shape}_cpu_ratio`, ratio);
    report.target({ what: `CPU of grpc-js / ours, ${shape}, generated`, atLeast: 5, got: ratio });
  }
  const ratio = of(ours.edgeGenerated, "single").perSecond / of(grpcJs, "single").perSecond;
  report.figure("one_by_one_per_s", of(ours.edgeGenerated, "single").perSecond);
  report.figure("one_by_one_ratio_to_grpc_js", ratio);
  report.target({ what: "calls/s of ours / grpc-js, one by one", atLeast: 1.8, got: ratio });
}

async function twoProcesses(bench: Bench): Promise<void> {
  const { report, sizes } = bench;
  const wanted = [ours.edgeGenerated, ours.edgeHand, grpcJs, http2, nghttpd];
  const { started, stop } = await startAll(wanted, 1, 2);
  const rounds = Math.min(2, sizes.rounds);
  const measured = await inTurns(started, rounds, ({ who, serving }) =>
    measureCalls(bench, who, serving, { profile: "constant", ...many }),
  );
  stop();
  report.table(
    "Two server processes (nghttpd: two threads), 4 connections x 64 streams, constant headers",
    ["", "calls/s", "p99 ms", "CPU us"],
    started.map(({ who }) => {
      const { perSecond, p99Ms, cpuUs } = middle(measured.get(who) ?? []);
      return [who.name, perSecond, p99Ms, cpuUs];
    }),
  );
}

type Bulk = { readonly perSecond: number; readonly cpuMs: number };
const bulkKinds = [
  ["read", "64K"],
  ["read", "1M"],
  ["read", "file"],
  ["write", "64K"],
  ["write", "1M"],
] as const satisfies readonly (readonly ["read" | "write", ChunkSize | "file"])[];

async function bulk(bench: Bench): Promise<void> {
  const { report, load, sizes } = bench;
  const wanted = [ours.edgeGenerated, ours.edgeHand, grpcJs, http2, nghttpd];
  const { started, stop } = await startAll(wanted, sizes.mib);
  const measured = await inTurns(started, sizes.bulkRounds, async ({ who, serving }) => {
    const of: Bulk[] = [];
    for (const [kind, chunk] of bulkKinds) {
      if (who.foreign && kind === "write") continue;
      const mib = who.slow ? sizes.slowMib : sizes.mib;
      const before = serving.cpuUs;
      const did = await load.calls({ kind, port: serving.port, mib, chunk });
      of.push({ perSecond: mib / did.seconds, cpuMs: (serving.cpuUs - before) / 1_000 / mib });
    }
    return of;
  });
  const memory = new Map(started.map(({ who, serving }) => [who, serving.memoryMb]));
  stop();
  const of = (who: Contestant, at: number): Bulk => {
    const rounds = (measured.get(who) ?? []).flatMap((one) => one[at] ?? []);
    return { perSecond: median(rounds.map((one) => one.perSecond)), cpuMs: median(rounds.map((one) => one.cpuMs)) };
  };
  report.table(
    "Bulk on one stream, CPU ms a MiB and MiB/s; written bytes are hashed with SHA-256 and the hash is checked",
    ["", ...bulkKinds.flatMap(([kind, chunk]) => [`${kind} ${chunk}`, "MiB/s"]), "MB", "how"],
    started.map(({ who }): readonly Figure[] => {
      const figures = bulkKinds.flatMap((_, at): readonly Figure[] => {
        const { cpuMs, perSecond } = of(who, at);
        return Number.isNaN(cpuMs) ? ["-", "-"] : [cpuMs, perSecond];
      });
      const how = who === ours.edgeHand ? "reads are not copied, writes once" : "";
      return [who.name, ...figures, memory.get(who) ?? Number.NaN, how];
    }),
  );
  const reads = [of(ours.edgeHand, 0).cpuMs, of(ours.edgeHand, 1).cpuMs];
  const fromFile = of(ours.edgeHand, 2).cpuMs;
  const writes = [of(ours.edgeHand, 3).cpuMs, of(ours.edgeHand, 4).cpuMs];
  report.figure("read_cpu_ms_per_mib", Math.max(...reads));
  report.figure("write_cpu_ms_per_mib", Math.max(...writes));
  report.figure("read_file_cpu_ms_per_mib", fromFile);
  report.target({ what: "CPU ms a MiB read, the worse of both chunks", atMost: 0.7, got: Math.max(...reads) });
  report.target({ what: "CPU ms a MiB read from a file in the page cache", atMost: 0.7, got: fromFile });
  report.target({ what: "CPU ms a MiB written, the worse of both chunks", atMost: 1.7, got: Math.max(...writes) });
}

/** The same port with TLS 1.3, for the difference: there is no target, because encryption is OpenSSL's work. */
async function tls(bench: Bench): Promise<void> {
  const { report, load, sizes } = bench;
  const serving = await startServer("edge-tls");
  try {
    if (serving.port === 0) return report.say("TLS: not shown, there is no openssl to make a certificate.");
    const who = ours.edgeHand;
    const calls: Measured[] = [];
    const singles: Measured[] = [];
    const bulks: Bulk[][] = [[], []];
    for (let round = -1; round < Math.min(3, sizes.rounds); round += 1) {
      const [some, one] = [
        await measureCalls(bench, who, serving, { profile: "constant", ...many, tls: true }),
        await measureCalls(bench, who, serving, { profile: "constant", ...single, tls: true }),
      ];
      if (round >= 0) calls.push(some);
      if (round >= 0) singles.push(one);
      for (const [i, kind] of (["read", "write"] as const).entries()) {
        const before = serving.cpuUs;
        const did = await load.calls({ kind, port: serving.port, mib: sizes.slowMib, chunk: "1M", tls: true });
        const cpuMs = (serving.cpuUs - before) / 1_000 / sizes.slowMib;
        if (round >= 0) bulks[i]?.push({ perSecond: sizes.slowMib / did.seconds, cpuMs });
      }
    }
    const [call, one] = [middle(calls), middle(singles)];
    const [read, write] = bulks.map((rounds) => median(rounds.map(({ cpuMs }) => cpuMs)));
    report.table(
      "edge, by hand, with TLS 1.3: calls 4 x 64 | 1 x 1 | CPU ms a MiB in chunks of 1 MiB; writes with SHA-256",
      ["calls/s", "p99 ms", "CPU us", "calls/s", "CPU us", "read", "write"],
      [[call.perSecond, call.p99Ms, call.cpuUs, one.perSecond, one.cpuUs, read ?? Number.NaN, write ?? Number.NaN]],
    );
    report.figure("tls_constant_cpu_us", call.cpuUs);
    report.figure("tls_read_cpu_ms_per_mib", read ?? Number.NaN);
    report.figure("tls_write_cpu_ms_per_mib", write ?? Number.NaN);
  } finally {
    serving.stop();
  }
}

async function idle({ report, load, sizes }: Bench): Promise<void> {
  const serving = await startServer("edge-hand");
  await load.calls({ kind: "connect", port: serving.port, connections: 20 });
  await load.calls({ kind: "hang-up" });
  const before = serving.memoryMb;
  await load.calls({ kind: "connect", port: serving.port, connections: sizes.connections });
  const added = serving.memoryMb - before;
  await load.calls({ kind: "hang-up" });
  serving.stop();
  report.table(
    `${sizes.connections} connections, each of which has made a call, on a node's port`,
    ["MB before", "MB added"],
    [[before, added]],
  );
  report.figure("idle_connections_mb", added);
  report.target({ what: "MB added by 1,000 idle connections", atMost: 60, got: (added * 1_000) / sizes.connections });
}
