import { deepEqual, equal, ok } from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { groupActions, type Group, type Node } from "./groups.ts";

const limits = { groupsMax: 1_000, actionsMax: 1_000 };
const node = (needs: readonly number[], kind = ""): Node => ({ needs, class: kind });
const groupsOf = (nodes: readonly Node[], given = limits): readonly Group[] => {
  const grouped = groupActions(nodes, given);
  if (grouped.kind !== "groups") throw new Error(grouped.kind);
  return grouped.groups;
};

/** Each needs only earlier ones, so there is no cycle. */
const someNodes = fc
  .array(fc.tuple(fc.array(fc.nat(), { maxLength: 4 }), fc.constantFrom("a", "b")), { maxLength: 60 })
  .map((all) =>
    all.map(([needs, kind], place) => node([...new Set(place === 0 ? [] : needs.map((n) => n % place))], kind)),
  );

test("a thousand compilations and a link are two stages, in whatever order they are given", () => {
  const compile = Array.from({ length: 1_000 }, () => node([]));
  const link = node(compile.map((_, place) => place + 1));
  deepEqual(
    groupsOf([link, ...compile.map(() => node([]))]).map(({ actions, needs }) => [actions.length, needs]),
    [
      [1_000, []],
      [1, [0]],
    ],
  );
});

test("no action waits for what it does not need: two libraries are linked independently", () => {
  const nodes = [node([]), node([]), node([0]), node([1])];
  deepEqual(
    groupsOf(nodes).map(({ actions }) => actions),
    [[0], [1], [2], [3]],
  );
});

test("actions for different machines are never in one stage", () => {
  deepEqual(
    groupsOf([node([], "a"), node([], "b"), node([], "a")]).map(({ actions }) => actions),
    [[0, 2], [1]],
  );
});

test("a cycle is named", () => {
  const grouped = groupActions([node([]), node([3]), node([1, 0]), node([2])], limits);
  equal(grouped.kind, "circle");
  deepEqual(grouped.kind === "circle" && grouped.places.toSorted((a, b) => a - b), [1, 2, 3]);
  deepEqual(groupActions([node([0])], limits), { kind: "circle", places: [0] });
});

test("a chain longer than a job's stage limit is refused with its length", () => {
  const chain = Array.from({ length: 12 }, (_, place) => node(place === 0 ? [] : [place - 1]));
  deepEqual(groupActions(chain, { groupsMax: 10, actionsMax: 1_000 }), { kind: "too-deep", depth: 12, depthMax: 10 });
  equal(groupsOf(chain, { groupsMax: 12, actionsMax: 1_000 }).length, 12);
});

test("every action is in one group, after all that it needs; exactly so while the limit allows", () => {
  fc.assert(
    fc.property(someNodes, (nodes) => {
      const groups = groupsOf(nodes);
      const groupOf = new Map(groups.flatMap(({ actions }, group) => actions.map((place) => [place, group] as const)));
      equal(groupOf.size, nodes.length);
      equal(groups.flatMap(({ actions }) => actions).length, nodes.length);
      for (const { actions, needs } of groups) {
        const awaited = needs.flatMap((need) => groups[need]?.actions ?? []).toSorted((a, b) => a - b);
        for (const place of actions)
          deepEqual(
            nodes[place]?.needs.toSorted((a, b) => a - b),
            awaited,
          );
      }
      for (const [group, { needs }] of groups.entries()) ok(needs.every((need) => need < group));
    }),
  );
});

test("with too many groups they are merged to the limit, still after all that they need", () => {
  fc.assert(
    fc.property(someNodes, fc.integer({ min: 1, max: 20 }), (nodes, groupsMax) => {
      const grouped = groupActions(nodes, { groupsMax, actionsMax: 7 });
      if (grouped.kind !== "groups") return equal(grouped.kind, "too-deep");
      const { groups } = grouped;
      ok(groups.length <= groupsMax);
      const groupOf = new Map(groups.flatMap(({ actions }, group) => actions.map((place) => [place, group] as const)));
      equal(groupOf.size, nodes.length);
      for (const [group, { actions, needs }] of groups.entries()) {
        equal(new Set(actions.map((place) => nodes[place]?.class)).size, 1);
        for (const place of actions)
          for (const need of nodes[place]?.needs ?? []) ok(needs.includes(groupOf.get(need) ?? -1));
        ok(needs.every((need) => need < group));
      }
    }),
  );
});
