import { deepEqual, equal, ok } from "node:assert/strict";
import { describe, test } from "node:test";
import { wholePpm } from "#doors/deploy/service/service-file.ts";
import { isInShare, placeOf } from "./membership.ts";
import { nextShare, type PlacedMachine } from "./next-share.ts";

type Placed = { readonly machine: string; readonly rack: string };
type Step = { machines: readonly Placed[]; fromPpm: number; toPpm: number; atOnce: { service: number; rack: number } };

const share = ({ machines, ...rest }: Step, isDone: (machine: string) => boolean): number =>
  nextShare({
    ...rest,
    machines: machines.map(({ machine, rack }): PlacedMachine => ({
      place: placeOf(machine, "j1"),
      rack,
      isDone: isDone(machine),
    })),
  });

const fleet = (count: number, racks: number): readonly Placed[] =>
  Array.from({ length: count }, (_, i) => ({ machine: `m${i}`, rack: `r${i % racks}` }));

/** How many are on their way after each step, if every machine is done before the next one. */
function steps(machines: readonly Placed[], atOnce: { service: number; rack: number }, toPpm = wholePpm) {
  const moved: string[][] = [];
  const done = new Set<string>();
  for (let fromPpm = 0; fromPpm < toPpm;) {
    const next = share({ machines, fromPpm, toPpm, atOnce }, (one) => done.has(one));
    const now = machines.map(({ machine }) => machine).filter((one) => isInShare(one, "j1", next) && !done.has(one));
    ok(next > fromPpm, "it goes on");
    for (const machine of now) done.add(machine);
    if (now.length > 0) moved.push(now);
    fromPpm = next;
  }
  return moved;
}

describe("how much of a service moves at once", () => {
  test("without limits the whole wave", () =>
    deepEqual(
      steps(fleet(100, 4), { service: wholePpm, rack: wholePpm }).map((now) => now.length),
      [100],
    ));
  test("never more than the share of the service", () => {
    const moved = steps(fleet(1_000, 4), { service: 100_000, rack: wholePpm });
    for (const now of moved) ok(now.length <= 100, `${now.length} at once`);
    equal(moved.flat().length, 1_000);
  });
  test("never more than the share of a rack", () => {
    const machines = fleet(100, 10);
    for (const now of steps(machines, { service: wholePpm, rack: 300_000 }))
      for (let rack = 0; rack < 10; rack += 1)
        ok(now.filter((one) => machines.find(({ machine }) => machine === one)?.rack === `r${rack}`).length <= 3);
  });
  test("NS1: one machine at least", () =>
    equal(Math.max(...steps(fleet(5, 1), { service: 10_000, rack: wholePpm }).map((now) => now.length)), 1));
  test("NS2: machines that are not done hold up the next", () => {
    const machines = fleet(100, 1);
    const atOnce = { service: 100_000, rack: wholePpm };
    const first = share({ machines, fromPpm: 0, toPpm: wholePpm, atOnce }, () => false);
    const same = { machines, fromPpm: first, toPpm: wholePpm, atOnce };
    equal(
      share(same, () => false),
      first,
    );
    ok(share(same, () => true) > first);
  });
});
