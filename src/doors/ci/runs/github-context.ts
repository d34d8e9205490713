/** The github context of a run on a node (CI-37). Pure. */
import type { Workflow } from "#doors/ci/workflow/compile/model.ts";
import { Dictionary, type PlainValue, valueOf } from "#doors/ci/workflow/expression/value.ts";
import { type ForgeIds, forgeIds } from "./forge-ids.ts";
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
  readonly tenant: string;
  readonly repository: string;
  readonly commit: Commit;
  readonly actor: string;
  readonly workflow: Workflow;
  readonly retentionDays: number;
  /** Where the workflow comes from, if not from the repository itself. */
  readonly from?: { readonly repository: string; readonly ref: string; readonly sha: string } | undefined;
};

export function githubOf(event: RunEvent, facts: GithubFacts): Dictionary {
  const { repository, commit, actor, workflow } = facts;
  const { from = { repository, ref: commit.ref, sha: commit.sha } } = facts;
  const ids = forgeIds(facts);
  const { ref, sha } = commit;
  const [owner = ""] = repository.split("/");
  const payload = { ...aboutRepository(facts, ids), ...event.payload };
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
    ["repository_id", String(ids.repository)],
    ["repository_owner_id", String(ids.owner)],
    ["actor", actor],
    ["actor_id", String(ids.actor)],
    ["triggering_actor", actor],
    ["workflow", workflow.name ?? workflow.path],
    ["workflow_ref", `${from.repository}/${workflow.path}@${from.ref}`],
    ["workflow_sha", from.sha],
    ["retention_days", String(facts.retentionDays)],
    ["server_url", "https://github.com"],
    ["api_url", "https://api.github.com"],
    ["graphql_url", "https://api.github.com/graphql"],
    ["secret_source", "Actions"],
  ]);
}

function aboutRepository(
  { repository, commit: { defaultBranch }, actor }: GithubFacts,
  ids: ForgeIds,
): Readonly<Record<string, PlainValue>> {
  const [owner = "", name = ""] = repository.split("/");
  return {
    repository: {
      id: ids.repository,
      name,
      full_name: repository,
      owner: { id: ids.owner, login: owner, name: owner },
      default_branch: defaultBranch,
    },
    sender: { id: ids.actor, login: actor },
  };
}
