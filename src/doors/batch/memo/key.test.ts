import { deepEqual, equal, notEqual, ok } from "node:assert/strict";
import { describe, test } from "node:test";
import type { StageDocument } from "#doors/batch/documents.ts";
import type { Stage } from "#doors/batch/plan/stage.ts";
import { differences, isVolatile, taskKey } from "./key.ts";

const stage = (id: string, sql: string, inputs: Stage["branches"][number]["inputs"]): Stage => ({
  id,
  about: "",
  types: [{ id: "INTEGER" }],
  output: { kind: "whole" },
  branches: [{ sql, inputs, parts: { by: "source", source: 0 } }],
});
const file = (path: string, place: string) => ({ path, bytes: 10, place });

function mapOf(id: string, places: readonly string[], more: Partial<StageDocument> = {}): StageDocument {
  const from = { name: "s0_part", from: "source", source: 0, take: "part" } as const;
  return {
    version: 1,
    engine: "duckdb-1",
    stage: stage(id, "(select a from s0_part)", [from]),
    sources: [{ format: "csv", options: [], columns: [], files: places.map((place, i) => file(`/f${i}`, place)) }],
    inputs: {},
    parts: places.map((_, i) => ({ branch: 0, slice: { by: "source", split: [{ file: i }] } })),
    ...more,
  };
}

function reduceOf(id: string, packs: readonly string[]) {
  const name = `k${id}_part`;
  const document: StageDocument = {
    ...mapOf("", []),
    stage: stage("r", `(select a from ${name})`, [{ name, from: "stage", stage: id, take: "part" }]),
    inputs: { [id]: { manifest: "", types: [], producers: [] } },
    parts: [{ branch: 0, slice: { by: "partition", from: 0, to: 1 } }],
  };
  return taskKey(document, 0, { identityOf: () => "", packs: new Map([[id, packs]]) });
}

const keyOf = (document: StageDocument, part: number) =>
  taskKey(document, part, { identityOf: ({ place }) => place, packs: new Map() });

describe("BM1: a task's key", () => {
  test("changes with the file that the task reads, and with no other", () => {
    const before = mapOf("1", ["x", "y"]);
    const after = mapOf("2", ["x", "z"]); // another stage id: it holds all files
    equal(keyOf(before, 0)?.key, keyOf(after, 0)?.key);
    notEqual(keyOf(before, 1)?.key, keyOf(after, 1)?.key);
    equal(keyOf(before, 1)?.slot, keyOf(after, 1)?.slot);
    equal(differences(keyOf(after, 1)?.inputs ?? {}, keyOf(before, 1)?.inputs), "changed: /f1");
  });

  test("changes with engine, SQL, options and rows", () => {
    const plain = mapOf("1", ["x"]);
    const keys = [
      plain,
      { ...plain, engine: "duckdb-2" },
      { ...plain, stage: { ...plain.stage, types: [{ id: "BIGINT" }] } },
      { ...plain, stage: stage("1", "(select b from s0_part)", plain.stage.branches[0]?.inputs ?? []) },
      { ...plain, sources: plain.sources.map((source) => ({ ...source, options: ["header=true"] })) },
      {
        ...plain,
        parts: [{ branch: 0, slice: { by: "source", split: [{ file: 0, rows: [0, 5] as const }] } as const }],
      },
    ].map((document) => keyOf(document, 0)?.key);
    equal(new Set(keys).size, keys.length);
    ok(keys.every((key) => key !== undefined));
  });

  test("of a task that reads packs depends on the packs, not on the ids of stages", () => {
    equal(reduceOf("a1", ["p1", "p2"])?.key, reduceOf("b2", ["p1", "p2"])?.key);
    notEqual(reduceOf("a1", ["p1", "p2"])?.key, reduceOf("a1", ["p1", "p3"])?.key);
    notEqual(reduceOf("a1", ["p1", "p2"])?.key, reduceOf("a1", ["p2", "p1"])?.key);
  });

  test("does not exist for what comes out otherwise each time", () => {
    for (const sql of ["select random()", "select NOW()", "current_date", "x using sample 3", "uuid()"])
      ok(isVolatile(sql), sql);
    deepEqual(["select a from b", "sum(c0)", "known"].filter(isVolatile), []);
  });
});
