/** From a free slot to the first step of the next job. */
import { percentile } from "#bench/measure.ts";
import type { Report } from "#bench/report.ts";
import type { RunShown } from "#e2e/ci/ci-node.ts";
import { until } from "#testing/until.ts";
import { openSite, perOperation, repositoryName } from "./site.ts";

export const one = "on: workflow_dispatch\njobs: { a: { runs-on: ubuntu-latest, steps: [{ run: 'true' }] } }\n";
export const cells = (count: number): string => `on: workflow_dispatch
jobs:
  a:
    runs-on: ubuntu-latest
    strategy: { fail-fast: false, matrix: { n: [${Array.from({ length: count }, (_, n) => n).join(", ")}] } }
    steps: [{ run: 'true' }]
`;
const targetMs = 250;

function said(report: Report, what: string, waitsMs: readonly number[]): void {
  const [p50, p99] = [percentile(waitsMs, 0.5), percentile(waitsMs, 0.99)];
  report.say(`${what}: p50 ${p50.toFixed(0)} ms, p99 ${p99.toFixed(0)} ms, of ${waitsMs.length}`);
  report.figure(`${what} p99 ms`, p99);
  report.target({ what: `${what}, p99 ms`, atMost: targetMs, got: p99 });
}

/** From the POST that starts a run to its first step, checkout included. */
export async function pickupIdle(report: Report, runs: number): Promise<void> {
  await using site = await openSite({ one }, { slots: 2 });
  const waitsMs: number[] = [];
  for (let n = 0; n <= runs; n += 1) {
    const atMs = Date.now();
    const shown = await site.ci.ended(await site.ci.dispatch(repositoryName, "one"));
    const started = shown.jobs[0]?.steps[0]?.startedAt;
    if (n > 0 && started !== undefined) waitsMs.push(Date.parse(started) - atMs); // the first one warms the copy up
  }
  said(report, "POST to first step, idle", waitsMs);
}

/** One slot, and thousands of jobs that wait for it. */
export async function pickupBehindQueue(
  report: Report,
  { runs, cells: count, seen }: { readonly runs: number; readonly cells: number; readonly seen: number },
): Promise<void> {
  await using site = await openSite({ cells: cells(count) }, { slots: 1 });
  const cpuBefore = site.node.cpuSeconds();
  const started: string[] = [];
  for (let n = 0; n < runs; n += 1) started.push(await site.ci.dispatch(repositoryName, "cells"));
  const planned = async (run: string): Promise<boolean> => (await site.ci.show(run)).jobs.length === count;
  for (const run of started) await until("it is planned", () => planned(run), { limitMs: 300_000, everyMs: 200 });
  const [first = ""] = started;
  const ended = (shown: RunShown): number => shown.jobs.filter(({ status }) => status === "completed").length;
  const before = ended(await site.ci.show(first));
  const enough = Math.min(before + seen, count);
  await until("enough have ended", async () => ended(await site.ci.show(first)) >= enough, {
    limitMs: 300_000,
    everyMs: 500,
  });
  const cpu = (site.node.cpuSeconds() - cpuBefore) * 1e6;
  const steps = (await site.ci.show(first)).jobs
    .flatMap((job) => job.steps.slice(0, 1))
    .flatMap(({ startedAt, tookMs = 0 }) => (startedAt === undefined ? [] : [{ at: Date.parse(startedAt), tookMs }]))
    .toSorted((a, b) => a.at - b.at)
    .slice(before);
  const gaps = steps.slice(1).map(({ at }, n) => at - ((steps[n]?.at ?? at) + (steps[n]?.tookMs ?? 0)));
  said(report, `end of a step to first step of the next job, ${runs * count} jobs queued`, gaps);
  report.say(`  ${perOperation(cpu, runs * count)} of the node for each that was queued, ${seen} of them run`);
}
