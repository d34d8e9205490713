import { deepEqual, equal, ok, rejects } from "node:assert/strict";
import { describe, test } from "node:test";
import { ManualClock } from "#base/testing/manual-clock.ts";
import { FlightDesk } from "#doors/build/execute/flight-desk.ts";
import { desks, flightCalls } from "./flight-calls.ts";

const never = new AbortController().signal;
const shared = { payload: "{}", digests: [], isForCache: true };

/** Nodes that call each other with what a network would carry. */
function cluster(names: readonly string[]) {
  const clock = new ManualClock();
  const seen = names.map((node) => ({ node, alive: true, address: `mem://${node}` }));
  const served = new Map(names.map((node) => [`mem://${node}`, flightCalls(new FlightDesk(clock))]));
  const calls: string[] = [];
  const tcp = {
    call: async (to: string, method: string, body: unknown, signal: AbortSignal): Promise<unknown> => {
      calls.push(to);
      const handlers: Record<string, (body: unknown, signal: AbortSignal) => Promise<unknown>> = served.get(to) ?? {};
      const handler = handlers[method];
      ok(handler);
      const wire = (value: unknown): unknown => JSON.parse(JSON.stringify(value));
      return wire(await handler(wire(body), signal));
    },
  };
  const own = new FlightDesk(clock);
  const at = (name: string) => desks({ name, desk: own }, { ...tcp, nodes: () => seen });
  return { at, own, seen, calls };
}

describe("desks of several nodes", () => {
  test("all nodes ask the same one of a key, and its result comes over the wire as it was", async () => {
    const { at, calls } = cluster(["a", "b", "c"]);
    // Seen from nodes that are not among them: every desk is another's.
    const [one, other] = [at("x"), at("y")];
    for (const key of ["k1", "k2", "k3", "k4", "k5"]) {
      const question = { key, waitMs: 0, takesEnded: false };
      deepEqual(await one(key).enter({ ...question, runner: "1" }, never), { kind: "yours" });
      const waiting = other(key).enter({ ...question, runner: "2", waitMs: 1_000 }, never);
      await one(key).end(key, "1", shared);
      deepEqual(await waiting, { kind: "shared", shared });
    }
    ok(new Set(calls).size > 1, "keys are spread over the nodes");
  });

  test("a node asks itself without the network, and so it does while it knows no other node", async () => {
    const { at, own, seen, calls } = cluster(["a"]);
    equal(at("a")("k"), own);
    seen.length = 0;
    equal(at("x")("k"), own);
    deepEqual(calls, []);
  });

  test("a question that makes no sense is refused", async () => {
    const calls = flightCalls(new FlightDesk(new ManualClock()));
    for (const body of [null, {}, { key: "", runner: "r", waitMs: 1, takesEnded: true }, { key: "k", runner: 1 }])
      await rejects(calls["flight.enter"](body, never), /share a run: invalid/);
    await rejects(calls["flight.end"]({ key: "k", runner: "r", shared: { payload: 1 } }), /share a run: invalid/);
  });
});
