import { deepEqual, equal, ok } from "node:assert/strict";
import { describe, test } from "node:test";
import { lentShares, type Sender } from "./lent.ts";
import { Link } from "./link.ts";
import { priorities, type Priority } from "./uploads.ts";

const { rollback, release } = priorities;
const sender = (id: string, ...flows: readonly (readonly [Priority, number])[]): Sender<string> => ({
  id,
  flows: new Map(flows),
});
const sum = (shares: ReadonlyMap<string, number>): number => [...shares.values()].reduce((all, one) => all + one, 0);

describe("a limit that machines share", () => {
  test("LE1: is lent by the flows that each has, and never more than all of it", () => {
    const shares = lentShares(1_000, [sender("a", [release, 3]), sender("b", [release, 1]), sender("c")]);
    ok(Math.abs(sum(shares) - 1_000) < 1e-6);
    ok((shares.get("a") ?? 0) > 2.5 * (shares.get("b") ?? 0));
    ok((shares.get("c") ?? 0) > 0, "it may get a flow before the next look");
    equal(lentShares(1_000, [sender("a"), sender("b")]).get("a"), 500);
    equal(lentShares(0, [sender("a", [release, 1])]).get("a"), 0);
    equal(lentShares(1_000, []).size, 0);
  });

  test("LE2: goes to rollbacks first", () => {
    const shares = lentShares(1_000, [
      sender("a", [release, 9]),
      sender("b", [rollback, 1]),
      sender("c", [release, 9]),
    ]);
    ok((shares.get("b") ?? 0) > 900);
    ok(sum(shares) <= 1_000 + 1e-6);
  });
});

describe("a link that many wait for", () => {
  test("lets the more urgent go first, one at a time, and those that come first before those that come later", () => {
    const link = new Link<string>(1_000, 0);
    link.wait("first", 500, release);
    deepEqual(link.next(0), { going: ["first"], waitMs: undefined });
    for (const waiter of ["second", "third"]) link.wait(waiter, 100, release);
    link.wait("back", 100, rollback);
    deepEqual(link.next(100), { going: [], waitMs: 400 });
    deepEqual(link.next(500).going, ["back"]);
    deepEqual(link.next(600).going, ["second"]);
    link.leave("third");
    deepEqual(link.next(700), { going: [], waitMs: undefined });
  });

  test("follows a limit that is changed while they wait", () => {
    const link = new Link<string>(0, 0);
    for (const waiter of ["a", "b"]) link.wait(waiter, 1_000, release);
    deepEqual(link.next(1_000_000), { going: [], waitMs: Infinity });
    link.set(1_000_000, 1_000_000);
    deepEqual(link.next(1_000_010).going, ["a", "b"]);
  });
});
