/** Runs by one POST each: accepted, planned and completed a second, and the CPU that each takes. */
import { join } from "node:path";
import { LoadProcess } from "#bench/load-process.ts";
import { percentile, processCpuUs, treeCpuUs } from "#bench/measure.ts";
import type { Report } from "#bench/report.ts";
import { until } from "#testing/until.ts";
import type { Posted, PostWork } from "./posts-load.ts";
import { one } from "./pickup.ts";
import { type CiSite, openSite, perOperation } from "./site.ts";

const nowhere = "on: workflow_dispatch\njobs: { a: { runs-on: nowhere, steps: [{ run: 'true' }] } }\n";
const atOnce = 64;
const targetPerS = 2_000;
/** The field's headline: a billion jobs a day. */
const headlinePerS = 11_600;
const repositoriesOf = (count: number): readonly string[] => Array.from({ length: count }, (_, n) => `mill/flour${n}`);

export type PostSizes = { readonly runs: number; readonly completed: number; readonly shards: readonly number[] };

/** Everything of a repository is in one shard: there are several for each. */
export async function posts(report: Report, { runs, completed, shards }: PostSizes): Promise<void> {
  const rates: { shards: number; perS: number; cpuUs: number }[] = [];
  for (const count of shards) {
    await using site = await openSite(
      { one, nowhere },
      { slots: 2, shards: count, repositories: repositoriesOf(4 * count) },
    );
    using load = disposable(new LoadProcess<PostWork, Posted>(join(import.meta.dirname, "posts-load.ts")));
    const rate = await accepted(report, { site, load, shards: count, runs });
    rates.push({ shards: count, ...rate });
    if (count === shards[0]) await done(report, { site, load, runs: completed });
  }
  const [first] = rates;
  report.figure("runs planned a second", first?.perS ?? Number.NaN);
  report.figure("CPU ms a planned run", (first?.cpuUs ?? Number.NaN) / 1_000);
  report.target({
    what: "runs accepted, planned and durable a second",
    atLeast: targetPerS,
    got: first?.perS,
  });
  for (const { shards: count, cpuUs } of rates) {
    const cores = (headlinePerS * cpuUs) / 1e6;
    report.say(
      `${headlinePerS.toLocaleString("en-US")} a second at the CPU of ${count} shards: ${cores.toFixed(0)} cores`,
    );
  }
}

type Load = LoadProcess<PostWork, Posted>;

const disposable = (load: Load): Load & Disposable =>
  Object.assign(load, { [Symbol.dispose]: (): void => load.stop() });

/** No runner has the label: they are planned, and wait. */
async function accepted(
  report: Report,
  { site, load, shards, runs }: { site: CiSite; load: Load; shards: number; runs: number },
): Promise<{ readonly perS: number; readonly cpuUs: number }> {
  const work = workOn(site, repositoriesOf(4 * shards), "nowhere");
  await load.ask({ ...work, runs: Math.ceil(runs / 5) }).then((warm) => planned(site, warm.runs));
  const [cpuBefore, beganMs] = [processCpuUs(site.node.pid), performance.now()];
  const { runs: started, waitsMs, seconds } = await load.ask({ ...work, runs });
  await planned(site, started);
  const perS = (runs * 1_000) / (performance.now() - beganMs);
  const cpuUs = (processCpuUs(site.node.pid) - cpuBefore) / runs;
  report.say(
    `accepted, planned and durable, ${shards} shards: ${perS.toFixed(0)} a second (accepted: ` +
      `${(runs / seconds).toFixed(0)}), ${perOperation(cpuUs, 1)} of the node each, ` +
      `POST p50 ${percentile(waitsMs, 0.5).toFixed(0)} ms, p99 ${percentile(waitsMs, 0.99).toFixed(0)} ms, of ${runs}`,
  );
  return { perS, cpuUs };
}

async function done(report: Report, { site, load, runs }: { site: CiSite; load: Load; runs: number }): Promise<void> {
  const work = workOn(site, repositoriesOf(4), "one");
  const warm = await load.ask({ ...work, runs: 2 });
  for (const run of warm.runs) await hasEnded(site, run);
  const [cpuBefore, allBefore, beganMs] = [processCpuUs(site.node.pid), treeCpuUs(site.node.pid), performance.now()];
  const { runs: started } = await load.ask({ ...work, runs });
  for (const run of started) await hasEnded(site, run);
  const perS = (runs * 1_000) / (performance.now() - beganMs);
  const own = processCpuUs(site.node.pid) - cpuBefore;
  const all = treeCpuUs(site.node.pid) - allBefore;
  report.say(
    `completed, with a checkout and one step: ${perS.toFixed(1)} a second, ${perOperation(own, runs)} of the node and ` +
      `${perOperation(all - own, runs)} of processes that it started, each, of ${runs}`,
  );
  report.figure("runs completed a second", perS);
}

const workOn = (site: CiSite, repositories: readonly string[], workflow: string): Omit<PostWork, "runs"> => ({
  kind: "post",
  address: site.node.address,
  token: site.token,
  repositories,
  workflow,
  atOnce,
});

/** A node that is starved of CPU may lose its shard for a moment. */
async function hasEnded({ ci }: CiSite, run: string): Promise<void> {
  const look = async (): Promise<boolean> =>
    await ci.show(run).then(
      ({ status }) => status === "completed",
      () => false,
    );
  await until("it has ended", look, { limitMs: 300_000, everyMs: 100 });
}

/** Those that came last are planned last, give or take what is under way. */
async function planned(site: CiSite, runs: readonly string[]): Promise<void> {
  for (const run of runs.slice(-2 * atOnce).toReversed())
    await until(
      "it is planned",
      async () => (await site.ci.show(run).catch(() => undefined))?.jobs[0]?.job !== undefined,
      {
        limitMs: 300_000,
        everyMs: 20,
      },
    );
}
