import { deepEqual } from "node:assert/strict";
import { test } from "node:test";
import { later } from "#app/compose/store/tiers.ts";
import { ManualClock } from "#base/testing/manual-clock.ts";
import { createMemoryStore } from "#blobs/memory/memory-store.ts";
import { lostBy } from "#blobs/testing/complete-store.ts";
import { StoreMetrics } from "./store-metrics.ts";

test("a store that is counted keeps every method of the store inside", () => {
  const store = createMemoryStore({ clock: new ManualClock(), sizeBytesMax: 1_000 });
  const { uploads } = store.forTenant("mill");
  deepEqual(
    lostBy((blobs) => {
      const counted = new StoreMetrics().store({ ...store, forTenant: () => ({ blobs, uploads }) }, "build");
      return counted.forTenant("mill").blobs;
    }),
    [],
  );
});

test("a store that is opened later has all but what answers without waiting", () =>
  deepEqual(
    lostBy((inner) => later(async () => inner)),
    ["prompt.has", "prompt.hasMany", "prompt.sizeOf", "prompt.bytes"],
  ));
