import { deepEqual, equal, ok } from "node:assert/strict";
import { test } from "node:test";
import { Random } from "#base/random.ts";
import { missed, planTurn, type Seen, type Turn, type Wants } from "./trouble-plan.ts";

const leaseMs = 3_000;
const members = ["n1", "n2", "n3"].map((name) => ({ name, carried: name === "n2" ? 2 : 0 }));
const full: Wants = { isFullSize: true, cuts: true };
const small: Wants = { isFullSize: false, cuts: false };

const turns = (wants: Wants, seed: number): readonly Turn[] => {
  const random = new Random(seed);
  return Array.from({ length: 6 }, (_, turn) => planTurn(turn, { members, random, leaseMs, wants }));
};

test("the first node killed is the one that Bazel talks to, and no other victim of a turn is the same node", () => {
  for (let seed = 1; seed <= 20; seed += 1)
    for (const wants of [full, small]) {
      const all = turns(wants, seed);
      equal(all[0]?.kill.victim, "n2");
      for (const { kill, stop, cut } of all) ok(stop?.victim !== kill.victim && cut?.victim !== kill.victim);
    }
});

test("in a build of full size one node is first suspended past every claim; then the database is down, once", () => {
  const all = turns(full, 1);
  deepEqual(
    all.map(({ stop }) => stop?.forMs),
    [16_000, undefined, 6_000, undefined, 6_000, undefined],
  );
  deepEqual(
    all.map(({ outage }) => outage?.forMs),
    [undefined, 9_000, undefined, undefined, undefined, undefined],
  );
  deepEqual(
    all.map(({ cut }) => cut?.forMs),
    [undefined, 6_000, 6_000, 6_000, 6_000, 6_000],
  );
});

test("in a smaller one the first turn has everything", () => {
  const [first, ...later] = turns(small, 1);
  deepEqual([first?.stop?.forMs, first?.outage?.forMs, first?.cut], [6_000, 9_000, undefined]);
  ok(later.every(({ outage }) => outage === undefined));
  ok(turns({ ...small, cuts: true }, 1).every(({ cut }) => cut?.forMs === 6_000));
});

test("what was not seen is reported, if it should have been seen", () => {
  const seen: Seen = { kills: 3, killsCarried: 1, stops: 1, outages: 1, cuts: 1, claimsLost: 2 };
  deepEqual(missed(seen, full), []);
  const nothing: Seen = { kills: 0, killsCarried: 0, stops: 0, outages: 0, cuts: 0, claimsLost: 0 };
  deepEqual(missed(nothing, full), ["kills", "killsCarried", "stops", "outages", "cuts", "claimsLost"]);
  deepEqual(missed(nothing, small), ["kills", "killsCarried", "stops", "outages"]);
  deepEqual(missed({ ...seen, outages: 0, cuts: 0 }, { isFullSize: true, cuts: false }), ["outages"]);
});
