/** action.yml: what an action takes, gives and runs (CI-13, CI-64, CI-71). */
import { readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { conditionOf } from "#doors/ci/workflow/compile/condition.ts";
import { optional } from "#doors/ci/workflow/compile/optional.ts";
import { stepsOf } from "#doors/ci/workflow/compile/steps.ts";
import type { Condition, Step } from "#doors/ci/workflow/compile/model.ts";
import { textOf } from "#doors/ci/workflow/expression/value.ts";
import { standardLimits } from "#doors/ci/workflow/limits.ts";
import { Problems, problemText } from "#doors/ci/workflow/problem.ts";
import { actionDefinition } from "#doors/ci/workflow/schema/action.ts";
import { check } from "#doors/ci/workflow/schema/check.ts";
import { places } from "#doors/ci/workflow/schema/places.ts";
import { entryOf, type Node, stringOf } from "#doors/ci/workflow/yaml/node.ts";
import { readYaml } from "#doors/ci/workflow/yaml/read.ts";

export type ActionInput = { readonly name: string; readonly default?: Node; readonly deprecation?: string };

export type Action = {
  readonly name: string;
  readonly folder: string;
  readonly inputs: readonly ActionInput[];
  readonly outputs: readonly { readonly name: string; readonly value?: Node }[];
  readonly runs: ActionRuns;
};

export type ActionRuns =
  | {
      readonly kind: "javascript";
      readonly main: string;
      readonly pre?: string;
      readonly preIf: Condition;
      readonly post?: string;
      readonly postIf: Condition;
    }
  | { readonly kind: "composite"; readonly steps: readonly Step[] }
  | DockerRuns;

export type DockerRuns = {
  readonly kind: "docker";
  /** A Dockerfile of the action, or an image. */
  readonly image: string;
  readonly args: Node | undefined;
  readonly env: Node | undefined;
  readonly entrypoint?: string;
  readonly preEntrypoint?: string;
  readonly preIf: Condition;
  readonly postEntrypoint?: string;
  readonly postIf: Condition;
};

const always: Condition = { expression: "always()" };

/** An image, or the Dockerfile of a folder that has no action.yml. */
export const dockerAction = (name: string, folder: string, image: string): Action => ({
  name,
  folder,
  inputs: [],
  outputs: [],
  runs: { kind: "docker", image, args: undefined, env: undefined, preIf: always, postIf: always },
});

/** What is wrong with an action, in words for the log. */
export class ActionFault extends Error {}

export async function readAction(folder: string, uses: string): Promise<Action> {
  for (const name of ["action.yml", "action.yaml"]) {
    const path = join(folder, name);
    const found = await stat(path).catch(() => undefined);
    if (!found?.isFile()) continue;
    if (found.size > standardLimits.fileLengthMax) throw new ActionFault(`${uses}: ${name} is larger than 1 MiB`);
    return actionIn(await readFile(path, "utf8"), { path: join(uses, name), folder });
  }
  const docker = await stat(join(folder, "Dockerfile")).catch(() => undefined);
  if (docker) return dockerAction(uses, folder, "Dockerfile");
  throw new ActionFault(
    `Can't find 'action.yml', 'action.yaml' or 'Dockerfile' for action '${uses}'. ` +
      "Did you forget to run actions/checkout before running your local action?",
  );
}

export function actionIn(text: string, { path, folder }: { readonly path: string; readonly folder: string }): Action {
  const problems = new Problems(path);
  const tree = readYaml(text, problems, standardLimits);
  const root = tree && check(tree, actionDefinition, problems);
  const action = root && {
    name: stringOf(entryOf(root, "name")) ?? path,
    folder,
    inputs: inputsOf(entryOf(root, "inputs")),
    outputs: outputsOf(entryOf(root, "outputs")),
    runs: runsOf(entryOf(root, "runs"), problems),
  };
  if (!action || problems.count > 0)
    throw new ActionFault(problems.found.map((problem) => problemText(problem)).join("\n"));
  return action;
}

function inputsOf(node: Node | undefined): readonly ActionInput[] {
  if (node?.kind !== "mapping") return [];
  return node.entries.map(({ key, value }) => ({
    name: key.kind === "scalar" ? textOf(key.value) : "",
    ...optional("default", entryOf(value, "default")),
    ...optional("deprecation", stringOf(entryOf(value, "deprecationMessage"))),
  }));
}

function outputsOf(node: Node | undefined): Action["outputs"] {
  if (node?.kind !== "mapping") return [];
  return node.entries.map(({ key, value }) => ({
    name: key.kind === "scalar" ? textOf(key.value) : "",
    ...optional("value", entryOf(value, "value")),
  }));
}

function runsOf(node: Node | undefined, problems: Problems): ActionRuns {
  const using = stringOf(entryOf(node, "using")) ?? "";
  if (using === "composite") {
    const steps = stepsOf(entryOf(node, "steps"), { problems, ifAvailable: places.actionStepIf });
    for (const step of steps)
      if (step.kind === "run" && !step.shell) problems.add(step.at, "Required property is missing: shell");
    return { kind: "composite", steps };
  }
  const conditionAt = (name: string): Condition => {
    const condition = entryOf(node, name);
    return condition ? conditionOf(condition, places.actionRunsIf, problems) : always;
  };
  if (using === "docker")
    return {
      kind: "docker",
      image: stringOf(entryOf(node, "image")) ?? "",
      args: entryOf(node, "args"),
      env: entryOf(node, "env"),
      ...optional("entrypoint", stringOf(entryOf(node, "entrypoint"))),
      ...optional("preEntrypoint", stringOf(entryOf(node, "pre-entrypoint"))),
      preIf: conditionAt("pre-if"),
      ...optional("postEntrypoint", stringOf(entryOf(node, "post-entrypoint"))),
      postIf: conditionAt("post-if"),
    };
  return {
    kind: "javascript",
    main: stringOf(entryOf(node, "main")) ?? "",
    ...optional("pre", stringOf(entryOf(node, "pre"))),
    preIf: conditionAt("pre-if"),
    ...optional("post", stringOf(entryOf(node, "post"))),
    postIf: conditionAt("post-if"),
  };
}
