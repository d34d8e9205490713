/**
 * Makes an authenticator from the identity settings: reads the files they name, and reads them again when they change.
 */
import { hash } from "node:crypto";
import type { Clock } from "#base/clock.ts";
import { Fault } from "#base/fault.ts";
import { Authenticator, type KnownCallers, type OwnerToken } from "./authenticate.ts";
import { tokenProblem, tokenSha256 } from "./bearer.ts";
import { certificateRules } from "./certificate-rules.ts";
import { fetchText, type FetchTextLimits } from "./jwt/fetch-text.ts";
import { anonymousDefault, isThisMachineOnly } from "./identity-config.ts";
import type { Identity, KeysConfig, TokenConfig } from "./identity-config.ts";
import { keySet, keySetOfText } from "./jwt/jwks.ts";
import { jwtVerifier, type OwnTokens } from "./jwt/verifier.ts";
import { fixedKeys, RemoteKeys, type KeyRing } from "./jwt/key-ring.ts";
import { allTenants, principal, type Grant } from "#access/principal.ts";
import { readSmallFile } from "#edge/tls/small-file.ts";
import { staticTokens, type StaticToken } from "./static-tokens.ts";
import { WatchedFiles } from "#edge/tls/watched-files.ts";

export type IdentityPorts = {
  readonly clock: Clock;
  /** A file or key could not be read; the previous one stays in use. */
  readonly onTrouble: (error: unknown) => void;
  /** The data folder's token; left out: there is none. */
  readonly owner?: OwnerToken | undefined;
  /** Tokens that this cluster issues; left out: it issues none. */
  readonly own?: OwnTokens | undefined;
  readonly fetchText?: typeof fetchText;
  /** How often to check whether a file has changed. */
  readonly reloadMs?: number;
};

export type OpenIdentity = Disposable & { readonly authenticator: Authenticator };

export async function openIdentity(identity: Identity, ports: IdentityPorts): Promise<OpenIdentity> {
  const remote = remoteKeysOf(identity, ports);
  const watched = await WatchedFiles.start(filesOf(identity), {
    clock: ports.clock,
    everyMs: ports.reloadMs ?? 30_000,
    onChange: async () => authenticator.replace(await knownFrom(identity, remote, ports)),
    onTrouble: ports.onTrouble,
  });
  const limits = {
    tokenLengthMax: identity.tokenSizeMax,
    verifiedMax: identity.verifiedMax,
    verifiedForMs: identity.verifiedFor,
    verifyingMax: identity.verifyingMax,
    // Behind a proxy all callers have its address.
    verifyingPerAddressMax: identity.cleartext ? identity.verifyingMax : Math.ceil(identity.verifyingMax / 4),
  };
  const authenticator = await knownFrom(identity, remote, ports).then(
    (known) => new Authenticator(known, limits, ports.clock),
    (error: unknown) => {
      watched[Symbol.dispose]();
      throw error;
    },
  );
  return { authenticator, [Symbol.dispose]: () => watched[Symbol.dispose]() };
}

async function knownFrom(
  identity: Identity,
  remote: ReadonlyMap<string, KeyRing>,
  { owner, own }: Pick<IdentityPorts, "owner" | "own">,
): Promise<KnownCallers> {
  const tokens = await Promise.all(identity.tokens.map((token) => readToken(token, identity.tokenSizeMax)));
  const issuers = await Promise.all(
    identity.issuers.map(async (config) => ({ config, keys: await readKeys(config.keys, remote) })),
  );
  return {
    tokens: staticTokens(tokens),
    owner: owner && staticTokens([{ ...ownerGrant, sha256: owner.sha256 }], "owner"),
    verifyJwt: issuers.length > 0 || own ? jwtVerifier(issuers, own) : undefined,
    certificates: identity.certificates.length > 0 ? certificateRules(identity.certificates) : undefined,
    anonymous: anonymousOf(identity),
    rules: await rulesOf(identity),
  };
}

/** The owner of the data folder owns the node: the Unix socket in the folder gives the same rights. */
export const ownerGrant = { name: "owner", tenant: allTenants, roles: ["operator"] } as const satisfies Grant;

function anonymousOf(identity: Identity): KnownCallers["anonymous"] {
  const anonymous = identity.anonymous ?? (isThisMachineOnly(identity) ? anonymousDefault : undefined);
  if (!anonymous) return undefined;
  const grant = { name: "anonymous", tenant: anonymous.tenant, roles: anonymous.roles };
  const outcome = { ok: true, principal: principal(grant, "anonymous"), untilMs: Infinity } as const;
  return { outcome, loopbackOnly: anonymous.from === "loopback" };
}

/** Says in one digest what JWTs and certificates are judged by. */
async function rulesOf({ issuers, certificates }: Identity): Promise<string> {
  const files = issuers.flatMap(({ keys: from }) => (from.kind === "file" ? [from.path] : []));
  const keys = await Promise.all(files.map((path) => readSmallFile(path, "read an issuer's keys")));
  return hash("sha256", JSON.stringify({ issuers, certificates, keys }));
}

async function readToken(token: TokenConfig, tokenLengthMax: number): Promise<StaticToken> {
  const { name, tenant, roles, pools, labels, file } = token;
  const grant = { name, tenant, roles, pools, labels };
  if (token.sha256 !== undefined) return { ...grant, sha256: token.sha256 };
  const secret = (await readSmallFile(file ?? "", "read a token", 64 * 1024)).trim();
  const why = tokenProblem(secret, tokenLengthMax);
  if (why !== undefined) throw new Fault("invalid", "read a token", { name, file, why });
  return { ...grant, sha256: tokenSha256(secret) };
}

async function readKeys(keys: KeysConfig, remote: ReadonlyMap<string, KeyRing>): Promise<KeyRing> {
  switch (keys.kind) {
    case "file":
      return fixedKeys(keySetOfText(await readSmallFile(keys.path, "read an issuer's keys"), keys.path));
    case "inline":
      return fixedKeys(keySet(keys.keys, "the configuration"));
    case "url":
      return remote.get(keys.url) ?? unknownUrl(keys.url);
  }
}

const unknownUrl = (url: string): never => {
  throw new Fault("internal", "read an issuer's keys", { url });
};

/** Made once, so that fetched keys survive a change of a file. */
function remoteKeysOf(identity: Identity, ports: IdentityPorts): ReadonlyMap<string, KeyRing> {
  const rings = identity.issuers.flatMap(({ keys }) => {
    if (keys.kind !== "url") return [];
    const limits: FetchTextLimits = { timeoutMs: keys.timeout, sizeBytesMax: keys.sizeMax };
    const settings = { url: keys.url, refreshMs: keys.refresh, cooldownMs: keys.cooldown };
    const ring = new RemoteKeys(settings, {
      clock: ports.clock,
      fetchText: () => (ports.fetchText ?? fetchText)(keys.url, limits, ports.clock),
      onTrouble: ports.onTrouble,
    });
    return [[keys.url, ring] as const];
  });
  return new Map(rings);
}

const filesOf = (identity: Identity): readonly string[] => [
  ...identity.tokens.flatMap(({ file }) => (file === undefined ? [] : [file])),
  ...identity.issuers.flatMap(({ keys }) => (keys.kind === "file" ? [keys.path] : [])),
];
