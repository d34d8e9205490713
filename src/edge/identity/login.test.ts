/** A link signs a browser in once, and its session has no more rights than the caller that asked for the link. */
import { deepEqual, equal, match, ok, throws } from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { isFault } from "#base/fault.ts";
import { ManualClock } from "#base/testing/manual-clock.ts";
import { realClock as clock } from "#testing/real-clock.ts";
import { newToken, tokenSha256 } from "./bearer.ts";
import { startEdge, type Edge } from "#edge/edge.ts";
import { Identity } from "./identity-config.ts";
import { Log } from "#edge/log/log.ts";
import type { LoginLink } from "./login.ts";
import { principal } from "#access/principal.ts";
import { sessionOf, Sessions } from "./sessions.ts";

const owner = newToken();
const member = newToken();
const executor = newToken();

describe("a link to sign in", () => {
  let edge: Edge;
  let base: string;
  const reached: string[] = [];

  before(async () => {
    const tokens = [
      { name: "ada", tenant: "a", roles: ["member"], sha256: tokenSha256(member) },
      { name: "bot", tenant: "a", roles: ["executor"], sha256: tokenSha256(executor) },
    ];
    edge = await startEdge({
      clock,
      listen: [{ host: "127.0.0.1", port: 0 }],
      identity: Identity.parse({ tokens, anonymous: { tenant: "a", roles: ["member"] } }),
      owner: { sha256: tokenSha256(owner) },
      services: () => new Map(),
      http: (admission) => async (request, peer) => {
        const who = await admission.identifyRequest(peer, request.headers);
        reached.push(who.ok ? who.principal.name : who.refusal.reason);
        return new Response("reached");
      },
      notReady: () => [],
      log: new Log(() => {}, clock),
      h2: { drainMs: 500 },
    });
    base = `http://127.0.0.1:${edge.ports[0] ?? 0}`;
  });
  after(() => edge.close());

  const ask = (path: string, headers: Record<string, string> = {}, method = "GET"): Promise<Response> =>
    fetch(`${base}${path}`, { method, headers, redirect: "manual" });
  const linkFor = async (token?: string): Promise<Response> =>
    await ask("/api/login", token === undefined ? {} : { authorization: `Bearer ${token}` }, "POST");
  const opened = async (token: string): Promise<LoginLink> => (await (await linkFor(token)).json()) as LoginLink;
  async function signedIn(path: string): Promise<string> {
    const cookie = (await ask(path)).headers.get("set-cookie") ?? "";
    match(cookie, /^millrace_session=[\w-]{43}; Path=\/; Max-Age=43\d{3}; HttpOnly; SameSite=Strict$/);
    return cookie.split(";")[0] ?? "";
  }

  test("works once: opened again it gives nothing", async () => {
    const { path } = edge.loginLink();
    equal((await ask("/metrics")).status, 403, "without");
    equal((await ask(path, {}, "HEAD")).status, 405, "a look at it does not use it up");
    const cookie = await signedIn(path);
    equal((await ask("/metrics", { cookie })).status, 200);
    const again = await ask(path);
    deepEqual([again.status, again.headers.get("set-cookie")], [401, null]);
    match(await again.text(), /used before.*millrace login/);
    equal((await ask("/metrics", { cookie })).status, 200, "the first one's session goes on");
    equal((await ask("/login?code=")).status, 401);
    equal((await ask("/login")).status, 401);
  });

  test("cannot be opened from another site's page", async () => {
    const { path } = edge.loginLink();
    for (const site of ["cross-site", "same-site"])
      equal((await ask(path, { "sec-fetch-site": site })).status, 403, site);
    equal((await ask(path, { "sec-fetch-site": "none" })).status, 200, "and still works by itself");
  });

  test("is given to callers with credentials, and its session has their rights", async () => {
    const { path } = await opened(owner);
    equal((await ask("/metrics", { cookie: await signedIn(path) })).status, 200);
    const ada = await signedIn((await opened(member)).path);
    equal((await ask("/metrics", { cookie: ada })).status, 403, "no more than a member");
    await ask("/elsewhere", { cookie: ada });
    equal(reached.pop(), "ada");
    equal((await linkFor()).status, 403, "not to callers without credentials");
    equal((await linkFor(executor)).status, 403, "not to executors");
    equal((await linkFor("wrong-token-wrong-token-wrong-token")).status, 401);
    const origin = base;
    equal((await ask("/api/login", { cookie: ada, origin }, "POST")).status, 403, "a session begets no session");
  });

  test("gives a session that pages of other sites cannot use, and that is never treated as anonymous", async () => {
    const cookie = await signedIn(edge.loginLink().path);
    const status = async (headers: Record<string, string>): Promise<number> =>
      (await ask("/elsewhere", { cookie, ...headers }, "POST")).status;
    equal(await status({ origin: base }), 200);
    equal(reached.pop(), "owner");
    for (const origin of ["http://evil.example", "http://127.0.0.1:1", base.replace("127.0.0.1", "localhost"), "null"])
      equal(await status({ origin }), 403, origin);
    equal(await status({}), 403, "without an origin");
    equal(reached.length, 0);
    await ask("/elsewhere", { cookie: "millrace_session=wrong" });
    equal(reached.pop(), "session-unknown", "never taken for nobody");
    await ask("/elsewhere", { cookie: `${cookie}; millrace_session=wrong` });
    equal(reached.pop(), "session-unknown");
    await ask("/elsewhere", { cookie: "other=1" });
    equal(reached.pop(), "anonymous");
  });
});

describe("sessions", () => {
  const who = (name: string) => principal({ name, tenant: "a", roles: ["member"] }, "token");
  const limits = { codeMs: 1_000, sessionMs: 10_000, eachMax: 2, allMax: 5 };

  test("end by themselves, with the credentials behind them, and when credentials change", async () => {
    const manual = new ManualClock(1_000_000);
    const sessions = new Sessions(manual, limits);
    const late = sessions.newCode(who("ada"), Infinity, 0).code;
    const { cookie = "" } = sessions.redeem(sessions.newCode(who("ada"), Infinity, 0).code, 0) ?? {};
    ok(sessions.find(cookie, 0).ok);
    ok(!sessions.find(cookie, 1).ok, "credentials changed");
    await manual.advance(1_000);
    equal(sessions.redeem(late, 0), undefined, "a code lasts a second here");
    const short = sessions.redeem(sessions.newCode(who("ada"), 1_003_000, 0).code, 0);
    equal(short?.forMs, 2_000, "no longer than the token that was shown");
    await manual.advance(2_000);
    ok(!sessions.find(short?.cookie ?? "", 0).ok);
    ok(sessions.find(cookie, 0).ok);
    await manual.advance(7_000);
    ok(!sessions.find(cookie, 0).ok);
  });

  test("are limited: a principal's oldest one is dropped, and no principal can push out others", () => {
    const sessions = new Sessions(new ManualClock(1_000_000), limits);
    const signIn = (name: string): string =>
      sessions.redeem(sessions.newCode(who(name), Infinity, 0).code, 0)?.cookie ?? "";
    const [first, second, third] = [signIn("ada"), signIn("ada"), signIn("ada")];
    deepEqual(
      [first, second, third].map((cookie) => sessions.find(cookie, 0).ok),
      [false, true, true],
    );
    for (const name of ["ben", "cleo", "dora"]) signIn(name);
    throws(
      () => signIn("eve"),
      (error) => isFault(error, "exhausted"),
    );
    ok(sessions.find(third, 0).ok);
  });

  test("are found by one cookie among others", () => {
    equal(sessionOf(null), undefined);
    equal(sessionOf("a=b; my_millrace_session=x"), undefined);
    equal(sessionOf("a=b; millrace_session=x=; c"), "x=");
    equal(sessionOf("millrace_session=x; millrace_session=y"), "");
  });
});
