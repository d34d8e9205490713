/** The services that official actions call, on one node: artifacts, caches, and the bytes of both. */
import type { Clock } from "#base/clock.ts";
import type { Spool } from "#blobs/spool.ts";
import type { Store } from "#blobs/store.ts";
import type { DoorPorts } from "#door/ports.ts";
import type { Identify } from "#http/serve.ts";
import type { Sources } from "#sources/sources.ts";
import { asProblem, Problem } from "#http/problem.ts";
import { Artifacts, type ArtifactKeeps } from "#doors/ci/services/artifacts/artifacts.ts";
import { artifactMethods, type ArtifactTwirpPorts } from "#doors/ci/services/artifacts/artifact-twirp.ts";
import { BlockUploads } from "./block-uploads.ts";
import { Caches } from "#doors/ci/services/caches/caches.ts";
import { cacheMethods } from "#doors/ci/services/caches/cache-twirp.ts";
import { cacheV1Prefix, serveCacheV1 } from "#doors/ci/services/caches/cache-v1.ts";
import { serveGitCalls } from "./git-access.ts";
import { idTokenPath, serveIdToken } from "./id-token.ts";
import { restPrefix, serveRest } from "./rest.ts";
import { jobServices, type JobServices, type JobServicesInput } from "./job-services.ts";
import { JobTokens, tokenIn } from "./job-token.ts";
import type { LiveClaims } from "#shard/client/live-claims.ts";
import type { CheckName } from "#doors/ci/secrets/open-names.ts";
import type { ServiceLimits } from "./limits.ts";
import type { Names } from "./names.ts";
import type { Seal } from "./seal.ts";
import { signedAddress, signedPrefix, type Signed } from "./signed-address.ts";
import { serveSigned } from "./signed-files.ts";
import { readTwirp, twirpFailure, type TwirpMethod } from "./twirp.ts";

export type ServicePorts = {
  readonly names: Names;
  readonly store: Store;
  readonly sources: Sources;
  readonly spool: Spool;
  readonly keeps: ArtifactKeeps;
  readonly clock: Clock;
  readonly seal: Seal;
  readonly isLive: LiveClaims;
  readonly limits: ServiceLimits;
  readonly issue: DoorPorts["issue"];
  readonly checkName: CheckName;
  readonly finished?: ArtifactTwirpPorts["finished"];
  /** Errors of this node; the caller gets 500. */
  readonly report: (error: unknown) => void;
};

export type CiServices = {
  readonly artifacts: Artifacts;
  readonly caches: Caches;
  readonly tokens: JobTokens;
  /** Undefined for an address that is not a service's. */
  readonly http: (request: Request, identify: Identify) => Promise<Response> | undefined;
  readonly jobServices: (input: JobServicesInput) => Promise<JobServices>;
  readonly sign: (origin: string, signed: Signed) => Promise<string>;
};

/** What is served besides the table of routes. */
export const actionProtocols = ["twirp", "cache-v1", "files", "rest", "git", "hooks", "id-token"] as const;

const twirpPrefix = "/twirp/github.actions.results.api.v1.";

export function openServices(ports: ServicePorts): CiServices {
  const { seal, clock, limits } = ports;
  const uploads = new BlockUploads(ports);
  const artifacts = new Artifacts({ ...ports, uploads });
  const caches = new Caches({ ...ports, uploads });
  const tokens = new JobTokens(seal, ports.isLive);
  const sign = (origin: string, signed: Signed): Promise<string> =>
    signedAddress(seal, origin, signed, clock.wallMs() + limits.addressMs);
  const methods = new Map<string, TwirpMethod>([
    ...Object.entries(artifactMethods({ artifacts, sign, finished: ports.finished })).map(
      ([name, run]) => [`ArtifactService/${name}`, run] as const,
    ),
    ...Object.entries(cacheMethods({ caches, sign })).map(([name, run]) => [`CacheService/${name}`, run] as const),
  ]);
  const files = { ...ports, uploads, artifacts, caches };

  async function twirp(request: Request, url: URL): Promise<Response> {
    try {
      const method = methods.get(url.pathname.slice(twirpPrefix.length));
      if (!method) throw new Problem(404, "the service has no such method");
      const job = await tokens.require(tokenIn(request.headers), "runtime");
      return Response.json(await method({ job, origin: url.origin }, await readTwirp(request, clock)));
    } catch (error) {
      const { response, isOurs } = twirpFailure(error);
      if (isOurs) ports.report(error);
      return response;
    }
  }

  async function cacheV1(request: Request, url: URL): Promise<Response> {
    const job = await tokens.require(tokenIn(request.headers), "runtime");
    return await serveCacheV1({ ...files, sign }, { request, url, job, origin: url.origin });
  }

  async function rest(request: Request, url: URL): Promise<Response> {
    const job = await tokens.require(tokenIn(request.headers), "repository");
    return await serveRest({ ...ports, artifacts, caches, sign }, request, url, job);
  }

  async function idToken(request: Request, url: URL): Promise<Response> {
    const job = await tokens.require(tokenIn(request.headers), "id-token");
    return await serveIdToken(ports.issue, url, job);
  }

  return {
    artifacts,
    caches,
    tokens,
    sign,
    jobServices: (input) => jobServices(seal, input),
    http(request, identify) {
      const url = new URL(request.url);
      if (url.pathname.startsWith(twirpPrefix)) return twirp(request, url);
      if (url.pathname.startsWith(cacheV1Prefix)) return orProblem(cacheV1(request, url), ports.report);
      if (url.pathname.startsWith(signedPrefix)) return orProblem(serveSigned(files, request, url), ports.report);
      if (url.pathname.startsWith(restPrefix)) return orProblem(rest(request, url), ports.report);
      if (url.pathname === idTokenPath) return orProblem(idToken(request, url), ports.report);
      const git = serveGitCalls({ ...ports, tokens }, request, identify);
      return git && orProblem(git, ports.report);
    },
  };
}

/** Plain JSON: clients of REST calls read nothing else, and show `message`. */
async function orProblem(answer: Promise<Response>, report: (error: unknown) => void): Promise<Response> {
  try {
    return await answer;
  } catch (error) {
    const { problem, isOurs } = asProblem(error);
    if (isOurs) report(error);
    const { status, message, headers } = problem;
    return Response.json({ status, title: message, message }, { status, headers });
  }
}
