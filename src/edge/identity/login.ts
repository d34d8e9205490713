/**
 * Signs a browser in. `POST /v1/session` trades a token for a cookie; `POST /v1/session/link` gives a link to callers
 * with credentials, and `GET /login?code=` redeems it, once.
 */
import type { Caller } from "#access/caller.ts";
import { principal as principalOf } from "#access/principal.ts";
import { Problem } from "#http/problem.ts";
import type { Peer } from "#edge/port/port.ts";
import { problem } from "#edge/problem.ts";
import type { Authenticator, Credential, OwnerToken } from "./authenticate.ts";
import { tokenSha256 } from "./bearer.ts";
import { ownerGrant } from "./identity.ts";
import { sessionCookie, type Sessions, type SignIn } from "./sessions.ts";

export type LoginLink = {
  /** To be appended to the node's address. */
  readonly path: string;
  readonly forMs: number;
};

export type Login = {
  linkFor(signIn: SignIn): Promise<LoginLink>;
  /** What a caller signs a browser in with; throws a Problem where it may not. */
  signInOf(caller: Caller, authorization: string | null): SignIn;
  /** The set-cookie header of a session. */
  cookieFor(signIn: SignIn, isTls: boolean): Promise<string>;
  /** The set-cookie header that ends it in this browser. */
  noCookie(isTls: boolean): string;
  /** Answers `GET /login`. */
  redeem(peer: Peer, request: Request): Promise<Response>;
};

export const ownerSignIn = (owner: OwnerToken | undefined): SignIn => ({
  principal: principalOf(ownerGrant, "owner"),
  credential: { kind: "owner", sha256: owner?.sha256 ?? "" },
  untilMs: Infinity,
});

export function createLogin(sessions: Sessions, authenticator: Authenticator): Login {
  return {
    async linkFor(signIn) {
      const { code, forMs } = await sessions.newCode(signIn);
      return { path: `/login?code=${code}`, forMs };
    },
    signInOf({ principal, untilMs }, authorization) {
      const { proof } = principal;
      // A session that could make the next one would never end; and anonymous access has nothing to pass on.
      if (proof === "session" || proof === "anonymous")
        throw new Problem(403, "to sign a browser in, call with a token, a JWT or a certificate");
      const credential: Credential =
        proof === "token" || proof === "owner"
          ? { kind: proof, sha256: tokenSha256((authorization ?? "").slice("Bearer ".length)) }
          : { kind: "rules", rules: authenticator.rules };
      return { principal, credential, untilMs };
    },
    async cookieFor(signIn, isTls) {
      const { cookie, forMs } = await sessions.seal(signIn);
      return sessionCookie(cookie, forMs, isTls);
    },
    noCookie: (isTls) => sessionCookie("", 0, isTls),
    async redeem(peer, { url, headers }) {
      // Another site's page must not sign this browser in as a principal of its choice.
      const site = headers.get("sec-fetch-site");
      if (site === "cross-site" || site === "same-site")
        return problem(403, "open this link by itself: paste it into the browser's address bar");
      const code = new URL(url).searchParams.get("code") ?? "";
      const redeemed = await sessions.redeem(code.slice(0, 200));
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
