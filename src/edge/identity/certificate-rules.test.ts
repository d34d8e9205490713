import { deepEqual, equal, match, ok } from "node:assert/strict";
import { describe, test } from "node:test";
import fc from "fast-check";
import {
  certificatePattern,
  certificatePatternFits,
  certificatePatternProblem,
  type CertificateName,
} from "./certificate-pattern.ts";
import { certificateRules } from "./certificate-rules.ts";
import { readAlternativeNames, subjectNames } from "#edge/tls/peer-certificate.ts";

const fits = (pattern: string, kind: CertificateName["kind"], value: string): boolean =>
  certificatePatternFits(certificatePattern(pattern), { kind, value });

describe("a certificate pattern", () => {
  test("matches a whole name of its kind; a star is one part of it", () => {
    const pattern = "URI:spiffe://acme/worker/*";
    ok(fits(pattern, "URI", "spiffe://acme/worker/7"));
    for (const value of [
      "spiffe://acme/worker/",
      "spiffe://acme/worker/7/admin",
      "spiffe://acme/worker/a.b",
      "xspiffe://acme/worker/7",
      "spiffe://acme/worker/7\n",
      "spiffe://acme/worker/7 8",
    ])
      ok(!fits(pattern, "URI", value), value);
    ok(!fits(pattern, "DNS", "spiffe://acme/worker/7"));
  });

  test("takes special characters literally", () => {
    ok(!fits("DNS:a.example", "DNS", "axexample"));
    ok(fits("CN:a+b (c)", "CN", "a+b (c)"));
    ok(!fits("CN:a+b", "CN", "aab"));
  });

  test("ignores case in host names, and nowhere else", () => {
    ok(fits("DNS:*.acme.example", "DNS", "B7.ACME.example"));
    ok(!fits("DNS:*.acme.example", "DNS", "a.b.acme.example"));
    ok(!fits("CN:ada", "CN", "Ada"));
  });

  test("is refused where it would match more than it seems to", () => {
    for (const bad of ["spiffe://x", "IP:10.0.0.1", "CN:", "cn:x", "CN:*", "URI:spiffe://**", `CN:${"*a".repeat(9)}`])
      ok(certificatePatternProblem(bad) !== undefined, bad);
    equal(certificatePatternProblem("DNS:*.acme.example"), undefined);
  });
});

describe("the names in a certificate", () => {
  test("are parsed from the form that Node gives them", () => {
    deepEqual(readAlternativeNames("DNS:a.example, URI:spiffe://x/y, IP Address:10.0.0.1, email:a@b.example"), [
      { kind: "DNS", value: "a.example" },
      { kind: "URI", value: "spiffe://x/y" },
      { kind: "email", value: "a@b.example" },
    ]);
    deepEqual(readAlternativeNames(""), []);
  });

  test("cannot be injected through another name's text", () => {
    const smuggling = JSON.stringify("http://x/, DNS:admin.example");
    deepEqual(readAlternativeNames(`URI:${smuggling}, DNS:b.example`), [
      { kind: "URI", value: "http://x/, DNS:admin.example" },
      { kind: "DNS", value: "b.example" },
    ]);
    deepEqual(readAlternativeNames('URI:"broken, DNS:admin.example'), []);
    deepEqual(readAlternativeNames('URI:"\\x", DNS:admin.example'), []);
    deepEqual(readAlternativeNames('DNS:a"b, DNS:admin.example'), []);
    deepEqual(readAlternativeNames('URI:"a"x, DNS:admin.example'), []);
    deepEqual(readAlternativeNames("CN:admin, O:acme"), [], "these are no alternative names");
  });

  test("are read back unchanged, whatever they contain", () => {
    const name = fc.record({
      kind: fc.constantFrom("DNS", "URI", "email"),
      value: fc.string({
        minLength: 1,
        unit: fc.constantFrom("a", ".", ":", "/", "@", ",", " ", '"', "'", "\\", "\n", "="),
      }),
    });
    // As Node writes them: quoted if they contain anything that could be taken for a separator of the list.
    const written = (value: string): string => (/[^\w.:/@= ]/.test(value) ? JSON.stringify(value) : value);
    fc.assert(
      fc.property(fc.array(name, { maxLength: 5 }), (names) => {
        const text = names.map(({ kind, value }) => `${kind}:${written(value)}`).join(", ");
        const pairs = (list: readonly { kind: string; value: string }[]) =>
          list.map(({ kind, value }) => [kind, value]);
        deepEqual(pairs(readAlternativeNames(text)), pairs(names));
      }),
      { numRuns: 500 },
    );
  });

  test("a field that occurs twice does not count", () => {
    deepEqual(subjectNames({ CN: "a", O: ["x", "y"], OU: "" }), [{ kind: "CN", value: "a" }]);
    deepEqual(subjectNames(undefined), []);
  });
});

describe("certificate rules", () => {
  const rules = certificateRules([
    { match: "URI:spiffe://acme/worker/*", tenant: "*", roles: ["executor"], pools: ["gpu"], labels: ["os=*"] },
    { match: "CN:build-*", name: "builders", tenant: "acme", roles: ["member"] },
  ]);
  const uri: CertificateName = { kind: "URI", value: "spiffe://acme/worker/7" };
  const cn: CertificateName = { kind: "CN", value: "build-7" };

  test("the first rule that matches makes the principal", () => {
    const worker = rules({ trusted: true, names: [cn, uri] });
    ok(worker.ok);
    deepEqual(worker.principal.pools, ["gpu"]);
    deepEqual(worker.principal.labels, ["os=*"]);
    deepEqual(
      [worker.principal.name, worker.principal.tenant, worker.principal.proof],
      [uri.value, "*", "certificate"],
    );
    const builder = rules({ trusted: true, names: [cn] });
    ok(builder.ok);
    equal(builder.principal.name, "builders");
  });

  test("trust no name of an untrusted certificate", () => {
    const outcome = rules({ trusted: false, names: [uri] });
    ok(!outcome.ok);
    equal(outcome.refusal.reason, "certificate-untrusted");
  });

  test("grant nothing to other names", () => {
    const outcome = rules({ trusted: true, names: [{ kind: "CN", value: "mallory" }] });
    ok(!outcome.ok);
    match(outcome.refusal.message, /nothing is granted/);
  });
});
