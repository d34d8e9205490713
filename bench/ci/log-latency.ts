/** From a line that a step prints to clients that follow the log: one at 10 MB/s, then many at 10,000 lines/s. */
import { join } from "node:path";
import { LoadProcess } from "#bench/load-process.ts";
import { percentile } from "#bench/measure.ts";
import type { Report } from "#bench/report.ts";
import { until } from "#testing/until.ts";
import { type CiSite, openSite, repositoryName } from "./site.ts";
import type { Viewed, ViewWork } from "./viewers-load.ts";

/** Prints `rate` lines a second for some seconds, each with the time at which it was printed. */
const printer = (lineLength: number, rate: number, seconds: number): string => `
const end = Date.now() + ${seconds * 1_000};
const fill = "x".repeat(${Math.max(0, lineLength - 16)});
let printed = 0; const began = Date.now();
const tick = () => {
  const due = Math.floor((Date.now() - began) * ${rate / 1_000});
  let text = "";
  for (; printed < due; printed += 1) text += "@" + Date.now() + " " + fill + "\\n";
  process.stdout.write(text, () => (Date.now() < end ? setTimeout(tick, 5) : undefined));
};
tick();
`;
const workflow = (script: string): string => `on: workflow_dispatch
jobs:
  a:
    runs-on: ubuntu-latest
    steps:
      - run: ${JSON.stringify(`"${process.execPath}" -e '${script.replaceAll("\n", " ")}'`)}
`;
const targetMs = 200;
const lineLength = 250;
const manyPerS = 10_000;

type Sizes = { readonly seconds: number; readonly viewers: number };

export async function logLatency(report: Report, { seconds, viewers }: Sizes): Promise<void> {
  const fast = workflow(printer(lineLength, (10 * 1024 * 1024) / lineLength, seconds));
  const many = workflow(printer(60, manyPerS, seconds));
  await using site = await openSite({ fast, many }, { slots: 2 });
  const load = new LoadProcess<ViewWork, Viewed>(join(import.meta.dirname, "viewers-load.ts"));
  try {
    const one = await viewed(site, load, { name: "fast", viewers: 1, withSilent: false });
    report.say(`a log of 10 MB/s to one client: ${one.said}`);
    report.figure("log p99 ms at 10 MB/s", one.p99);
    report.target({ what: "log latency at 10 MB/s, p99 ms", atMost: targetMs, got: one.p99 });
    const all = await viewed(site, load, { name: "many", viewers, withSilent: true });
    report.say(`${manyPerS} lines/s to ${viewers} viewers, and one that never reads: ${all.said}`);
    report.figure(`log p99 ms with ${viewers} viewers`, all.p99);
    report.target({ what: `of ${viewers} viewers, share that got every line`, atLeast: 1, got: all.whole / viewers });
  } finally {
    load.stop();
  }
}

type View = { readonly name: string; readonly viewers: number; readonly withSilent: boolean };

async function viewed(
  { ci, node, token }: CiSite,
  load: LoadProcess<ViewWork, Viewed>,
  { name, viewers, withSilent }: View,
) {
  const cpuBefore = node.cpuSeconds();
  const run = await ci.dispatch(repositoryName, name);
  await until("its job is planned", async () => (await ci.show(run)).jobs[0]?.job !== undefined, { everyMs: 5 });
  const path = `/v1/runs/${run}/jobs/a/logs?follow=true`;
  const { waitsMs, lines, cpuS } = await load.ask({
    kind: "view",
    address: node.address,
    token,
    path,
    viewers,
    withSilent,
  });
  const cpu = node.cpuSeconds() - cpuBefore;
  const [p50, p99] = [percentile(waitsMs, 0.5), percentile(waitsMs, 0.99)];
  const sent = lines.reduce((sum, each) => sum + each, 0);
  const whole = lines.filter((each) => each === lines[0]).length;
  return {
    p99,
    whole,
    said:
      `p50 ${p50} ms, p99 ${p99} ms, of ${waitsMs.length} lines; ${whole} of ${viewers} got every line; ` +
      `${cpu.toFixed(1)} s CPU of the node (${((cpu * 1e6) / sent).toFixed(1)} us a line and viewer), ` +
      `${cpuS.toFixed(1)} s of the viewers`,
  };
}
