/** Who may fetch from and push to the repositories of this node, with git over HTTP. */
import { authorize } from "#access/policy.ts";
import { homeTenant } from "#access/caller.ts";
import { Problem, refusalProblem } from "#http/problem.ts";
import type { Identify } from "#http/serve.ts";
import type { Pusher } from "#sources/pushes.ts";
import type { Sources } from "#sources/sources.ts";
import { gitCallIn, type GitCall } from "#sources/smart-http.ts";
import { mayRead, tokenIn, type JobTokens } from "./job-token.ts";

export type GitAccessPorts = { readonly sources: Sources; readonly tokens: JobTokens };

/** Git sends credentials only when it is asked for them. */
const askFor = { "www-authenticate": 'Basic realm="millrace"' } as const;

/** Undefined for an address that is not git's. */
export function serveGitCalls(
  ports: GitAccessPorts,
  request: Request,
  identify: Identify,
): Promise<Response> | undefined {
  const call = gitCallIn(new URL(request.url), request.method);
  return call && serve(ports, request, identify, call);
}

async function serve(
  { sources, tokens }: GitAccessPorts,
  request: Request,
  identify: Identify,
  call: GitCall,
): Promise<Response> {
  const { tenant, pusher } = await callerOf(tokens, request, identify, call);
  const repository = await sources.get(tenant, call.repository);
  return await sources.serve(request, { repository, call, pusher });
}

/** A job's token reads its own repository; all others are judged by the policy. */
async function callerOf(
  tokens: JobTokens,
  request: Request,
  identify: Identify,
  { repository, service }: GitCall,
): Promise<{ readonly tenant: string; readonly pusher: Pusher }> {
  const token = tokenIn(request.headers);
  const job = token === undefined ? undefined : await tokens.find(token, "repository");
  if (job) {
    if (service === "receive-pack") throw new Problem(403, "a job's token only reads");
    if (job.repository.toLowerCase() !== repository.toLowerCase())
      throw new Problem(404, "a job's token reads the repository of its run");
    if (!mayRead(job, "contents")) throw new Problem(403, "the job has no `contents: read` permission");
    return { tenant: job.tenant, pusher: { name: "job", isOperator: false } };
  }
  const who = await identify(request);
  if (!who.ok) throw new Problem(401, who.refusal.message, { headers: askFor });
  const { principal } = who.caller;
  const tenant = homeTenant(principal);
  const judged = authorize(principal, service === "receive-pack" ? "sources.push" : "ci.read", tenant);
  if (judged.ok) return { tenant, pusher: { name: principal.name, isOperator: principal.roles.has("operator") } };
  if (principal.proof === "anonymous") throw new Problem(401, judged.refusal.message, { headers: askFor });
  throw refusalProblem(judged.refusal);
}
