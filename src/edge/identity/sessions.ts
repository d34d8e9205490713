/**
 * Sessions of signed-in browsers. A link with a code, valid once and for minutes, gives a browser a cookie, which has
 * the rights of the caller that asked for the link. All of it is in memory: it ends with the process, or when
 * credentials change. Codes and cookies are kept as hashes, and their number is limited.
 */
import { randomBytes } from "node:crypto";
import type { Clock } from "#base/clock.ts";
import { Fault } from "#base/fault.ts";
import { tokenSha256 } from "./bearer.ts";
import type { Identified } from "./identified.ts";
import type { Principal } from "#access/principal.ts";
import { unauthenticated } from "#access/refusal.ts";

export type SessionLimits = {
  readonly codeMs: number;
  readonly sessionMs: number;
  /** Per principal, codes and sessions together: a new one replaces the oldest. */
  readonly eachMax: number;
  /** For all together: more are refused. */
  readonly allMax: number;
};

export const sessionLimitsDefault: SessionLimits = {
  codeMs: 5 * 60_000,
  sessionMs: 12 * 3_600_000,
  eachMax: 16,
  allMax: 1_000,
};

type Entry = {
  readonly principal: Principal;
  /** When the credentials that the link was requested with expire. */
  readonly credentialsUntilMs: number;
  readonly untilMs: number;
  /** The authenticator's generation: when credentials change, earlier sessions are void. */
  readonly generation: number;
};

export class Sessions {
  readonly #clock: Clock;
  readonly #limits: SessionLimits;
  readonly #codes = new Map<string, Entry>();
  readonly #sessions = new Map<string, Entry>();

  constructor(clock: Clock, limits: SessionLimits = sessionLimitsDefault) {
    this.#clock = clock;
    this.#limits = limits;
  }

  /** A code for one sign-in as the principal, whose own credentials expire at `untilMs`. */
  newCode(
    principal: Principal,
    untilMs: number,
    generation: number,
  ): { readonly code: string; readonly forMs: number } {
    const about = { principal, credentialsUntilMs: untilMs, generation };
    const { secret, forMs } = this.#keep(this.#codes, about, this.#limits.codeMs);
    return { code: secret, forMs };
  }

  /** The cookie's value. Undefined: the code was used, is too old, or never existed. */
  redeem(code: string, generation: number): { readonly cookie: string; readonly forMs: number } | undefined {
    const sha256 = tokenSha256(code);
    const entry = this.#live(this.#codes, sha256, generation);
    this.#codes.delete(sha256);
    if (!entry) return undefined;
    const principal: Principal = { ...entry.principal, proof: "session" };
    const { secret, forMs } = this.#keep(this.#sessions, { ...entry, principal }, this.#limits.sessionMs);
    return { cookie: secret, forMs };
  }

  find(cookie: string, generation: number): Identified {
    const entry = this.#live(this.#sessions, tokenSha256(cookie), generation);
    if (!entry) return unauthenticated("session-unknown");
    return { ok: true, principal: entry.principal, untilMs: entry.untilMs };
  }

  #live(among: Map<string, Entry>, sha256: string, generation: number): Entry | undefined {
    const entry = among.get(sha256);
    return entry && entry.generation === generation && this.#clock.wallMs() < entry.untilMs ? entry : undefined;
  }

  #keep(among: Map<string, Entry>, about: Omit<Entry, "untilMs">, forMs: number) {
    const nowMs = this.#clock.wallMs();
    for (const [key, { untilMs, generation }] of among)
      if (untilMs <= nowMs || generation !== about.generation) among.delete(key);
    const { name, tenant } = about.principal;
    const own = [...among].filter(([, { principal }]) => principal.name === name && principal.tenant === tenant);
    for (const [key] of own.slice(0, Math.max(0, own.length + 1 - this.#limits.eachMax))) among.delete(key);
    if (among.size >= this.#limits.allMax)
      throw new Fault("exhausted", "sign a browser in", {
        sessionsMax: this.#limits.allMax,
        why: "too many browsers are signed in",
      });
    const untilMs = Math.min(nowMs + forMs, about.credentialsUntilMs);
    const secret = randomBytes(32).toString("base64url");
    among.set(tokenSha256(secret), { ...about, untilMs });
    return { secret, forMs: untilMs - nowMs };
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
  return named.length === 0 ? undefined : named.length === 1 ? (named[0] ?? "").slice(0, 200) : "";
}

/** No script can read it, and requests that another site's page started do not carry it. */
export const sessionCookie = (value: string, forMs: number, isTls: boolean): string =>
  `${cookieName}=${value}; Path=/; Max-Age=${Math.floor(forMs / 1_000)}; HttpOnly; SameSite=Strict${isTls ? "; Secure" : ""}`;
