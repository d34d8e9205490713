import { deepEqual, equal, ok } from "node:assert/strict";
import { describe, test } from "node:test";
import { Fetcher, type FetchEffect, type FetchEvent, type Flow } from "./fetcher.ts";
import { Have, type Shape } from "./units.ts";

const shape: Shape = { units: 8, stripes: 2 };

function machine(has: readonly number[] = [], of: Shape = shape) {
  const have = new Have(of);
  for (const unit of has) have.add(unit);
  const fetcher = new Fetcher<string>(have);
  const step = (event: FetchEvent<string>, nowMs = 0): readonly string[] => {
    const effects: FetchEffect<string>[] = [];
    fetcher.step(event, nowMs, effects);
    return effects.map(say);
  };
  const flowOf = (stripe: number): Flow<string> => {
    const flow = fetcher.flows.find((each) => each.stripe === stripe);
    ok(flow, `no flow of stripe ${stripe}`);
    return flow;
  };
  return { have, fetcher, step, flowOf };
}

function say(effect: FetchEffect<string>): string {
  switch (effect.kind) {
    case "subscribe":
    case "shorten":
      return `${effect.kind} ${effect.flow.peer} stripe ${effect.flow.stripe} ${effect.flow.next}-${effect.flow.end}`;
    case "query":
      return `query ${effect.flow.peer}`;
    case "ask":
      return `ask ${effect.why} stripe ${effect.stripe} about ${effect.about}`;
    case "drop":
      return `drop ${effect.peer}`;
    case "complete":
      return "complete";
  }
}
const planned = { kind: "planned", parents: ["p", "q"] } as const;

describe("a fetcher", () => {
  test("takes each stripe from the parent that was planned, and is complete with the last unit", () => {
    const { step, flowOf } = machine();
    deepEqual(step(planned), ["subscribe p stripe 0 0-4", "subscribe q stripe 1 0-4"]);
    for (const unit of [0, 2, 4, 6]) step({ kind: "unit", flow: flowOf(0), unit }, 1);
    for (const unit of [1, 3, 5]) step({ kind: "unit", flow: flowOf(1), unit }, 1);
    deepEqual(step({ kind: "unit", flow: flowOf(1), unit: 7 }, 1), ["complete"]);
  });

  test("FE2: asks only for what an earlier staging left out", () => {
    const { step, flowOf } = machine([0, 4, 1, 3, 5, 7]);
    deepEqual(step(planned), ["subscribe p stripe 0 1-2"]);
    deepEqual(step({ kind: "unit", flow: flowOf(0), unit: 2 }), ["subscribe p stripe 0 3-4"]);
    deepEqual(step({ kind: "unit", flow: flowOf(0), unit: 6 }), ["complete"]);
  });

  test("FE1: a peer that sent wrong bytes is dropped, reported and never taken again", () => {
    const { have, step, flowOf } = machine();
    step(planned);
    deepEqual(step({ kind: "bad", flow: flowOf(0) }), ["drop p", "ask bad stripe 0 about p"]);
    equal(have.count, 0);
    deepEqual(step({ kind: "given", stripe: 0, peer: "p", why: "bad" }, 1), []);
    deepEqual(step({ kind: "tick" }, 2_000), ["ask none stripe 0 about undefined"]);
    deepEqual(step({ kind: "given", stripe: 0, peer: "r", why: "none" }, 2_001), ["subscribe r stripe 0 0-4"]);
  });

  test("FE3: one question about a stripe at a time, with growing pauses", () => {
    const { step } = machine();
    step(planned);
    deepEqual(step({ kind: "gone", peer: "p" }), ["ask gone stripe 0 about p"]);
    deepEqual(step({ kind: "tick" }, 500), []);
    step({ kind: "given", stripe: 0, peer: undefined, why: "gone" }, 600);
    deepEqual(step({ kind: "tick" }, 900), [], "too soon");
    deepEqual(step({ kind: "tick" }, 1_100), ["ask none stripe 0 about undefined"]);
    step({ kind: "given", stripe: 0, peer: undefined, why: "none" }, 1_200);
    deepEqual(step({ kind: "tick" }, 2_500), [], "the pause has grown");
  });

  const stalled = () => {
    const all = machine([], { units: 64, stripes: 2 });
    all.step(planned);
    for (let at = 0; at < 20; at += 1) all.step({ kind: "unit", flow: all.flowOf(1), unit: 2 * at + 1 }, 100 * at);
    return all;
  };

  test("a parent that brings nothing while others do is first asked why", () => {
    const { step, flowOf } = stalled();
    deepEqual(step({ kind: "tick" }, 2_000), ["query p"]);
    const flow = flowOf(0);
    deepEqual(step({ kind: "answered", flow, isWaiting: false, count: 20 }, 2_010), ["ask slow stripe 0 about p"]);
    deepEqual(step({ kind: "given", stripe: 0, peer: "r", why: "slow" }, 2_020), [
      "shorten p stripe 0 0-0",
      "subscribe r stripe 0 0-32",
    ]);
  });

  test("a machine that waits for long does not take its waiting for the usual pace", () => {
    const { step, flowOf } = machine([], { units: 64, stripes: 2 });
    step(planned);
    for (let at = 0; at < 32; at += 1) step({ kind: "unit", flow: flowOf(1), unit: 2 * at + 1 }, 100 * at);
    deepEqual(step({ kind: "tick" }, 3_200), ["query p"]);
    step({ kind: "given", stripe: 0, peer: undefined, why: "help" }, 3_205);
    step({ kind: "answered", flow: flowOf(0), isWaiting: true, count: 32 }, 3_210);
    step({ kind: "unit", flow: flowOf(0), unit: 0 }, 30_000);
    deepEqual(step({ kind: "tick" }, 32_000), ["query p", "ask help stripe 0 about p"]);
  });

  test("a parent that waits itself is not blamed, unless it is far behind in everything", () => {
    const { step, flowOf } = stalled();
    step({ kind: "tick" }, 2_000);
    deepEqual(step({ kind: "answered", flow: flowOf(0), isWaiting: true, count: 20 }, 2_010), []);
    deepEqual(step({ kind: "tick" }, 2_020), []);
    const other = stalled();
    other.step({ kind: "tick" }, 2_000);
    deepEqual(other.step({ kind: "answered", flow: other.flowOf(0), isWaiting: true, count: 2 }, 2_010), [
      "ask slow stripe 0 about p",
    ]);
  });

  test("with one stripe done, another machine brings most of what the longest has left", () => {
    const { step, flowOf } = machine([], { units: 32, stripes: 2 });
    step(planned);
    for (let at = 0; at < 15; at += 1) step({ kind: "unit", flow: flowOf(0), unit: 2 * at }, at);
    deepEqual(step({ kind: "unit", flow: flowOf(0), unit: 30 }, 20), ["ask help stripe 1 about q"]);
    deepEqual(step({ kind: "given", stripe: 1, peer: "h", why: "help" }, 21), [
      "shorten q stripe 1 0-5",
      "subscribe h stripe 1 5-16",
    ]);
  });

  test("help that no one can give yet is asked for again, after a pause", () => {
    const { step, flowOf } = machine([], { units: 32, stripes: 2 });
    step(planned);
    for (let at = 0; at < 16; at += 1) step({ kind: "unit", flow: flowOf(0), unit: 2 * at }, at);
    deepEqual(step({ kind: "given", stripe: 1, peer: undefined, why: "help" }, 20), []);
    deepEqual(step({ kind: "tick" }, 500), []);
    deepEqual(step({ kind: "tick" }, 1_100), ["ask help stripe 1 about q"]);
  });

  test("FE4: until two units of each stripe are here, no parent is slow", () => {
    const { step, flowOf } = machine([], { units: 64, stripes: 2 });
    step(planned);
    step({ kind: "unit", flow: flowOf(1), unit: 1 }, 10);
    step({ kind: "unit", flow: flowOf(1), unit: 3 }, 5_000);
    deepEqual(step({ kind: "tick" }, 10_000), []);
    deepEqual(step({ kind: "tick" }, 20_100), ["query p"]);
  });
});
