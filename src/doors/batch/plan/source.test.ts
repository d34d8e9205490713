import { deepEqual, equal, ok } from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { splitsOf, type Source } from "./source.ts";
import { tasksOf } from "./tasks.ts";
import { cutDefaults } from "./settings.ts";
import type { Stage, StageFacts } from "./stage.ts";

const file = fc.record({
  bytes: fc.nat(10_000),
  rows: fc.nat(5_000),
  rowGroups: fc.integer({ min: 1, max: 40 }),
});

test("splits take every row of every file once, in order", () => {
  fc.assert(
    fc.property(fc.array(file, { maxLength: 20 }), fc.integer({ min: 1, max: 5_000 }), (files, splitBytes) => {
      const source: Source = {
        format: "parquet",
        options: [],
        columns: [],
        files: files.map((one, i) => ({ path: `/f${i}`, place: "", ...one })),
      };
      const taken = splitsOf(source, splitBytes).flat();
      const rows = taken.flatMap(({ file: at, rows: range }) => {
        const [from, to] = range ?? [0, files[at]?.rows ?? 0];
        return Array.from({ length: to - from }, (_, i) => `${at}:${from + i}`);
      });
      const want = files.flatMap((one, at) => Array.from({ length: one.rows }, (_, i) => `${at}:${i}`));
      deepEqual(rows, want);
    }),
    { numRuns: 100 },
  );
});

test("a text file is cut where its rows are known to begin, and nowhere else", () => {
  const split = (cuts?: { head: number; at: number[] }) => {
    const files = [
      { path: "/a.csv", bytes: 900, place: "", ...(cuts && { cuts }) },
      { path: "/b.csv", bytes: 10, place: "" },
    ];
    return splitsOf({ format: "csv", files, columns: [], options: [] }, 300);
  };
  deepEqual(split(), [[{ file: 0 }], [{ file: 1 }]]);
  deepEqual(split({ head: 5, at: [] }), [[{ file: 0 }], [{ file: 1 }]]);
  deepEqual(split({ head: 5, at: [310, 640] }), [
    [{ file: 0, bytes: [0, 310] }],
    [{ file: 0, bytes: [310, 640] }],
    [{ file: 0, bytes: [640, 900] }],
    [{ file: 1 }],
  ]);
});

test("a partition that is too large for a task is split by packs, the other side read whole by each", () => {
  const branch = {
    sql: "",
    inputs: ["a", "b"].map((stage) => ({ name: stage, from: "stage" as const, stage, take: "part" as const })),
  };
  const stage = (splits?: readonly string[]): Stage => ({
    id: "x",
    about: "",
    types: [],
    output: { kind: "result" },
    branches: [{ ...branch, parts: { by: "partition", ...(splits && { splits }) } }],
  });
  const of = (partitionBytes: readonly number[]): StageFacts => ({
    rows: 1,
    bytes: 1,
    partitionBytes,
    packs: 5,
    cuts: [],
  });
  const both = new Map([
    ["a", of([10, 950, 10])],
    ["b", of([10, 60, 10])],
  ]);
  const input = { sources: [], settings: { ...cutDefaults, reduceBytes: 300 } };
  const slices = (splits?: readonly string[]) => tasksOf(stage(splits), input, both).map(({ slice }) => slice);
  const middle = { by: "partition", from: 1, to: 2 };
  const [first, last] = [
    { by: "partition", from: 0, to: 1 },
    { by: "partition", from: 2, to: 3 },
  ];
  const pieces = [
    [0, 1],
    [1, 2],
    [2, 3],
    [3, 5],
  ].map(([from, to]) => ({ ...middle, of: { stage: "a", from, to } }));
  deepEqual(slices(["a", "b"]), [first, ...pieces, last]);
  deepEqual(slices(["b"]), [first, middle, last], "only the small side could be split");
  deepEqual(slices(), [first, middle, last], "equal keys have to stay together");
});

const stageOver = (by: "partition" | "range"): Stage => ({
  id: "x",
  about: "",
  types: [],
  output: { kind: "result" },
  branches: [
    {
      sql: "",
      inputs: [{ name: "k", from: "stage", stage: "a", take: "part" }],
      parts: by === "partition" ? { by } : { by, stage: "a" },
    },
  ],
});
const facts = (more: Partial<StageFacts>): ReadonlyMap<string, StageFacts> =>
  new Map([["a", { rows: 1, bytes: 1_000, partitionBytes: [], packs: 1, cuts: [], ...more }]]);

test("tasks take every partition once, small neighbours together", () => {
  fc.assert(
    fc.property(
      fc.array(fc.nat(1_000), { minLength: 1, maxLength: 64 }),
      fc.integer({ min: 1, max: 3_000 }),
      (sizes, reduceBytes) => {
        const input = { sources: [], settings: { ...cutDefaults, reduceBytes } };
        const slices = tasksOf(stageOver("partition"), input, facts({ partitionBytes: sizes })).map(
          ({ slice }) => slice,
        );
        const taken = slices.flatMap((slice) =>
          slice.by === "partition" ? Array.from({ length: slice.to - slice.from }, (_, i) => slice.from + i) : [],
        );
        deepEqual(
          taken,
          sizes.map((_, i) => i),
        );
        for (const slice of slices) {
          if (slice.by !== "partition" || slice.to - slice.from === 1) continue;
          ok(sizes.slice(slice.from, slice.to).reduce((sum, size) => sum + size, 0) <= reduceBytes);
        }
      },
    ),
    { numRuns: 100 },
  );
});

test("ranges follow each other without a gap, whatever was sampled", () => {
  fc.assert(
    fc.property(fc.array(fc.stringMatching(/^[0-9A-F]{2,8}$/), { maxLength: 50 }), (cuts) => {
      const input = { sources: [], settings: { ...cutDefaults, reduceBytes: 100 } };
      const slices = tasksOf(stageOver("range"), input, facts({ cuts: cuts.toSorted() })).map(({ slice }) => slice);
      let from: string | undefined;
      for (const slice of slices) {
        equal(slice.by, "range");
        if (slice.by !== "range") return;
        equal(slice.from, from);
        from = slice.to;
      }
      equal(from, undefined);
    }),
    { numRuns: 100 },
  );
});
