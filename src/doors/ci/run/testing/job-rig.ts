/** Runs a job of a workflow text for tests, in folders of its own, and keeps what it reported. */
import { mkdir, mkdtemp, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { clearAway } from "#testing/clear-away.ts";
import { compile } from "#doors/ci/workflow/compile/compile.ts";
import type { NormalJob } from "#doors/ci/workflow/compile/model.ts";
import type { PlainValue } from "#doors/ci/workflow/expression/value.ts";
import { problemText } from "#doors/ci/workflow/problem.ts";
import { type JobPorts, runJob } from "#doors/ci/run/job.ts";
import type { JobOutcome, Report } from "#doors/ci/run/report.ts";
import type { JobMachine, JobSpec } from "#doors/ci/run/spec.ts";

export type Rig = {
  /** The lines of `steps:`, and further lines of the job and of the workflow. */
  readonly steps: string;
  readonly job?: string;
  readonly workflow?: string;
  readonly files?: Readonly<Record<string, string>>;
  readonly secrets?: Readonly<Record<string, string>>;
  readonly contexts?: Readonly<Record<string, PlainValue>>;
  readonly signal?: AbortSignal;
  readonly onReport?: (report: Report) => void;
  readonly spec?: Partial<JobSpec>;
  /** What else the machine has, given its folder. */
  readonly machine?: (folder: string) => Partial<JobMachine>;
  readonly keep?: JobPorts["keep"];
  readonly memory?: JobPorts["memory"];
  /** Left out: one of its own, which is removed afterwards. */
  readonly folder?: string;
};

export type RigEnd = JobOutcome & {
  readonly reports: readonly Report[];
  /** What was shown, line by line, without the commands themselves. */
  readonly lines: readonly string[];
  /** `name: outcome/conclusion`, or `name: skipped`. */
  readonly ends: readonly string[];
};

export async function runRig(rig: Rig): Promise<RigEnd> {
  const folder = rig.folder ?? (await mkdtemp(join(tmpdir(), "millrace-ci-test-")));
  try {
    const machine = await machineIn(folder, rig);
    const reports: Report[] = [];
    const outcome = await runJob(specOf(rig), machine, {
      report: (report) => {
        reports.push(report);
        rig.onReport?.(report);
      },
      signal: rig.signal ?? new AbortController().signal,
      grace: { interruptMs: 300, terminateMs: 300 },
      ...(rig.keep && { keep: rig.keep }),
      memory: rig.memory,
    });
    return { ...outcome, reports, lines: linesOf(reports), ends: endsOf(reports) };
  } finally {
    if (rig.folder === undefined) clearAway(folder);
  }
}

async function machineIn(folder: string, { files = {}, secrets = {}, machine }: Rig): Promise<JobMachine> {
  const workspace = join(folder, "work");
  const tempFolder = join(folder, "temp");
  for (const path of [workspace, tempFolder]) await mkdir(path, { recursive: true });
  for (const [path, text] of Object.entries(files)) {
    const target = path.startsWith("/") ? join(folder, path) : join(workspace, path);
    await mkdir(dirname(target), { recursive: true });
    await writeFile(target, text);
  }
  return {
    workspace,
    tempFolder,
    toolCache: join(folder, "tools"),
    baseEnv: { PATH: process.env["PATH"] ?? "", HOME: folder },
    runner: { os: "Linux", arch: "X64", temp: tempFolder, name: "rig" },
    secrets: new Map(Object.entries(secrets)),
    actionFolder: (uses) => Promise.resolve(join(folder, "actions", uses.split("@")[0] ?? "")),
    node: process.execPath,
    ...machine?.(folder),
  };
}

function specOf({ steps, job = "", workflow = "", contexts = {}, spec = {} }: Rig): JobSpec {
  const text = `on: push\n${workflow}\njobs:\n  it:\n    runs-on: x\n${indented(job, 4)}\n    steps:\n${indented(steps, 6)}\n`;
  const compiled = compile({ path: "w.yml", text });
  if (!compiled.ok) throw new Error(compiled.problems.map((problem) => problemText(problem)).join("\n"));
  const [first] = compiled.workflow.jobs as readonly NormalJob[];
  if (!first) throw new Error("no job");
  const { env: workflowEnv, defaults: workflowDefaults } = compiled.workflow;
  return {
    id: first.id,
    name: first.id,
    steps: first.steps,
    ...(workflowEnv && { workflowEnv }),
    ...(workflowDefaults && { workflowDefaults }),
    ...(first.env && { jobEnv: first.env }),
    ...(first.defaults && { jobDefaults: first.defaults }),
    ...(first.outputs && { outputs: first.outputs }),
    ...(first.container && { container: first.container }),
    ...(first.services && { services: first.services }),
    timeoutMinutes: 5,
    cancelTimeoutMinutes: 1,
    contexts: {
      github: { ref: "refs/heads/main", event_name: "push", event: { n: 1 } },
      inputs: {},
      vars: {},
      matrix: null,
      ...contexts,
    },
    ...spec,
  };
}

const indented = (text: string, count: number): string => text.replaceAll(/^/gm, " ".repeat(count));

function linesOf(reports: readonly Report[]): readonly string[] {
  return reports.flatMap((report) => {
    if (report.kind === "line" && report.level !== "command") return [report.text];
    return report.kind === "job-note" ? [report.text] : [];
  });
}

function endsOf(reports: readonly Report[]): readonly string[] {
  return reports.flatMap((report) => {
    if (report.kind === "step-ended") return [`${report.step.name}: ${report.outcome}/${report.conclusion}`];
    return report.kind === "step-skipped" ? [`${report.step.name}: skipped`] : [];
  });
}
