/** The variables that every step has (CI-36 to CI-38). */
import { Dictionary, textOf, type Value } from "#doors/ci/workflow/expression/value.ts";

/** Entries of the github context that are variables as well. The token is not among them. */
const exported = [
  "action",
  "action_path",
  "action_ref",
  "action_repository",
  "actor",
  "actor_id",
  "api_url",
  "artifacts",
  "artifacts_list",
  "base_ref",
  "env",
  "event_name",
  "event_path",
  "graphql_url",
  "head_ref",
  "job",
  "output",
  "path",
  "ref",
  "ref_name",
  "ref_protected",
  "ref_type",
  "repository",
  "repository_id",
  "repository_owner",
  "repository_owner_id",
  "retention_days",
  "run_attempt",
  "run_id",
  "run_number",
  "server_url",
  "sha",
  "state",
  "step_summary",
  "triggering_actor",
  "workflow",
  "workflow_ref",
  "workflow_sha",
  "workspace",
];

export function githubVariables(github: Dictionary): Record<string, string> {
  const variables: Record<string, string> = { CI: "true", GITHUB_ACTIONS: "true" };
  for (const name of exported) {
    const value = github.get(name);
    if (value !== undefined && value !== null && typeof value !== "object")
      variables[`GITHUB_${name.toUpperCase()}`] = textOf(value);
  }
  return variables;
}

export function runnerVariables(runner: Dictionary): Record<string, string> {
  const pairs = [...runner.entries()].map(([name, value]) => [`RUNNER_${name.toUpperCase()}`, textOf(value)] as const);
  return Object.fromEntries(pairs);
}

/** Blanks become `_`, hyphens stay. */
export const inputVariable = (name: string): string => `INPUT_${name.replaceAll(" ", "_").toUpperCase()}`;

/** What authors may not change: the runner's own word on them counts. */
export const isReserved = (name: string): boolean => /^(GITHUB|RUNNER)_/i.test(name) && !/^GITHUB_TOKEN$/i.test(name);

export function envContext(env: ReadonlyMap<string, string>): Dictionary {
  const entries = [...env].map(([name, value]): readonly [string, Value] => [name, value]);
  return new Dictionary(entries, { caseSensitive: process.platform !== "win32" });
}
