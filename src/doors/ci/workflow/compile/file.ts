/** One workflow file, by itself: calls of other files are not followed. */
import type { Limits } from "#doors/ci/workflow/limits.ts";
import type { Problems } from "#doors/ci/workflow/problem.ts";
import { check } from "#doors/ci/workflow/schema/check.ts";
import type { Definition } from "#doors/ci/workflow/schema/definition.ts";
import { entryOf, type Node, stringOf } from "#doors/ci/workflow/yaml/node.ts";
import { readYaml } from "#doors/ci/workflow/yaml/read.ts";
import { checkConcurrency } from "./early.ts";
import { jobsOf } from "./jobs.ts";
import type { Workflow } from "./model.ts";
import { optional } from "./optional.ts";
import { permissionsOf, type PermissionsPolicy } from "./permissions.ts";
import { nodeBytes } from "./size.ts";
import { triggersOf } from "./triggers.ts";

export type SourceFile = { readonly path: string; readonly text: string };

export type CompileOptions = {
  readonly limits?: Partial<Limits>;
  /** The file that `uses` of a job names, when it is at hand; without it calls stay calls. */
  readonly called?: (uses: string, caller: string) => SourceFile | "elsewhere" | undefined;
  /** What tokens may do where no file says it. */
  readonly permissionsPolicy?: PermissionsPolicy;
};

export type Reading = { readonly problems: Problems; readonly limits: Limits };

/** The workflow of one file, and its tree. */
export function workflowIn(
  file: SourceFile,
  definition: Definition,
  { problems, limits }: Reading,
): { readonly workflow: Workflow; readonly root: Node } | undefined {
  const tree = readYaml(file.text, problems, limits);
  if (!tree || problems.count > 0) return undefined;
  const root = check(tree, definition, problems);
  if (problems.count > 0) return undefined;
  if (nodeBytes(root) > limits.resultBytesMax) problems.add(undefined, "Maximum object size exceeded");
  checkConcurrency(entryOf(root, "concurrency"), problems);
  const workflow: Workflow = {
    path: file.path,
    ...optional("name", stringOf(entryOf(root, "name"))),
    ...optional("runName", entryOf(root, "run-name")),
    on: triggersOf(entryOf(root, "on"), problems),
    ...optional("permissions", permissionsOf(entryOf(root, "permissions"))),
    ...optional("env", entryOf(root, "env")),
    ...optional("defaults", entryOf(root, "defaults")),
    ...optional("concurrency", entryOf(root, "concurrency")),
    jobs: jobsOf(entryOf(root, "jobs"), problems),
  };
  return problems.count > 0 ? undefined : { workflow, root };
}
