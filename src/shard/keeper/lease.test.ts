// OW2 A lease ends at the owner before it ends in the journal, however slow the journal's answers are.
import { deepEqual, equal, ok } from "node:assert/strict";
import { describe, test } from "node:test";
import { must } from "#base/assert.ts";
import { ManualClock } from "#base/testing/manual-clock.ts";
import { memoryStore } from "#journal/memory/memory.ts";
import { Rig, type TestNode } from "#shard/testing/host.ts";
import { Holdings } from "./holdings.ts";
import { keeperSettings } from "./settings.ts";
import { StoreClocks } from "#shard/host/kernel-clock.ts";

const leaseMs = 6_000;
/** Less than the keeper waits for an answer, and more than the share of a lease that it does not rely on. */
const slowMs = 1_500;

const ownerIn = async (rig: Rig): Promise<{ owner: string | undefined; remainingMs: number }> =>
  must((await rig.store.connect().ownerships())[0], "shard 0");

async function isServed({ node }: TestNode): Promise<boolean> {
  return (await node.request({ kind: "query", shard: 0, query: { kind: "stats" } })).kind === "answer";
}

/**
 * Renewals fail from now on: shortly before the journal gives the shard away, the node must have stopped answering for
 * it.
 */
async function endsInTime(rig: Rig, a: TestNode): Promise<void> {
  a.journal.fail("renew", ...Array.from({ length: 1_000 }, () => "unavailable" as const));
  a.journal.fail("acquire", ...Array.from({ length: 1_000 }, () => "unavailable" as const));
  const { remainingMs } = await ownerIn(rig);
  ok(remainingMs > 1_000, "the lease is fresh");
  await rig.clock.advance(remainingMs - leaseMs * 0.05 - 100);
  ok(await isServed(a), "it is served until shortly before");
  await rig.clock.advance(150);
  equal(await isServed(a), false, "and not to the end, for clocks differ a little");
  ok((await ownerIn(rig)).remainingMs > 0);
}

describe("OW2 a lease counts from the request", () => {
  test("that renewed it, not from the answer", async () => {
    const rig = new Rig();
    const a = await (await rig.node("a", { keeper: { leaseMs } })).serving();
    const asked = a.journal.count("renew");
    a.journal.fail("renew", "answered late");
    while (a.journal.count("renew") === asked) await rig.clock.advance(10);
    await rig.clock.advance(slowMs);
    a.journal.deliver();
    await endsInTime(rig, a);
  });

  test("that acquired the shard, not from the answer", async () => {
    const rig = new Rig();
    const a = await rig.node("a", { keeper: { leaseMs } });
    a.journal.fail("acquire", "answered late");
    while (a.journal.count("acquire") === 0) await rig.clock.advance(10);
    await rig.clock.advance(slowMs);
    a.journal.deliver();
    await a.serving();
    await endsInTime(rig, a);
  });

  test("and a lease that expired before the answer came is given up, though the journal renewed it", async () => {
    const clock = new ManualClock();
    const dropped: string[] = [];
    const answer = Promise.withResolvers<void>();
    const holdings = new Holdings({
      node: "a",
      clock,
      storeClocks: new StoreClocks(clock),
      settings: keeperSettings({ leaseMs }),
      journal: {
        ...memoryStore(() => clock.wallMs()).connect(),
        renew: async (_node, held) => {
          await answer.promise;
          return { held: held.map(({ shard }) => shard), storeNowMs: 0 };
        },
      },
      host: { adopt: async () => {}, drain: async () => {}, drop: (_shard, why) => dropped.push(why) },
      report: () => {},
      isRunning: () => true,
      steppedDown: () => {},
    });
    const holding = holdings.add(0, 1, clock.monotonicMs());
    await clock.advance(leaseMs * 0.9);
    const renewal = holdings.renew();
    await clock.advance(leaseMs * 0.08); // the event loop was busy: the lease was not checked in the meantime
    answer.resolve();
    await renewal;
    deepEqual(dropped, ["lease"]);
    equal(holdings.stands(holding), false);
  });
});
