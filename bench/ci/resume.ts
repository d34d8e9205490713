/** What it costs that a job can go on: a checkpoint after each step; and the time from a lost runner to a step. */
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createWorkerToken } from "#api/workers.ts";
import { listEvents } from "#api/events.ts";
import { callEndpoint } from "#http/client.ts";
import { percentile } from "#bench/measure.ts";
import type { Report } from "#bench/report.ts";
import type { RunShown } from "#e2e/ci/ci-node.ts";
import { Outside } from "#e2e/ci-crashes/kills/outside.ts";
import { RegisteredProcess } from "#e2e/elsewhere/worker-process.ts";
import { clearAway } from "#testing/clear-away.ts";
import { until } from "#testing/until.ts";
import { openSite, repositoryName } from "./site.ts";

const files = (count: number): string =>
  `mkdir -p t${count} && cd t${count} && seq ${count} | awk '{d=int($1/500); print d "/" $1}' > ../names && ` +
  `seq 0 $((${count} / 500)) | xargs mkdir -p && while read -r f; do echo "$f" > "$f"; done < ../names`;

type Sizes = { readonly empty: number; readonly few: number; readonly many: number; readonly bytes: number };

/** Between two steps nothing but the checkpoint happens. */
export async function checkpoints(report: Report, { empty, few, many, bytes }: Sizes): Promise<void> {
  const steps = [
    ...Array.from({ length: empty }, () => "true"),
    files(few),
    "true",
    "true",
    files(many),
    "true",
    "true",
    `rm -r t*; head -c ${bytes} /dev/urandom > big`,
    "true",
    "true",
  ];
  const list = steps.map((run) => `      - run: ${JSON.stringify(run)}`).join("\n");
  const text = `on: workflow_dispatch\njobs:\n  a:\n    runs-on: ubuntu-latest\n    steps:\n${list}\n`;
  await using site = await openSite({ kept: text }, { slots: 1 });
  const shown = await site.ci.ended(await site.ci.dispatch(repositoryName, "kept"), 900_000);
  if (shown.conclusion !== "success") throw new Error(`the run ended as ${shown.conclusion}`);
  const gaps = gapsOf(shown);
  const quiet = gaps.slice(0, empty - 1);
  report.say(
    `after a step that changed nothing: median ${percentile(quiet, 0.5)} ms, p99 ${percentile(quiet, 0.99)} ms`,
  );
  report.target({ what: "checkpoint of an empty delta, median ms", atMost: 25, got: percentile(quiet, 0.5) });
  const [afterFew = 0, fewAgain = 0, , afterMany = 0, manyAgain = 0, , afterBig = 0] = gaps.slice(empty);
  report.table(
    "From the end of a step to the beginning of the next, ms",
    ["what the step changed", "after it", "after the next, which changed nothing"],
    [
      [`${few} new files`, afterFew, fewAgain],
      [`${many} new files`, afterMany, manyAgain],
      [`one file of ${(bytes / 2 ** 20).toFixed(0)} MiB`, afterBig, "-"],
    ],
  );
}

function gapsOf({ jobs }: RunShown): readonly number[] {
  const steps = jobs[0]?.steps ?? [];
  return steps.slice(1).map(({ startedAt = "" }, at) => {
    const before = steps[at];
    return Date.parse(startedAt) - Date.parse(before?.startedAt ?? "") - (before?.tookMs ?? 0);
  });
}

const holding = (url: string): string => `on: workflow_dispatch
jobs:
  a:
    runs-on: [self-hosted, far]
    steps:
      - run: seq 1000 | while read -r n; do echo "$n" > "f$n"; done
      - run: curl -fsS ${url}/step/1; curl -fsS ${url}/was/hold || { curl -fsS ${url}/plain/hold; sleep 600; }
      - run: 'true'
`;

/** From the end of the lease, as the shard has it, to the step's first call outside. */
export async function lossToNextStep(report: Report, losses: number): Promise<void> {
  const outside = await Outside.open();
  await using site = await openSite(
    { holds: holding(outside.url) },
    {
      slots: 1,
      more: { labels: ["near"], runnerLease: "3s" },
    },
  );
  await using stack = new AsyncDisposableStack();
  stack.defer(() => outside.close());
  const { ci } = site;
  const body = { labels: ["door=ci", "isolation=sandbox", "runner=*"], uses: 2 };
  const { token } = await callEndpoint(ci.fetch, createWorkerToken, { body });
  const runners = ["one", "two"].map((name) => {
    const data = mkdtempSync(join(tmpdir(), `millrace-bench-${name}-`));
    stack.defer(() => clearAway(data));
    const args = ["--server", ci.base, "--data", data, "--labels", "far"];
    return stack.use(new RegisteredProcess(token, args, "runner"));
  });
  const tookMs: number[] = [];
  const phases: [backsOff: number, isClaimed: number, begins: number][] = [];
  await runners[0]?.start().isUp();
  for (let n = 0; n <= losses; n += 1) {
    const [victim, spare] = n % 2 === 0 ? runners : runners.toReversed();
    outside.counts.clear();
    const begun = outside.begun.length;
    const run = await ci.dispatch(repositoryName, "holds");
    await until("it holds", () => outside.wasDone("hold"), { limitMs: 120_000 });
    await spare?.start().isUp();
    await victim?.end("SIGKILL");
    await until("it goes on", () => outside.begun.length > begun + 1, { limitMs: 120_000, everyMs: 2 });
    const atMs = Date.now();
    const { items } = await callEndpoint(ci.fetch, listEvents, { query: { job: run, from: "oldest", limit: 1_000 } });
    const ofJob = items.filter(({ task }) => task !== undefined && task.planning !== true);
    const lostAt = ofJob.findIndex(({ change }) => change === "attempt-ended");
    const [lost, ready, started] = ["attempt-ended", "ready", "started"].map((wanted) =>
      Date.parse(ofJob.slice(lostAt).find(({ change }) => change === wanted)?.at ?? ""),
    ) as [number, number, number];
    phases.push([ready - lost, started - ready, atMs - started]);
    if (n > 0) tookMs.push(atMs - lost); // the first one warms up
    await ci.ended(run);
  }
  const [p50, p99] = [percentile(tookMs, 0.5), percentile(tookMs, 0.99)];
  report.say(`from a lost runner to the next step, lease aside: p50 ${p50} ms, p99 ${p99} ms, of ${tookMs.length}`);
  report.table(
    "Of that, ms",
    ["until it may be tried again", "until a runner has it", "until its step calls"],
    phases.slice(1),
  );
  report.figure("loss to next step p99 ms", p99);
  report.target({ what: "loss to next step without the lease, p99 ms", atMost: 2_000, got: p99 });
}
