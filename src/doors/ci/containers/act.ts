/** An action that is a container: an image, or a Dockerfile that makes one. */
import { Dictionary, isArray, textOf } from "#doors/ci/workflow/expression/value.ts";
import type { Scope } from "#doors/ci/workflow/expression/evaluate.ts";
import { templateTexts, templateValue } from "#doors/ci/workflow/plan/template.ts";
import { type ActionContainer, noContainers } from "#doors/ci/run/containers.ts";
import type { Action } from "#doors/ci/run/manifest.ts";
import { runProcess } from "#doors/ci/run/process.ts";
import { runCommand, type StepJob, type WorkEnd } from "#doors/ci/run/step-work.ts";
import { splitWords } from "./options.ts";

export type DockerInput = {
  /** Which of the action's programs; left out: the image's own. */
  readonly entrypoint: string | undefined;
  readonly inputs: ReadonlyMap<string, string>;
  /** Inputs and state as variables. */
  readonly env: Readonly<Record<string, string>>;
};

export async function runDocker(
  job: StepJob,
  action: Action,
  { entrypoint, inputs, env }: DockerInput,
): Promise<WorkEnd> {
  const { state } = job;
  const { runs } = action;
  const { containers, workspace } = state.machine;
  if (runs.kind !== "docker") throw new Error("only actions that are containers run here");
  if (!containers) throw noContainers(`the action ${action.name}`);
  const scope: Scope = {
    ...job.scope,
    contexts: new Dictionary([...job.scope.contexts.entries(), ["inputs", new Dictionary(inputs)]]),
  };
  const isImage = runs.image.startsWith("docker://");
  const own = runs.env ? templateTexts(runs.env, scope) : new Map<string, string>();
  const container: ActionContainer = {
    image: isImage ? runs.image.slice("docker://".length) : { folder: action.folder, file: runs.image },
    entrypoint: isImage && !entrypoint ? inputs.get("entrypoint") : entrypoint,
    args: runs.args ? argsOf(templateValue(runs.args, scope)) : splitWords(inputs.get("args") ?? ""),
  };
  return await runCommand(job, {
    program: "",
    args: [],
    folder: workspace,
    env: { ...Object.fromEntries(own), ...env },
    run: async (request) =>
      await containers.act(container, request, async (started) => await runProcess(started, state.groups)),
  });
}

const argsOf = (value: ReturnType<typeof templateValue>): readonly string[] =>
  isArray(value) ? value.map((item) => textOf(item)) : [];
