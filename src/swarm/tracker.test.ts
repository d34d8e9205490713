import { deepEqual, equal, ok } from "node:assert/strict";
import { describe, test } from "node:test";
import { Random } from "#base/random.ts";
import { planTrees } from "./plan.ts";
import { originId, Tracker, type Member, type TrackerEffect, type TrackerEvent } from "./tracker.ts";

const stripes = 4;

function fleet(machines: number, rackSize: number, originSlots = 8) {
  const tracker = new Tracker(stripes, originSlots, new Random(7));
  const step = (event: TrackerEvent): readonly TrackerEffect[] => {
    const effects: TrackerEffect[] = [];
    tracker.step(event, effects);
    return effects;
  };
  const members = new Map<number, Member>();
  for (let id = 1; id <= machines; id += 1)
    members.set(id, { rack: `r${Math.floor((id - 1) / rackSize)}`, slots: stripes });
  const parents = new Map<number, (number | undefined)[]>();
  for (const effect of step({ kind: "plan", members }))
    if (effect.kind === "parents") parents.set(effect.to, [...effect.parents]);
  return { step, members, parents };
}

const given = (effects: readonly TrackerEffect[]): number | undefined =>
  effects.flatMap((effect) => (effect.kind === "given" ? [effect.peer] : []))[0];

describe("the plan", () => {
  for (const [machines, rackSize] of [
    [1, 1],
    [3, 10],
    [8, 8],
    [100, 10],
    [1_000, 40],
  ] as const)
    test(`${machines} machines in racks of ${rackSize}: every stripe reaches every machine from the origin`, () => {
      const { parents } = fleet(machines, rackSize);
      equal(parents.size, machines);
      for (const id of parents.keys())
        for (let stripe = 0; stripe < stripes; stripe += 1) {
          let at: number = id;
          for (let hops = 0; at !== originId; hops += 1) {
            ok(hops <= machines, "TR1: a cycle");
            at = parents.get(at)?.[stripe] ?? Number.NaN;
            ok(!Number.isNaN(at), `machine ${id} has no parent for stripe ${stripe}`);
          }
        }
    });

  test("TR2: the origin's places are not exceeded, and no machine feeds more than its own", () => {
    const { parents } = fleet(1_000, 40);
    const children = new Map<number, number>();
    for (const list of parents.values())
      for (const id of list) children.set(id ?? -1, (children.get(id ?? -1) ?? 0) + 1);
    ok((children.get(originId) ?? 0) <= 8);
    for (const [id, count] of children) if (id !== originId) ok(count <= stripes, `machine ${id} feeds ${count}`);
  });

  test("PL1: little more than one copy of a stripe enters a rack", () => {
    const { parents, members } = fleet(1_000, 40);
    let entering = 0;
    for (const [id, list] of parents)
      for (const parent of list) if (members.get(parent ?? -1)?.rack !== members.get(id)?.rack) entering += 1;
    ok(entering <= 25 * stripes * 4, `${entering} flows enter 25 racks`);
  });
});

describe("the tracker", () => {
  test("gives another parent for one that is gone: the one above it first", () => {
    const { step, parents } = fleet(100, 10);
    const child = [...parents].find(([, list]) => (list[0] ?? 0) !== originId)?.[0] ?? 0;
    const old = parents.get(child)?.[0] ?? 0;
    step({ kind: "left", id: old });
    const peer = given(step({ kind: "ask", from: child, stripe: 0, why: "gone", about: old }));
    ok(peer !== undefined && peer !== old && peer !== child);
  });

  test("TR3: bans a machine on the word of two, not of one", () => {
    const { step } = fleet(20, 20);
    const accuse = (from: number, about: number) =>
      step({ kind: "ask", from, stripe: 0, why: "bad", about }).filter(({ kind }) => kind === "banned");
    deepEqual(accuse(1, 5), []);
    deepEqual(accuse(1, 5), [], "the same accuser again");
    deepEqual(accuse(2, 5), [{ kind: "banned", id: 5 }]);
    for (let about = 6; about < 16; about += 1) accuse(1, about);
    deepEqual(accuse(3, 15), [], "an accuser of many counts no more");
    for (let tries = 0; tries < 50; tries += 1)
      ok(given(step({ kind: "ask", from: 7, stripe: 1, why: "none", about: undefined })) !== 5);
  });

  test("a machine that comes later gets parents, and none of them is below it", () => {
    const { step } = fleet(30, 10);
    const [joined] = step({ kind: "join", id: 99, member: { rack: "r1", slots: stripes } });
    ok(joined?.kind === "parents" && joined.parents.every((parent) => parent !== undefined && parent !== 99));
  });

  test("TR5: a machine that comes later is fed by complete ones, not by the origin", () => {
    const { step } = fleet(6, 6, 100);
    for (const id of [1, 2, 4, 5]) step({ kind: "complete", id });
    const [joined] = step({ kind: "join", id: 99, member: { rack: "elsewhere", slots: stripes } });
    ok(joined?.kind === "parents");
    ok(joined.parents.every((parent) => parent !== originId && parent !== undefined));
    ok((given(step({ kind: "ask", from: 3, stripe: 1, why: "help", about: 6 })) ?? originId) !== originId, "help, too");
  });

  test("TR6: a parent is never one that waits for a lost machine itself, and TR7 frees the origin's places", () => {
    const { step } = fleet(1, 1, stripes);
    const join = (id: number): readonly (number | undefined)[] => {
      const [joined] = step({ kind: "join", id, member: { rack: "", slots: stripes } });
      return joined?.kind === "parents" ? joined.parents : [];
    };
    deepEqual(join(2), [1, 1, 1, 1], "the origin has no place left");
    step({ kind: "left", id: 1 });
    for (const id of [3, 4]) join(id);
    // The origin's places are free again, and are taken; one that comes then waits for those alone.
    const given0 = given(step({ kind: "ask", from: 2, stripe: 0, why: "gone", about: 1 }));
    ok(given0 === originId || given0 === 3 || given0 === 4);
    for (let stripe = 0; stripe < stripes; stripe += 1) step({ kind: "left", id: 3 });
    const alone = given(step({ kind: "ask", from: 4, stripe: 1, why: "none", about: undefined }));
    equal(alone, originId, "2 waits for 1, which is lost");
  });

  test("TR7: what the origin has sent takes no place of it, and is given back once", () => {
    const { step } = fleet(1, 1, stripes);
    for (let stripe = 0; stripe < stripes; stripe += 1) {
      step({ kind: "fed", id: 1, stripe });
      step({ kind: "fed", id: 1, stripe });
    }
    const leaf = { rack: "r", slots: 0 };
    const parentsOf = (id: number) => step({ kind: "join", id, member: leaf })[0];
    step({ kind: "left", id: 1 });
    const first = parentsOf(2);
    ok(first?.kind === "parents" && first.parents.every((parent) => parent === originId));
    const second = parentsOf(3);
    ok(second?.kind === "parents" && second.parents.every((parent) => parent === undefined), "no place twice");
  });

  test("TR2: without a free place there is no answer but to ask again", () => {
    const { step } = fleet(1, 1, 4);
    for (let id = 2; id < 10; id += 1) step({ kind: "join", id, member: { rack: "r", slots: 0 } });
    const [last] = step({ kind: "join", id: 50, member: { rack: "r", slots: 0 } });
    ok(last?.kind === "parents" && last.parents.every((parent) => parent === undefined));
  });
});

describe("the plan", () => {
  test("PL2: feeds no more children than a machine has places for, unless the places do not suffice", () => {
    const fan = (members: number, originSlots: number): number => {
      const children = new Map<string, number>();
      const ids = Array.from({ length: members }, (_, i) => ({ id: i + 1, rack: `r${i >> 5}`, slots: 16 }));
      planTrees({ stripes: 16, origin: 0, originSlots, members: ids }, (_, stripe, parent) => {
        if (parent === 0) return;
        const key = `${parent} ${stripe}`;
        children.set(key, (children.get(key) ?? 0) + 1);
      });
      return Math.max(...children.values());
    };
    equal(fan(1_000, 9), 16);
    equal(fan(1_000, 1), 17);
  });
});
