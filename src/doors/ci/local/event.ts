/** The github context of a run on this machine: what a server would have said of the same commit. */
import type { DispatchInput } from "#doors/ci/workflow/compile/triggers.ts";
import type { Workflow } from "#doors/ci/workflow/compile/model.ts";
import { Dictionary, type PlainValue, type Value, valueOf } from "#doors/ci/workflow/expression/value.ts";
import type { EventFacts } from "#doors/ci/workflow/trigger/trigger.ts";
import type { Repository } from "./repository.ts";

export type LocalEvent = { readonly name: string; readonly payload: Readonly<Record<string, PlainValue>> };

/** The payload that a server would send, as far as the repository tells. */
export function eventOf(name: string, repository: Repository, inputs: Readonly<Record<string, string>>): LocalEvent {
  const [owner = "", short = ""] = repository.name.split("/");
  const common = {
    repository: {
      name: short,
      full_name: repository.name,
      owner: { login: owner, name: owner },
      default_branch: repository.defaultBranch,
    },
    sender: { login: repository.actor },
  };
  if (name === "push")
    return {
      name,
      payload: {
        ref: repository.ref,
        before: repository.before,
        after: repository.sha,
        head_commit: { id: repository.sha, message: repository.message.trim() },
        pusher: { name: repository.actor },
        ...common,
      },
    };
  if (name === "workflow_dispatch") return { name, payload: { inputs, ref: repository.ref, ...common } };
  if (name === "pull_request" || name === "pull_request_target") {
    const head = { ref: shortRef(repository.ref), sha: repository.sha };
    const base = { ref: repository.defaultBranch, sha: repository.before };
    return { name, payload: { action: "synchronize", number: 1, pull_request: { number: 1, head, base }, ...common } };
  }
  return { name, payload: common };
}

const shortRef = (ref: string): string => ref.replace(/^refs\/(heads|tags)\//, "");

export function factsOf({ name, payload }: LocalEvent, repository: Repository): EventFacts {
  const action = payload["action"];
  const isPullRequest = name.startsWith("pull_request");
  return {
    name,
    ref: repository.ref,
    message: repository.message,
    ...(typeof action === "string" && { action }),
    ...(isPullRequest && { baseRef: `refs/heads/${repository.defaultBranch}` }),
    ...(repository.changedFiles && { changedFiles: repository.changedFiles }),
  };
}

export function githubContext(
  event: LocalEvent,
  repository: Repository,
  workflow: Workflow,
  runId: string,
): Dictionary {
  const isPullRequest = event.name.startsWith("pull_request");
  const [owner = ""] = repository.name.split("/");
  const ref = event.name === "pull_request" ? "refs/pull/1/merge" : repository.ref;
  const reference = `${repository.name}/${workflow.path}@${ref}`;
  return new Dictionary([
    ["event_name", event.name],
    ["event", valueOf(event.payload)],
    ["ref", ref],
    ["ref_name", event.name === "pull_request" ? "1/merge" : shortRef(ref)],
    ["ref_type", ref.startsWith("refs/tags/") ? "tag" : "branch"],
    ["ref_protected", false],
    ["sha", repository.sha],
    ["head_ref", isPullRequest ? shortRef(repository.ref) : ""],
    ["base_ref", isPullRequest ? repository.defaultBranch : ""],
    ["repository", repository.name],
    ["repository_owner", owner],
    ["repository_id", "1"],
    ["repository_owner_id", "1"],
    ["actor", repository.actor],
    ["actor_id", "1"],
    ["triggering_actor", repository.actor],
    ["workflow", workflow.name ?? workflow.path],
    ["workflow_ref", reference],
    ["workflow_sha", repository.sha],
    ["run_id", runId],
    ["run_number", "1"],
    ["run_attempt", "1"],
    ["retention_days", "90"],
    ["server_url", "https://github.com"],
    ["api_url", "https://api.github.com"],
    ["graphql_url", "https://api.github.com/graphql"],
    ["secret_source", "Actions"],
  ]);
}

/** Typed inputs of a dispatch: `inputs` keeps booleans and numbers, the payload has texts (CI-59). */
export function dispatchInputs(
  definitions: readonly DispatchInput[],
  given: Readonly<Record<string, string>>,
): { readonly inputs: Dictionary } | { readonly problem: string } {
  const inputs = new Dictionary();
  for (const definition of definitions) {
    const key = Object.keys(given).find((name) => name.toLowerCase() === definition.name.toLowerCase());
    const text = key === undefined ? undefined : given[key];
    if (text === undefined && definition.default === undefined && definition.isRequired)
      return { problem: `the input ${definition.name} is required: give it with --input ${definition.name}=value` };
    const value = text === undefined ? (definition.default ?? emptyOf(definition)) : typed(definition, text);
    if (value === undefined)
      return { problem: `the input ${definition.name} cannot be "${text}": ${wanted(definition)}` };
    inputs.set(definition.name, value);
  }
  const unknown = Object.keys(given).find((name) => !inputs.has(name));
  if (unknown !== undefined) return { problem: `the workflow has no input ${unknown}` };
  return { inputs };
}

const emptyOf = ({ type, options }: DispatchInput): Value =>
  type === "boolean" ? false : type === "choice" ? (options?.[0] ?? "") : "";

function typed({ type, options }: DispatchInput, text: string): Value | undefined {
  if (type === "boolean") return text === "true" ? true : text === "false" ? false : undefined;
  if (type === "number") return text.trim() !== "" && Number.isFinite(Number(text)) ? Number(text) : undefined;
  if (type === "choice") return options?.includes(text) ? text : undefined;
  return text;
}

function wanted({ type, options }: DispatchInput): string {
  if (type === "choice") return `one of ${(options ?? []).join(", ")} is wanted`;
  return type === "boolean" ? "true or false is wanted" : "a number is wanted";
}
