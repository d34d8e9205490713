import { deepEqual, equal, rejects } from "node:assert/strict";
import { test } from "node:test";
import { Recent } from "#base/recent.ts";
import { SharedRuns } from "./shared-runs.ts";

test("those who ask while work is under way share the next run, not that one", async () => {
  const runs = new SharedRuns<number>();
  const gates = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  let begun = 0;
  const work = async (): Promise<number> => {
    begun += 1;
    const own = begun;
    await gates[own - 1]?.promise;
    return own;
  };
  const first = runs.take("a", work);
  const later = [runs.take("a", work), runs.take("a", work), runs.take("a", work)];
  equal(begun, 1);
  gates[0]?.resolve();
  equal(await first, 1);
  gates[1]?.resolve();
  deepEqual(await Promise.all(later), [2, 2, 2]);
  equal(await runs.take("a", work), 3);
});

test("a run that failed fails for those who shared it alone", async () => {
  const runs = new SharedRuns<number>();
  const gate = Promise.withResolvers<number>();
  const first = runs.take("a", () => gate.promise);
  const next = runs.take("a", async () => 2);
  gate.reject(new Error("away"));
  await rejects(first, /away/);
  equal(await next, 2);
});

test("the oldest answers go when together they are too large", () => {
  const recent = new Recent<string>(10);
  recent.set("a", "x", 4);
  recent.set("b", "y", 4);
  equal(recent.get("a"), "x");
  recent.set("c", "z", 4);
  deepEqual([recent.get("a"), recent.get("b"), recent.get("c")], ["x", undefined, "z"]);
  recent.set("d", "too large", 11);
  deepEqual([recent.get("a"), recent.get("d")], [undefined, undefined]);
});
