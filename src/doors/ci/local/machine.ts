/** This computer as the machine of a job. */
import { mkdir, stat } from "node:fs/promises";
import { arch, homedir, hostname, platform } from "node:os";
import { join } from "node:path";
import { ActionFault } from "#doors/ci/run/manifest.ts";
import { randomUUID } from "node:crypto";
import { ContainerDesk, type Mount } from "#doors/ci/containers/desk.ts";
import type { LabelledHost } from "#doors/ci/containers/host.ts";
import type { JobMachine } from "#doors/ci/run/spec.ts";
import { type Repository } from "./repository.ts";
import { foldersOf } from "./workflows.ts";
import { fillWorkspace } from "./workspace.ts";

export type MachineSettings = {
  readonly repository: Repository;
  /** Steps work in the repository's own folder instead of a copy. */
  readonly isInPlace: boolean;
  /** Where actions of others are: `owner/repo` or `owner/repo@ref` below it. */
  readonly actionsFolder: string | undefined;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Left out: this computer runs no containers. */
  readonly containers?: LabelledHost | undefined;
};

/** Of our own variables a step sees those that programs need to start; tokens in the environment stay out. */
const passed: ReadonlySet<string> = new Set(
  [
    "PATH HOME USER LOGNAME SHELL LANG LANGUAGE TZ TMPDIR TEMP TMP SYSTEMROOT COMSPEC PATHEXT",
    "NO_PROXY HTTP_PROXY HTTPS_PROXY no_proxy http_proxy https_proxy",
    "JAVA_HOME GOPATH GOROOT CARGO_HOME RUSTUP_HOME",
  ].flatMap((line) => line.split(" ")),
);

const isPassed = (name: string): boolean => passed.has(name) || name.startsWith("LC_");

export async function localMachine(
  settings: MachineSettings,
  { folder, secrets }: { readonly folder: string; readonly secrets: ReadonlyMap<string, string> },
): Promise<JobMachine> {
  const workspace = settings.isInPlace ? settings.repository.root : join(folder, "work");
  if (!settings.isInPlace) await fillWorkspace(settings.repository, workspace);
  const tempFolder = join(folder, "temp");
  const toolCache = join(homedir(), ".cache", "millrace", "tools");
  await mkdir(tempFolder, { recursive: true });
  return {
    workspace,
    tempFolder,
    toolCache,
    baseEnv: baseEnv(settings.env),
    runner: {
      name: hostname(),
      os: osNames[platform()] ?? "Linux",
      arch: archNames[arch()] ?? "X64",
      temp: tempFolder,
      tool_cache: toolCache,
      environment: "self-hosted",
      workspace: folder,
    },
    secrets,
    actionFolder: (uses) => actionFolder(uses, settings),
    node: process.execPath,
    containers: await deskIn(settings, { folder, workspace, tempFolder }),
  };
}

/** A container has a home of its own: this person's is not shown to it. */
async function deskIn(
  { containers, actionsFolder, env }: MachineSettings,
  {
    folder,
    workspace,
    tempFolder,
  }: { readonly folder: string; readonly workspace: string; readonly tempFolder: string },
): Promise<ContainerDesk | undefined> {
  if (!containers) return undefined;
  const home = join(folder, "home");
  await mkdir(home, { recursive: true });
  const mounts: Mount[] = [
    { folder: workspace, also: ["/github/workspace"] },
    { folder: tempFolder },
    { folder: home, also: ["/github/home"] },
  ];
  if (actionsFolder !== undefined) mounts.push({ folder: actionsFolder, readOnly: true });
  return new ContainerDesk({
    host: containers,
    labels: containers.labels,
    name: `millrace-${randomUUID().slice(0, 13)}`,
    mounts,
    workspace,
    home,
    folder: join(folder, "inside"),
    node: process.execPath,
    env,
  });
}

export const osNames: Readonly<Record<string, string>> = { linux: "Linux", darwin: "macOS", win32: "Windows" };
export const archNames: Readonly<Record<string, string>> = { x64: "X64", arm64: "ARM64", arm: "ARM", ia32: "X86" };

function baseEnv(env: Readonly<Record<string, string | undefined>>): Record<string, string> {
  const pairs = Object.entries(env).flatMap(([name, value]) =>
    value !== undefined && isPassed(name) ? [[name, value] as const] : [],
  );
  return Object.fromEntries(pairs);
}

/** Actions that come with this program. `actions/checkout` does nothing: the workspace has the commit already. */
export const ownActions: ReadonlyMap<string, string> = new Map([
  ["actions/checkout", join(import.meta.dirname, "checkout")],
  ["millrace/effect", join(import.meta.dirname, "effect")],
]);

/** Where an action of others is. */
export async function actionFolder(
  uses: string,
  { actionsFolder }: Pick<MachineSettings, "actionsFolder">,
): Promise<string> {
  const [path = "", reference = ""] = uses.split("@");
  const [owner = "", repository = "", ...rest] = path.split("/");
  const names = foldersOf({ repository: `${owner}/${repository}`, ref: reference });
  const folders = actionsFolder === undefined ? [] : names.map((name) => join(actionsFolder, name, ...rest));
  for (const folder of folders) if (await stat(folder).catch(() => undefined)) return folder;
  const own = ownActions.get(`${owner}/${repository}`);
  if (own !== undefined) return own;
  throw new ActionFault(
    `the action ${uses} is not at hand: clone it into a folder as ${owner}/${repository} and name that folder with --actions`,
  );
}
