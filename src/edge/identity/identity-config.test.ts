import { deepEqual, equal, match, ok } from "node:assert/strict";
import { describe, test } from "node:test";
import { parse } from "yaml";
import { z } from "zod";
import { anonymousDefault, Identity, identityTlsProblem, isAuthenticating, whyNotListen } from "./identity-config.ts";
import { isLoopbackHost } from "./loopback.ts";
import { Tls } from "#edge/tls/tls-config.ts";

const read = (text: string): Identity => Identity.parse(parse(text) ?? {});

const problems = (text: string, schema: z.ZodType = Identity): readonly string[] => {
  const parsed = schema.safeParse(parse(text));
  ok(!parsed.success, `accepted: ${text}`);
  return parsed.error.issues.map(({ path, message }) => `${path.join(".")}: ${message}`);
};

const hash = "a".repeat(64);

const full = `
anonymous: { tenant: public, roles: [cache-reader], from: anywhere }
tokens:
  - { name: ci, tenant: acme, roles: [member, action-cache-writer], sha256: ${hash} }
  - { name: ops, tenant: "*", roles: [operator], file: /etc/millrace/ops.token }
issuers:
  - issuer: https://login.acme.example
    audience: [millrace]
    keys: { kind: url, url: "https://login.acme.example/keys" }
    skew: 10s
    tenant: { claim: org }
    roles: { always: [viewer], claim: groups, map: { builders: [member] } }
certificates:
  - { match: "URI:spiffe://acme/worker/*", tenant: "*", roles: [executor, cache-writer] }
verifiedFor: 1m
`;

const issuerText = /  - issuer:[^]*?(?=certificates:)/.exec(full)?.[0] ?? "";

describe("the identity settings", () => {
  test("can express the defaults, and can refuse every caller", () => {
    const said = Identity.parse({ anonymous: anonymousDefault });
    deepEqual(said.anonymous, { tenant: "default", roles: ["builder", "action-cache-writer"], from: "loopback" });
    deepEqual(Identity.parse({ anonymous: { tenant: "default", roles: [] } }).anonymous?.roles, []);
  });

  test("may be empty: then no credentials are accepted", () => {
    const identity = read("");
    deepEqual([identity.tokens, identity.issuers, identity.certificates], [[], [], []]);
    equal(identity.anonymous, undefined);
    equal(isAuthenticating(identity), false);
  });

  test("accept callers in all three ways, with safe defaults", () => {
    const identity = read(full);
    ok(isAuthenticating(identity));
    equal(identity.verifiedFor, 60_000);
    const [issuer] = identity.issuers;
    ok(issuer?.keys.kind === "url");
    deepEqual([issuer.algorithms, issuer.skew, issuer.lifetimeMax], [["ES256", "RS256"], 10_000, 86_400_000]);
    deepEqual([issuer.keys.timeout, issuer.keys.cooldown, issuer.keys.sizeMax], [5_000, 30_000, 256 * 1024]);
    deepEqual(issuer.name, { claim: "sub" });
  });

  test("refuse unknown fields, everywhere", () => {
    match(problems("token: []").join(), /Unrecognized key: "token"/);
    match(problems(full.replace("from:", "form:")).join(), /anonymous: Unrecognized key: "form"/);
    match(problems(full.replace("sha256:", "sha265:")).join(), /tokens\.0: Unrecognized key: "sha265"/);
    match(problems(full.replace("skew:", "slew:")).join(), /issuers\.0: Unrecognized key: "slew"/);
    match(problems(full.replace("kind: url,", "kind: url, retry: 1,")).join(), /issuers\.0\.keys: Unrecognized/);
    match(problems(full.replace("[viewer]", "[veiwer]")).join(), /issuers\.0\.roles\.always\.0: /);
    match(
      problems(full.replace("claim: groups", "clam: groups")).join(),
      /issuers\.0\.roles: Unrecognized key: "clam"/,
    );
  });

  const refused: readonly (readonly [what: string, text: string, problem: RegExp])[] = [
    ["a token in the clear", `tokens: [{ name: a, tenant: t, roles: [member], sha256: hunter2 }]`, /never the token/],
    ["a token twice given", `tokens: [{ name: a, tenant: t, roles: [member], sha256: ${hash}, file: f }]`, /either by/],
    ["a token not given", `tokens: [{ name: a, tenant: t, roles: [member] }]`, /either by sha256 or by file/],
    [
      "a member of all tenants",
      `tokens: [{ name: a, tenant: "*", roles: [member], sha256: ${hash} }]`,
      /only operators/,
    ],
    [
      "an operator of one tenant",
      `tokens: [{ name: a, tenant: t, roles: [operator], sha256: ${hash} }]`,
      /all tenants/,
    ],
    ["no role at all", `tokens: [{ name: a, tenant: t, roles: [], sha256: ${hash} }]`, /tokens\.0\.roles/],
    ["an anonymous operator", `anonymous: { tenant: t, roles: [operator] }`, /anonymous\.roles\.0/],
    ["an anonymous executor", `anonymous: { tenant: t, roles: [executor] }`, /anonymous\.roles\.0/],
    ["an anonymous of all tenants", `anonymous: { tenant: "*", roles: [viewer] }`, /anonymous\.tenant/],
    [
      "anonymous writers of results from anywhere",
      `anonymous: { tenant: t, roles: [builder, action-cache-writer], from: anywhere }`,
      /need a token/,
    ],
    ["loopback behind a proxy", `{ cleartext: true, anonymous: { tenant: t, roles: [viewer] } }`, /behind a proxy/],
    ["a shared secret", full.replace("skew: 10s", "algorithms: [HS256]"), /issuers\.0\.algorithms\.0/],
    ["no signature", full.replace("skew: 10s", "algorithms: [none]"), /issuers\.0\.algorithms\.0/],
    ["an hour of skew", full.replace("skew: 10s", "skew: 1h"), /issuers\.0\.skew: write a value between 0s and 5m/],
    [
      "keys in the clear",
      full.replace("https://login.acme.example/keys", "http://login.acme.example/k"),
      /https address/,
    ],
    [
      "an issuer twice",
      full.replace("certificates:", `${issuerText}certificates:`),
      /an issuer must be listed only once/,
    ],
    ["a claim without a map", full.replace(", map: { builders: [member] }", ""), /claim and map belong together/],
    ["all members of all tenants", full.replace("{ claim: org }", '{ fixed: "*" }'), /only operators and executors/],
    ["every certificate", full.replace("URI:spiffe://acme/worker/*", "CN:*"), /would accept every certificate/],
    ["a certificate's unknown name", full.replace("URI:spiffe", "IP:spiffe"), /write URI, DNS/],
  ];
  for (const [what, text, problem] of refused)
    test(`refuse ${what}`, () => {
      match(problems(text).join("; "), problem);
    });

  test("an issuer of operators must say so", () => {
    const text = full.replace("{ claim: org }", '{ fixed: "*" }').replace("[viewer], claim", "[operator], claim");
    equal(read(text).issuers.length, 1);
  });

  test("keys over plain http come from this machine only", () => {
    const at = (url: string): string => full.replace("https://login.acme.example/keys", url);
    for (const url of ["http://127.0.0.1:8080/keys", "http://localhost/keys", "http://[::1]:1/keys"])
      ok(Identity.safeParse(parse(at(url))).success, url);
    for (const url of ["http://127.0.0.1.evil.example/k", "http://localhost.evil.example/k", "ftp://localhost/k"])
      match(problems(at(url)).join(), /https address/);
  });

  test("describe every setting", () => {
    type Node = { description?: string; properties?: Record<string, Node>; items?: Node; oneOf?: Node[] };
    const undescribed: string[] = [];
    const walk = (node: Node, path: string): void => {
      for (const [name, child] of Object.entries(node.properties ?? {})) {
        if (child.description === undefined) undescribed.push(`${path}.${name}`);
        walk(child, `${path}.${name}`);
      }
      if (node.items) walk(node.items, `${path}[]`);
      for (const variant of node.oneOf ?? []) walk(variant, path);
    };
    walk(z.toJSONSchema(Identity, { io: "input", unrepresentable: "any" }) as Node, "identity");
    walk(z.toJSONSchema(Tls, { io: "input", unrepresentable: "any" }) as Node, "tls");
    deepEqual(undescribed, []);
  });
});

describe("the tls settings", () => {
  test("need a certificate and its key, and refuse typos", () => {
    deepEqual(Tls.parse({ certificate: "c.pem", key: "k.pem" }), {
      certificate: "c.pem",
      key: "k.pem",
      clientCertificate: "optional",
      reload: 30_000,
    });
    match(problems("{ certificate: c, kee: k }", Tls).join(), /kee/);
    match(problems("{ certificate: c, key: k, clientCertificate: required }", Tls).join(), /need a clientCa/);
  });
});

describe("client certificates", () => {
  test("need an authority that signs them", () => {
    const files = { certificate: "c", key: "k" };
    match(identityTlsProblem(read(full), undefined) ?? "", /needs tls\.clientCa/);
    match(identityTlsProblem(read(full), Tls.parse(files)) ?? "", /needs tls\.clientCa/);
    equal(identityTlsProblem(read(full), Tls.parse({ ...files, clientCa: "ca" })), undefined);
    equal(identityTlsProblem(read(""), undefined), undefined);
  });
});

describe("where a node listens", () => {
  const none = read("");
  const anonymousOnly = read("anonymous: { tenant: t, roles: [viewer], from: anywhere }");
  const some = read(full);
  const behindProxy = read(`${full}\ncleartext: true`);

  test("with authentication and TLS: anywhere", () => {
    for (const host of [undefined, "127.0.0.1", "127.8.8.8", "::1", "localhost"])
      for (const identity of [none, some]) equal(whyNotListen(host, { identity, tls: false }), undefined);
  });

  test("without authentication: this machine only; anonymous access is not authentication", () => {
    for (const host of ["0.0.0.0", "::", "10.0.0.7", "node-1.example", "localhost.evil.example"])
      for (const identity of [none, anonymousOnly])
        match(whyNotListen(host, { identity, tls: true }) ?? "", /without authentication only this machine/);
  });

  test("the network only with TLS, or with a proxy in front that does it", () => {
    match(whyNotListen("0.0.0.0", { identity: some, tls: false }) ?? "", /in the clear/);
    equal(whyNotListen("0.0.0.0", { identity: some, tls: true }), undefined);
    equal(whyNotListen("0.0.0.0", { identity: behindProxy, tls: false }), undefined);
  });

  test("loopback addresses are distinguished from similar ones", () => {
    deepEqual(
      ["127.0.0.1", "::ffff:127.0.0.1", "::1", "", "unix", "127.0.0.1.example", "128.0.0.1", "::", "0.0.0.0"].map(
        isLoopbackHost,
      ),
      [true, true, true, false, false, false, false, false, false],
    );
  });
});
