/** Limits that machines share: what a rack may send, lent by its node, and what leaves a region. */
import { deepEqual, equal, ok } from "node:assert/strict";
import { describe, test } from "node:test";
import { Random } from "#base/random.ts";
import { ManualClock, settle } from "#base/testing/manual-clock.ts";
import { priorities } from "#swarm/uploads.ts";
import { noFleetCaps, type FleetCaps } from "./caps.ts";
import { SwarmDesk } from "./swarm-desk.ts";
import { WanLinks } from "./wan-links.ts";

const content = (name: string): string => `${name}/1`;

/** A node with machines `a0`... in rack a and `b0`... in rack b, all in one region unless said otherwise. */
function node(caps: () => FleetCaps, regionOf: (machine: string) => string = () => "eu") {
  const clock = new ManualClock();
  const desk = new SwarmDesk({
    clock,
    random: new Random(1),
    clusterKey: () => Promise.resolve("a2V5"),
    caps: () => Promise.resolve(caps()),
    regionOf: (_, machine) => regionOf(machine),
    nodes: () => 1,
  });
  const join = async (name: string, machines: readonly string[]) => {
    const joined = machines.map(async (machine) => {
      const at = { address: "127.0.0.1:1", rack: machine.slice(0, 1), units: 64, content: content(name) };
      return await desk.answer("t", machine, { kind: "join", ...at });
    });
    await settle();
    await clock.advance(1_000);
    return await Promise.all(joined);
  };
  return { clock, desk, join };
}
const rackCaps = async (desk: SwarmDesk, machines: readonly string[]): Promise<readonly number[]> =>
  await Promise.all(machines.map(async (machine) => (await desk.capsOf("t", machine)).rack));
const sum = (numbers: readonly number[]): number => numbers.reduce((all, one) => all + one, 0);
const machines = Array.from({ length: 40 }, (_, i) => `${i < 20 ? "a" : "b"}${i}`);
const [inA, inB] = [machines.slice(0, 20), machines.slice(20)];

describe("what leaves a rack", () => {
  test("DEPLOY-30: is one limit for all its machines, lent to those that feed others", async () => {
    let caps = { ...noFleetCaps, rackLink: 1_000_000 };
    const { desk, join, clock } = node(() => caps);
    await join("one", machines);
    for (const rack of [inA, inB]) {
      const shares = await rackCaps(desk, rack);
      ok(Math.abs(sum(shares) - 1_000_000) < 1, "LE1");
      ok(shares.every((share) => share > 0));
    }
    ok(new Set(await rackCaps(desk, machines)).size > 2, "by what each has to send");
    caps = { ...caps, rackLink: 200_000 };
    await clock.advance(2_000);
    ok(Math.abs(sum(await rackCaps(desk, inA)) - 200_000) < 1);
    caps = noFleetCaps;
    deepEqual([...new Set(await rackCaps(desk, machines))], [Infinity]);
  });

  test("DEPLOY-30: goes to a rollback before it goes to a release", async () => {
    const { desk, join, clock } = node(() => ({ ...noFleetCaps, rackLink: 1_000_000 }));
    await join("new", machines);
    desk.heard("t", "eu", content("new"), priorities.release);
    const before = await rackCaps(desk, inA);
    const back = [...inA.slice(0, 4), ...inB];
    await join("old", back);
    desk.heard("t", "eu", content("old"), priorities.rollback);
    await clock.advance(2_000);
    const after = await rackCaps(desk, inA);
    ok(sum(after) <= 1_000_001);
    const released = sum(after.slice(4));
    ok(released < 0.12 * sum(before), `the release keeps ${released}`);
  });

  test("SD2: a machine never hears of one in another region", async () => {
    const { join } = node(
      () => noFleetCaps,
      (machine) => (machine.startsWith("a") ? "eu" : "us"),
    );
    const answers = await join("one", machines);
    for (const [i, { parents }] of answers.entries())
      for (const parent of parents)
        if (parent && parent.peer !== "") equal(parent.peer.slice(0, 1), machines[i]?.slice(0, 1));
  });
});

describe("what leaves a region", () => {
  test("DEPLOY-30: waits for the link, rollbacks first, and goes on when the limit is changed", async () => {
    const clock = new ManualClock();
    let limit = 1_000;
    const links = new WanLinks({ clock, limit: () => Promise.resolve(limit), nodes: () => 2 });
    const gone: string[] = [];
    const { signal } = new AbortController();
    const pass = (name: string, priority: 0 | 1 | 2): void =>
      void links.pass("t", 500, priority, signal).then(() => gone.push(name));
    pass("first", priorities.release);
    await settle();
    deepEqual(gone, ["first"]);
    pass("second", priorities.release);
    await settle();
    pass("back", priorities.rollback);
    await settle();
    deepEqual(gone, ["first"], "half of the limit is this node's: 500 bytes are a second");
    await clock.advance(1_000);
    await settle();
    deepEqual(gone, ["first", "back"]);
    limit = Infinity;
    await clock.advance(1_000);
    await settle();
    deepEqual(gone, ["first", "back", "second"]);
  });

  test("and those that gave up wait no more", async () => {
    const clock = new ManualClock();
    const links = new WanLinks({ clock, limit: () => Promise.resolve(0), nodes: () => 1 });
    const stop = new AbortController();
    let said = "";
    void links.pass("t", 500, priorities.release, stop.signal).catch((error: unknown) => (said = String(error)));
    await settle();
    stop.abort(new Error("given up"));
    await settle();
    ok(said.includes("given up"));
  });
});
