/** What a hostile node, peer or machine may send, and what becomes of it: refused, named, contained. */
import { equal, match, ok, throws } from "node:assert/strict";
import { describe, test } from "node:test";
import { ManualClock } from "#base/testing/manual-clock.ts";
import { createMemoryIndex } from "#blobs/memory/memory-index.ts";
import { createMemoryStore } from "#blobs/memory/memory-store.ts";
import { FleetDesk } from "#doors/deploy/fleet/desk.ts";
import { GoalStore } from "#doors/deploy/fleet/goals.ts";
import { certificateText } from "#doors/deploy/goal/certificate.ts";
import { nextGoal, openGoal, refuseGoal, type SignedGoal } from "#doors/deploy/goal/goal.ts";
import { manifestText, parseManifest, type Manifest } from "#doors/deploy/manifest/manifest.ts";
import { createKey, KeyRing, signerOf, type Signed } from "#doors/deploy/signing/signing.ts";
import { change, digest } from "#doors/deploy/testing/goals.ts";
import { Frames, messageFrame, unitHead } from "#doors/deploy/swarm/wire.ts";

const key = createKey();
const signer = signerOf(key.privatePem);
const stranger = signerOf(createKey().privatePem);
const ring = new KeyRing([key.publicPem]);
const at = { service: "web", region: "eu", ring };

const first = nextGoal(at, undefined, change({ sharePpm: 10_000 }), signer);
const certified = { service: "web", release: "j1-1", wave: 0, manifest: digest("a"), evidence: digest("e") };
const certificate = signer.sign("certificate", certificateText(certified));
const wider = { sharePpm: 1_000_000, wave: 1, evidence: digest("e") };
const second = nextGoal(at, first, change({ ...wider, certificate: { ...certificate } }), signer);

/** As a machine takes a goal: the reason why it does not. */
function refusalOf(current: SignedGoal | undefined, signed: Signed): string | undefined {
  try {
    return refuseGoal(current, openGoal(signed, ring), at);
  } catch (error) {
    return (error as Error).message;
  }
}

const body = (more: object): string => JSON.stringify({ ...JSON.parse(second.signed.body), ...more });
const certifiedAs = (more: object): object => ({
  certificate: signer.sign("certificate", certificateText({ ...certified, ...more })),
});

const goals: readonly [name: string, signed: Signed, why: RegExp][] = [
  ["forged: signed by a stranger", stranger.sign("goal", second.signed.body), /not trusted/],
  [
    "forged: a stranger's signature under a trusted key's name",
    { ...stranger.sign("goal", second.signed.body), key: signer.keyId },
    /signature is wrong/,
  ],
  ["altered: one field", { ...second.signed, body: body({ sharePpm: 999_999 }) }, /signature is wrong/],
  ["truncated", { ...second.signed, body: second.signed.body.slice(0, -1) }, /signature is wrong/],
  ["truncated before it was signed", signer.sign("goal", second.signed.body.slice(0, -1)), /JSON/],
  ["another document of ours as a goal", signer.sign("manifest", second.signed.body), /signed as a manifest/],
  [
    "a manifest's signature, said to be of a goal",
    { ...signer.sign("manifest", second.signed.body), purpose: "goal" },
    /signature is wrong/,
  ],
  ["replayed", first.signed, /not newer/],
  ["downgraded: an older version with a new signature", signer.sign("goal", body({ version: 1 })), /not newer/],
  ["for another service", signer.sign("goal", body({ service: "api" })), /for api in eu/],
  ["for another region", signer.sign("goal", body({ region: "us" })), /for web in us/],
  ["out of the chain", signer.sign("goal", body({ previous: "0".repeat(64) })), /does not follow/],
  ["a wave without evidence", signer.sign("goal", body({ evidence: null })), /no evidence/],
  ["a wave without a certificate", signer.sign("goal", body({ certificate: undefined })), /no certificate/],
  ["a certificate of another release", signer.sign("goal", body(certifiedAs({ release: "j9-9" }))), /release j9-9/],
  ["a certificate of other evidence", signer.sign("goal", body(certifiedAs({ evidence: digest("f") }))), /evidence/],
  ["a certificate of another version", signer.sign("goal", body(certifiedAs({ manifest: digest("f") }))), /manifest/],
  ["a wave that is skipped", signer.sign("goal", body({ wave: 2 })), /certificate of wave 1/],
  ["unknown fields", signer.sign("goal", body({ runAs: "root" })), /runAs/],
  ["no document", signer.sign("goal", "null"), /read goal/],
];

describe("a goal from a hostile node", () => {
  test("is taken when nothing is wrong with it", () => equal(refusalOf(first, second.signed), undefined));
  for (const [name, signed, why] of goals)
    test(`${name}: refused, with the reason`, () => match(refusalOf(first, signed) ?? "it was taken", why));
});

const manifest: Manifest = {
  format: 1,
  service: "web",
  sha: "0123456789",
  builder: "j1-1",
  run: {
    command: ["run"],
    env: {},
    probe: null,
    withinMs: 1,
    everyMs: 10,
    drainMs: 0,
    keepVersions: 2,
    diskBytesMax: 1_000,
  },
  files: [{ path: "app", executable: true, sizeBytes: 10, segments: [digest("a")] }],
  links: [],
};
const file = (path: string): object => ({ files: [{ ...manifest.files[0], path }] });
const link = (path: string, target: string): object => ({ links: [{ path, target }] });

describe("a manifest of a hostile builder", () => {
  const text = manifestText(manifest);
  const read = (more: object): Manifest => parseManifest(JSON.stringify({ ...(JSON.parse(text) as object), ...more }));
  test("is read when nothing is wrong with it", () => equal(read({}).service, "web"));
  for (const path of ["../app", "/etc/passwd", "a/../../b", "a//b", "./a", "a\0b", "a\\..\\b", ""])
    test(`with the path ${JSON.stringify(path)} is refused`, () => throws(() => read(file(path)), /read manifest/));
  for (const [path, target] of [
    ["a", "/etc/passwd"],
    ["a", "../outside"],
    ["a/b", "../../outside"],
    ["a", "b/../../c"],
  ] as const)
    test(`with a link ${path} -> ${target} is refused`, () =>
      throws(() => read(link(path, target)), /leaves|read manifest/));
  test("that is truncated is refused", () => throws(() => parseManifest(text.slice(0, -1)), /not JSON/));
});

describe("a hostile peer", () => {
  const take = (frames: Frames, bytes: Buffer): number => [...frames.take(bytes)].length;
  const headOf = (length: number, kind: number): Buffer => {
    const bytes = Buffer.alloc(5);
    bytes.writeUInt32BE(length, 0);
    bytes.writeUInt8(kind, 4);
    return bytes;
  };
  const cases: readonly [name: string, bytes: Buffer][] = [
    ["a frame of 4 GiB", headOf(2 ** 32 - 1, 1)],
    ["an unknown kind", headOf(1, 9)],
    ["a unit for one that takes none", unitHead(1, 1, 1_000)],
    ["words that are no message", Buffer.concat([headOf(2, 1), Buffer.from("{}")])],
    ["bytes that are no JSON", Buffer.concat([headOf(3, 1), Buffer.from("abc")])],
    ["a position below zero", messageFrame({ kind: "shorten", id: -1, to: 0 })],
  ];
  for (const [name, bytes] of cases)
    test(`that sends ${name} is cut off before more is kept`, () => {
      throws(() => take(new Frames({ takesUnits: false }), bytes), /read from a peer/);
    });
  test("may pass on a halt with as many pins as there can be", () => {
    const pin = { machine: "m".repeat(200), manifest: digest("a"), by: "ada", why: "w".repeat(500), untilMs: 1 };
    const pins = Array.from({ length: 500 }, () => pin);
    const { signed } = nextGoal(at, first, change({ halted: true, sharePpm: 10_000, pins }), signer);
    equal(take(new Frames({ takesUnits: false }), messageFrame({ kind: "goal", signed })), 1);
  });
});

describe("a hostile machine", () => {
  test("speaks for itself alone, about a bounded number of services", () => {
    const clock = new ManualClock();
    const store = createMemoryStore({ clock, sizeBytesMax: 1_000_000 });
    const goalStore = new GoalStore({ index: createMemoryIndex(), store, signer: async () => signer, clock });
    const desk = new FleetDesk(goalStore, { listsAfter: async () => [] }, clock);
    const machine = (name: string) => ({ tenant: "acme", machine: name, region: "eu", labels: ["role=web"] });
    const lie = { goalVersion: 9, state: "healthy", running: digest("a") } as const;
    desk.report(machine("honest"), { ...lie, machine: "honest", service: "web", state: "failed", running: null });
    for (let i = 0; i < 100; i += 1) desk.report(machine("liar"), { ...lie, machine: "liar", service: `s${i}` });
    throws(() => desk.report(machine("liar"), { ...lie, machine: "liar", service: "one-more" }), /servicesMax/);
    const tally = desk.tally({
      tenant: "acme",
      service: "s1",
      labels: ["role=web"],
      regions: [{ region: "eu", pins: [] }],
      release: "j1-1",
      manifest: digest("a"),
      sharePpm: 1_000_000,
      named: [],
      activatedAgoMs: 1_000,
      silentAfterMs: 30_000,
      wantsPlaces: false,
    });
    ok(tally.away.every(({ machine: name, standing }) => (standing === "healthy") === (name === "liar")));
  });
});
