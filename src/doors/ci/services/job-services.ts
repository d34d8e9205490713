/** What a job's steps are told about the services that they may call. */
import { jobToken, type JobIdentity } from "./job-token.ts";
import { idTokenPath } from "./id-token.ts";
import type { Seal } from "./seal.ts";

export type JobServicesInput = JobIdentity & {
  /** The address of a node, as the job can reach it: `http://127.0.0.1:7411`. */
  readonly origin: string;
  /** When the job ends at the latest: its tokens end then. They are void as soon as its claim is, anyway. */
  readonly untilMs: number;
};

export type JobServices = {
  /** For steps that are actions; steps that run scripts do not get it. */
  readonly actionEnv: Readonly<Record<string, string>>;
  /** For all steps. */
  readonly env: Readonly<Record<string, string>>;
  /** For all steps of a job with `id-token: write`: how it asks for a token that says who it is. */
  readonly idEnv: Readonly<Record<string, string>>;
  /** `github.token`: reads the run's repository and its artifacts, and nothing else. No step gets it unasked. */
  readonly token: string;
  /** What the job's output must never show. */
  readonly secrets: readonly string[];
};

/** Clients of artifacts and caches refuse to work with a server that is neither github.com nor *.localhost. */
const serverName = "ci.localhost";

export async function jobServices(seal: Seal, input: JobServicesInput): Promise<JobServices> {
  const { origin, untilMs, ...identity } = input;
  const runtime = await jobToken(seal, "runtime", identity, untilMs);
  const token = await jobToken(seal, "repository", identity, untilMs);
  const server = serverUrl(origin);
  const who = identity.who ? await jobToken(seal, "id-token", identity, untilMs) : undefined;
  return {
    actionEnv: {
      ACTIONS_RUNTIME_URL: `${origin}/`,
      ACTIONS_RUNTIME_TOKEN: runtime,
      ACTIONS_RESULTS_URL: `${origin}/`,
      ACTIONS_CACHE_URL: `${origin}/`,
      ACTIONS_CACHE_SERVICE_V2: "True",
    },
    env: {
      GITHUB_SERVER_URL: server,
      GITHUB_API_URL: `${origin}/api/v3`,
      GITHUB_GRAPHQL_URL: `${origin}/api/graphql`,
    },
    idEnv:
      who === undefined
        ? {}
        : {
            ACTIONS_ID_TOKEN_REQUEST_URL: `${origin}${idTokenPath}?api-version=2.0`,
            ACTIONS_ID_TOKEN_REQUEST_TOKEN: who,
          },
    token,
    secrets: [runtime, token, ...(who === undefined ? [] : [who])],
  };
}

/** The same node by a name that clients accept: an address of this machine gets one, any other name stays. */
export function serverUrl(origin: string): string {
  const url = new URL(origin);
  const isHere = url.hostname === "localhost" || url.hostname === "[::1]" || url.hostname.startsWith("127.");
  if (isHere) url.hostname = serverName;
  return url.origin;
}
