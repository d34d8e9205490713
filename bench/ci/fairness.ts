/** How long a tenant with one job waits while another has thousands queued on the same two slots. */
import { percentile } from "#bench/measure.ts";
import type { Report } from "#bench/report.ts";
import { CiNode } from "#e2e/ci/ci-node.ts";
import { until } from "#testing/until.ts";
import { cells, one } from "./pickup.ts";
import { openSite, repositoryName } from "./site.ts";

type Sizes = { readonly runs: number; readonly cells: number; readonly samples: number };

export async function fairness(report: Report, { runs, cells: count, samples }: Sizes): Promise<void> {
  await using site = await openSite({ one, cells: cells(count) }, { slots: 2 });
  const small = new CiNode(site.ci.base, () => site.token, "small");
  await small.register(repositoryName, site.repository);
  await waits(small, 1);
  const alone = await waits(small, samples);
  const started: string[] = [];
  for (let n = 0; n < runs; n += 1) started.push(await site.ci.dispatch(repositoryName, "cells"));
  const last = started.at(-1) ?? "";
  const planned = async (): Promise<boolean> => (await site.ci.show(last)).jobs.length === count;
  await until("the other tenant's jobs are planned", planned, { limitMs: 300_000, everyMs: 200 });
  const beside = await waits(small, samples);
  report.table(
    `POST to first step of a tenant with one job, on two slots; the other tenant has ${runs * count} queued`,
    ["", "p50 ms", "p99 ms"],
    [
      ["alone", percentile(alone, 0.5), percentile(alone, 0.99)],
      ["beside the other", percentile(beside, 0.5), percentile(beside, 0.99)],
    ],
  );
  report.figure("small tenant beside another, p99 ms", percentile(beside, 0.99));
}

async function waits(ci: CiNode, samples: number): Promise<readonly number[]> {
  const waitsMs: number[] = [];
  for (let n = 0; n < samples; n += 1) {
    const atMs = Date.now();
    const shown = await ci.ended(await ci.dispatch(repositoryName, "one"), 120_000);
    const startedAt = shown.jobs[0]?.steps[0]?.startedAt;
    if (startedAt !== undefined) waitsMs.push(Date.parse(startedAt) - atMs);
  }
  return waitsMs;
}
