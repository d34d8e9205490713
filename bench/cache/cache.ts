/** The build cache: what an operation costs the server, beside bazel-remote in the same run. */
import { bazelBuilds } from "./bazel.ts";
import { findSizeBytes, type CacheAsked } from "./load.ts";
import { CacheLoad, startBazelRemote, startMillrace } from "./contestants.ts";
import type { Serving } from "#bench/edge/contestants.ts";
import { median } from "#bench/measure.ts";
import type { Figure, Report } from "#bench/report.ts";
import type { Suite } from "#bench/suite.ts";

export const cache: Suite = {
  name: "cache",
  about: "a build cache over gRPC: server CPU of small and large reads and writes, and of builds, beside bazel-remote",
  notMeasured: [
    "clients on another machine: all goes over loopback, which shares these cores",
    "a cold disk: what is read was written moments before",
    "TLS, tokens, several tenants, compressed transfers, a backing tier, eviction (see bench store)",
    "bazel-remote's compression: it stores as it gets, as ours does here",
  ],
  async run(report, { smoke }) {
    const sizes = smoke ? brief : full;
    const load = new CacheLoad();
    const entrants = await startAll();
    try {
      const bench = { report, load, sizes, entrants };
      const costs = await smallCalls(bench);
      await find(bench);
      const bulk = await bulkTransfers(bench);
      await bazelBuilds(report, entrants);
      judge(report, entrants, costs, bulk);
    } finally {
      load.stop();
      for (const { serving } of entrants) serving?.stop();
    }
  },
};

const full = { blobs: 20_000, actions: 4_000, calls: 24_000, rounds: 3, index: 1_000_000, finds: 200, mib: 256 };
const brief = { blobs: 500, actions: 100, calls: 1_000, rounds: 1, index: 5_000, finds: 8, mib: 8 };

type Entrant = { readonly name: string; readonly how: string; readonly serving: Serving | undefined };
type Bench = {
  readonly report: Report;
  readonly load: CacheLoad;
  readonly sizes: typeof full;
  readonly entrants: readonly Entrant[];
};

const ours = "millrace";
const oursSynced = "millrace, synced";
const peer = "bazel-remote";

const startAll = async (): Promise<readonly Entrant[]> => [
  { name: ours, how: "acknowledged when written", serving: await startMillrace("written") },
  { name: oursSynced, how: "acknowledged when synced", serving: await startMillrace("synced") },
  { name: peer, how: "acknowledged when synced", serving: await startBazelRemote() },
];

const smallBytes = 4_096;
const operations = ["read", "write", "action"] as const;
type Operation = (typeof operations)[number];
type Cost = { readonly perSecond: number; readonly p99Ms: number; readonly cpuUs: number };
type Costs = ReadonlyMap<string, ReadonlyMap<Operation, Cost>>;

const titles: Readonly<Record<Operation, string>> = {
  read: "4 KiB ByteStream.Read",
  write: "4 KiB ByteStream.Write",
  action: "GetActionResult, 3 outputs",
};

async function smallCalls({ report, load, sizes, entrants }: Bench): Promise<Costs> {
  const { blobs, actions, calls, rounds } = sizes;
  const found = new Map<string, Map<Operation, Cost[]>>();
  for (const { name, serving } of entrants) {
    if (!serving) continue;
    found.set(name, new Map(operations.map((operation) => [operation, []])));
    await load.ask({ kind: "fill", port: serving.port, blobs, sizeBytes: smallBytes });
    await load.ask({ kind: "fill-actions", port: serving.port, actions });
  }
  // What is written in one round is new to the server; 16 x 8 stays within the servers' initial windows.
  const shape = { connections: 16, streams: 8, calls };
  for (let round = -1; round < rounds; round += 1)
    for (const operation of operations)
      for (const { name, serving } of entrants) {
        if (!serving) continue;
        const { port } = serving;
        const of = operation === "action" ? actions : blobs;
        const asked = { kind: operation, port, ...shape, of, sizeBytes: smallBytes, round: round + 2 } as CacheAsked;
        const before = serving.cpuUs;
        const { count, seconds, p99Ms, bytesEach } = await load.ask(asked);
        expectBytes(name, operation, bytesEach);
        const cost = { perSecond: count / seconds, p99Ms, cpuUs: (serving.cpuUs - before) / count };
        if (round >= 0) found.get(name)?.get(operation)?.push(cost);
      }
  const costs = new Map([...found].map(([name, byOperation]) => [name, middles(byOperation)]));
  for (const operation of operations)
    report.table(
      `${titles[operation]}, 16 connections x 8 streams, a build client's headers`,
      ["", "ops/s", "p99 ms", "CPU us", "CPU of bazel-remote / its", "how"],
      entrants.map(({ name, how, serving }): readonly Figure[] => {
        const cost = costs.get(name)?.get(operation);
        if (!serving || !cost) return [name, "not shown", "", "", "", notInstalled];
        const rival = costs.get(peer)?.get(operation)?.cpuUs;
        const ratio = rival === undefined ? "" : `${(rival / cost.cpuUs).toFixed(2)}x`;
        return [name, cost.perSecond, cost.p99Ms, cost.cpuUs, ratio, how];
      }),
    );
  return costs;
}

const middles = (byOperation: ReadonlyMap<Operation, readonly Cost[]>): ReadonlyMap<Operation, Cost> =>
  new Map(
    [...byOperation].map(([operation, costs]) => [
      operation,
      {
        perSecond: median(costs.map((one) => one.perSecond)),
        p99Ms: median(costs.map((one) => one.p99Ms)),
        cpuUs: median(costs.map((one) => one.cpuUs)),
      },
    ]),
  );

/** The minimal client does not read statuses: an answer without a result is too short. */
function expectBytes(name: string, operation: Operation, bytesEach: number): void {
  const atLeast = { read: smallBytes, write: 5, action: 300 }[operation];
  if (bytesEach < atLeast) throw new Error(`${name}: ${operation} was answered with ${bytesEach} bytes a call`);
}

const notInstalled = "not installed; say where it is by $BAZEL_REMOTE";

async function find({ report, load, sizes, entrants }: Bench): Promise<void> {
  const digests = 10_000;
  const rows: Figure[][] = [];
  for (const { name, serving } of entrants) {
    if (!serving || name === oursSynced) continue;
    // It has a file for each blob: a million would take minutes.
    const of = name === ours ? sizes.index : Math.min(sizes.index, 50_000);
    const memoryBefore = serving.memoryMb;
    const filled = await load.ask({ kind: "fill", port: serving.port, blobs: of, sizeBytes: findSizeBytes });
    const bytesEach = ((serving.memoryMb - memoryBefore) * 1e6) / of;
    const asked = { kind: "find", port: serving.port, connections: 2, streams: 4, of, digests } as const;
    await load.ask({ ...asked, calls: Math.min(16, sizes.finds) });
    const rounds: { perSecond: number; perCpuSecond: number }[] = [];
    for (let round = 0; round < sizes.rounds; round += 1) {
      const before = serving.cpuUs;
      const { count, seconds } = await load.ask({ ...asked, calls: sizes.finds });
      rounds.push({ perSecond: count / seconds, perCpuSecond: (count * 1e6) / (serving.cpuUs - before) });
    }
    const perCpuSecond = median(rounds.map((round) => round.perCpuSecond));
    const perSecond = median(rounds.map((round) => round.perSecond));
    rows.push([name, of, filled.count / filled.seconds, bytesEach, perSecond, perCpuSecond]);
    if (name !== ours) continue;
    report.figure("find_digests_per_cpu_s", perCpuSecond);
    report.target({ what: "FindMissingBlobs, digests a CPU second", atLeast: 2_000_000, got: perCpuSecond });
  }
  report.table(
    `FindMissingBlobs with ${digests} digests, half of them missing`,
    ["", "blobs there", "filled a second", "resident bytes a blob", "digests/s", "digests a CPU second"],
    rows,
  );
}

type Bulk = ReadonlyMap<string, { readonly write: number; readonly read: number }>;

async function bulkTransfers({ report, load, sizes, entrants }: Bench): Promise<Bulk> {
  const { mib, rounds } = sizes;
  const found = new Map<string, { write: number[]; read: number[] }>();
  for (let round = -1; round < rounds; round += 1)
    for (const { name, serving } of entrants) {
      if (!serving) continue;
      const of = found.get(name) ?? { write: [], read: [] };
      found.set(name, of);
      for (const way of ["write", "read"] as const) {
        const before = serving.cpuUs;
        await load.ask({ kind: `bulk-${way}`, port: serving.port, mib, round: round + 2 });
        if (round >= 0) of[way].push((serving.cpuUs - before) / mib / 1_000);
      }
    }
  const bulk = new Map([...found].map(([name, of]) => [name, { write: median(of.write), read: median(of.read) }]));
  report.table(
    `One blob of ${mib} MiB in chunks of 64 KiB: server CPU ms a MiB`,
    ["", "write", "read", "how"],
    entrants.map(({ name, how }) => {
      const of = bulk.get(name);
      return of ? [name, of.write, of.read, how] : [name, "not shown", "", notInstalled];
    }),
  );
  return bulk;
}

function judge(report: Report, entrants: readonly Entrant[], costs: Costs, bulk: Bulk): void {
  const isThere = entrants.some(({ name, serving }) => name === peer && serving !== undefined);
  const missing = isThere ? undefined : notInstalled;
  for (const operation of operations) {
    const mine = costs.get(oursSynced)?.get(operation)?.cpuUs ?? Number.NaN;
    const theirs = costs.get(peer)?.get(operation)?.cpuUs;
    report.figure(`${operation}_cpu_us`, costs.get(ours)?.get(operation)?.cpuUs ?? Number.NaN);
    const got = theirs === undefined ? undefined : theirs / mine;
    if (got !== undefined) report.figure(`${operation}_ratio`, got);
    const what = `${titles[operation]}: operations a CPU second / bazel-remote's, both synced`;
    report.target({ what, atLeast: 3, got, ...(missing && { missing }) });
  }
  for (const way of ["write", "read"] as const) {
    const mine = bulk.get(oursSynced)?.[way] ?? Number.NaN;
    const theirs = bulk.get(peer)?.[way];
    report.figure(`bulk_${way}_cpu_ms_per_mib`, bulk.get(ours)?.[way] ?? Number.NaN);
    const got = theirs === undefined ? undefined : theirs / mine;
    report.target({
      what: `bulk ${way}: MiB a CPU second / bazel-remote's`,
      atLeast: 1,
      got,
      ...(missing && { missing }),
    });
  }
}
