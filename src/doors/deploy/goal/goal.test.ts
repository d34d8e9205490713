import { equal, match, ok, throws } from "node:assert/strict";
import { describe, test } from "node:test";
import fc from "fast-check";
import { createKey, KeyRing, signerOf, type Signed } from "#doors/deploy/signing/signing.ts";
import { change, digest } from "#doors/deploy/testing/goals.ts";
import { certificateText } from "./certificate.ts";
import { nextGoal, openGoal, refuseGoal, type GoalChange } from "./goal.ts";
import { isInShare, membersOf } from "./membership.ts";

const key = createKey();
const signer = signerOf(key.privatePem);
const ring = new KeyRing([key.publicPem]);
const at = { service: "web", region: "eu", ring };

describe("a goal", () => {
  const first = nextGoal(at, undefined, change(), signer);
  const second = nextGoal(at, first, change({ kind: "rollback", manifest: digest("b") }), signer);

  test("GO1: a version that does not grow is refused, also when it was signed", () => {
    equal(refuseGoal(undefined, first, at), undefined);
    equal(refuseGoal(first, second, at), undefined);
    match(refuseGoal(second, first, at) ?? "", /version 1 is not newer than 2/);
    match(refuseGoal(first, first, at) ?? "", /not newer/);
  });

  test("GO2: a direct successor must name the entry before it; a machine that was away may jump", () => {
    const other = nextGoal(at, undefined, change({ release: "j9-9" }), signer);
    match(refuseGoal(other, second, at) ?? "", /does not follow/);
    const third = nextGoal(at, second, change(), signer);
    equal(refuseGoal(other, third, at), undefined);
  });

  test("GO3: a later wave without evidence is neither written nor taken", () => {
    throws(() => nextGoal(at, first, change({ wave: 1 }), signer), /no evidence/);
    throws(() => nextGoal(at, first, change({ wave: 1, evidence: digest("e") }), signer), /no certificate/);
  });

  const certified = { service: "web", release: "j1-1", wave: 0, manifest: digest("a"), evidence: digest("e") };
  const certificate = (more: object = {}, by = signer) =>
    by.sign("certificate", certificateText({ ...certified, ...more }));
  const later = (signed: Signed, more: Partial<GoalChange> = {}) =>
    nextGoal(at, first, change({ wave: 1, evidence: digest("e"), certificate: signed, ...more }), signer);
  const certificates: readonly [string, Signed, RegExp | undefined][] = [
    ["of the wave before is taken", certificate(), undefined],
    ["of another release is refused", certificate({ release: "j9-9" }), /for the release j9-9/],
    ["of another service is refused", certificate({ service: "db" }), /for the service db/],
    ["of another version is refused", certificate({ manifest: digest("c") }), /for the manifest c/],
    ["of an earlier wave is refused", certificate({ wave: 3 }), /for the wave 3/],
    ["with other evidence is refused", certificate({ evidence: digest("f") }), /for the evidence f/],
    ["by a stranger is refused", certificate({}, signerOf(createKey().privatePem)), /not trusted/],
    ["that was changed is refused", { ...certificate(), body: certificate({ wave: 7 }).body }, /signature is wrong/],
    ["that is a goal is refused", first.signed, /signed as a goal/],
  ];
  for (const [name, signed, why] of certificates)
    test(`GO3: a certificate ${name}`, () => {
      const refused = refuseGoal(first, later(signed), at);
      if (why) match(refused ?? "", why);
      else equal(refused, undefined);
    });

  test("GO3: a halt of what is activated already needs no certificate, more machines do", () => {
    const wave = later(certificate(), { sharePpm: 500_000 });
    const { certificate: _, ...bare } = { ...change({ wave: 1, evidence: digest("e"), sharePpm: 500_000 }) };
    const halt = nextGoal(at, wave, { ...bare, halted: true }, signer);
    equal(refuseGoal(wave, halt, at), undefined);
    match(refuseGoal(first, halt, at) ?? "", /no certificate/);
    throws(() => nextGoal(at, wave, { ...bare, sharePpm: 600_000 }, signer), /no certificate/);
  });

  test("for another service or region is refused", () => {
    match(refuseGoal(undefined, first, { ...at, region: "us" }) ?? "", /it is for web in eu/);
    match(refuseGoal(undefined, first, { ...at, service: "db" }) ?? "", /it is for web in eu/);
  });

  test("SG1: counts only if a trusted, unrevoked key signed these bytes as a goal", () => {
    equal(openGoal(first.signed, ring).goal.version, 1);
    const forged = { ...first.signed, body: first.signed.body.replace('"version":1', '"version":9') };
    throws(() => openGoal(forged, ring), /signature is wrong/);
    throws(() => openGoal(first.signed, new KeyRing([createKey().publicPem])), /not trusted/);
    throws(() => openGoal(first.signed, new KeyRing([key.publicPem], [signer.keyId])), /revoked/);
    const asManifest = signer.sign("manifest", first.signed.body);
    throws(() => openGoal(asManifest, ring), /signed as a manifest/);
    throws(() => openGoal({ ...asManifest, purpose: "goal" }, ring), /signature is wrong/);
  });
});

describe("membership", () => {
  const machines = Array.from({ length: 2_000 }, (_, i) => `m${i}`);

  test("a larger share keeps every machine of a smaller one", () => {
    fc.assert(
      fc.property(fc.string({ maxLength: 20 }), fc.nat(1_000_000), fc.nat(1_000_000), (release, a, b) => {
        const [small, large] = a < b ? [a, b] : [b, a];
        return machines.slice(0, 200).every((m) => !isInShare(m, release, small) || isInShare(m, release, large));
      }),
    );
  });

  test("a tenth of the machines is about a tenth, and not the same tenth for every release", () => {
    const one = machines.filter((machine) => isInShare(machine, "j1-1", 100_000));
    const two = machines.filter((machine) => isInShare(machine, "j1-2", 100_000));
    ok(one.length > 140 && one.length < 260, String(one.length));
    ok(one.filter((machine) => two.includes(machine)).length < 60);
  });

  test("the first wave of a small fleet has one machine, and a share of everything has all", () => {
    equal(membersOf(["a", "b", "c"], "r", 1).length, 1);
    equal(membersOf(["a", "b", "c"], "r", 1_000_000).length, 3);
    equal(membersOf([], "r", 1_000_000).length, 0);
    equal(membersOf(["a"], "r", 0).length, 0);
  });
});
