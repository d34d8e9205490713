/**
 * Signs a browser in: `POST /api/login` gives a link to callers with credentials; `GET /login?code=` redeems it, once.
 */
import type { Admission } from "#edge/port/admission.ts";
import type { Authenticator } from "./authenticate.ts";
import { isFault } from "#base/fault.ts";
import type { Peer } from "#edge/port/port.ts";
import { problem, refused } from "#edge/problem.ts";
import type { Principal } from "#access/principal.ts";
import { sessionCookie, type Sessions } from "./sessions.ts";

export const loginPath = "/api/login";

export type LoginLink = {
  /** To be appended to the node's address. */
  readonly path: string;
  readonly forMs: number;
};

export type Login = {
  linkFor(principal: Principal, untilMs?: number): LoginLink;
  /** Answers `POST /api/login`. */
  link(peer: Peer, request: Request): Promise<Response>;
  /** Answers `GET /login`. */
  redeem(peer: Peer, request: Request): Response;
};

export function createLogin(sessions: Sessions, authenticator: Authenticator, admission: Admission): Login {
  const linkFor = (principal: Principal, untilMs = Infinity): LoginLink => {
    const { code, forMs } = sessions.newCode(principal, untilMs, authenticator.generation);
    return { path: `/login?code=${code}`, forMs };
  };
  return {
    linkFor,
    async link(peer, { headers }) {
      const judged = await admission.judge(peer, headers, "login.link");
      if (!judged.ok) return refused(judged.refusal);
      const { principal, untilMs } = judged;
      // A session that could make the next one would never end; and anonymous access has nothing to pass on.
      if (principal.proof === "session" || principal.proof === "anonymous")
        return problem(403, "a sign-in link needs a caller with a token, a JWT or a certificate");
      try {
        return Response.json(linkFor(principal, untilMs), { status: 201, headers: { "cache-control": "no-store" } });
      } catch (error) {
        if (isFault(error, "exhausted")) return problem(429, "too many browsers are signed in: try again later");
        throw error;
      }
    },
    redeem(peer, { url, headers }) {
      // Another site's page must not sign this browser in as a principal of its choice.
      const site = headers.get("sec-fetch-site");
      if (site === "cross-site" || site === "same-site")
        return problem(403, "open this link by itself: paste it into the browser's address bar");
      const code = new URL(url).searchParams.get("code") ?? "";
      const redeemed = sessions.redeem(code.slice(0, 200), authenticator.generation);
      if (!redeemed)
        return problem(401, "this link was used before, or is too old: get a new one with `millrace login`");
      return new Response(page, {
        headers: {
          "content-type": "text/html; charset=utf-8",
          "set-cookie": sessionCookie(redeemed.cookie, redeemed.forMs, peer.tls !== undefined),
          "cache-control": "no-store",
          "referrer-policy": "no-referrer",
          "content-security-policy": "default-src 'none'",
        },
      });
    },
  };
}

const page = `<!doctype html>
<meta charset="utf-8">
<title>millrace</title>
<meta http-equiv="refresh" content="0; url=/">
<p>This browser is signed in. <a href="/">Go to the console</a>.
`;
