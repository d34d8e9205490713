/** The github context of a run on a node (CI-37). Pure. */
import type { Workflow } from "#doors/ci/workflow/compile/model.ts";
import { Dictionary, type PlainValue, valueOf } from "#doors/ci/workflow/expression/value.ts";
import { shortRef } from "./tags.ts";
import type { Commit } from "#sources/copies.ts";

export type RunEvent = {
  readonly name: string;
  readonly payload: Readonly<Record<string, PlainValue>>;
  /** Of a pull request: the branch that it comes from, and the one that it goes to. */
  readonly headRef?: string;
  readonly baseRef?: string;
};

export type GithubFacts = {
  readonly repository: string;
  readonly commit: Commit;
  readonly actor: string;
  readonly workflow: Workflow;
};

export function githubOf(event: RunEvent, { repository, commit, actor, workflow }: GithubFacts): Dictionary {
  const { ref, sha } = commit;
  const [owner = ""] = repository.split("/");
  const payload = { ...aboutRepository(repository, commit, actor), ...event.payload };
  return new Dictionary([
    ["event_name", event.name],
    ["event", valueOf(payload)],
    ["ref", ref],
    ["ref_name", shortRef(ref)],
    ["ref_type", ref.startsWith("refs/tags/") ? "tag" : "branch"],
    ["ref_protected", false],
    ["sha", sha],
    ["head_ref", event.headRef ?? ""],
    ["base_ref", event.baseRef ?? ""],
    ["repository", repository],
    ["repository_owner", owner],
    ["repository_id", "1"],
    ["repository_owner_id", "1"],
    ["actor", actor],
    ["actor_id", "1"],
    ["triggering_actor", actor],
    ["workflow", workflow.name ?? workflow.path],
    ["workflow_ref", `${repository}/${workflow.path}@${ref}`],
    ["workflow_sha", sha],
    ["retention_days", "90"],
    ["server_url", "https://github.com"],
    ["api_url", "https://api.github.com"],
    ["graphql_url", "https://api.github.com/graphql"],
    ["secret_source", "Actions"],
  ]);
}

function aboutRepository(
  repository: string,
  { defaultBranch }: Commit,
  actor: string,
): Readonly<Record<string, PlainValue>> {
  const [owner = "", name = ""] = repository.split("/");
  return {
    repository: {
      name,
      full_name: repository,
      owner: { login: owner, name: owner },
      default_branch: defaultBranch,
    },
    sender: { login: actor },
  };
}
