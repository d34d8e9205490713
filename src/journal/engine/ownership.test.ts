import { equal } from "node:assert/strict";
import { test } from "node:test";
import { acquireLease, seen } from "./ownership.ts";
import { freshShard } from "./tables.ts";

const wanted = { node: "grace", leaseMs: 1_000, features: 1 };
const at = (row: Partial<ReturnType<typeof freshShard>>, nowMs: number): string =>
  acquireLease({ ...freshShard(0), ...row }, wanted, { featureLevel: 1 }, nowMs).answer.kind;

test("J4 a lease lasts to its last millisecond and not longer", () => {
  equal(at({ owner: "ada", leaseUntilMs: 5_000 }, 4_999), "held");
  equal(at({ owner: "ada", leaseUntilMs: 5_000 }, 5_000), "acquired");
  equal(at({ owner: "grace", leaseUntilMs: 5_000 }, 1_000), "acquired");
});

test("J4 a reservation lasts to its last millisecond and not longer", () => {
  equal(at({ reservedFor: "ada", reservedUntilMs: 5_000 }, 4_999), "refused");
  equal(at({ reservedFor: "ada", reservedUntilMs: 5_000 }, 5_000), "acquired");
  equal(at({ reservedFor: "grace", reservedUntilMs: 5_000 }, 1_000), "acquired");
});

test("a node is alive for as long as it announced", () => {
  const row = {
    node: "ada",
    address: "ada:1",
    features: 1,
    state: "up",
    facts: {},
    seenAtMs: 1_000,
    ttlMs: 500,
  } as const;
  equal(seen(row, 1_500).alive, true);
  equal(seen(row, 1_501).alive, false);
});
