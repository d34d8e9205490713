import { deepEqual } from "node:assert/strict";
import { test } from "node:test";
import type { TaskResult } from "./documents.ts";
import { nearestNode } from "./locality.ts";
import type { Stage } from "./plan/stage.ts";
import type { Slice } from "./plan/tasks.ts";

const written = (part: number, at: string | undefined, bytes: number, shares: string): TaskResult => ({
  stage: "a",
  about: "",
  isResult: false,
  part,
  pack: `${part}/${bytes}`,
  rows: 1,
  bytes,
  shares,
  cuts: [],
  cpuMs: 0,
  ...(at !== undefined && { at }),
  by: { task: "t", generation: 1 },
});

const stage: Stage = {
  id: "x",
  about: "",
  types: [],
  output: { kind: "result" },
  branches: [{ sql: "", inputs: [{ name: "k", from: "stage", stage: "a", take: "part" }], parts: { by: "partition" } }],
};

const near = (slices: readonly Slice[], ...results: TaskResult[]) =>
  slices.map((slice) => nearestNode(stage, { branch: 0, slice }, new Map([["a", results]])));

test("a task prefers the node where most of its own part of the packs was written", () => {
  const [first, second, both] = [0, 1, 0].map((from, i): Slice => ({
    by: "partition",
    from,
    to: i === 2 ? 2 : from + 1,
  }));
  const results = [written(0, "mill", 100, "ff01"), written(1, "race", 90, "01ff"), written(2, undefined, 900, "ffff")];
  deepEqual(near([first, second, both] as Slice[], ...results), ["mill", "race", "mill"]);
});

test("a task that reads some packs prefers the node that wrote those", () => {
  const results = [written(0, "mill", 100, ""), written(1, "race", 10, ""), written(2, "race", 10, "")];
  const packs = (from: number, to: number): Slice => ({ by: "pack", from, to });
  deepEqual(near([packs(0, 2), packs(0, 3)], ...results), ["mill", "mill"]);
  deepEqual(near([{ by: "partition", from: 0, to: 1, of: { stage: "a", from: 0, to: 1 } }], ...results), [undefined]);
});

test("where all was written by one node there is nothing to prefer", () => {
  deepEqual(near([{ by: "partition", from: 0, to: 1 }], written(0, "mill", 5, "ff"), written(1, "mill", 5, "ff")), [
    undefined,
  ]);
});
