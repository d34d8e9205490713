/** The jobs of a workflow, and that their needs make a graph without circles. */
import { textOf } from "#doors/ci/workflow/expression/value.ts";
import type { Problems } from "#doors/ci/workflow/problem.ts";
import { places } from "#doors/ci/workflow/schema/places.ts";
import { entryOf, type MappingNode, type Node, type ScalarNode, stringOf } from "#doors/ci/workflow/yaml/node.ts";
import { conditionOf } from "./condition.ts";
import { checkJob } from "./early.ts";
import { Ids } from "./ids.ts";
import type { Job, Need } from "./model.ts";
import { jobRetryOf, onRunnerLossOf } from "./millrace.ts";
import { optional } from "./optional.ts";
import { permissionsOf } from "./permissions.ts";
import { stepsOf } from "./steps.ts";

export function jobsOf(node: Node | undefined, problems: Problems): readonly Job[] {
  if (node?.kind !== "mapping") return [];
  const ids = new Ids();
  const jobs = node.entries.flatMap(({ key, value }) => {
    if (key.kind !== "scalar" || value.kind !== "mapping") return [];
    const problem = ids.claim(textOf(key.value));
    if (problem !== undefined) problems.add(key.at, problem);
    return [jobOf(key, value, problems)];
  });
  if (problems.count === 0) checkNeeds(node, jobs, problems);
  return jobs;
}

function jobOf(key: ScalarNode, node: MappingNode, problems: Problems): Job {
  checkJob(node, problems);
  const uses = entryOf(node, "uses");
  const name = entryOf(node, "name");
  const common = {
    id: textOf(key.value),
    at: key.at,
    path: problems.path,
    ...optional("name", stringOf(name) === "" ? undefined : name),
    needs: needsOf(entryOf(node, "needs")),
    if: conditionOf(entryOf(node, "if"), places.jobIf, problems),
    ...optional("strategy", entryOf(node, "strategy")),
    ...optional("permissions", permissionsOf(entryOf(node, "permissions"))),
    ...optional("concurrency", entryOf(node, "concurrency")),
  };
  if (uses) {
    const secrets = entryOf(node, "secrets");
    return {
      ...common,
      kind: "call",
      uses: stringOf(uses) ?? "",
      usesAt: uses.at,
      ...optional("with", entryOf(node, "with")),
      ...optional("secrets", stringOf(secrets) === "inherit" ? ("inherit" as const) : secrets),
    };
  }
  return {
    ...common,
    kind: "job",
    runsOn: entryOf(node, "runs-on") ?? key,
    ...optional("timeoutMinutes", entryOf(node, "timeout-minutes")),
    ...optional("cancelTimeoutMinutes", entryOf(node, "cancel-timeout-minutes")),
    ...optional("continueOnError", entryOf(node, "continue-on-error")),
    ...optional("container", entryOf(node, "container")),
    ...optional("services", entryOf(node, "services")),
    ...optional("env", entryOf(node, "env")),
    ...optional("environment", entryOf(node, "environment")),
    ...optional("outputs", entryOf(node, "outputs")),
    ...optional("defaults", entryOf(node, "defaults")),
    ...optional("snapshot", entryOf(node, "snapshot")),
    ...optional("onRunnerLoss", onRunnerLossOf(entryOf(node, "x-millrace"))),
    ...optional("retry", jobRetryOf(entryOf(node, "x-millrace"), problems)),
    steps: stepsOf(entryOf(node, "steps"), { problems, ifAvailable: places.stepIf }),
  };
}

function needsOf(node: Node | undefined): readonly Need[] {
  const nodes = node?.kind === "sequence" ? node.items : node ? [node] : [];
  return nodes.flatMap((need) => (need.kind === "scalar" ? [{ id: textOf(need.value), at: need.at }] : []));
}

const folded = (id: string): string => id.toLowerCase();

function checkNeeds(node: MappingNode, jobs: readonly Job[], problems: Problems): void {
  if (jobs.every((job) => job.needs.length > 0)) {
    problems.add(node.at, "The workflow must contain at least one job with no dependencies.");
    return;
  }
  const known = new Set(jobs.map((job) => folded(job.id)));
  const reached = new Set<string>();
  for (let before = -1; before !== reached.size;) {
    before = reached.size;
    for (const job of jobs) if (job.needs.every((need) => reached.has(folded(need.id)))) reached.add(folded(job.id));
  }
  for (const job of jobs)
    for (const need of job.needs)
      if (!known.has(folded(need.id))) problems.add(need.at, `Job '${job.id}' depends on unknown job '${need.id}'.`);
      else if (!reached.has(folded(need.id)) && !reached.has(folded(job.id)))
        problems.add(
          need.at,
          `Job '${job.id}' depends on job '${need.id}' which creates a cycle in the dependency graph.`,
        );
}

/** A job's ancestors, however far away, nearest first (CI-3). */
export function ancestorsOf(job: Pick<Job, "needs">, jobs: readonly Job[]): readonly string[] {
  const byId = new Map(jobs.map((candidate) => [folded(candidate.id), candidate]));
  const found = new Map<string, Job>();
  const waiting = [...job.needs];
  for (let need = waiting.shift(); need; need = waiting.shift()) {
    const ancestor = byId.get(folded(need.id));
    if (!ancestor || found.has(folded(need.id))) continue;
    found.set(folded(need.id), ancestor);
    waiting.push(...ancestor.needs);
  }
  return [...found.values()].map((ancestor) => ancestor.id);
}
