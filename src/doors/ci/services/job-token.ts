/**
 * The token that a job's steps call with. It names the attempt that it was made for, by its claim.
 *
 * SV2 A token opens nothing once its attempt's claim is void: an attempt that was replaced, has ended or lost its lease
 *     can neither publish nor read.
 */
import { z } from "zod";
import type { LiveClaims } from "#shard/client/live-claims.ts";
import { Problem } from "#http/problem.ts";
import type { Seal } from "./seal.ts";

/** One attempt at one job of a run, and what it may see. */
export type JobIdentity = {
  readonly tenant: string;
  /** The kernel's job, which is the run. */
  readonly run: string;
  /** The task, which is a job of the run: one cell of its matrix. */
  readonly task: string;
  /** The token of the attempt's claim. */
  readonly claim: number;
  /** The attempt of the whole run, as `github.run_attempt`. */
  readonly runAttempt: number;
  /** `owner/name`. */
  readonly repository: string;
  /** Refs whose caches it may read, its own first; it writes to the first only. */
  readonly cacheRefs: readonly string[];
  /** What its token may do, by scope; left out: read. */
  readonly permissions?: Readonly<Record<string, string>> | undefined;
  /** Who the job is to others, in a token of this use alone. */
  readonly who?: JobWho | undefined;
};

/** What an identity token of the job says. */
export type JobWho = { readonly subject: string; readonly claims: Readonly<Record<string, string>> };

export function mayRead({ permissions }: JobIdentity, scope: string): boolean {
  return permissions === undefined || ["read", "write"].includes(permissions[scope] ?? "none");
}

/** `runtime`: artifacts and caches. `repository`: reads the repository and the REST API. `id-token`: asks who it is. */
export type TokenUse = (typeof uses)[number];
const uses = ["runtime", "repository", "id-token"] as const;

const Claims = z.object({
  use: z.enum(uses),
  tenant: z.string(),
  run: z.string(),
  task: z.string(),
  claim: z.number().int(),
  runAttempt: z.number().int(),
  repository: z.string(),
  cacheRefs: z.array(z.string()),
  permissions: z.record(z.string(), z.string()).optional(),
  who: z.object({ subject: z.string(), claims: z.record(z.string(), z.string()) }).optional(),
});

const readAndWrite = 3;
const readOnly = 1;

export function jobToken(seal: Seal, use: TokenUse, who: JobIdentity, untilMs: number): Promise<string> {
  const { who: claims, ...identity } = who;
  const { run, task, cacheRefs } = identity;
  const scopes = cacheRefs.map((Scope, at) => ({ Scope, Permission: at === 0 ? readAndWrite : readOnly }));
  // Clients find the ids that they send in `scp`, without checking anything.
  const known = use === "runtime" ? { scp: `Actions.Results:${run}:${task}`, ac: JSON.stringify(scopes) } : {};
  return seal.token({ ...identity, use, ...known, ...(use === "id-token" && { who: claims }) }, untilMs);
}

export class JobTokens {
  readonly #seal: Seal;
  readonly #isLive: LiveClaims;

  constructor(seal: Seal, isLive: LiveClaims) {
    this.#seal = seal;
    this.#isLive = isLive;
  }

  /** Throws Problem 401 or 403 unless the token is one of a live attempt, for this use. */
  async require(token: string | undefined, use: TokenUse): Promise<JobIdentity> {
    const identity = token === undefined ? undefined : await this.find(token, use);
    if (!identity) throw new Problem(401, `the call needs the token of a job (${use})`, { headers: challenge });
    return identity;
  }

  /** Undefined: the token is none of this cluster's for this use. Throws Problem 403 for one whose attempt is over. */
  async find(token: string, use: TokenUse): Promise<JobIdentity | undefined> {
    const claims = Claims.safeParse(await this.#seal.open(token));
    if (!claims.success || claims.data.use !== use) return undefined;
    const { use: _use, ...identity } = claims.data;
    if (await this.#isLive(identity)) return identity;
    throw new Problem(403, "the attempt that this token was made for is over: another attempt may be running");
  }
}

const challenge = { "www-authenticate": "Bearer" } as const;

/** The token of an authorization header: `Bearer x`, `token x`, or the password of `Basic`. */
export function tokenIn(headers: Headers): string | undefined {
  const given = headers.get("authorization") ?? "";
  const plain = /^(?:bearer|token) (.{1,8192})$/i.exec(given)?.[1];
  if (plain !== undefined) return plain;
  const basic = /^basic ([A-Za-z0-9+/_=-]{1,12288})$/i.exec(given)?.[1];
  if (basic === undefined) return undefined;
  const pair = Buffer.from(basic, "base64").toString("utf8");
  return pair.slice(pair.indexOf(":") + 1);
}
