/** Serves /v1/session. */
import { endSession, makeLoginLink, showSession, startSession } from "#api/session.ts";
import type { Login } from "#edge/identity/login.ts";
import { route, type Route } from "#http/route.ts";

export const sessionRoutes = (login: Login): readonly Route[] => [
  route(showSession, ({ caller: { principal } }) => {
    const { name, tenant, roles, proof } = principal;
    return { body: { name, tenant, roles: [...roles], proof } };
  }),
  route(startSession, async ({ caller, headers }) => {
    const signIn = login.signInOf(caller, headers.get("authorization"));
    const cookie = await login.cookieFor(signIn, caller.isTls);
    return { headers: { "set-cookie": cookie }, body: { name: signIn.principal.name } };
  }),
  route(endSession, ({ caller }) => ({ headers: { "set-cookie": login.noCookie(caller.isTls) } })),
  route(makeLoginLink, async ({ caller, headers }) => ({
    body: await login.linkFor(login.signInOf(caller, headers.get("authorization"))),
  })),
];
