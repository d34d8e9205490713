/** What a job knows while it runs: variables, paths, results of steps, secrets, and what must still be done. */
import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import type { ExpressionFunction } from "#doors/ci/workflow/expression/functions.ts";
import type { Scope } from "#doors/ci/workflow/expression/evaluate.ts";
import { Dictionary, plainOf, textOf, valueOf } from "#doors/ci/workflow/expression/value.ts";
import { envContext } from "./environment.ts";
import { hashFiles } from "./hash-files.ts";
import { Masks } from "#doors/ci/run/printed/mask.ts";
import { Matchers } from "#doors/ci/run/printed/matchers.ts";
import type { Inside, StartedContainer } from "./containers.ts";
import { Subjects } from "#doors/ci/run/said/artifact-subjects.ts";
import { ProcessGroups } from "./process.ts";
import type { StepOutcome } from "./report.ts";
import type { JobMachine, JobSpec } from "./spec.ts";

export type JobStatus = "success" | "failure" | "cancelled";

const order: readonly JobStatus[] = ["success", "failure", "cancelled"];

/** Success, then failure, then cancelled: what came later in this order stays (CI-8). */
export function merged(status: JobStatus, conclusion: StepOutcome): JobStatus {
  if (conclusion === "skipped") return status;
  return order.indexOf(conclusion) > order.indexOf(status) ? conclusion : status;
}

/** The job's own steps, or those of one composite action: each has inputs and results of its own (CI-64). */
export type Frame = {
  readonly depth: number;
  /** Where it is in the run, by ids: the same in every attempt. */
  readonly key: string;
  readonly steps: Dictionary;
  /** Of a composite action; the job's own frame has those of the workflow. */
  readonly inputs?: Dictionary;
  readonly github: Dictionary;
  /** Of the step that uses the action. */
  readonly env: ReadonlyMap<string, string>;
  status: JobStatus;
};

export class JobState {
  readonly spec: JobSpec;
  readonly machine: JobMachine;
  readonly masks = new Masks();
  readonly groups = new ProcessGroups();
  readonly matchers: Matchers;
  readonly subjects = new Subjects();
  readonly env = new Map<string, string>();
  readonly secrets: Dictionary;
  readonly runner: Dictionary;
  readonly root: Frame;
  /** What the part of an action that runs before all steps saved for the others, by the key of the step. */
  readonly savedBefore = new Map<string, ReadonlyMap<string, string>>();
  paths: readonly string[] = [];
  /** Where steps run, if not on this machine itself. */
  inside: Inside | undefined;
  /** The job's own container and its services, for the job context. */
  container: StartedContainer | undefined;
  services: ReadonlyMap<string, StartedContainer> = new Map();
  #contexts: Dictionary;

  constructor(spec: JobSpec, machine: JobMachine) {
    this.spec = spec;
    this.machine = machine;
    this.matchers = new Matchers(machine.workspace);
    for (const secret of [...machine.secrets.values(), ...(machine.masked ?? [])]) this.masks.add(secret);
    this.secrets = new Dictionary(machine.secrets);
    this.runner = new Dictionary(Object.entries(machine.runner));
    this.#contexts = valueOf(spec.contexts) as Dictionary;
    this.root = {
      depth: 0,
      key: spec.key ?? spec.id,
      steps: new Dictionary(),
      github: this.#github(),
      env: new Map(),
      status: "success",
    };
  }

  /** What expressions of a step in this frame see; `env` is what the step has so far. */
  scope(frame: Frame, env: ReadonlyMap<string, string>): Scope {
    const status = frame.depth === 0 ? frame.status : actionStatus(frame, this.root);
    const contexts = new Dictionary([
      ...this.#contexts.entries(),
      ["github", frame.github],
      ["inputs", frame.inputs ?? this.#contexts.get("inputs") ?? null],
      ["secrets", this.secrets],
      ["steps", frame.steps],
      ["env", envContext(env)],
      ["runner", this.runner],
      ["job", this.#job()],
    ]);
    return { contexts, functions: this.#functions(status) };
  }

  /** The variables that a step of this frame starts from. */
  envOf(frame: Frame): Map<string, string> {
    return new Map([...this.env, ...frame.env]);
  }

  get showsDebug(): boolean {
    const flag = (name: string): boolean => textOf(this.secrets.get(name) ?? null).toLowerCase() === "true";
    const vars = this.#contexts.get("vars");
    const variable = vars instanceof Dictionary ? textOf(vars.get("ACTIONS_STEP_DEBUG") ?? null) : "";
    return flag("ACTIONS_STEP_DEBUG") || variable.toLowerCase() === "true";
  }

  #functions(status: JobStatus): ReadonlyMap<string, ExpressionFunction> {
    return new Map<string, ExpressionFunction>([
      ["always", () => true],
      ["success", () => status === "success"],
      ["failure", () => status === "failure"],
      ["cancelled", () => status === "cancelled"],
      [
        "hashfiles",
        (...args) =>
          hashFiles(
            this.machine.workspace,
            args.map((arg) => textOf(arg)),
          ),
      ],
    ]);
  }

  /** Without containers it says nothing of them: actions ask `job.container && ...`. */
  #job(): Dictionary {
    const job = new Dictionary([["status", this.root.status]]);
    if (this.container) job.set("container", this.#containerContext(this.container));
    const services = [...this.services].map(([id, one]) => [id, this.#containerContext(one)] as const);
    if (services.length > 0) job.set("services", new Dictionary(services));
    return job;
  }

  #containerContext({ id, ports }: StartedContainer): Dictionary {
    return new Dictionary([
      ["id", id] as const,
      ["network", this.machine.containers?.network ?? null],
      ["ports", new Dictionary(ports)],
    ]);
  }

  #github(): Dictionary {
    const given = this.#contexts.get("github");
    const github = new Dictionary(given instanceof Dictionary ? given.entries() : []);
    const eventPath = join(this.machine.tempFolder, "_github_workflow", "event.json");
    mkdirSync(dirname(eventPath), { recursive: true });
    writeFileSync(eventPath, JSON.stringify(plainOf(github.get("event") ?? new Dictionary()), null, 2));
    github.set("event_path", eventPath);
    github.set("workspace", this.machine.workspace);
    github.set("job", this.spec.id);
    const token = this.machine.secrets.get("GITHUB_TOKEN");
    if (token !== undefined) github.set("token", token);
    return github;
  }
}

/** Inside an action the status is that of its own steps, but a cancelled job is cancelled everywhere (CI-7). */
function actionStatus(frame: Frame, root: Frame): JobStatus {
  return root.status === "cancelled" ? "cancelled" : frame.status;
}
