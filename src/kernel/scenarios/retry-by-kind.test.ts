import { deepEqual, equal, ok } from "node:assert/strict";
import { describe, test } from "node:test";
import type { Grant } from "#kernel/model/model.ts";
import { addRun, newPace, percentileMs } from "#kernel/model/pace.ts";
import { specify, type Transcript } from "#kernel/testing/transcript.ts";

const grantTo = (t: Transcript, executor: string): Grant | undefined => {
  const asked = {
    kind: "reserve",
    executor,
    offers: [],
    prefer: [],
    count: 1,
    start: true,
    nonce: `${t.nowMs}`,
  } as const;
  const outcome = t.do(asked);
  return outcome.ok && "grants" in outcome.reply ? outcome.reply.grants[0] : undefined;
};

describe("retry by kind", () => {
  test("a grant says how often attempts of the task failed, by reason", () => {
    const t = specify(`
      submit j : a[x];retry=any;tries=9;backoff=0s -> job 1 new; x READY, a j RUNNING
      reserve ada start                            -> x#1; x RUNNING
      fail ada x out-of-memory                     -> retryInMs=0; x RETRY_PENDING
      +1s                                          -> x READY
      reserve ada start                            -> x#2; x RUNNING
      fail ada x user-failure                      -> retryInMs=0; x RETRY_PENDING
      +1s                                          -> x READY
      reserve ada start                            -> x#3; x RUNNING
      fail ada x out-of-memory                     -> retryInMs=0; x RETRY_PENDING
      +1s                                          -> x READY
    `);
    const grant = grantTo(t, "bea");
    deepEqual(grant?.failures, { "out-of-memory": 2, "user-failure": 1 });
    equal(grant?.outOfMemory, 2);
  });

  test("attempts lost to infrastructure do not use up the user's, within a budget of their own", () => {
    specify(`
      submit j : a[x];tries=1;losses=2;backoff=0s  -> job 1 new; x READY, a j RUNNING
      reserve ada start                            -> x#1; x RUNNING
      fail ada x preempted                         -> retryInMs=0; x RETRY_PENDING
      +1s                                          -> x READY
      reserve ada start                            -> x#2; x RUNNING
      +10s                                         -> x READY
      reserve ada start                            -> x#3; x RUNNING
      fail ada x input-lost                        -> ok; x a j FAILED
    `);
    specify(`
      submit j : a[x];tries=1;losses=2;backoff=0s  -> job 1 new; x READY, a j RUNNING
      reserve ada start                            -> x#1; x RUNNING
      fail ada x user-failure                      -> ok; x a j FAILED
    `);
    specify(`
      submit j : a[x];tries=1;backoff=0s           -> job 1 new; x READY, a j RUNNING
      reserve ada start                            -> x#1; x RUNNING
      fail ada x preempted                         -> ok; x a j FAILED
    `);
  });
});

describe("retries by reason", () => {
  test("each reason has attempts of its own, and one that is not named is final", () => {
    const retries = "tries=9;backoff=0s;retries=user-failure:1,executor-lost:2";
    specify(`
      submit j : a[x];${retries}                   -> job 1 new; x READY, a j RUNNING
      reserve ada start                            -> x#1; x RUNNING
      fail ada x user-failure                      -> retryInMs=0; x RETRY_PENDING
      +1s                                          -> x READY
      reserve ada start                            -> x#2; x RUNNING
      fail ada x executor-lost                     -> retryInMs=0; x RETRY_PENDING
      +1s                                          -> x READY
      reserve ada start                            -> x#3; x RUNNING
      fail ada x user-failure                      -> ok; x a j FAILED
    `);
    specify(`
      submit j : a[x];${retries}                   -> job 1 new; x READY, a j RUNNING
      reserve ada start                            -> x#1; x RUNNING
      fail ada x preempted                         -> ok; x a j FAILED
    `);
    specify(`
      submit j : a[x];tries=2;backoff=0s;retries=user-failure:5 -> job 1 new; x READY, a j RUNNING
      reserve ada start                            -> x#1; x RUNNING
      fail ada x user-failure                      -> retryInMs=0; x RETRY_PENDING
      +1s                                          -> x READY
      reserve ada start                            -> x#2; x RUNNING
      fail ada x user-failure                      -> ok; x a j FAILED
    `);
  });
});

describe("speculation by the template's own rule", () => {
  test("percentiles are right within a fifth, however many runs there were", () => {
    const pace = newPace();
    for (let ms = 1; ms <= 10_000; ms += 1) addRun(pace, ms);
    for (const percentile of [1, 10, 50, 90, 99]) {
      const real = percentile * 100;
      const told = percentileMs(pace, percentile);
      ok(told >= real * 0.99 && told <= real * 1.2, `${percentile}: ${told}`);
    }
    equal(percentileMs(newPace(), 50), 0);
    ok(pace.counts.length < 128);
  });

  test("a second attempt when a task runs long compared with the others, for so many at once", () => {
    const t = specify(`
      submit j : a[v,w,x,y];speculate;spare=50:200:1;lease=1h -> job 1 new; v w x y READY, a j RUNNING
      reserve ada n=4 start                 -> v#1 w#2 x#3 y#4; v w x y RUNNING
      +1s                                   ->
      commit ada v                          -> committed generation=1; v SUCCEEDED
      +5s                                   ->
      reserve bea start                     -> nothing
      commit ada w                          -> committed generation=1; w SUCCEEDED
      +5s                                   ->
      reserve bea n=9 start                 -> y#5
      reserve cyd n=9 start                 -> nothing
      commit bea y                          -> committed generation=1; y SUCCEEDED
      +5s                                   ->
      reserve cyd n=9 start                 -> x#6
    `);
    equal(t.state.job(1).stages[0]?.pace?.spares, 1);
  });
});
