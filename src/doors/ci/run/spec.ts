/** All that a runner has to know of a job. Plain data: it can be written down, sent, and read on another machine. */
import type { NormalJob, Step } from "#doors/ci/workflow/compile/model.ts";
import { type Dictionary, type PlainValue, plainOf } from "#doors/ci/workflow/expression/value.ts";
import type { CellPlan, Frame } from "#doors/ci/workflow/plan/job-plan.ts";
import type { Node } from "#doors/ci/workflow/yaml/node.ts";
import type { JobContainers } from "./containers.ts";

export type JobSpec = {
  readonly id: string;
  /** Where the job is in its run, with its cell of the matrix; left out: its id. */
  readonly key?: string;
  readonly name: string;
  readonly steps: readonly Step[];
  readonly workflowEnv?: Node;
  readonly jobEnv?: Node;
  readonly workflowDefaults?: Node;
  readonly jobDefaults?: Node;
  readonly outputs?: Node;
  readonly container?: Node;
  readonly services?: Node;
  readonly timeoutMinutes: number;
  readonly cancelTimeoutMinutes: number;
  /** What it deploys to. */
  readonly environment?: CellPlan["environment"];
  /** github, needs, strategy, matrix, inputs, vars; secrets come apart from it, and are never written down with it. */
  readonly contexts: Readonly<Record<string, PlainValue>>;
};

/** What the machine gives a job, here or elsewhere. */
export type JobMachine = {
  readonly workspace: string;
  /** Empty at the start of the job; the caller removes it after the job. */
  readonly tempFolder: string;
  readonly toolCache: string;
  /** What processes have before anything is added: PATH, HOME and the like. */
  readonly baseEnv: Readonly<Record<string, string>>;
  readonly runner: Readonly<Record<string, string>>;
  readonly secrets: ReadonlyMap<string, string>;
  /** What must not be shown either, and is no secret that expressions can name. */
  readonly masked?: readonly string[];
  /** Variables of steps that are actions; scripts do not have them. */
  readonly actionEnv?: Readonly<Record<string, string>>;
  /** The folder of `owner/repo[/path]@ref`. */
  readonly actionFolder: (uses: string) => Promise<string>;
  /** Node for JavaScript actions. */
  readonly node: string;
  /** Left out: there is neither podman nor docker. */
  readonly containers?: JobContainers | undefined;
};

/** One cell of a planned job; the contexts are those of the cell. */
export function jobSpecOf(job: NormalJob, cell: CellPlan, { workflow }: Frame, contexts: Dictionary): JobSpec {
  return {
    id: job.id,
    name: cell.name,
    steps: job.steps,
    ...(workflow.env && { workflowEnv: workflow.env }),
    ...(job.env && { jobEnv: job.env }),
    ...(workflow.defaults && { workflowDefaults: workflow.defaults }),
    ...(job.defaults && { jobDefaults: job.defaults }),
    ...(job.outputs && { outputs: job.outputs }),
    ...(job.container && { container: job.container }),
    ...(job.services && { services: job.services }),
    timeoutMinutes: cell.timeoutMinutes,
    cancelTimeoutMinutes: cell.cancelTimeoutMinutes,
    ...(cell.environment && { environment: cell.environment }),
    contexts: plainOf(contexts) as JobSpec["contexts"],
  };
}
