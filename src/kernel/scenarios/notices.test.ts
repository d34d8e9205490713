import { deepEqual, equal } from "node:assert/strict";
import { describe, test } from "node:test";
import { Restorer } from "#kernel/snapshot/restore.ts";
import { submitOf } from "#kernel/testing/commands.ts";
import { factsOf, snapshotOf } from "#kernel/testing/facts.ts";
import { specify, Transcript } from "#kernel/testing/transcript.ts";

describe("the end of a job is told", () => {
  test("only once it has ended; it is kept until all are told, and telling again changes nothing", () => {
    specify(`
      submit j notify=1.7.0.child,2.8.1.other : a[x] -> job 1 new; x READY, a j RUNNING
      notified j 0 delivered                         -> not-notified
      reserve ada start                              -> x#1; x RUNNING
      commit ada x                                   -> committed generation=1; x SUCCEEDED, a COMPLETED, j SUCCEEDED
      forget j                                       -> forgotten=0
      notified j 0 delivered                         -> notified
      notified j 0 delivered                         -> not-notified
      forget j                                       -> forgotten=0
      notified j 2 delivered                         -> not-notified
      notified j 1 refused                           -> notified
      forget j                                       -> forgotten=1
      notified j 1 refused                           -> not-notified
    `);
  });

  test("however it ended", () => {
    specify(`
      submit j notify=1.7.0.child : a[x] -> job 1 new; x READY, a j RUNNING
      cancel j                           -> phase=CANCELLING; x a j CANCELLED
      notified j 0 delivered             -> notified
    `);
  });

  test("for a while only", () => {
    specify(
      `
      submit j notify=1.7.0.child deadline=1h : a[x] -> job 1 new; x READY, a j RUNNING
      cancel j                                       -> phase=CANCELLING; x a j CANCELLED
      +59s                                           ->
      forget j                                       -> forgotten=0
      +1s                                            ->
      forget j                                       -> forgotten=1
    `,
      { noticeMsMax: 60_000 },
    );
  });

  test("and a snapshot keeps what is to be told", () => {
    const t = specify(`
      submit j notify=1.7.0.child,2.8.1.other : a[x] -> job 1 new; x READY, a j RUNNING
      submit i notify=1.7.0.child : a[y]             -> job 2 new; y READY, a i RUNNING
      cancel j                                       -> phase=CANCELLING; x a j CANCELLED
      notified j 0 delivered                         -> notified
    `);
    const restorer = new Restorer(0, t.state.limits);
    for (const chunk of snapshotOf(t.state)) restorer.add(chunk);
    const state = restorer.finish();
    deepEqual(factsOf(state), factsOf(t.state));
    deepEqual(
      [...state.telling].map(({ no, extras }) => [no, extras?.owed]),
      [[1, [1]]],
    );
  });

  test("notices are few and well-formed, and wait for feature level 3", () => {
    const outcomeOf = (notify: unknown, featureLevel = 3): string => {
      const t = new Transcript();
      t.state.featureLevel = featureLevel;
      const outcome = t.do({ ...submitOf(["j", ":", "a[x]"]), notify: notify as [] });
      return outcome.ok ? "taken" : outcome.rejection.kind;
    };
    const notice = { shard: 0, job: 1, stage: 0, name: "n" };
    equal(outcomeOf([notice]), "taken");
    equal(outcomeOf([notice], 2), "invalid");
    equal(outcomeOf(Array.from({ length: 9 }, () => notice)), "limit");
    equal(outcomeOf([{ ...notice, name: "n".repeat(201) }]), "limit");
    for (const wrong of [{ shard: -1 }, { job: 0 }, { stage: 0.5 }, { name: "" }, { name: 7 }])
      equal(outcomeOf([{ ...notice, ...wrong }]), "invalid", JSON.stringify(wrong));
    for (const wrong of [null, [null], "all", [7]]) equal(outcomeOf(wrong), "invalid", JSON.stringify(wrong));
  });
});
