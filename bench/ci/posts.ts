/** Runs by one POST each: accepted, planned and completed a second, and the CPU that each takes. */
import type { Report } from "#bench/report.ts";
import type { NodeProcess } from "#e2e/store/node-process.ts";
import { until } from "#testing/until.ts";
import { openSite, repositoryName } from "./site.ts";

const one = "on: workflow_dispatch\njobs: { a: { runs-on: ubuntu-latest, steps: [{ run: 'true' }] } }\n";
const nowhere = "on: workflow_dispatch\njobs: { a: { runs-on: nowhere, steps: [{ run: 'true' }] } }\n";
const atOnce = 16;
const targetPerS = 2_000;

export async function posts(report: Report, runs: number): Promise<void> {
  await using site = await openSite({ one, nowhere }, 2);
  await site.ci.ended(await site.ci.dispatch(repositoryName, "one"));
  const planned = await measured(site.node, runs, async () => {
    const started = await posted(runs, () => site.ci.dispatch(repositoryName, "nowhere"));
    const last = started.at(-1) ?? "";
    await until("the last is planned", async () => (await site.ci.show(last)).jobs[0]?.job !== undefined, {
      limitMs: 300_000,
    });
  });
  report.say(`accepted, planned and durable: ${planned.said}`);
  report.figure("runs planned a second", planned.perS);
  report.target({ what: "runs accepted, planned and durable a second", atLeast: targetPerS, got: planned.perS });
  const some = Math.max(4, Math.floor(runs / 10));
  const completed = await measured(site.node, some, async () => {
    const started = await posted(some, () => site.ci.dispatch(repositoryName, "one"));
    for (const run of started) await site.ci.ended(run, 300_000);
  });
  report.say(`completed, with their step: ${completed.said}`);
  report.figure("runs completed a second", completed.perS);
}

async function posted(runs: number, post: () => Promise<string>): Promise<readonly string[]> {
  const started: string[] = [];
  let left = runs;
  const sender = async (): Promise<void> => {
    for (; left > 0;) {
      left -= 1;
      started.push(await post());
    }
  };
  await Promise.all(Array.from({ length: atOnce }, sender));
  return started;
}

async function measured(node: NodeProcess, runs: number, work: () => Promise<void>) {
  const [before, beganMs] = [node.cpuSeconds(), performance.now()];
  await work();
  const tookS = (performance.now() - beganMs) / 1_000;
  const after = node.cpuSeconds();
  const cpuMs = ((after - before) * 1_000) / runs;
  const perS = runs / tookS;
  return { perS, said: `${perS.toFixed(0)} a second, ${cpuMs.toFixed(1)} ms CPU of the node each, of ${runs}` };
}
