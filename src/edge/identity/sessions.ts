/**
 * Sessions of signed-in browsers. A link with a code, valid once and for minutes, gives a browser a cookie; so does a
 * token. The cookie is sealed with a key that all nodes of the cluster share: each of them opens it, and none keeps a
 * list. It names the credentials that it was given for, and is valid only as long as they are:
 *
 * SE1 Removing a token, or changing the rules for JWTs and certificates, ends the sessions that came from it.
 * SE2 A code is redeemed once, whichever node is asked.
 * SE3 A session never outlives the credentials that it was given for.
 */
import { createCipheriv, createDecipheriv, randomBytes } from "node:crypto";
import { z } from "zod";
import type { Clock } from "#base/clock.ts";
import type { Entries } from "#base/entries.ts";
import { Fault } from "#base/fault.ts";
import { principal as principalOf, roles, type Principal } from "#access/principal.ts";
import { unauthenticated } from "#access/refusal.ts";
import type { Credential } from "./authenticate.ts";
import { tokenSha256 } from "./bearer.ts";
import type { Identified } from "./identified.ts";

export type SessionLimits = {
  readonly codeMs: number;
  readonly sessionMs: number;
  /** Codes of one principal: a new one replaces the oldest. */
  readonly codesMax: number;
  /** After this time all browsers sign in again, with a new key. */
  readonly keyMs: number;
};

export const sessionLimitsDefault: SessionLimits = {
  codeMs: 5 * 60_000,
  sessionMs: 12 * 3_600_000,
  codesMax: 16,
  keyMs: 30 * 86_400_000,
};

/** Who signs a browser in, by what, and until when that counts. */
export type SignIn = {
  readonly principal: Principal;
  readonly credential: Credential;
  readonly untilMs: number;
};

export type SessionPorts = {
  readonly clock: Clock;
  readonly entries: Entries;
  /** Who these credentials stand for now; undefined when they do not count any more. */
  readonly stillGranted: (credential: Credential) => Principal | "as it was" | undefined;
};

const Stored = z.object({
  name: z.string(),
  tenant: z.string(),
  roles: z.array(z.enum(roles)),
  credential: z.union([
    z.object({ kind: z.enum(["token", "owner"]), sha256: z.string() }),
    z.object({ kind: z.literal("rules"), rules: z.string() }),
  ]),
  untilMs: z.number().nullable(),
});

const codeSpace = "login-code";
const keyName = { space: "session-key", key: "1" } as const;
const cookieLengthMax = 3_500;

export class Sessions {
  readonly #ports: SessionPorts;
  readonly #limits: SessionLimits;
  #key: { readonly bytes: Promise<Buffer>; readonly untilMonoMs: number } | undefined;

  constructor(ports: SessionPorts, limits: SessionLimits = sessionLimitsDefault) {
    this.#ports = ports;
    this.#limits = limits;
  }

  /** A code for one sign-in. */
  async newCode(signIn: SignIn): Promise<{ readonly code: string; readonly forMs: number }> {
    const code = randomBytes(32).toString("base64url");
    const { tenant, name } = signIn.principal;
    const { codeMs: forMs, codesMax: ownerMax } = this.#limits;
    const entry = { space: codeSpace, key: tokenSha256(code), owner: `${tenant}/${name}`, value: textOf(signIn) };
    await this.#ports.entries.add({ ...entry, forMs, ownerMax });
    return { code, forMs };
  }

  /** Undefined: the code was used, is too old, or never was one. */
  async redeem(code: string): Promise<SealedSession | undefined> {
    const name = { space: codeSpace, key: tokenSha256(code) };
    const found = await this.#ports.entries.read(name);
    if (!found || !(await this.#ports.entries.remove(name, found.value))) return undefined;
    const signIn = this.#counting(found.value);
    return signIn && (await this.seal(signIn));
  }

  async seal(signIn: SignIn): Promise<SealedSession> {
    const nowMs = this.#ports.clock.wallMs();
    const untilMs = Math.min(nowMs + this.#limits.sessionMs, signIn.untilMs);
    const iv = randomBytes(12);
    const cipher = createCipheriv("aes-256-gcm", await this.#sealKey(), iv);
    const sealed = Buffer.concat([cipher.update(textOf({ ...signIn, untilMs })), cipher.final()]);
    const cookie = Buffer.concat([iv, cipher.getAuthTag(), sealed]).toString("base64url");
    if (cookie.length > cookieLengthMax)
      throw new Fault("invalid", "sign a browser in", { why: "the caller's name and roles are too long for a cookie" });
    return { cookie, forMs: untilMs - nowMs };
  }

  async find(cookie: string): Promise<Identified> {
    const text = opened(cookie, await this.#sealKey());
    const signIn = text === undefined ? undefined : this.#counting(text);
    if (!signIn) return unauthenticated("session-unknown");
    return { ok: true, principal: { ...signIn.principal, proof: "session" }, untilMs: signIn.untilMs };
  }

  #counting(text: string): SignIn | undefined {
    const { credential, untilMs: stored, ...grant } = Stored.parse(JSON.parse(text));
    const untilMs = stored ?? Infinity;
    const granted = this.#ports.stillGranted(credential);
    if (granted === undefined || this.#ports.clock.wallMs() >= untilMs) return undefined;
    const principal = granted === "as it was" ? principalOf(grant, "session") : granted;
    return { principal, credential, untilMs };
  }

  /** Read once, and again when its time is over or it could not be read. */
  #sealKey(): Promise<Buffer> {
    const { clock } = this.#ports;
    if (this.#key && clock.monotonicMs() < this.#key.untilMonoMs) return this.#key.bytes;
    const startedMs = clock.monotonicMs();
    const found = this.#sharedKey();
    const bytes = found.then(({ value }) => Buffer.from(value, "base64url"));
    const mine = (this.#key = { bytes, untilMonoMs: startedMs + keyReadMs });
    found.then(
      ({ remainingMs }) => {
        if (this.#key === mine) this.#key = { bytes, untilMonoMs: startedMs + remainingMs };
      },
      () => {
        if (this.#key === mine) this.#key = undefined;
      },
    );
    return bytes;
  }

  async #sharedKey(): Promise<{ readonly value: string; readonly remainingMs: number }> {
    const { entries } = this.#ports;
    const found = await entries.read(keyName);
    if (found) return found;
    const value = randomBytes(32).toString("base64url");
    const { keyMs: forMs } = this.#limits;
    const added = await entries.add({ ...keyName, owner: "cluster", value, forMs, ownerMax: 1 });
    return { value: added.added ? value : added.value, remainingMs: forMs };
  }
}

export type SealedSession = { readonly cookie: string; readonly forMs: number };

/** How long one reading of the key may take before another is tried. */
const keyReadMs = 30_000;

const textOf = ({ principal: { name, tenant, roles: has }, credential, untilMs }: SignIn): string =>
  JSON.stringify({ name, tenant, roles: [...has], credential, untilMs: untilMs === Infinity ? null : untilMs });

/** The sealed text; undefined for a cookie that was not sealed with this key. */
function opened(cookie: string, key: Buffer): string | undefined {
  const bytes = Buffer.from(cookie.slice(0, cookieLengthMax), "base64url");
  if (bytes.length < 28) return undefined;
  const decipher = createDecipheriv("aes-256-gcm", key, bytes.subarray(0, 12), { authTagLength: 16 });
  decipher.setAuthTag(bytes.subarray(12, 28));
  try {
    return Buffer.concat([decipher.update(bytes.subarray(28)), decipher.final()]).toString("utf8");
  } catch {
    return undefined;
  }
}

const cookieName = "millrace_session";

/** The session that a cookie header names. If it names several, none is trusted. */
export function sessionOf(cookie: string | null): string | undefined {
  if (cookie === null || !cookie.includes(cookieName)) return undefined;
  const named = cookie.split(";").flatMap((pair) => {
    const [name = "", ...value] = pair.trim().split("=");
    return name === cookieName ? [value.join("=")] : [];
  });
  return named.length === 0 ? undefined : named.length === 1 ? (named[0] ?? "").slice(0, cookieLengthMax) : "";
}

/** No script can read it, and requests that another site's page started do not carry it. An empty value deletes it. */
export const sessionCookie = (value: string, forMs: number, isTls: boolean): string =>
  `${cookieName}=${value}; Path=/; Max-Age=${Math.floor(forMs / 1_000)}; HttpOnly; SameSite=Strict${isTls ? "; Secure" : ""}`;
