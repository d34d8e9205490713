/** A link signs a browser in once, and its session has no more rights than the caller that asked for the link. */
import { deepEqual, equal, match, ok } from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { ManualClock } from "#base/testing/manual-clock.ts";
import { realClock as clock } from "#testing/real-clock.ts";
import { newToken, tokenSha256 } from "./bearer.ts";
import { startEdge, type Edge } from "#edge/edge.ts";
import { Identity } from "./identity-config.ts";
import { Log } from "#edge/log/log.ts";
import type { LoginLink } from "./login.ts";
import { principal, type Principal } from "#access/principal.ts";
import { asProblem, problemResponse } from "#http/problem.ts";
import { memoryEntries } from "#base/memory-entries.ts";
import { sessionOf, Sessions, type SessionPorts, type SignIn } from "./sessions.ts";

const owner = newToken();
const member = newToken();

describe("a link to sign in", () => {
  let edge: Edge;
  let base: string;
  const reached: string[] = [];
  const entries = memoryEntries(() => clock.wallMs());

  before(async () => {
    const tokens = [{ name: "ada", tenant: "a", roles: ["member"], sha256: tokenSha256(member) }];
    edge = await startEdge({
      clock,
      listen: [{ host: "127.0.0.1", port: 0 }],
      identity: Identity.parse({ tokens, anonymous: { tenant: "a", roles: ["member"] } }),
      owner: { sha256: tokenSha256(owner) },
      services: () => new Map(),
      entries,
      http: (admission, _registry, login) => ({
        async serve(request, peer) {
          const who = await admission.identifyRequest(peer, request.headers);
          if (!request.url.endsWith("/link")) {
            reached.push(who.ok ? who.caller.principal.name : who.refusal.reason);
            return new Response("reached");
          }
          if (!who.ok) return new Response("", { status: 401 });
          try {
            const link = await login.linkFor(login.signInOf(who.caller, request.headers.get("authorization")));
            return Response.json(link);
          } catch (error) {
            return problemResponse(asProblem(error).problem);
          }
        },
      }),
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
    await ask("/link", token === undefined ? {} : { authorization: `Bearer ${token}` }, "POST");
  const opened = async (token: string): Promise<LoginLink> => (await (await linkFor(token)).json()) as LoginLink;
  async function signedIn(path: string): Promise<string> {
    const cookie = (await ask(path)).headers.get("set-cookie") ?? "";
    match(cookie, /^millrace_session=[\w-]{100,1000}; Path=\/; Max-Age=43\d{3}; HttpOnly; SameSite=Strict$/);
    return cookie.split(";")[0] ?? "";
  }

  test("works once: opened again it gives nothing", async () => {
    const { path } = await edge.loginLink();
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
    const { path } = await edge.loginLink();
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
    equal((await linkFor("wrong-token-wrong-token-wrong-token")).status, 401);
    const origin = base;
    equal((await ask("/link", { cookie: ada, origin }, "POST")).status, 403, "a session begets no session");
  });

  test("gives a session that pages of other sites cannot use, and that is never treated as anonymous", async () => {
    const cookie = await signedIn((await edge.loginLink()).path);
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
  const limits = { codeMs: 1_000, sessionMs: 10_000, codesMax: 2, keyMs: 60_000 };
  const sha256 = tokenSha256(member);
  const signIn = (name: string, untilMs = Infinity): SignIn => ({
    principal: who(name),
    credential: { kind: "token", sha256 },
    untilMs,
  });

  function rig() {
    const manual = new ManualClock(1_000_000);
    const entries = memoryEntries(() => manual.wallMs());
    const granted = new Map<string, Principal>([[sha256, who("ada")]]);
    const stillGranted: SessionPorts["stillGranted"] = (credential) =>
      credential.kind === "rules"
        ? credential.rules === "today"
          ? "as it was"
          : undefined
        : granted.get(credential.sha256);
    const node = (): Sessions => new Sessions({ clock: manual, entries, stillGranted }, limits);
    return { manual, granted, node };
  }

  test("SE3 end by themselves, and with the credentials behind them", async () => {
    const { manual, node } = rig();
    const sessions = node();
    const late = await sessions.newCode(signIn("ada"));
    const { cookie } = await sessions.seal(signIn("ada"));
    ok((await sessions.find(cookie)).ok);
    await manual.advance(1_000);
    equal(await sessions.redeem(late.code), undefined, "a code lasts a second here");
    const short = await sessions.seal(signIn("ada", 1_003_000));
    equal(short.forMs, 2_000, "no longer than the token that was shown");
    await manual.advance(2_000);
    ok(!(await sessions.find(short.cookie)).ok);
    ok((await sessions.find(cookie)).ok);
    await manual.advance(7_000);
    ok(!(await sessions.find(cookie)).ok);
  });

  test("SE1 end when the token behind them is removed, and when the rules for JWTs change", async () => {
    const { granted, node } = rig();
    const sessions = node();
    const { cookie } = await sessions.seal(signIn("ada"));
    const found = await sessions.find(cookie);
    deepEqual(found.ok && [found.principal.name, found.principal.proof], ["ada", "session"]);
    granted.delete(sha256);
    ok(!(await sessions.find(cookie)).ok);
    const byRules = async (rules: string): Promise<boolean> => {
      const sealed = await sessions.seal({ ...signIn("eve"), credential: { kind: "rules", rules } });
      return (await sessions.find(sealed.cookie)).ok;
    };
    deepEqual([await byRules("today"), await byRules("yesterday")], [true, false]);
  });

  test("SE2 any node of the cluster opens them, and one of all redeems a code", async () => {
    const { node } = rig();
    const [one, two, three] = [node(), node(), node()];
    const { code } = await one.newCode(signIn("ada"));
    const redeemed = await Promise.all([one, two, three].map((sessions) => sessions.redeem(code)));
    const [session, ...more] = redeemed.flatMap((given) => (given ? [given] : []));
    equal(more.length, 0);
    for (const sessions of [one, two, three]) ok((await sessions.find(session?.cookie ?? "")).ok);
    ok(
      !(
        await rig()
          .node()
          .find(session?.cookie ?? "")
      ).ok,
      "another cluster has another key",
    );
  });

  test("are not to be forged: whatever was changed in a cookie, it is unknown", async () => {
    const { node } = rig();
    const sessions = node();
    const bytes = Buffer.from((await sessions.seal(signIn("ada"))).cookie, "base64url");
    for (let at = 0; at < bytes.length; at += 1) {
      const forged = Buffer.from(bytes);
      forged[at] = (forged[at] ?? 0) ^ 1;
      ok(!(await sessions.find(forged.toString("base64url"))).ok, `byte ${at}`);
    }
    for (const junk of ["", "x", "a".repeat(10_000)]) ok(!(await sessions.find(junk)).ok);
  });

  test("are found by one cookie among others", () => {
    equal(sessionOf(null), undefined);
    equal(sessionOf("a=b; my_millrace_session=x"), undefined);
    equal(sessionOf("a=b; millrace_session=x=; c"), "x=");
    equal(sessionOf("millrace_session=x; millrace_session=y"), "");
  });
});
