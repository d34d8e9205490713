import { deepEqual, equal, notEqual, ok, throws } from "node:assert/strict";
import { test } from "node:test";
import { hash32, Random } from "./random.ts";

const draw = (random: Random, count: number): number[] => Array.from({ length: count }, () => random.next32());

test("the same seed gives the same numbers, for ever", () => {
  deepEqual(draw(new Random(7), 5), draw(new Random("7"), 5));
  notEqual(new Random(7).next32(), new Random(8).next32());
  deepEqual(draw(new Random(1), 4), [1005125978, 38498823, 32616290, 1665184738]);
});

test("numbers stay within their bounds and reach all of them", () => {
  const random = new Random("bounds");
  const seen = new Set<number>();
  for (let i = 0; i < 2_000; i += 1) {
    const one = random.between(-2, 3);
    ok(one >= -2 && one <= 3 && Number.isInteger(one));
    seen.add(one);
    const fraction = random.fraction();
    ok(fraction >= 0 && fraction < 1);
    ok(random.below(10) < 10);
  }
  equal(seen.size, 6);
  equal(random.chance(0), false);
  equal(random.chance(1), true);
  equal(random.pick(["a"]), "a");
  throws(() => random.pick([]), RangeError);
});

test("probabilities are about right", () => {
  const random = new Random("often");
  let hits = 0;
  for (let i = 0; i < 10_000; i += 1) if (random.chance(0.3)) hits += 1;
  ok(Math.abs(hits - 3_000) < 200, String(hits));
});

test("a fork has its own numbers: drawing more of them does not shift others", () => {
  const [a, b] = [new Random(1), new Random(1)];
  const [forkA, forkB] = [a.fork("x"), b.fork("x")];
  draw(forkA, 100);
  draw(forkB, 3);
  deepEqual(draw(a, 5), draw(b, 5));
  notEqual(new Random(1).fork("x").next32(), new Random(1).fork("y").next32());
});

test("a hash spreads similar words far apart, and never changes: back-off and placement depend on it", () => {
  equal(hash32(""), 2872998923);
  equal(hash32("millrace"), 2352700675);
  equal(hash32("millrace", 1), 1170674440);
  const buckets = new Set(Array.from({ length: 1_000 }, (_, i) => hash32(`task-${i}`) % 64));
  equal(buckets.size, 64);
  equal(new Set(Array.from({ length: 10_000 }, (_, i) => hash32(`${i}`))).size, 10_000);
});
