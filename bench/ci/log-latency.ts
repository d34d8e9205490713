/** From a line that a step prints to clients that follow the log: one at 10 MB/s, then many at 10,000 lines/s. */
import type { Report } from "#bench/report.ts";
import { callEndpoint } from "#http/client.ts";
import { followLog } from "#doors/ci/endpoints.ts";
import type { CiNode } from "#e2e/ci/ci-node.ts";
import { percentile } from "#bench/measure.ts";
import { until } from "#testing/until.ts";
import { openSite, repositoryName } from "./site.ts";

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

export async function logLatency(
  report: Report,
  { seconds, viewers }: { readonly seconds: number; readonly viewers: number },
): Promise<void> {
  const fast = workflow(printer(lineLength, (10 * 1024 * 1024) / lineLength, seconds));
  const many = workflow(printer(60, 10_000, seconds));
  await using site = await openSite({ fast, many }, 2);
  const one = await viewed(site.ci, "fast", 1);
  report.say(`a line at 10 MB/s: ${one.said}`);
  report.figure("log p99 ms at 10 MB/s", one.p99);
  report.target({ what: "log latency at 10 MB/s, p99 ms", atMost: targetMs, got: one.p99 });
  const cpuBefore = site.node.cpuSeconds();
  const all = await viewed(site.ci, "many", viewers);
  const cpu = site.node.cpuSeconds() - cpuBefore;
  report.say(`10,000 lines/s to ${viewers} viewers: ${all.said}; ${cpu.toFixed(1)} s CPU of the node`);
  report.figure(`log p99 ms with ${viewers} viewers`, all.p99);
}

async function viewed(ci: CiNode, name: string, viewers: number) {
  const run = await ci.dispatch(repositoryName, name);
  await until("its job is planned", async () => (await ci.show(run)).jobs[0]?.job !== undefined);
  const waits = await Promise.all(Array.from({ length: viewers }, () => follow(ci, run)));
  const waitsMs = waits.flat();
  const [p50, p99] = [percentile(waitsMs, 0.5), percentile(waitsMs, 0.99)];
  const each = new Set(waits.map(({ length }) => length));
  return { p99, said: `p50 ${p50} ms, p99 ${p99} ms; lines that each viewer saw: ${[...each].join(", ")}` };
}

async function follow(ci: CiNode, run: string): Promise<readonly number[]> {
  const waitsMs: number[] = [];
  const query = { follow: "true" } as const;
  const events = await callEndpoint(ci.fetch, followLog, { params: { run, job: "a" }, query });
  for await (const { data } of events) {
    const nowMs = Date.now();
    for (const { kind, text } of data.lines)
      if (kind === "plain" && text.startsWith("@")) waitsMs.push(nowMs - Number(text.slice(1, 14)));
  }
  return waitsMs;
}
