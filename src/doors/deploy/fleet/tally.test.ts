import { deepEqual, equal } from "node:assert/strict";
import { describe, test } from "node:test";
import { placeOf } from "#doors/deploy/goal/membership.ts";
import { addUp, heldOf, namesAway, tallyOf, type Known, type TallyQuestion } from "./tally.ts";

const question: TallyQuestion = {
  tenant: "acme",
  service: "web",
  labels: ["role=web"],
  regions: [{ region: "eu", pins: [] }],
  release: "j1",
  manifest: "new",
  sharePpm: 1_000_000,
  named: [],
  activatedAgoMs: 10_000,
  silentAfterMs: 30_000,
  wantsPlaces: false,
};

type Said = { readonly state?: "healthy" | "failed" | "staging"; readonly running?: string; readonly agoMs?: number };

const machine = (name: string, said: Said = {}, more: Partial<Known> = {}): Known => ({
  tenant: "acme",
  machine: name,
  region: "eu",
  labels: ["role=web"],
  isHeld: true,
  agoMs: 0,
  reports: [
    {
      service: "web",
      machine: name,
      goalVersion: 1,
      why: "",
      state: "healthy",
      running: "new",
      agoMs: 1_000,
      ...said,
    },
  ],
  ...more,
});

/** As the nodes of a cluster do it: each counts its own, and those that were named are looked for everywhere. */
function counted(nodes: readonly (readonly Known[])[], asked: Partial<TallyQuestion> = {}) {
  const full = { ...question, ...asked };
  const tallies = nodes.map((machines) => tallyOf(machines, full));
  const names = namesAway(tallies);
  const { machines, healthy, failed, silent, working, targets, running } = addUp(
    tallies,
    nodes.flatMap((each) => heldOf(each, full, names)),
  );
  return { machines, healthy, failed, silent, working, targets, running };
}
const none = { machines: 0, healthy: 0, failed: 0, silent: 0, working: 0, targets: 0, running: 0 };
const one = { ...none, machines: 1, targets: 1 };

const cases: readonly [name: string, nodes: readonly (readonly Known[])[], expected: object][] = [
  [
    "counts what each node holds",
    [[machine("a")], [machine("b", { state: "failed", running: "old" })]],
    { ...none, machines: 2, targets: 2, healthy: 1, failed: 1, running: 1 },
  ],
  [
    "other tenants, regions, labels and services are not counted",
    [[machine("a", {}, { tenant: "other" }), machine("b", {}, { region: "us" }), machine("c", {}, { labels: [] })]],
    none,
  ],
  [
    "TA1: a machine that moved counts where it is now",
    [[machine("a", { state: "failed", agoMs: 8_000 }, { isHeld: false })], [machine("a")]],
    { ...one, healthy: 1, running: 1 },
  ],
  [
    "TA1: its newest report counts, whichever node got it",
    [
      [machine("a", { state: "failed", running: "old", agoMs: 500 }, { isHeld: false })],
      [machine("a", { agoMs: 9_000 })],
    ],
    { ...one, failed: 1 },
  ],
  [
    "TA1: one that no node holds counts once, by its newest report",
    [[machine("a", { agoMs: 40_000 }, { isHeld: false })], [machine("a", { agoMs: 2_000 }, { isHeld: false })]],
    { ...one, healthy: 1, running: 1 },
  ],
];

describe("a fleet as counts", () => {
  for (const [name, nodes, expected] of cases) test(name, () => deepEqual(counted(nodes), expected));

  test("HJ2: one that no node holds is silent in the end", () => {
    const gone = machine("a", { agoMs: 60_000 }, { isHeld: false });
    equal(counted([[gone], []], { activatedAgoMs: 50_000 }).silent, 1);
  });

  test("PN2: pinned machines are no targets", () => {
    const pin = { label: "role=web", manifest: "old", by: "ada", why: "", untilMs: 0 };
    deepEqual(counted([[machine("a")]], { regions: [{ region: "eu", pins: [pin] }] }), none);
  });

  test("only the share is in the wave, and those that the goal names", () => {
    const all = ["a", "b", "c", "d"].map((name) => machine(name));
    const [first = "", second = ""] = ["a", "b", "c", "d"].toSorted((x, y) => placeOf(x, "j1") - placeOf(y, "j1"));
    const sharePpm = placeOf(first, "j1") + 1;
    equal(counted([all], { sharePpm }).machines, 1);
    equal(counted([all], { sharePpm, named: [second] }).machines, 2);
    equal(addUp([tallyOf(all, question)], []).lowest?.machine, first);
  });
});
