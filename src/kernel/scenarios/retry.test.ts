import { deepEqual, equal, ok } from "node:assert/strict";
import { describe, test } from "node:test";
import { must } from "#base/assert.ts";
import { grantOf } from "#kernel/decide/claim.ts";
import { backoffMs } from "#kernel/decide/finish.ts";
import { specify, Transcript } from "#kernel/testing/transcript.ts";

describe("K4: work is requeued only from an expired or retryable attempt, and its token is void for ever", () => {
  test("an expired lease leads to a back-off and another attempt", () => {
    specify(`
      submit j : a[x]          -> job 1 new; x READY, a j RUNNING
      reserve ada start        -> x#1; x RUNNING
      +9s                      ->
      +1s                      -> x RETRY_PENDING
      start ada x              -> REFUSED token-stale task=1 offered=1 current=1
      fail ada x               -> REFUSED token-stale task=1 offered=1 current=1
      report ada x late        -> REFUSED token-stale task=1 offered=1 current=1
      +1s                      -> x READY
      release ada x            -> REFUSED token-stale task=1 offered=1 current=1
      reserve ada start        -> x#2; x RUNNING
      fail ada x token=1       -> REFUSED token-stale task=1 offered=1 current=2
      commit ada x             -> committed generation=1; x SUCCEEDED, a COMPLETED, j SUCCEEDED
    `);
  });

  test("a grant says how many attempts ran out of memory, not counting lost ones", () => {
    const t = new Transcript();
    const counts: (number | undefined)[] = [];
    t.say("submit j : a[x,y];tries=9");
    for (const line of ["+10s", "fail ada x out-of-memory", "fail ada x preempted", "fail ada x out-of-memory"]) {
      t.say("reserve ada start");
      counts.push(grantOf(must(t.task("x").claim, "a claim")).outOfMemory);
      t.say(line);
      t.say("+1m");
    }
    deepEqual([...counts, t.task("x").outOfMemory], [0, 0, 1, 1, 2]);
    // The next generation starts from zero, as its attempts do.
    for (const line of ["reserve ada start", "commit ada x", "invalidate x"]) t.say(line);
    deepEqual([t.task("x").attempts, t.task("x").outOfMemory], [0, 0]);
  });

  test("attempts are limited, including those that ended with their executor", () => {
    specify(`
      submit j : a[x];tries=2   -> job 1 new; x READY, a j RUNNING
      reserve ada start         -> x#1; x RUNNING
      +10s                      -> x RETRY_PENDING
      +1s                       -> x READY
      reserve ada start         -> x#2; x RUNNING
      +10s                      -> x a j FAILED
    `);
  });

  test("a failure of the user's own work is final unless the template says otherwise", () => {
    specify(`
      submit j : a[x] b[y];retry=any -> job 1 new; x y READY, a b j RUNNING
      reserve ada n=2 start          -> x#1 y#2; x y RUNNING
      fail ada x user-failure        -> ok; x a FAILED
      fail ada x user-failure        -> ok
      fail ada y user-failure        -> retryInMs=585; y RETRY_PENDING
      fail ada y user-failure        -> retryInMs=585
    `);
  });

  test("every other reason is retried", () => {
    for (const reason of ["executor-lost", "preempted", "out-of-memory", "input-lost", "cancelled"])
      specify(`
        submit j : a[x]     -> job 1 new; x READY, a j RUNNING
        reserve ada start   -> x#1; x RUNNING
        fail ada x ${reason} -> retryInMs=928; x RETRY_PENDING
        +1s                 -> x READY
      `);
  });

  test("the back-off doubles up to its limit, with jitter between half and the whole", () => {
    const t = new Transcript();
    t.say("submit j : a[x];tries=100;backoff=1s;backoffMax=1m");
    const task = t.task("x");
    for (let attempt = 1; attempt <= 100; attempt += 1) {
      task.attempts = attempt;
      const full = Math.min(60_000, 1_000 * 2 ** (attempt - 1));
      const got = backoffMs(task.template, task, attempt);
      ok(got >= full / 2 && got <= full, `attempt ${attempt}: ${got} of ${full}`);
      equal(got, backoffMs(task.template, task, attempt));
    }
    task.attempts = 0;
  });

  test("an attempt past its time limit has a void token, and counts for its executor until it stops", () => {
    const t = specify(`
      submit j : a[x];attempt=30s;retry=any -> job 1 new; x READY, a j RUNNING
      reserve ada start                     -> x#1; x RUNNING
      +9s                                   ->
      renew ada                             -> held x#1 lost -
      +9s                                   ->
      renew ada                             -> held x#1 lost -
      +9s                                   ->
      renew ada                             -> held x#1 lost -
      +3s                                   -> x RETRY_PENDING
      renew ada                             -> held - lost x#1
      +1s                                   -> x READY
    `);
    equal(t.state.claims, 1);
    t.specify(`
      commit ada x                          -> REFUSED token-stale task=1 offered=1 current=0
      renew ada                             -> held - lost -
    `);
    equal(t.state.claims, 0);
  });

  test("the time limit runs from the start of the attempt, not from its grant", () => {
    specify(`
      submit j : a[x];attempt=5s -> job 1 new; x READY, a j RUNNING
      reserve ada                -> x#1; x CLAIMED
      +4s                        ->
      start ada x                -> leaseMs=10000; x RUNNING
      +4s                        ->
      +1s                        -> x a j FAILED
    `);
  });
});

describe("K9: every job ends", () => {
  test("a task that no executor takes ends by its queue deadline, counted from when it was last queued", () => {
    specify(`
      submit j : a[x];queue=1m  -> job 1 new; x READY, a j RUNNING
      +50s                      ->
      reserve ada               -> x#1; x CLAIMED
      release ada x             -> released; x READY
      +50s                      ->
      +10s                      -> x a j FAILED
    `);
  });

  test("a job ends by its deadline, its claimed tasks by the end of their leases", () => {
    specify(`
      submit j deadline=1m : a[x,y] b[z]<a -> job 1 new; x y READY, z HELD, a RUNNING, b BLOCKED, j RUNNING
      +55s                                 ->
      reserve ada start                    -> x#1; x RUNNING
      +5s                                  -> x CANCELLING, y z CANCELLED, b FAILED, j CANCELLING
      +5s                                  -> x CANCELLED, a j FAILED
    `);
  });

  test("a job that waits for a lock ends by its deadline too", () => {
    specify(`
      submit i lock=l : a[x]             -> job 1 new; x READY, a i RUNNING
      submit j lock=l deadline=1m : a[y] -> job 2 new; y HELD, a BLOCKED, j WAITING
      +1m                                -> y CANCELLED, a j FAILED
    `);
  });
});

describe("executors that keep failing", () => {
  const failing = (count: number): string =>
    Array.from({ length: count }, () => "reserve ada start\nfail ada x executor-lost\n+3m").join("\n");

  test("are drained for a while, with the reason; a success resets the count", () => {
    const t = new Transcript({ limits: { executorFailuresMax: 3, executorFadeMs: 3_600_000 } });
    t.say("submit j : a[x,y,z];tries=100");
    const fail = (): string => (
      t.say("reserve ada"),
      t.say(`fail ada ${t.events.length > 0 ? held(t) : ""} executor-lost`)
    );
    fail();
    fail();
    t.say("reserve ada");
    t.say(`commit ada ${held(t)}`);
    for (let i = 0; i < 3; i += 1) {
      t.say("+1m");
      fail();
    }
    t.specify(`
      reserve ada -> REFUSED executor-drained executor=ada reason=3 attempts in a row ended with executor-lost:
    `);
    t.say("+5m");
    equal(t.say("reserve ada").includes("REFUSED"), false);
  });

  test("are drained again when they go on failing afterwards", () => {
    const t = new Transcript({ limits: { executorFailuresMax: 2, executorFadeMs: 3_600_000 } });
    t.say("submit j : a[x];tries=100");
    for (const line of failing(2).split("\n")) t.say(line);
    equal(t.say("reserve ada").includes("REFUSED executor-drained"), true);
    t.say("+5m");
    t.say("reserve ada start");
    t.say("fail ada x executor-lost");
    t.say("+1m");
    equal(t.say("reserve ada").includes("REFUSED executor-drained"), true);
  });

  test("failures of the user's work do not count against an executor", () => {
    const t = new Transcript({ limits: { executorFailuresMax: 1 } });
    t.say("submit j : a[x,y];retry=any");
    t.say("reserve ada start");
    t.say("fail ada x user-failure");
    equal(t.say("reserve ada"), "y#2; y CLAIMED");
  });

  test("an executor drained by an operator stays drained until it is resumed; running work goes on", () => {
    specify(`
      submit j : a[x,y]       -> job 1 new; x y READY, a j RUNNING
      reserve ada start       -> x#1; x RUNNING
      drain ada reason=moving -> draining
      drain ada reason=moving -> draining
      reserve ada             -> REFUSED executor-drained executor=ada reason=moving
      renew ada               -> held x#1 lost -
      commit ada x            -> committed generation=1; x SUCCEEDED
      +1h                     -> y a j FAILED
      reserve ada             -> REFUSED executor-drained executor=ada reason=moving
      resume ada              -> resumed
      resume ada              -> not-resumed
      reserve ada             -> nothing
    `);
  });

  test("executors not seen for long are forgotten, also ones that were drained and resumed", () => {
    const t = specify(`
      reserve ada -> nothing
      drain bea   -> draining
      drain cyd   -> draining
      resume cyd  -> resumed
      +11m        ->
    `);
    equal([...t.state.executors.keys()].join(), "bea");
    t.specify("resume bea -> resumed\n+11m ->");
    equal(t.state.executors.size, 0);
  });
});

function held(t: Transcript): string {
  const claims = [...t.state.executor("ada").claims.values()];
  return claims.at(-1)?.task.plan.key ?? "";
}
