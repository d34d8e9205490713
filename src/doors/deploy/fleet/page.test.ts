import { deepEqual, equal } from "node:assert/strict";
import { describe, test } from "node:test";
import { placeOf } from "#doors/deploy/goal/membership.ts";
import { censusOf, countOf, keys, type CensusQuestion } from "./census.ts";
import { fleetOf } from "./fleet.ts";
import { mergePages, pageOf, type PageQuestion } from "./page.ts";
import type { Known } from "./tally.ts";

const known = (machine: string, more: Partial<Known> = {}, state = "healthy"): Known => ({
  tenant: "t",
  machine,
  region: "eu",
  labels: [],
  isHeld: true,
  agoMs: 0,
  reports: [{ machine, service: "web", state: state as "healthy", running: "new", goalVersion: 1, agoMs: 5 }],
  ...more,
});
const ask = (more: Partial<PageQuestion> = {}): PageQuestion => ({ tenant: "t", after: "", limit: 3, ...more });
const names = (machines: readonly Known[]): string => machines.map(({ machine }) => machine).join();
const many = Array.from({ length: 20 }, (_, i) => `m${String(i).padStart(2, "0")}`);
/** A fleet of nodes: the first one is asked, and calls the others. */
const fleet = (...nodes: readonly (readonly Known[])[]) => {
  const desks = nodes.map((mine) => ({
    page: (question: PageQuestion) => pageOf(mine, question),
    count: (question: CensusQuestion) => countOf(mine, question),
    find: ({ tenant, names: of }: { readonly tenant: string; readonly names: readonly string[] }) =>
      mine.filter((one) => one.tenant === tenant && of.includes(one.machine)),
  }));
  const call = (address: string, method: string, body: unknown): Promise<unknown> => {
    const desk = desks[Number(address)] as never as Record<string, (body: unknown) => unknown>;
    return Promise.resolve(desk[method.replace("deploy.", "")]?.(body));
  };
  const peers = { nodes: () => desks.map((_, i) => ({ node: `n${i}`, address: String(i), alive: true })), call };
  return fleetOf({ node: "n0", desk: desks[0] as never, snapshots: { write: async () => [] }, peers: peers as never });
};

describe("machines as pages", () => {
  test("PG1: every machine of every node is on one page, in the order of names", async () => {
    const all = fleet(
      many.filter((_, i) => i % 3 === 0).map((name) => known(name)),
      many.filter((_, i) => i % 3 > 0).map((name) => known(name)),
    );
    const seen: string[] = [];
    for (let after: string | null = ""; after !== null;) {
      const { machines, next } = await all.page(ask({ after }));
      seen.push(...machines.map(({ machine }) => machine));
      after = next;
    }
    deepEqual(seen, many);
  });

  test("PG2: a machine that moved is shown as the node has it that holds it", async () => {
    const old = known("m1", { isHeld: false, agoMs: 60_000 }, "failed");
    const all = fleet([old, known("m2")], [known("m1")]);
    const { machines } = await all.page(ask());
    equal(names(machines), "m1,m2");
    equal(machines[0]?.reports[0]?.state, "healthy");
    equal(names((await all.page(ask({ state: "failed" }))).machines), "", "nor found by what it was");
  });

  for (const [about, question, wanted] of [
    ["a region", { regions: ["us"] }, "c"],
    ["a state", { state: "failed" }, "b"],
    ["silence", { state: "silent" }, "d"],
    ["a service", { service: "api" }, ""],
    ["another tenant", { tenant: "other" }, ""],
  ] as const)
    test(`are found by ${about}`, () => {
      const all = [known("a"), known("b", {}, "failed"), known("c", { region: "us" }), known("d", { isHeld: false })];
      equal(names(pageOf(all, ask({ limit: 9, ...question } as never)).machines), wanted);
    });

  test("are merged up to where all nodes have answered", () => {
    const pages = [
      { machines: [known("a"), known("d")], isMore: true },
      { machines: [known("b"), known("x")], isMore: false },
    ];
    const { machines, next } = mergePages(pages, 9);
    equal(`${names(machines)} ${next}`, "a,b,d d");
  });
});

describe("machines as counts", () => {
  const question: CensusQuestion = {
    tenant: "t",
    service: "web",
    regions: ["eu"],
    labels: [],
    manifest: "new",
    silentAfterMs: 30_000,
    release: "j1-1",
    waves: [
      { sharePpm: 1, regions: ["eu"] },
      { sharePpm: 1_000_000, regions: ["eu"] },
    ],
  };

  test("CE1: one that moved counts once, where it is now", async () => {
    const old = known("m1", { isHeld: false, agoMs: 60_000 }, "failed");
    const census = await fleet([old], [known("m1"), known("m2", { isHeld: false, agoMs: 1 })]).census(question);
    equal(census.of(keys.machines("eu")), 2);
    equal(census.of(keys.state("eu", "failed")), 0);
    equal(census.of(keys.member(1, "eu")), 2);
  });

  test("the first wave has the machine with the lowest place, and lists those that are behind", () => {
    const late = known("m2", { reports: [] });
    const all = [known("m1"), late, known("m3")];
    const census = censusOf([countOf(all, question)], new Set(), question);
    equal(census.of(keys.member(0, "eu")), 1);
    const [first] = ["m1", "m2", "m3"].toSorted((a, b) => placeOf(a, "j1-1") - placeOf(b, "j1-1"));
    equal(census.firsts[0]?.machine, first);
    deepEqual(
      census.behind.map(({ line }) => line),
      first === "m2" ? ["m2 (eu) waiting", "m2 (eu) waiting"] : ["m2 (eu) waiting"],
    );
  });
});
