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

test("a text file is never cut", () => {
  const files = [{ path: "/a.csv", bytes: 1e9, place: "" }];
  deepEqual(splitsOf({ format: "csv", files, columns: [], options: [] }, 1_000), [[{ file: 0 }]]);
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
