/** A query on many executors with faults; 100,000 tasks on 1,000 by `npm run batch:judge -- world`. */
import { deepEqual, equal, ok } from "node:assert/strict";
import { describe, test } from "node:test";
import { Random } from "#base/random.ts";
import { createMemoryStore } from "#blobs/memory/memory-store.ts";
import { QueryWorld, type WorldOptions } from "#doors/batch/testing/query-world.ts";
import { worldPlan } from "#doors/batch/testing/world-plan.ts";
import { realClock } from "#testing/real-clock.ts";

const faults = { dies: 0.02, sleeps: 0.02, isLost: 0.2, lostMax: 10, differs: 0.8 };
const seeds = ["1", "2", "3", "4", "5"];
const plan = worldPlan(12, 4);

async function world(seed: string, more: Partial<WorldOptions> = {}) {
  const { blobs } = createMemoryStore({ clock: realClock, sizeBytesMax: 256 * 1024 * 1024 }).forTenant("t");
  const options = { plan: await plan, blobs, random: new Random(seed), executors: 6, faults, ...more };
  return await new QueryWorld(options).run();
}

describe("a query on many executors", () => {
  test("is answered without faults", async () => {
    const { phase, commits, mixed } = await world("calm", {
      faults: { dies: 0, sleeps: 0, isLost: 0, lostMax: 0, differs: 0 },
    });
    deepEqual([phase, mixed], ["SUCCEEDED", []]);
    ok(commits > 60);
  });

  for (const seed of seeds)
    test(`is answered from one generation of every pack, whatever is lost (seed ${seed})`, async () => {
      const { phase, mixed, lost, refused } = await world(seed);
      deepEqual([phase, mixed], ["SUCCEEDED", []]);
      ok(lost > 0 && refused > 0);
    });

  test("mutant: planners that do not see what results have read let generations mix, and that is noticed", async () => {
    const told: WorldOptions["told"] = (results) =>
      results.map((one) =>
        one.result ? { ...one, result: { ...one.result, payload: withoutReads(one.result.payload) } } : one,
      );
    let mixed = 0;
    for (const seed of seeds) mixed += (await world(seed, { told })).mixed.length;
    ok(mixed > 0);
  });

  test("comes out the same for the same seed", async () => {
    equal(JSON.stringify(await world("again")), JSON.stringify(await world("again")));
  });
});

const withoutReads = (payload: string): string =>
  JSON.stringify({ ...(JSON.parse(payload) as object), reads: undefined });
