import { deepEqual } from "node:assert/strict";
import { describe, test } from "node:test";
import type { TaskResult } from "./documents.ts";
import { readsMark, standingResults } from "./standing.ts";

type One = TaskResult & { readonly wave: number };

const made = (wave: number, stage: string, part: number, pack: string, reads?: TaskResult["reads"]): One => ({
  wave,
  stage,
  part,
  pack,
  about: "",
  isResult: false,
  rows: 1,
  bytes: 1,
  shares: "",
  cuts: [],
  cpuMs: 1,
  by: { task: "", generation: 1 },
  ...(reads && { reads }),
});
const mark = (...packs: readonly string[]): string => readsMark(packs);
const standing = (...results: readonly One[]): object =>
  Object.fromEntries([...standingResults(results)].map(([id, parts]) => [id, parts.map(({ pack }) => pack)]));

describe("BW3, BATCH-8: results that a later wave goes on from", () => {
  const a = [made(1, "a", 0, "a0"), made(1, "a", 1, "a1")];
  const b = made(2, "b", 0, "b0", { a: mark("a0", "a1") });
  const c = made(3, "c", 0, "c0", { b: mark("b0") });

  test("are all of them while packs are what they were, in whatever order they came", () => {
    deepEqual(standing(c, a[1] as One, b, a[0] as One), { a: ["a0", "a1"], b: ["b0"], c: ["c0"] });
  });

  test("are not those that read a pack which came out with other bytes since, nor what follows from them", () => {
    deepEqual(standing(a[0] as One, made(1, "a", 1, "other"), b, c), { a: ["a0", "other"] });
  });

  test("BATCH-7: are still those that read a pack which came out with the same bytes again", () => {
    const again = { ...(a[1] as One), by: { task: "", generation: 2 } };
    deepEqual(standing(a[0] as One, again, b, c), { a: ["a0", "a1"], b: ["b0"], c: ["c0"] });
  });

  test("are those of the last wave where a stage was computed again", () => {
    const anew = [a[0] as One, made(1, "a", 1, "other")];
    const later = made(4, "b", 0, "b9", { a: mark("a0", "other") });
    deepEqual(standing(...anew, b, c, later), { a: ["a0", "other"], b: ["b9"] });
  });

  test("of earlier versions, which do not say what they read, count as they are", () => {
    deepEqual(standing(made(1, "a", 0, "a7"), made(2, "b", 0, "b0")), { a: ["a7"], b: ["b0"] });
  });
});
