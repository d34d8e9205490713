/** Whether this machine can run containers, and what a job's program has to know of it. */
import { hash } from "node:crypto";
import { z } from "zod";
import type { NormalJob } from "#doors/ci/workflow/compile/model.ts";
import { Engine, type EngineHow } from "./engine.ts";
import type { ContainerRules } from "./options.ts";

export const ContainerConfig = z
  .strictObject({
    engine: z
      .union([z.enum(["auto", "none"]), z.array(z.string().min(1).max(1_000)).min(1).max(20)])
      .default("none")
      .describe(
        "what runs containers of jobs: none; auto: podman, else docker; or a command with the options that go " +
          "before its words, such as [podman, --root, /var/lib/jobs]",
      ),
    runOptions: z
      .array(z.string().max(1_000))
      .max(50)
      .default(["--pids-limit=4096"])
      .describe("options of the engine that every container gets, such as --memory=4g"),
    options: z
      .enum(["safe", "any"])
      .default("safe")
      .describe(
        "which options a workflow may name: those that only change its container (safe), or any, which can be the " +
          "whole machine",
      ),
    folders: z
      .array(z.string().regex(/^\/./))
      .max(50)
      .default([])
      .describe("folders of the machine that volumes of workflows may name, with what is below them"),
  })
  .prefault({});
export type ContainerSettings = z.output<typeof ContainerConfig>;

/** As the request of a job has it. */
export type ContainerHost = EngineHow & ContainerRules;

/** With what all containers of one job bear; by the first they are found again. */
export type LabelledHost = ContainerHost & { readonly labels: readonly string[] };

/** For one attempt. */
export const labelledFor = (
  host: ContainerHost,
  node: NodeOfContainers,
  { taskId, token }: { readonly taskId: string; readonly token: number },
): LabelledHost => ({ ...host, labels: [`millrace.attempt=${taskId}-${token}`, nodeLabel(node)] });

/** A machine may have two nodes of one name, with a data folder each. */
export type NodeOfContainers = { readonly name: string; readonly dataFolder: string };

/** All that were started by one node, under a name that no engine misreads. */
export const nodeLabel = ({ name, dataFolder }: NodeOfContainers): string =>
  `millrace.node=${name.replaceAll(/[^A-Za-z0-9._-]/g, "-")}-${hash("sha256", dataFolder).slice(0, 12)}`;

type WorkOfJob = {
  readonly container?: unknown;
  readonly services?: unknown;
  readonly steps: NormalJob["steps"];
};

/** Whether a job says that it needs containers; an action of others may turn out to be one. */
export const needsContainers = ({ container, services, steps }: WorkOfJob): boolean =>
  container !== undefined ||
  services !== undefined ||
  steps.some((step) => step.kind === "uses" && step.uses.startsWith("docker://"));

export const mayNeedContainers = (job: WorkOfJob): boolean =>
  needsContainers(job) || job.steps.some((step) => step.kind === "uses");

/** Offered where jobs with containers can run. */
export const containersLabel = "containers=yes";
/** As well, where callers are not trusted with the machine. */
export const sharedContainersLabel = "containers=shared";

const looked = [["podman"], ["docker"]] as const;

/** Undefined where there is none that works; `log` says why, if one was asked for. */
export async function findContainers(
  { engine, ...rules }: ContainerSettings,
  env: Readonly<Record<string, string | undefined>>,
  log: (line: string) => void,
): Promise<ContainerHost | undefined> {
  if (engine === "none" || process.platform !== "linux") return undefined;
  const asked = engine === "auto" ? looked : [engine];
  for (const command of asked) {
    const { code, err } = await new Engine({ command, runOptions: [] }, env).try(["ps", "-q"]);
    if (code === 0) return { command, ...rules };
    if (engine !== "auto")
      log(`containers of jobs are not run here: ${command.join(" ")}: ${err.trim().slice(0, 500)}`);
  }
  return undefined;
}

/** $MILLRACE_CONTAINERS of a runner: none, auto (left out), or a command. */
export function settingsFromText(text: string | undefined): ContainerSettings {
  const words = (text ?? "").split(/\s+/).filter((word) => word !== "");
  const [word = "auto", ...more] = words;
  const isWord = more.length === 0 && (word === "none" || word === "auto");
  return ContainerConfig.parse({ engine: isWord ? word : words });
}
