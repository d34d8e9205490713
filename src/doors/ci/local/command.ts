/** What `millrace ci run` does. */
import { rmSync } from "node:fs";
import { randomUUID } from "node:crypto";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { availableParallelism, tmpdir } from "node:os";
import { join } from "node:path";
import { Fault } from "#base/fault.ts";
import type { ExitCode, World } from "#door/command.ts";
import { compile } from "#doors/ci/workflow/compile/compile.ts";
import { ancestorsOf } from "#doors/ci/workflow/compile/jobs.ts";
import type { Workflow } from "#doors/ci/workflow/compile/model.ts";
import { areEqual, Dictionary, type PlainValue, textOf, valueOf } from "#doors/ci/workflow/expression/value.ts";
import { type CellPlan, type Frame, type JobResult, planJob } from "#doors/ci/workflow/plan/job-plan.ts";
import { problemText } from "#doors/ci/workflow/problem.ts";
import { triggered } from "#doors/ci/workflow/trigger/trigger.ts";
import { dispatchInputs, eventOf, factsOf, githubContext, type LocalEvent } from "./event.ts";
import { guardContainers } from "#doors/ci/containers/guard.ts";
import { findContainers, type LabelledHost, mayNeedContainers, settingsFromText } from "#doors/ci/containers/host.ts";
import { localMachine } from "./machine.ts";
import { readRepository, type Repository } from "./repository.ts";
import { runLocally } from "./run.ts";
import { secretsIn } from "./secret-file.ts";
import { RunView } from "./view.ts";
import { calledHere, findWorkflow, readAll, readSource, workflowPaths } from "./workflows.ts";

export type RunFlags = {
  readonly workflow?: string;
  readonly job?: readonly string[];
  readonly event?: string;
  readonly payload?: string;
  readonly input?: readonly string[];
  readonly matrix?: readonly string[];
  readonly "secret-file"?: string;
  readonly "var-file"?: string;
  readonly actions?: string;
  readonly parallel?: string;
  readonly "in-place"?: boolean;
  readonly list?: boolean;
  readonly quiet?: boolean;
  readonly json?: boolean;
};

export async function runWorkflows(flags: RunFlags, world: World, folder: string): Promise<ExitCode> {
  const repository = await readRepository(folder);
  const paths =
    flags.workflow === undefined
      ? await workflowPaths(repository.root)
      : [await findWorkflow(repository.root, flags.workflow, folder)];
  if (paths.length === 0) {
    world.note("ci run: there is no workflow here; write one into .github/workflows, for example test.yml");
    return 2;
  }
  using cancel = new Cancel(world);
  let code: ExitCode = 0;
  let ran = 0;
  for (const path of paths) {
    const result = await runOne(path, { flags, world, repository, cancel });
    if (result === "not-run") continue;
    ran += 1;
    if (result === "wrong" || result === "failure" || result === "cancelled") code = 1;
    if (cancel.signal.aborted) break;
  }
  if (ran === 0)
    world.note("ci run: no workflow runs on that event; name one to run it anyway: millrace ci run <workflow>");
  return ran === 0 ? 1 : code;
}

/** Looked for only where a job may need them. */
async function containersFor({ jobs }: Workflow, world: World): Promise<LabelledHost | undefined> {
  if (!jobs.some((job) => job.kind === "call" || mayNeedContainers(job))) return undefined;
  const host = await findContainers(settingsFromText(world.env["MILLRACE_CONTAINERS"]), world.env, world.note);
  return host && { ...host, labels: [`millrace.run=${randomUUID()}`] };
}

type Context = {
  readonly flags: RunFlags;
  readonly world: World;
  readonly repository: Repository;
  readonly cancel: Cancel;
};

async function runOne(
  path: string,
  { flags, world, repository, cancel }: Context,
): Promise<JobResult | "not-run" | "wrong"> {
  const files = await readAll(repository.root);
  const compiled = compile(await readSource(repository.root, path), {
    called: calledHere(files, flags.actions ?? world.env["MILLRACE_ACTIONS"]),
  });
  if (!compiled.ok) {
    for (const problem of compiled.problems) world.note(problemText(problem));
    return "wrong";
  }
  const workflow = selected(compiled.workflow, flags.job);
  if (!workflow) {
    const known = compiled.workflow.jobs.map((job) => job.id).join(", ");
    if (flags.workflow === undefined) return "not-run";
    world.note(`ci run: ${path} has no job ${(flags.job ?? []).join(", ")}; it has ${known}`);
    return "wrong";
  }
  const event = await chosenEvent(workflow, flags, repository);
  if (flags.workflow === undefined) {
    const verdict = triggered(workflow.on, factsOf(event, repository));
    if (!verdict.runs) {
      world.note(`${path}: not run, ${verdict.why}`);
      return "not-run";
    }
  }
  const frame = await frameOf(workflow, event, { flags, repository });
  if (flags.list) return list(frame, world);
  return await runFrame(frame, { flags, world, repository, cancel });
}

async function runFrame(frame: Frame, { flags, world, repository, cancel }: Context): Promise<JobResult> {
  const secretFile = flags["secret-file"];
  const secrets =
    secretFile === undefined ? new Map<string, string>() : secretsIn(await readText(secretFile), secretFile);
  for (const [name, value] of secrets)
    if (value.trim().length < 3)
      world.note(`the secret ${name} is too short to be masked: give it 3 characters or more`);
  const view = new RunView({
    out: world.out,
    progress: world.progress,
    isColoured: (world.isOutTerminal ?? world.isTerminal) && world.env["NO_COLOR"] === undefined,
    isQuiet: flags.quiet === true,
  });
  const wanted = matrixFilter(flags.matrix ?? []);
  const folder = await mkdtemp(join(tmpdir(), "millrace-ci-"));
  const removeNow = (): void => rmSync(folder, { recursive: true, force: true });
  process.once("exit", removeNow);
  const containers = await containersFor(frame.workflow, world);
  await using _guard = containers && guardContainers(containers, world.env);
  try {
    const settings = {
      repository,
      isInPlace: flags["in-place"] === true,
      actionsFolder: flags.actions ?? world.env["MILLRACE_ACTIONS"],
      env: world.env,
      containers,
    };
    const result = await runLocally({
      frame,
      secrets,
      report: (report) => (flags.json ? world.out(JSON.stringify(report)) : view.show(report)),
      signal: cancel.signal,
      isWanted: (_job, cell) => wanted(cell),
      jobsMax: parallel(flags.parallel),
      folder,
      machine: (job) => localMachine(settings, job),
    });
    if (flags.json) world.out(JSON.stringify({ kind: "run-ended", workflow: frame.workflow.path, result }));
    else view.end(result);
    return result;
  } finally {
    process.removeListener("exit", removeNow);
    await rm(folder, { recursive: true, force: true });
  }
}

/** Only the named jobs, and what they need; undefined when there is none of them. */
function selected(workflow: Workflow, ids: readonly string[] | undefined): Workflow | undefined {
  if (!ids || ids.length === 0) return workflow;
  const named = workflow.jobs.filter((job) => ids.some((id) => id.toLowerCase() === job.id.toLowerCase()));
  if (named.length === 0) return undefined;
  const kept = new Set(named.flatMap((job) => [job.id, ...ancestorsOf(job, workflow.jobs)]));
  return { ...workflow, jobs: workflow.jobs.filter((job) => kept.has(job.id)) };
}

const usual = ["push", "pull_request", "workflow_dispatch", "schedule"];

async function chosenEvent(workflow: Workflow, flags: RunFlags, repository: Repository): Promise<LocalEvent> {
  const events = Object.keys(workflow.on.events);
  const name = flags.event ?? usual.find((event) => events.includes(event)) ?? events[0] ?? "push";
  const event = eventOf(name, repository, inputsIn(flags.input ?? []));
  if (flags.payload === undefined) return event;
  const payload = JSON.parse(await readText(flags.payload)) as Readonly<Record<string, PlainValue>>;
  return { name, payload: { ...event.payload, ...payload } };
}

function inputsIn(words: readonly string[]): Readonly<Record<string, string>> {
  return Object.fromEntries(
    words.map((word) => {
      const equals = word.indexOf("=");
      if (equals <= 0) throw new Fault("invalid", "read --input", { input: word, try: "write --input name=value" });
      return [word.slice(0, equals), word.slice(equals + 1)] as const;
    }),
  );
}

async function frameOf(
  workflow: Workflow,
  event: LocalEvent,
  { flags, repository }: { readonly flags: RunFlags; readonly repository: Repository },
): Promise<Frame> {
  const varFile = flags["var-file"];
  const vars = varFile === undefined ? new Map<string, string>() : secretsIn(await readText(varFile), varFile);
  const isDispatch = event.name === "workflow_dispatch";
  const inputs = isDispatch
    ? dispatchInputs(workflow.on.dispatchInputs, { ...inputsOf(event), ...inputsIn(flags.input ?? []) })
    : { inputs: new Dictionary() };
  if ("problem" in inputs) throw new Fault("invalid", "start the workflow", { why: inputs.problem });
  const github = githubContext(event, repository, workflow, "1");
  if (isDispatch) github.set("event", valueOf({ ...event.payload, inputs: textInputs(inputs.inputs) }));
  return { workflow, github, vars: new Dictionary(vars), inputs: inputs.inputs };
}

/** Those that a payload brings. */
function inputsOf({ payload: { inputs } }: LocalEvent): Readonly<Record<string, string>> {
  const given = valueOf(inputs ?? null);
  return given instanceof Dictionary ? textInputs(given) : {};
}

const textInputs = (inputs: Dictionary): Readonly<Record<string, string>> =>
  Object.fromEntries([...inputs.entries()].map(([name, value]) => [name, textOf(value)]));

function matrixFilter(words: readonly string[]): (cell: CellPlan) => boolean {
  const wanted = words.map((word) => {
    const colon = word.indexOf(":");
    if (colon <= 0) throw new Fault("invalid", "read --matrix", { matrix: word, try: "write --matrix key:value" });
    return { key: word.slice(0, colon), value: word.slice(colon + 1) };
  });
  return ({ matrix }) =>
    matrix === null || wanted.every(({ key, value }) => !matrix.has(key) || areEqual(matrix.get(key) ?? null, value));
}

function parallel(word: string | undefined): number {
  const count = Number(word ?? availableParallelism());
  if (!Number.isInteger(count) || count < 1)
    throw new Fault("invalid", "read --parallel", { parallel: word, try: "give a whole number" });
  return count;
}

/** Jobs without needs can be planned now; of the others only that they wait. */
function list(frame: Frame, world: World): "success" {
  world.out(`${frame.workflow.path} (${frame.workflow.name ?? "without a name"})`);
  for (const job of frame.workflow.jobs) {
    const needs = job.needs.map((need) => need.id).join(", ");
    if (needs !== "") {
      world.out(`  ${job.id}  after ${needs}`);
      continue;
    }
    const plan = planJob(job, frame, { ends: new Map(), isCancelled: false });
    if (plan.kind === "run") for (const cell of plan.cells) world.out(`  ${cell.name}`);
    else world.out(`  ${job.id}  ${plan.kind === "skip" ? `skipped: ${plan.why}` : `fails: ${plan.message}`}`);
  }
  return "success";
}

async function readText(path: string): Promise<string> {
  try {
    return await readFile(path, "utf8");
  } catch (cause) {
    throw new Fault("not-found", "read a file", { file: path }, cause);
  }
}

/** A terminal tells every process of ours about one Ctrl-C, and the first passes it on to us as well. */
const sameKeyMs = 500;

/** Ctrl-C cancels, and the run goes on to its end; a second one ends it at once. */
class Cancel {
  readonly #controller = new AbortController();
  readonly #onSignal: () => void;
  #cancelledMonoMs = 0;

  constructor(world: World) {
    this.#onSignal = () => {
      if (this.#controller.signal.aborted) {
        if (performance.now() - this.#cancelledMonoMs > sameKeyMs) process.exit(130);
        return;
      }
      this.#cancelledMonoMs = performance.now();
      world.note("cancelling: steps get some time to end; press Ctrl-C again to stop at once");
      this.#controller.abort();
    };
    process.on("SIGINT", this.#onSignal);
    process.on("SIGTERM", this.#onSignal);
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  [Symbol.dispose](): void {
    process.removeListener("SIGINT", this.#onSignal);
    process.removeListener("SIGTERM", this.#onSignal);
  }
}
