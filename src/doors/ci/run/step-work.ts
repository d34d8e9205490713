/** The work of one step: a script, or an action. */
import { existsSync } from "node:fs";
import { mkdir, rm, writeFile } from "node:fs/promises";
import { randomUUID } from "node:crypto";
import { delimiter, isAbsolute, join } from "node:path";
import type { RunStep } from "#doors/ci/workflow/compile/model.ts";
import type { Scope } from "#doors/ci/workflow/expression/evaluate.ts";
import { Dictionary } from "#doors/ci/workflow/expression/value.ts";
import { templateText } from "#doors/ci/workflow/plan/template.ts";
import { entryOf, type Node } from "#doors/ci/workflow/yaml/node.ts";
import { githubVariables, isReserved, runnerVariables } from "./environment.ts";
import { FileCommandFault } from "./said/file-commands.ts";
import type { Frame, JobState } from "./job-state.ts";
import { type ProcessEnd, type ProcessRequest, runProcess, type StopGrace } from "./process.ts";
import type { Report, StepRef } from "./report.ts";
import { defaultShell, shellCommand, ShellFault } from "./shells.ts";
import { makeStepFiles, readStepFiles, removeStepFiles, type StepFiles } from "./said/step-files.ts";
import type { StepOutput } from "#doors/ci/run/printed/step-output.ts";

/** All that the work of one step needs. */
export type StepJob = {
  readonly state: JobState;
  readonly frame: Frame;
  readonly ref: StepRef;
  /** What the step's variables are, its own included. */
  readonly env: ReadonlyMap<string, string>;
  readonly scope: Scope;
  readonly signal: AbortSignal;
  readonly output: StepOutput;
  readonly grace: StopGrace;
  readonly report: (report: Report) => void;
};

export type WorkEnd = "success" | "failure" | "cancelled";

export async function runScript(step: RunStep, job: StepJob): Promise<WorkEnd> {
  const { state, scope, output } = job;
  const folder = workingFolder(step, job);
  const text = templateText(step.run, scope);
  const shell = shellOf(step, job);
  const path = join(
    state.machine.tempFolder,
    `${randomUUID()}${shell === undefined ? ".sh" : shellCommand(shell, "").extension}`,
  );
  const hasBash = !state.inside && hasProgram("bash", state); // inside a container sh is what counts on every image
  const command = shell === undefined ? defaultShell(path, hasBash) : shellCommand(shell, path);
  output.line("command", `Run ${text.trimEnd()}`);
  if (!existsSync(folder)) {
    output.annotate({ level: "error", message: `The working directory '${folder}' does not exist` });
    return "failure";
  }
  await mkdir(state.machine.tempFolder, { recursive: true });
  await writeFile(path, command.prepare(text));
  try {
    return await runCommand(job, { program: command.program, args: command.args, folder, env: {} });
  } finally {
    await rm(path, { force: true });
  }
}

export type Command = {
  readonly program: string;
  readonly args: readonly string[];
  readonly folder: string;
  readonly env: Readonly<Record<string, string>>;
  /** Left out: where the job's steps run. */
  readonly run?: Run;
};

type Run = (request: ProcessRequest) => Promise<ProcessEnd>;

/** Runs a program with the step's variables and files, and takes in what it left in those files. */
export async function runCommand(job: StepJob, command: Command): Promise<WorkEnd> {
  const { state, output, signal, grace } = job;
  const files = await makeStepFiles(state.machine.tempFolder, state.subjects.list);
  const [stdout, stderr] = [output.reader(), output.reader()];
  try {
    const run: Run = command.run ?? state.inside?.run ?? (async (request) => await runProcess(request, state.groups));
    const end = await run({
      ...command,
      env: { ...variables(job, files), ...command.env },
      onStdout: (bytes) => stdout.push(bytes),
      onStderr: (bytes) => stderr.push(bytes),
      signal,
      grace,
    });
    stdout.end();
    stderr.end();
    const isRead = await takeFiles(job, files);
    return workEnd(job, end, command, isRead && !output.hasFailedCommand);
  } finally {
    await removeStepFiles(files);
  }
}

function workEnd({ output, signal }: StepJob, end: ProcessEnd, command: Command, isFine: boolean): WorkEnd {
  if (signal.aborted) {
    output.annotate({ level: "error", message: "The operation was canceled." });
    return "cancelled";
  }
  if (end.kind === "exited" && end.code === 0) return isFine ? "success" : "failure";
  const message =
    end.kind === "exited"
      ? `Process completed with exit code ${end.code}.`
      : end.kind === "killed"
        ? `The process was ended by ${end.signal}.`
        : `${command.program} could not be started: ${end.message}`;
  output.annotate({ level: "error", message });
  return "failure";
}

/** Whether all that the step wrote into its files could be read (CI-41). */
async function takeFiles({ state, ref, output, report }: StepJob, files: StepFiles): Promise<boolean> {
  const { summary, artifacts, wrong } = await readStepFiles(files, output);
  if (summary !== undefined) {
    const text = summary
      .split("\n")
      .map((line) => state.masks.mask(line))
      .join("\n");
    report({ kind: "summary", step: ref, text });
  }
  const undeclared = await declared(artifacts, state, output);
  const all = [...wrong, ...undeclared];
  for (const message of all) output.annotate({ level: "error", message });
  return all.length === 0;
}

/** What is wrong with the artifacts that a step declares. */
async function declared(text: string, { subjects, machine }: JobState, output: StepOutput): Promise<readonly string[]> {
  try {
    const count = await subjects.declare(text, machine.workspace);
    const total = subjects.all.length;
    if (count > 0) output.line("plain", `Captured ${count} artifact subject(s) from this step (job total: ${total}).`);
    return [];
  } catch (error) {
    if (!(error instanceof FileCommandFault)) throw error;
    return [`Unable to process file command 'artifacts' successfully. ${error.message}`];
  }
}

/** By which a step names what it does outside: the ledger of effects has it in its keys. */
const stepVariable = "MILLRACE_STEP";

/** Base, then what authors set, then what the runner alone says; the step's own env wins among authors (CI-36). */
function variables({ state, frame, env }: StepJob, files: StepFiles): Record<string, string> {
  const github = new Dictionary(frame.github.entries());
  github.set("env", files.env);
  github.set("output", files.output);
  github.set("path", files.path);
  github.set("state", files.state);
  github.set("step_summary", files.summary);
  github.set("artifacts", files.artifacts);
  github.set("artifacts_list", files.artifactsList);
  const authors = Object.fromEntries([...env].filter(([name]) => !isReserved(name)));
  const all: Record<string, string> = {
    ...baseOf(state),
    ...authors,
    ...githubVariables(github),
    ...runnerVariables(state.runner),
    [stepVariable]: frame.key,
  };
  all["PATH"] = [...state.paths, all["PATH"] ?? state.inside?.path ?? ""].filter((path) => path !== "").join(delimiter);
  return all;
}

/** A container has variables of its own: of this machine's, only those that are about the job. */
function baseOf({ machine: { baseEnv, containers }, inside }: JobState): Readonly<Record<string, string>> {
  if (!inside) return baseEnv;
  const own = Object.entries(baseEnv).filter(([name]) => name.startsWith("MILLRACE_"));
  return { ...Object.fromEntries(own), HOME: containers?.home ?? "/" };
}

function shellOf(step: RunStep, { state, frame, scope }: StepJob): string | undefined {
  if (step.shell) return templateText(step.shell, scope);
  if (frame.depth > 0) throw new ShellFault("A run step of an action needs a shell");
  return defaultOf("shell", state, scope);
}

/** The job's defaults before the workflow's; composite actions have none (CI-40). */
function defaultOf(name: "shell" | "working-directory", state: JobState, scope: Scope): string | undefined {
  for (const defaults of [state.spec.jobDefaults, state.spec.workflowDefaults]) {
    const node: Node | undefined = entryOf(entryOf(defaults, "run"), name);
    if (node) return templateText(node, scope);
  }
  return undefined;
}

function workingFolder(step: RunStep, { state, frame, scope }: StepJob): string {
  const own = step.workingDirectory && templateText(step.workingDirectory, scope);
  const folder = own ?? (frame.depth === 0 ? defaultOf("working-directory", state, scope) : undefined) ?? "";
  return isAbsolute(folder) ? folder : join(state.machine.workspace, folder);
}

function hasProgram(name: string, state: JobState): boolean {
  const path = [...state.paths, ...(state.machine.baseEnv["PATH"] ?? "").split(delimiter)];
  return path.some((folder) => folder !== "" && existsSync(join(folder, name)));
}
