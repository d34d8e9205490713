import { equal, throws } from "node:assert/strict";
import { test } from "node:test";
import { assert, AssertionFailed, must, unreachable } from "./assert.ts";
import { Fault, isFault } from "./fault.ts";

test("a fault says what was being done, its code, and the facts", () => {
  const cause = new Error("no route");
  const fault = new Fault("unavailable", "read blob", { digest: "d", size: 3, hint: undefined, cached: false }, cause);
  equal(fault.message, "read blob: unavailable (digest=d size=3 cached=false)");
  equal(fault.cause, cause);
  equal(fault.name, "Fault");
  equal(new Fault("stale", "append").message, "append: stale");
  equal("cause" in new Fault("stale", "append"), false);
});

test("isFault tells a fault from other errors, and one code from another", () => {
  const fault = new Fault("stale", "append");
  equal(isFault(fault), true);
  equal(isFault(fault, "stale"), true);
  equal(isFault(fault, "corrupt"), false);
  for (const other of [new Error("stale"), { code: "stale" }, undefined, "stale"]) equal(isFault(other), false);
});

test("a failed assertion throws", () => {
  assert(1, "fine");
  throws(() => assert(0, "counts agree"), new AssertionFailed("counts agree"));
  equal(must(0, "number"), 0);
  throws(() => must(undefined, "job 7"), /missing: job 7/);
  throws(() => must(null, "job 7"), AssertionFailed);
  throws(() => unreachable("x" as never), /unreachable: "x"/);
});
