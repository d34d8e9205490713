/** A broadcast to many regions, one after the other: they share nothing but the wide network, whose rates are given. */
import { boundMs } from "#swarm/bound.ts";
import { Region, type RegionPlan, type RegionResult } from "./region.ts";

export type Broadcast = {
  readonly machines: number;
  readonly sizeBytes: number;
  readonly unitBytes: number;
  readonly seed: string;
  /** Nothing goes wrong. */
  readonly isCalm: boolean;
};

export type BroadcastResult = Broadcast & {
  readonly regions: number;
  readonly boundMs: number;
  /** Of machines that are neither slow nor crash, in regions that are not cut off. */
  readonly healthy: {
    readonly count: number;
    readonly p50Ms: number;
    readonly p999Ms: number;
    readonly lastMs: number;
  };
  /** The best possible time by the time of the 99.9th part of healthy machines. */
  readonly efficiency: number;
  readonly slow: { readonly count: number; readonly efficiency: number };
  readonly cut: { readonly count: number; readonly efficiency: number };
  readonly crashed: { readonly count: number; readonly lastMs: number };
  readonly liars: number;
  readonly banned: number;
  readonly wrongUnits: number;
  readonly messagesPerMachine: number;
  readonly asks: RegionResult["asks"];
  readonly originCopies: number;
  readonly repeatedShare: number;
  readonly events: number;
  readonly unfinished: number;
  readonly isFasterThanBound: boolean;
  readonly cpuSeconds: number;
  readonly rssBytes: number;
};

const regionMachinesMax = 10_000;
const gbit = 125_000_000;
const slowTimes = 10;

export function simulateBroadcast(broadcast: Broadcast): BroadcastResult {
  const startedCpu = process.cpuUsage();
  const regions = Math.max(1, Math.ceil(broadcast.machines / regionMachinesMax));
  const parts: { readonly plan: RegionPlan; readonly result: RegionResult }[] = [];
  for (let index = 0; index < regions; index += 1) {
    const plan = planOf(broadcast, index, regions);
    parts.push({ plan, result: new Region(plan).run() });
  }
  const cpu = process.cpuUsage(startedCpu);
  return { ...broadcast, regions, ...summary(broadcast, parts), cpuSeconds: (cpu.user + cpu.system) / 1e6 };
}

/** Machines of 1 Gbit/s, regional nodes of 10, a wide network of 2 to 10; the third region is cut off for a while. */
function planOf(
  { machines, sizeBytes, unitBytes, seed, isCalm }: Broadcast,
  index: number,
  regions: number,
): RegionPlan {
  const rate = gbit;
  const idealMs = (sizeBytes / rate) * 1_000;
  const isCut = !isCalm && (regions === 1 ? false : index === 2);
  return {
    seed: `${seed}:${index}`,
    machines: Math.floor((machines * (index + 1)) / regions) - Math.floor((machines * index) / regions),
    rackSize: 40,
    sizeBytes,
    unitBytes,
    rate,
    originRate: 10 * gbit,
    wanRate: (2 + (index % 5) * 2) * gbit,
    cut: isCut ? { fromMs: 0.2 * idealMs, toMs: 0.5 * idealMs } : undefined,
    slowShare: isCalm ? 0 : 0.01,
    slowTimes,
    crashShare: isCalm ? 0 : 0.005,
    downMs: 0.25 * idealMs,
    detectMs: 3_000,
    liarShare: isCalm ? 0 : 0.002,
    untilMs: 30 * idealMs,
  };
}

type Part = { readonly plan: RegionPlan; readonly result: RegionResult };

function summary(
  { machines, sizeBytes, unitBytes }: Broadcast,
  parts: readonly Part[],
): Omit<BroadcastResult, keyof Broadcast | "regions" | "cpuSeconds"> {
  const timesOf = (of: readonly Part[], ...kinds: string[]): number[] =>
    of
      .flatMap(({ result }) => result.doneMs.filter((_, i) => kinds.includes(result.kinds[i] ?? "")))
      .toSorted(byNumber);
  const whole = parts.filter(({ plan }) => !plan.cut);
  const severed = parts.filter(({ plan }) => plan.cut);
  const best = Math.max(...parts.map(({ plan }) => regionBoundMs(plan)));
  const healthy = timesOf(whole, "healthy");
  const cut = timesOf(severed, "healthy");
  const slow = timesOf(parts, "slow");
  const sum = (of: (result: RegionResult) => number): number => parts.reduce((all, { result }) => all + of(result), 0);
  const cutMs = severed[0]?.plan.cut ? severed[0].plan.cut.toMs - severed[0].plan.cut.fromMs : 0;
  return {
    boundMs: best,
    healthy: {
      count: healthy.length,
      p50Ms: quantile(healthy, 0.5),
      p999Ms: quantile(healthy, 0.999),
      lastMs: healthy.at(-1) ?? 0,
    },
    efficiency: best / quantile(healthy, 0.999),
    slow: { count: slow.length, efficiency: (best * slowTimes) / quantile(slow, 0.999) },
    cut: { count: cut.length, efficiency: (best + cutMs) / quantile(cut, 0.999) },
    crashed: { count: timesOf(parts, "crashes").length, lastMs: timesOf(parts, "crashes").at(-1) ?? 0 },
    liars: timesOf(parts, "liar").length,
    banned: sum(({ banned }) => banned),
    wrongUnits: sum(({ wrongUnits }) => wrongUnits),
    messagesPerMachine: sum(({ trackerMessages }) => trackerMessages) / machines,
    asks: parts.reduce(
      (all, { result: { asks } }) => ({
        gone: all.gone + asks.gone,
        bad: all.bad + asks.bad,
        slow: all.slow + asks.slow,
        help: all.help + asks.help,
        none: all.none + asks.none,
      }),
      { gone: 0, bad: 0, slow: 0, help: 0, none: 0 },
    ),
    originCopies: sum(({ originBytes }) => originBytes) / sizeBytes / parts.length,
    repeatedShare: sum(({ repeatedUnits }) => repeatedUnits) / ((machines * sizeBytes) / unitBytes),
    events: sum(({ events }) => events),
    unfinished: timesOf(parts, "healthy", "slow", "crashes").filter((ms) => ms === Infinity).length,
    isFasterThanBound: parts.some(({ plan, result }) => {
      const least = result.doneMs.reduce((low, ms) => Math.min(low, ms), Infinity);
      return least < (plan.sizeBytes / Math.min(plan.wanRate, plan.rate)) * 1_000 || last(result) < regionBoundMs(plan);
    }),
    rssBytes: process.memoryUsage.rss(),
  };
}

function regionBoundMs({ sizeBytes, unitBytes, machines, originRate, rate, wanRate }: RegionPlan): number {
  const rates = { originUp: originRate, memberUp: rate, memberDown: rate };
  return Math.max(boundMs({ sizeBytes, unitBytes, members: machines, ...rates }), (sizeBytes / wanRate) * 1_000);
}

const byNumber = (a: number, b: number): number => a - b;
const last = ({ doneMs }: RegionResult): number => doneMs.reduce((high, ms) => Math.max(high, ms), 0);
const quantile = (sorted: readonly number[], share: number): number =>
  sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0;

export function describeBroadcast(result: BroadcastResult): readonly string[] {
  const { machines, regions, boundMs: best, healthy, slow, cut, crashed, asks } = result;
  const seconds = (ms: number): string => `${(ms / 1_000).toFixed(1)} s`;
  const mib = result.unitBytes / 2 ** 20;
  return [
    `${machines} machines in ${regions} regions, ${(result.sizeBytes / 2 ** 30).toFixed(1)} GiB in units of ${mib} MiB (simulated, seed ${result.seed})`,
    `  T* ${seconds(best)}; healthy: p50 ${seconds(healthy.p50Ms)}, p99.9 ${seconds(healthy.p999Ms)}, last ${seconds(healthy.lastMs)}; T*/T ${result.efficiency.toFixed(2)}`,
    ...(slow.count > 0
      ? [
          `  ${slow.count} slow: T*/T ${slow.efficiency.toFixed(2)} of their own; ${crashed.count} crashed and came back, last ${seconds(crashed.lastMs)}`,
        ]
      : []),
    ...(cut.count > 0 ? [`  cut-off region: T*/T ${cut.efficiency.toFixed(2)} from its return`] : []),
    `  liars ${result.liars}, banned ${result.banned}; wrong units sent ${result.wrongUnits}, kept 0`,
    `  tracker messages ${result.messagesPerMachine.toFixed(1)} a machine (asks: ${JSON.stringify(asks)})`,
    `  origin sent ${result.originCopies.toFixed(1)} copies a region; repeated units ${(result.repeatedShare * 100).toFixed(2)} %; unfinished ${result.unfinished}`,
    `  ${result.events} events, ${result.cpuSeconds.toFixed(1)} CPU s, ${Math.round(result.rssBytes / 2 ** 20)} MB RSS`,
    ...(result.isFasterThanBound ? ["  FASTER THAN THE BOUND: the simulator is wrong"] : []),
  ];
}
