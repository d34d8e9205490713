/**
 * The settings of who may call. Without any, callers on this machine may use the build cache and run actions in one
 * tenant, the holder of the data folder's token is an operator, and the node listens on loopback only (`whyNotListen`).
 * Secrets are never in it: tokens are given by hash or in separate files.
 */
import { z } from "zod";
import { certificatePatternProblem } from "./certificate-pattern.ts";
import { Duration, File, PrincipalName, Size } from "#base/config-words.ts";
import { jwtAlgorithms } from "./jwt/algorithms.ts";
import { isLoopbackHost } from "./loopback.ts";
import {
  allTenants,
  anonymousGrant,
  grantedRoles,
  grantProblem,
  roleMeanings,
  tenantPattern,
  type Role,
} from "#access/principal.ts";
import type { Tls } from "#edge/tls/tls-config.ts";

const Roles = z.array(z.enum(grantedRoles)).max(grantedRoles.length);

const OneTenant = z.string().regex(tenantPattern, "write letters, digits, dots and dashes only");

const Tenant = z.string().refine((tenant) => tenant === allTenants || tenantPattern.test(tenant), {
  message: `write letters, digits, dots and dashes, or "${allTenants}" for all tenants`,
});

const Pools = z
  .array(z.string().regex(/^[^\s\p{Cc}]{1,100}$/u, "write the name of a pool"))
  .max(1_000)
  .optional()
  .describe("The pools from which an executor may take work, as labels `pool=...`. Left out: the pool named default.");

const Labels = z
  .array(
    z.string().regex(/^[^=\s*]{1,100}=[^\s*]{0,100}\*?$/, 'write a label such as "gpu=yes", or "os=*" for any value'),
  )
  .max(1_000)
  .optional()
  .describe(
    "The labels that an executor may offer, besides those of its pools; a star at the end stands for anything. Left " +
      "out: any but `node=...`, `pool=...`, `sandbox=...` and `tenant=...`, which others rely on.",
  );

const granted = {
  tenant: Tenant.describe('The tenant it belongs to; "*" is all of them, for operators and shared executors.'),
  roles: Roles.min(1).describe(
    `What it may do, by role. ${grantedRoles.map((role) => `${role}: ${roleMeanings[role]}`).join("; ")}.`,
  ),
  pools: Pools,
  labels: Labels,
};

function checkGrant(grant: { tenant: string; roles: readonly Role[] }, context: z.RefinementCtx): void {
  const message = grantProblem(grant);
  if (message !== undefined) context.addIssue({ code: "custom", path: ["tenant"], message });
}

const Anonymous = z
  .strictObject({
    tenant: OneTenant.describe("The tenant of callers without credentials."),
    roles: z
      .array(z.enum(["member", "builder", "cache-reader", "cache-writer", "action-cache-writer", "viewer"]))
      .describe("What they may do; an empty list: nothing. `action-cache-writer` only for callers from loopback."),
    from: z
      .enum(["loopback", "anywhere"])
      .default("loopback")
      .describe("Where they may call from: this machine, or anywhere. Tasks of this node are never anonymous."),
  })
  .superRefine(({ roles: granted, from }, context) => {
    if (from === "anywhere" && granted.includes("action-cache-writer"))
      context.addIssue({
        code: "custom",
        path: ["roles"],
        message: "writers of results decide what others' builds contain: callers from anywhere need a token for it",
      });
  });

const Token = z
  .strictObject({
    name: PrincipalName.describe("Names the holder of the token, in logs and in the record of who asked."),
    ...granted,
    sha256: z
      .string()
      .regex(/^[0-9a-f]{64}$/, "write the token's SHA-256 as 64 lower-case hexadecimal digits, never the token itself")
      .optional()
      .describe("The SHA-256 of the token. Either this or `file`."),
    file: File.optional().describe("A file with the token itself as its only line; read again when it changes."),
  })
  .superRefine((token, context) => {
    checkGrant(token, context);
    if ((token.sha256 === undefined) === (token.file === undefined))
      context.addIssue({ code: "custom", message: "give a token either by sha256 or by file" });
  });

const Keys = z.discriminatedUnion("kind", [
  z.strictObject({
    kind: z.literal("file").describe("A JWK Set in a file; read again when it changes."),
    path: File.describe("The file."),
  }),
  z.strictObject({
    kind: z.literal("inline").describe("A JWK Set written here."),
    keys: z.array(z.record(z.string(), z.unknown())).min(1).max(100).describe("Public keys as JWKs."),
  }),
  z.strictObject({
    kind: z.literal("url").describe("A JWK Set fetched from the issuer."),
    url: z
      .url()
      .refine((url) => /^https:|^http:\/\/(localhost|127\.\d+\.\d+\.\d+|\[::1\])[:/]/.test(url), {
        message: "write an https address; plain http only on this machine",
      })
      .describe("The address. Redirects are not followed."),
    refresh: Duration({ min: "1m", max: "7d" })
      .prefault("1h")
      .describe("The keys are fetched again after this time; until that succeeds the old ones are used."),
    cooldown: Duration({ min: "1s", max: "1h" })
      .prefault("30s")
      .describe("The shortest time between two fetches, however many tokens name an unknown key."),
    timeout: Duration({ min: "100ms", max: "1m" }).prefault("5s").describe("How long a fetch may take."),
    sizeMax: Size({ min: "1KiB", max: "4MiB" }).prefault("256KiB").describe("The largest answer accepted."),
  }),
]);

const Claim = z
  .string()
  .regex(/^[^\s]{1,200}$/)
  .describe("A claim's name; dots lead into objects, unless a claim has the whole name.");

const TenantRule = z.union([
  z.strictObject({ fixed: Tenant.describe("All of the issuer's callers belong to this tenant.") }),
  z.strictObject({
    claim: Claim,
    map: z
      .record(z.string(), OneTenant)
      .optional()
      .describe("From the claim's value to a tenant; other values are refused. Left out: the value is the tenant."),
  }),
]);

const RoleRule = z
  .strictObject({
    always: Roles.default([]).describe("Roles that every caller of this issuer has."),
    claim: Claim.optional(),
    map: z
      .record(z.string(), Roles)
      .default({})
      .describe(
        "From a value of the claim (a string, a list, or a string with spaces) to roles; other values give none.",
      ),
  })
  .superRefine(({ claim, map }, context) => {
    if ((claim === undefined) !== (Object.keys(map).length === 0))
      context.addIssue({ code: "custom", message: "claim and map belong together" });
  });

const Issuer = z
  .strictObject({
    issuer: z.string().min(1).max(500).describe("Must equal the tokens' iss."),
    audience: z.array(z.string().min(1).max(500)).min(1).max(20).describe("One of these must be in the tokens' aud."),
    keys: Keys.describe("Where the issuer's public keys are."),
    algorithms: z
      .array(z.enum(jwtAlgorithms))
      .min(1)
      .default(["ES256", "RS256"])
      .describe("The signature algorithms that are accepted. Shared secrets and unsigned tokens never are."),
    skew: Duration({ min: "0s", max: "5m" })
      .prefault("30s")
      .describe("How far the issuer's clock may be from this node's."),
    lifetimeMax: Duration({ min: "1m", max: "366d" })
      .prefault("1d")
      .describe("Tokens that are valid for longer (exp - iat) are refused, because they cannot be revoked."),
    name: z
      .strictObject({ claim: Claim })
      .prefault({ claim: "sub" })
      .describe("Which claim names the caller, in logs and in the record of who asked."),
    tenant: TenantRule.describe("Which tenant the caller belongs to. Operators are of all tenants by themselves."),
    roles: RoleRule.describe("Which roles the caller has."),
    pools: Pools,
    labels: Labels,
  })
  .superRefine(({ tenant, roles: rule }, context) => {
    if (!("fixed" in tenant) || tenant.fixed !== allTenants) return;
    const mapped = Object.values(rule.map);
    for (const some of mapped.length > 0 ? mapped : [[]])
      checkGrant({ tenant: allTenants, roles: [...rule.always, ...some] }, context);
  });

const Certificate = z
  .strictObject({
    match: z
      .string()
      .superRefine((pattern, context) => {
        const message = certificatePatternProblem(pattern);
        if (message !== undefined) context.addIssue({ code: "custom", message });
      })
      .describe(
        'Which certificates: "URI:spiffe://acme/worker/*", "DNS:*.workers.acme.example", "CN:build-7". ' +
          "A star stands for letters, digits, dashes and underscores, never for a dot or a slash.",
      ),
    name: PrincipalName.optional().describe("Left out: the matching name in the certificate."),
    ...granted,
  })
  .superRefine(checkGrant);

const Settings = z.strictObject({
  anonymous: Anonymous.optional().describe(
    "Callers without credentials. Left out: they are refused. But where no tokens, issuers or certificates are " +
      "given either, callers from this machine are builders and write results, in the tenant `default`.",
  ),
  tokens: z.array(Token).max(1_000).default([]).describe("Static bearer tokens."),
  issuers: z.array(Issuer).max(20).default([]).describe("Issuers whose JSON Web Tokens are accepted."),
  certificates: z
    .array(Certificate)
    .max(1_000)
    .default([])
    .describe("Client certificates; the first rule that matches counts. Needs tls.clientCa."),
  cleartext: z
    .boolean()
    .default(false)
    .describe("Listen beyond loopback without TLS, because a proxy in front of the node does it."),
  verifiedMax: z
    .int()
    .min(1)
    .max(1_000_000)
    .default(10_000)
    .describe("How many verified JSON Web Tokens are remembered."),
  verifiedFor: Duration({ min: "1s", max: "1h" })
    .prefault("5m")
    .describe("How long one is remembered, and so how long a withdrawn key still counts."),
  verifyingMax: z
    .int()
    .min(1)
    .max(10_000)
    .default(64)
    .describe(
      "How many may be verified at once; further callers are asked to retry. One address may have a quarter of " +
        "them, unless cleartext is set.",
    ),
  tokenSizeMax: Size({ min: "256B", max: "64KiB" }).prefault("8KiB").describe("How long a bearer token may be."),
});

export const Identity = Settings.superRefine(({ anonymous, cleartext, issuers }, context) => {
  for (const [at, { issuer }] of issuers.entries())
    if (issuers.findIndex((other) => other.issuer === issuer) < at)
      context.addIssue({
        code: "custom",
        path: ["issuers", at, "issuer"],
        message: "an issuer must be listed only once",
      });
  if (cleartext && anonymous?.from === "loopback")
    context.addIssue({
      code: "custom",
      path: ["anonymous", "from"],
      message: "behind a proxy every caller has this machine's address: write anywhere, or leave anonymous out",
    });
});

export type Identity = z.output<typeof Identity>;
export type TokenConfig = Identity["tokens"][number];
export type IssuerConfig = Identity["issuers"][number];
export type KeysConfig = IssuerConfig["keys"];
export type CertificateConfig = Identity["certificates"][number];

/** Whether callers must show credentials. Anonymous access alone does not count. */
export const isAuthenticating = (identity: Identity): boolean =>
  identity.tokens.length > 0 || identity.issuers.length > 0 || identity.certificates.length > 0;

/** What a node allows by default. */
export const anonymousDefault: NonNullable<Identity["anonymous"]> = { ...anonymousGrant, from: "loopback" };

/**
 * Whether nothing is set, so that only this machine may call. Behind a proxy every caller has this machine's address,
 * so the address then identifies no caller.
 */
export const isThisMachineOnly = (identity: Identity): boolean =>
  identity.anonymous === undefined && !isAuthenticating(identity) && !identity.cleartext;

/** Why a node with these settings must not listen on this address, or undefined. `host` undefined is a Unix socket. */
export function whyNotListen(
  host: string | undefined,
  { identity, tls }: { readonly identity: Identity; readonly tls: boolean },
): string | undefined {
  if (host === undefined || isLoopbackHost(host)) return undefined;
  if (!isAuthenticating(identity))
    return "without authentication only this machine may call: use 127.0.0.1, ::1 or a Unix socket, or set identity";
  if (!tls && !identity.cleartext)
    return "credentials must not cross a network in the clear: set tls, or identity.cleartext where a proxy does it";
  return undefined;
}

/** What the identity settings need from the TLS settings and do not get, or undefined. */
export const identityTlsProblem = (identity: Identity, tls: Tls | undefined): string | undefined =>
  identity.certificates.length > 0 && tls?.clientCa === undefined
    ? "identity.certificates needs tls.clientCa: an authority must sign the certificates"
    : undefined;
