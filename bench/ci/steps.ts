/** What a step costs besides what it runs, beside `act` where its binary is. */
import { execFile, spawnSync } from "node:child_process";
import { promisify } from "node:util";
import { treeCpuUs } from "#bench/measure.ts";
import type { Report } from "#bench/report.ts";
import { TestRepository } from "#e2e/ci/repository.ts";
import { openSite, perOperation, repositoryName } from "./site.ts";

const targetMs = 25;
const actMsMax = 300_000;

const workflowOf = (steps: number): string => {
  const list = Array.from({ length: steps }, () => "      - run: 'true'").join("\n");
  return `on: workflow_dispatch\njobs:\n  a:\n    runs-on: ubuntu-latest\n    steps:\n${list}\n`;
};

export async function stepOverhead(report: Report, steps: number): Promise<void> {
  const many = workflowOf(steps);
  const boxed = await onNode(many, "auto");
  say(report, "a step of `run: true` on a node, in a sandbox where there is one", boxed, steps);
  report.figure("ms a step", boxed.stepMs);
  report.target({ what: "overhead of a step, ms", atMost: targetMs, got: boxed.stepMs });
  const plain = await onNode(many, "none");
  say(report, "the same without sandbox", plain, steps);
  report.figure("ms a step, no sandbox", plain.stepMs);
  const act = await besideAct(many, steps);
  if (act === undefined) report.say("act IS MISSING: no binary of that name is on PATH, so nothing is beside it");
  else report.say(`the same with act in host mode: ${act.toFixed(1)} ms a step, start and end of the job included`);
  report.target({
    what: "a step, as a share of act's",
    atMost: 0.5,
    got: act === undefined ? undefined : plain.stepMs / act,
    ...(act === undefined && { missing: "act is not installed" }),
  });
}

type Measured = { readonly stepMs: number; readonly nodeUs: number; readonly allUs: number };

function say(report: Report, what: string, { stepMs, nodeUs, allUs }: Measured, steps: number): void {
  report.say(
    `${what}: ${stepMs.toFixed(1)} ms each, of ${steps}; ${perOperation(nodeUs, steps)} of the node and ` +
      `${perOperation(allUs - nodeUs, steps)} of the job's processes each, the job's own start included`,
  );
}

/** The second run counts: the first one warms up what later ones share. */
async function onNode(many: string, isolation: "auto" | "none"): Promise<Measured> {
  await using site = await openSite({ many }, { slots: 1, isolation });
  await site.ci.ended(await site.ci.dispatch(repositoryName, "many"), 120_000);
  const [ownS, allUs] = [site.node.cpuSeconds(), treeCpuUs(site.node.pid)];
  const shown = await site.ci.ended(await site.ci.dispatch(repositoryName, "many"), 120_000);
  const times = shown.jobs[0]?.steps.map(({ startedAt }) => Date.parse(startedAt ?? "")) ?? [];
  const stepMs = ((times.at(-1) ?? Number.NaN) - (times[0] ?? Number.NaN)) / (times.length - 1);
  return {
    stepMs,
    nodeUs: (site.node.cpuSeconds() - ownS) * 1e6,
    allUs: treeCpuUs(site.node.pid) - allUs,
  };
}

async function besideAct(workflow: string, steps: number): Promise<number | undefined> {
  if (spawnSync("act", ["--version"]).error !== undefined) return undefined;
  using repository = new TestRepository({ ".github/workflows/many.yml": workflow });
  const args = ["workflow_dispatch", "-P", "ubuntu-latest=-self-hosted"];
  const beganMs = performance.now();
  const options = { cwd: repository.folder, maxBuffer: 64 * 1024 * 1024, timeout: actMsMax };
  await promisify(execFile)("act", args, options);
  return (performance.now() - beganMs) / steps;
}
