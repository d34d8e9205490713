/**
 * Tokens that say to others who a job is: what clouds and registries exchange for credentials of their own. A step asks
 * with a token that ends with its claim; the answer lives for minutes, and opens nothing in this cluster.
 */
import { tenantDefault } from "#access/caller.ts";
import type { WantedToken } from "#door/ports.ts";
import { Problem } from "#http/problem.ts";
import type { PlainValue } from "#doors/ci/workflow/expression/value.ts";
import type { JobIdentity, JobWho } from "./job-token.ts";

export const idTokenPath = "/_apis/oidc/token";

const forMs = 10 * 60_000;
const audienceLengthMax = 500;

export async function serveIdToken(
  issue: (wanted: WantedToken) => Promise<string>,
  url: URL,
  { who, repository }: JobIdentity,
): Promise<Response> {
  if (!who) throw new Problem(403, "the job has no permission for this: it needs `permissions: id-token: write`");
  const [owner = ""] = repository.split("/");
  const audience = url.searchParams.get("audience") ?? `${url.origin}/${owner}`;
  if (audience === "" || audience.length > audienceLengthMax)
    throw new Problem(400, `audience: it has 1 to ${audienceLengthMax} characters`);
  return Response.json({ value: await issue({ audience, subject: who.subject, forMs, claims: who.claims }) });
}

export type WhoFacts = {
  readonly tenant: string;
  readonly task: string;
  readonly environment?: string | undefined;
};

/** The claims that verifiers of GitHub's tokens know. Pure. */
export function whoOf(github: PlainValue, facts: WhoFacts): JobWho {
  const known = github as Readonly<Record<string, PlainValue>>;
  const text = (name: string): string => (typeof known[name] === "string" ? known[name] : "");
  const copied = names.map((name) => [name, text(name)] as const).filter(([, value]) => value !== "");
  const { tenant, task, environment } = facts;
  return {
    // two tenants may have a repository of the same name, and trust is often given by the subject alone
    subject: `${tenant === tenantDefault ? "" : `tenant:${tenant}:`}repo:${text("repository")}:${about(text, environment)}`,
    claims: {
      ...Object.fromEntries(copied),
      job_workflow_ref: text("workflow_ref"),
      job_workflow_sha: text("workflow_sha"),
      check_run_id: task,
      repository_visibility: "private",
      runner_environment: "self-hosted",
      tenant,
      ...(environment !== undefined && { environment }),
    },
  };
}

const names = (
  "repository repository_id repository_owner repository_owner_id ref ref_type sha actor actor_id workflow " +
  "workflow_ref workflow_sha head_ref base_ref event_name run_id run_number run_attempt"
).split(" ");

function about(text: (name: string) => string, environment: string | undefined): string {
  if (environment !== undefined) return `environment:${environment.replaceAll(":", "%3A")}`;
  return text("event_name") === "pull_request" ? "pull_request" : `ref:${text("ref")}`;
}
