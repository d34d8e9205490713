/** What a step costs besides what it runs, beside `act` where its binary is. */
import { execFile, spawnSync } from "node:child_process";
import { promisify } from "node:util";
import type { Report } from "#bench/report.ts";
import { TestRepository } from "#e2e/ci/repository.ts";
import { openSite, repositoryName } from "./site.ts";

const targetMs = 25;

export async function stepOverhead(report: Report, steps: number): Promise<void> {
  const list = Array.from({ length: steps }, () => "      - run: 'true'").join("\n");
  const many = `on: workflow_dispatch\njobs:\n  a:\n    runs-on: ubuntu-latest\n    steps:\n${list}\n`;
  await using site = await openSite({ many }, 1);
  await site.ci.ended(await site.ci.dispatch(repositoryName, "many"));
  const shown = await site.ci.ended(await site.ci.dispatch(repositoryName, "many"));
  const times = shown.jobs[0]?.steps.map(({ startedAt }) => Date.parse(startedAt ?? "")) ?? [];
  const perStep = ((times.at(-1) ?? Number.NaN) - (times[0] ?? Number.NaN)) / (times.length - 1);
  report.say(`a step of \`run: true\` on a node: ${perStep.toFixed(1)} ms, of ${times.length}`);
  report.figure("ms a step", perStep);
  report.target({ what: "overhead of a step, ms", atMost: targetMs, got: perStep });
  const act = await besideAct(many, steps);
  if (act !== undefined) report.say(`the same with act in host mode: ${act.toFixed(1)} ms a step`);
  report.target({
    what: "a step, as a share of act's",
    atMost: 0.5,
    got: act === undefined ? undefined : perStep / act,
    ...(act === undefined && { missing: "act is not installed" }),
  });
}

async function besideAct(workflow: string, steps: number): Promise<number | undefined> {
  if (spawnSync("act", ["--version"]).error !== undefined) return undefined;
  using repository = new TestRepository({ ".github/workflows/many.yml": workflow });
  const args = ["workflow_dispatch", "-P", "ubuntu-latest=-self-hosted"];
  const beganMs = performance.now();
  await promisify(execFile)("act", args, { cwd: repository.folder, maxBuffer: 64 * 1024 * 1024 });
  return (performance.now() - beganMs) / steps;
}
