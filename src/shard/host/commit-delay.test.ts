import { deepEqual, equal } from "node:assert/strict";
import { describe, test } from "node:test";
import { ManualClock, settle } from "#base/testing/manual-clock.ts";
import { CommitDelay } from "./commit-delay.ts";
import { commit, Rig, submit } from "#shard/testing/host.ts";

const restAfter = async (appendMs: number) => {
  const clock = new ManualClock();
  let times = 0;
  const rest = new CommitDelay(clock, () => (times += 1));
  rest.appendBegins();
  await clock.advance(appendMs);
  rest.appendEnded();
  const isWorthIt = (records: number, waiting: number, claims: number): boolean =>
    rest.isWorthIt(
      () => ({ records, waiting }),
      () => claims,
    );
  return { clock, rest, isWorthIt, overs: () => times };
};

describe("H4: after an append, records wait for more records", () => {
  for (const [appendMs, sinceMs, records, waiting, claims, isWorthIt] of [
    [1, 0, 2, 1, 3, true],
    [1, 5, 2, 1, 3, true],
    [1, 6, 2, 1, 3, false], // at most six times as long as the last append took
    [100, 9, 2, 1, 3, true],
    [100, 10, 2, 1, 3, false], // and at most this long
    [0, 0, 2, 1, 3, false],
    [2, 0, 2, 1, 0, false], // no other executor is working
    [2, 0, 2, 1, 1, false],
    [2, 0, 9, 3, 3, false], // as many records as can still come
    [2, 0, 31, 1, 1_000, true],
    [2, 0, 32, 1, 1_000, false], // enough records
    [2, 0, 0, 1, 2, true], // a read
  ] as const)
    test(`append ${appendMs} ms, ${sinceMs} ms ago, ${records} records, ${waiting} wait, ${claims} claims`, async () => {
      const { clock, ...rest } = await restAfter(appendMs);
      await clock.advance(sinceMs);
      equal(rest.isWorthIt(records, waiting, claims), isWorthIt);
    });

  test("its callback runs once when the wait is over, and nothing waits any longer", async () => {
    const { clock, isWorthIt, overs } = await restAfter(1);
    deepEqual([isWorthIt(2, 1, 5), isWorthIt(4, 2, 5)], [true, true]);
    await clock.advance(5);
    equal(overs(), 0);
    await clock.advance(1);
    equal(overs(), 1);
    equal(isWorthIt(2, 1, 5), false);
  });

  test("its callback does not run for a wait that an append has ended", async () => {
    const { clock, rest, isWorthIt, overs } = await restAfter(2);
    equal(isWorthIt(2, 1, 5), true);
    rest.appendBegins();
    await clock.advance(100);
    equal(overs(), 0);
  });

  test("a host writes the records of several executors with one append", async () => {
    const { a, clock, grants } = await claimed(8);
    const before = a.journal.count("append");
    const answers = [];
    for (const grant of grants.slice(0, 3)) {
      answers.push(a.ask(commit(grant)));
      await settle();
    }
    equal(a.journal.count("append"), before, "they wait");
    await clock.advance(10);
    equal((await Promise.all(answers)).length, 3);
    equal(a.journal.count("append") - before, 1);
  });

  test("a host lets a single executor wait for nothing", async () => {
    const { a, grants } = await claimed(1);
    const before = a.journal.count("append");
    const [grant] = grants;
    const answer = grant && a.ask(commit(grant));
    await settle();
    equal(a.journal.count("append") - before, 1);
    await answer;
  });
});

/** This many tasks are claimed, and the last append took five milliseconds. */
async function claimed(count: number) {
  const rig = new Rig();
  const { clock } = rig;
  const a = await (await rig.node()).serving();
  for (let i = 0; i < count; i += 1) await a.ask(submit());
  a.journal.fail("append", "late");
  const asked = a.grants(count);
  await settle();
  await clock.advance(5);
  a.journal.deliver();
  return { a, clock, grants: await asked };
}
