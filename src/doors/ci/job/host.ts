/**
 * The program that runs one job: started by a node in a folder of the job's own, alone or in a sandbox. It reads the
 * request, runs the job with the same runner as `millrace ci run`, and leaves log, steps and outcome in that folder.
 */
import { randomUUID } from "node:crypto";
import { accessSync, constants, existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import { fileURLToPath } from "node:url";
import { runJob } from "#doors/ci/run/job.ts";
import { ContainerDesk } from "#doors/ci/containers/desk.ts";
import { StepKeeper } from "#doors/ci/resume/step-keeper.ts";
import { ownActions } from "#doors/ci/local/machine.ts";
import { ActionFault } from "#doors/ci/run/manifest.ts";
import type { JobMachine, JobSpec } from "#doors/ci/run/spec.ts";
import type { PlainValue } from "#doors/ci/workflow/expression/value.ts";
import { watchCancel } from "./cancel-file.ts";
import { checkOut } from "./checkout.ts";
import { usesParts } from "./uses-parts.ts";
import { JobFiles } from "./job-files.ts";
import { folderVariable, type JobOutcomeFile, type JobRequest, names, noRequestCode } from "./request.ts";

const folder = process.env[folderVariable] ?? process.cwd();

if (!existsSync(names.request)) process.exit(noRequestCode);
const request = JSON.parse(readFileSync(names.request, "utf8")) as JobRequest;
rmSync(names.request);
using cancelled = watchCancel(folder);
const machine = machineOf(request);
const keeper = keeperOf(request);
const { deltas } = request.keep ?? {};
const memory = deltas === undefined ? undefined : keeper?.recall(deltas);
using files = new JobFiles(folder, request.logBytesMax);
if (request.checkout && !memory)
  await checkOut(request.checkout, { folder, workspace: machine.workspace, env: machine.baseEnv });
for (const [name, { sha }] of Object.entries(request.actions ?? {}))
  if (sha !== undefined)
    files.add({ kind: "job-note", level: "plain", text: `Download action repository '${name}' (SHA:${sha})` });
const { result, outputs, ...more } = await runJob(specOf(request), machine, {
  report: (report) => files.add(report),
  signal: cancelled.signal,
  memory,
  ...(keeper && { keep: (kept) => keeper.keep(kept) }),
});
files[Symbol.dispose]();
const outcome: JobOutcomeFile = { result, outputs: Object.fromEntries(outputs), cpuMs: usedCpuMs(), ...more };
writeFileSync(`${names.outcome}.new`, JSON.stringify(outcome));
renameSync(`${names.outcome}.new`, names.outcome);
process.exit(0);

/** Its own processor time, and that of the processes that it has waited for, which Linux counts in ticks. */
function usedCpuMs(): number {
  const tickMs = 10; // on every machine that Node runs on
  const { user, system } = process.cpuUsage();
  const own = (user + system) / 1_000;
  try {
    const fields = readFileSync("/proc/self/stat", "utf8")
      .replace(/^.*\) /s, "")
      .split(" ");
    return Math.round(own + (Number(fields[13]) + Number(fields[14])) * tickMs);
  } catch {
    return Math.round(own);
  }
}

function keeperOf({ keep }: JobRequest): StepKeeper | undefined {
  if (!keep) return undefined;
  return new StepKeeper({
    folder,
    key: Buffer.from(keep.key, "base64"),
    tell: (news) => files.kept(news),
    note: (text) => files.add({ kind: "job-note", level: "warning", text }),
    signal: cancelled.signal,
  });
}

function specOf({ spec, github = {} }: JobRequest): JobSpec {
  const known = spec.contexts["github"] as Readonly<Record<string, PlainValue>>;
  return { ...spec, contexts: { ...spec.contexts, github: { ...known, ...github } } };
}

/** Those that come with this program are used where no other of the name was found. */
function laidFolder(uses: string, actions: NonNullable<JobRequest["actions"]>): string {
  const { repository = "", ref = "", path = "" } = usesParts(uses) ?? {};
  const laid = actions[`${repository}@${ref}`];
  if (laid?.folder !== undefined) return join(folder, laid.folder, path);
  const own = ownActions.get(repository);
  if (own !== undefined) return own;
  throw new ActionFault(
    `the action ${uses} is not at hand: ${laid?.missing ?? "it was not known when the job started"}`,
  );
}

/** Folders of PATH that the job cannot enter, such as the home of the node's user, only make its programs complain. */
function withReachable(env: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  const canEnter = (path: string): boolean => {
    try {
      accessSync(path, constants.X_OK);
      return true;
    } catch {
      return false;
    }
  };
  const path = (env["PATH"] ?? "").split(delimiter).filter((part) => part !== "" && canEnter(part));
  return { ...env, PATH: [...new Set(path)].join(delimiter) };
}

/** The program for steps, and the token that it calls the node with, in a file that no list of processes shows. */
function ownProgram({ access, env }: JobRequest): Readonly<Record<string, string>> {
  if (!access) return {};
  const bin = join(folder, "bin");
  mkdirSync(bin, { recursive: true });
  const program = fileURLToPath(new URL("../../../../bin/millrace.js", import.meta.url));
  const quoted = [process.execPath, program].map((word) => `'${word.replaceAll("'", "'\\''")}'`).join(" ");
  writeFileSync(join(bin, "millrace"), `#!/bin/sh\nexec ${quoted} "$@"\n`, { mode: 0o755 });
  const tokenFile = join(folder, ".millrace-token");
  writeFileSync(tokenFile, access.token, { mode: 0o600 });
  const path = [env["PATH"] ?? "", bin].filter((part) => part !== "").join(delimiter);
  return { PATH: path, MILLRACE_SERVER: access.server, MILLRACE_TOKEN_FILE: tokenFile };
}

/** The job's own folders, each under its own name inside as well, and under the names that actions know. */
function desk(
  { containers }: JobRequest,
  {
    workspace,
    tempFolder,
    toolCache,
    home,
  }: Readonly<Record<"workspace" | "tempFolder" | "toolCache" | "home", string>>,
): ContainerDesk | undefined {
  if (!containers) return undefined;
  return new ContainerDesk({
    host: containers,
    labels: containers.labels,
    name: `millrace-${randomUUID().slice(0, 13)}`,
    mounts: [
      { folder: join(folder, "work"), also: ["/__w"] },
      { folder: workspace, also: ["/github/workspace"] },
      { folder: tempFolder, also: ["/__w/_temp"] },
      { folder: toolCache, also: ["/__t"] },
      { folder: home, also: ["/github/home"] },
      ...(existsSync(join(folder, names.actions)) ? [{ folder: join(folder, names.actions), readOnly: true }] : []),
    ],
    workspace,
    home,
    folder: join(folder, "inside"),
    node: process.execPath,
    env: process.env,
  });
}

function machineOf(given: JobRequest): JobMachine {
  const { env, runner, secrets, masked = [], actionEnv = {}, actions = {}, access, spec } = given;
  const github = spec.contexts["github"] as { readonly repository?: string } | undefined;
  const name = github?.repository?.split("/").at(-1) ?? "workspace";
  const workspace = join(folder, "work", name);
  const tempFolder = join(folder, "temp");
  const toolCache = join(folder, "tools");
  const home = join(folder, "home");
  for (const path of [workspace, tempFolder, toolCache, home]) mkdirSync(path, { recursive: true });
  return {
    workspace,
    tempFolder,
    toolCache,
    baseEnv: withReachable({ ...env, ...ownProgram(given), HOME: home }),
    runner: { ...runner, temp: tempFolder, tool_cache: toolCache, workspace: join(folder, "work") },
    secrets: new Map(Object.entries(secrets)),
    masked: [...masked, ...(access ? [access.token] : [])],
    actionEnv,
    actionFolder: async (uses) => laidFolder(uses, actions),
    node: process.execPath,
    containers: desk(given, { workspace, tempFolder, toolCache, home }),
  };
}
