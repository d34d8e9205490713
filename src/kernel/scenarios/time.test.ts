import { equal } from "node:assert/strict";
import { describe, test } from "node:test";
import { specify, Transcript } from "#kernel/testing/transcript.ts";

describe("K11: time", () => {
  test("never runs backwards: a late command counts as now", () => {
    const t = specify(`
      submit j : a[x]   -> job 1 new; x READY, a j RUNNING
      +5s               ->
      reserve ada start -> x#1; x RUNNING
      +5s               ->
    `);
    const newest = t.nowMs;
    t.nowMs -= 8_000;
    t.specify("renew ada -> held x#1 lost -\ntick ->\nsubmit i : a[y] -> job 2 new; y READY, a i RUNNING");
    equal(t.state.nowMs, newest);
    equal(t.state.job(2).submittedAtMs, newest);
    t.nowMs = newest;
    t.specify("+9s ->\n+1s -> x RETRY_PENDING");
  });

  test("a time that is not a number does not count", () => {
    const t = new Transcript();
    t.say("submit j : a[x]");
    const { nowMs } = t.state;
    for (const wrong of [Number.NaN, Number.POSITIVE_INFINITY, -1]) {
      t.nowMs = wrong;
      t.say("tick");
      equal(t.state.nowMs, nowMs);
    }
  });

  test("a forward jump does not expire the fleet: every claim has a full lease again", () => {
    specify(`
      submit j : a[x,y]       -> job 1 new; x y READY, a j RUNNING
      reserve ada start       -> x#1; x RUNNING
      reserve bea start       -> y#2; y RUNNING
      leap 30m                ->
      renew ada               -> held x#1 lost -
      +9s                     ->
      renew ada               -> held x#1 lost -
      +1s                     -> y RETRY_PENDING
      commit ada x            -> committed generation=1; x SUCCEEDED
    `);
  });

  test("nor does it use up any time limit", () => {
    specify(`
      submit j : a[x];attempt=1m -> job 1 new; x READY, a j RUNNING
      reserve ada start          -> x#1; x RUNNING
      leap 30m                   ->
      renew ada                  -> held x#1 lost -
      commit ada x               -> committed generation=1; x SUCCEEDED, a COMPLETED, j SUCCEEDED
    `);
  });

  test("nor do repeated jumps, as when a process is stopped now and then", () => {
    const t = specify(`
      submit j : a[x]   -> job 1 new; x READY, a j RUNNING
      reserve ada start -> x#1; x RUNNING
    `);
    for (let i = 0; i < 5; i += 1) t.specify("leap 20s ->\n+5s ->\nrenew ada -> held x#1 lost -");
  });

  test("a jump noticed by any command counts, not only by a tick", () => {
    const t = specify(`
      submit j : a[x,y] -> job 1 new; x y READY, a j RUNNING
      reserve ada start -> x#1; x RUNNING
    `);
    t.nowMs += 60_000;
    t.specify(`
      reserve bea start -> y#2; y RUNNING
      tick              ->
      +9s               ->
      renew bea         -> held y#2 lost -
      +1s               -> x RETRY_PENDING
    `);
  });

  test("a new owner gives every live claim a full fresh lease", () => {
    specify(`
      takeover 1        -> claims=0
      submit j : a[x]   -> job 1 new; x READY, a j RUNNING
      reserve ada start -> x#1; x RUNNING
      +9s               ->
      takeover 2        -> claims=1
      takeover 2        -> REFUSED invalid path=epoch why=must be greater than 2
      takeover 1        -> REFUSED invalid path=epoch why=must be greater than 2
      +9s               ->
      +1s               -> x RETRY_PENDING
    `);
  });

  test("K2: after a jump of the clock with a new owner, outside work waits for the attempt that timed out", () => {
    const t = new Transcript();
    t.specify(`
      takeover 1                                 -> claims=0
      submit j : a[x];outside;attempt=5s;retry=any -> job 1 new; x READY, a j RUNNING
      reserve ada start                          -> x#1; x RUNNING
      +3s                                        ->
      renew ada                                  -> held x#1 lost -
      +2s                                        -> x RETRY_PENDING
    `);
    t.nowMs += 60_000;
    t.specify(`
      takeover 2        -> claims=1
      tick              ->
      +9s               ->
      +1s               -> x READY
    `);
  });

  test("a tick does a bounded amount of work and says whether more is due", () => {
    const t = new Transcript({ limits: { tickStepsMax: 10 } });
    t.say("submit j : a[x*25];queue=1s");
    t.nowMs += 1_000;
    const more: boolean[] = [];
    for (let i = 0; i < 3; i += 1) {
      const { reply } = t.do({ kind: "tick" }) as unknown as { reply: { more: boolean } };
      more.push(reply.more);
    }
    equal(more.join(), "true,true,false");
    equal(t.state.stage(1, 0).failed, 25);
  });

  test("a tick says when something will be due next", () => {
    const t = new Transcript();
    t.say("submit j : a[x];queue=30s");
    const next = (): number =>
      (t.do({ kind: "tick" }) as unknown as { reply: { nextDueInMs: number } }).reply.nextDueInMs;
    equal(next(), 30_000);
    t.say("cancel j");
    equal(next(), Number.POSITIVE_INFINITY);
  });
});
