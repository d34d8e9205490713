import { deepEqual, equal, ok } from "node:assert/strict";
import { test } from "node:test";
import { Ring } from "./neighbours.ts";

/** How many machines hear of it, and within how many hops, if `away` do not answer. */
function spread(size: number, away: (index: number) => boolean) {
  const ring = new Ring();
  const names = Array.from({ length: size }, (_, i) => `m${i}`);
  for (const name of names) ring.add(name);
  const gone = new Set(names.filter((_, i) => away(i)));
  const heard = new Set(["m0"]);
  let hops = 0;
  for (let edge = ["m0"]; edge.length > 0; hops += 1) {
    const next = edge.flatMap((name) => ring.neighboursOf(name)).filter((name) => !gone.has(name) && !heard.has(name));
    edge = [...new Set(next)];
    for (const name of edge) heard.add(name);
  }
  return { heard: heard.size, hops };
}

test("DEPLOY-23: a halt reaches every machine in a few hops, from whichever one it starts", () => {
  for (const size of [1, 2, 3, 14, 1_000, 10_000]) {
    const { heard, hops } = spread(size, () => false);
    equal(heard, size);
    ok(hops <= Math.ceil(Math.log2(size)) + 2, `${hops} hops for ${size}`);
  }
});

test("DEPLOY-23: and all that are there when a third is away", () => {
  const { heard } = spread(3_000, (i) => i % 3 === 1);
  equal(heard, 2_000);
});

test("one that left is no one's neighbour, and one that comes twice is there once", () => {
  const ring = new Ring();
  for (const name of ["a", "b", "b", "c"]) ring.add(name);
  equal(ring.size, 3);
  ring.remove("b");
  deepEqual(ring.neighboursOf("a"), ["c"]);
});
