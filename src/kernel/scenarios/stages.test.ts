import { describe, test } from "node:test";
import { specify } from "#kernel/testing/transcript.ts";

describe("stages run in the order of their needs", () => {
  test("K5: a stage is ready when all its needs have completed, and complete when every task is", () => {
    specify(`
      submit j : a[x] b[y] c[z]<a,b -> job 1 new; x y READY, z HELD, a b RUNNING, c BLOCKED, j RUNNING
      reserve ada n=9 start         -> x#1 y#2; x y RUNNING
      commit ada x                  -> committed generation=1; x SUCCEEDED, a COMPLETED
      reserve ada n=9               -> nothing
      commit ada y                  -> committed generation=1; y SUCCEEDED, z READY, b COMPLETED, c RUNNING
      reserve ada start             -> z#3; z RUNNING
      commit ada z                  -> committed generation=1; z SUCCEEDED, c COMPLETED, j SUCCEEDED
    `);
  });

  test("stages may be listed in any order", () => {
    specify(`
      submit j : c[z]<b b[y]<a a[x] -> job 1 new; z y HELD, x READY, c b BLOCKED, a j RUNNING
      reserve ada                   -> x#1; x CLAIMED
      commit ada x                  -> committed generation=1; y READY, x SUCCEEDED, b RUNNING, a COMPLETED
    `);
  });

  test("a stage without tasks is complete at once", () => {
    specify(`
      submit j : a[] b[]<a -> job 1 new; a b COMPLETED, j SUCCEEDED
    `);
  });

  test("stages that need a failed stage are skipped, and so are those that need them", () => {
    specify(`
      submit j : a[x] b[y]<a c[z]<b -> job 1 new; x READY, y z HELD, a RUNNING, b c BLOCKED, j RUNNING
      reserve ada start             -> x#1; x RUNNING
      fail ada x                    -> ok; x FAILED, y z CANCELLED, a FAILED, b c SKIPPED, j FAILED
    `);
  });

  test("with after=end a stage becomes ready however its needs ended", () => {
    specify(`
      submit j : a[x] b[y]<a c[z]<b;end -> job 1 new; x READY, y z HELD, a RUNNING, b c BLOCKED, j RUNNING
      reserve ada start                 -> x#1; x RUNNING
      fail ada x                        -> ok; x FAILED, y CANCELLED, z READY, a FAILED, b SKIPPED, c RUNNING
      reserve ada start                 -> z#2; z RUNNING
      commit ada z                      -> committed generation=1; z SUCCEEDED, c COMPLETED, j FAILED
    `);
  });

  test("a stage that may fail fails neither its job nor the stages that need it", () => {
    specify(`
      submit j : a[x];mayfail b[y]<a -> job 1 new; x READY, y HELD, a RUNNING, b BLOCKED, j RUNNING
      reserve ada start              -> x#1; x RUNNING
      fail ada x                     -> ok; x FAILED, y READY, a FAILED, b RUNNING
      reserve ada start              -> y#2; y RUNNING
      commit ada y                   -> committed generation=1; y SUCCEEDED, b COMPLETED, j SUCCEEDED
    `);
  });

  test("without failFast the other tasks go on; with it they are cancelled, claimed ones at their end", () => {
    specify(`
      submit j : a[x,y]     -> job 1 new; x y READY, a j RUNNING
      reserve ada start     -> x#1; x RUNNING
      fail ada x            -> ok; x FAILED
      reserve ada start     -> y#2; y RUNNING
      commit ada y          -> committed generation=1; y SUCCEEDED, a j FAILED
    `);
    specify(`
      submit j : a[x,y,z];failfast -> job 1 new; x y z READY, a j RUNNING
      reserve ada n=2 start        -> x#1 y#2; x y RUNNING
      fail ada x                   -> ok; x FAILED, y CANCELLING, z CANCELLED
      renew ada                    -> held y#2! lost -
      commit ada y                 -> not-committed generation=1; y CANCELLED, a j FAILED
    `);
  });

  test("parallelMax limits how many tasks are queued or running at once", () => {
    specify(`
      submit j : a[x*4];par=2 -> job 1 new; x1 x2 READY, x3 x4 HELD, a j RUNNING
      reserve ada n=9 start   -> x1#1 x2#2; x1 x2 RUNNING
      fail ada x1             -> ok; x1 FAILED, x3 READY
      commit ada x2           -> committed generation=1; x2 SUCCEEDED, x4 READY
      reserve ada n=9 start   -> x3#3 x4#4; x3 x4 RUNNING
      fail ada x3 executor-lost -> retryInMs=544; x3 RETRY_PENDING
      commit ada x4           -> committed generation=1; x4 SUCCEEDED
      cancel j                -> phase=CANCELLING; x3 a j CANCELLED
    `);
  });

  test("a cycle is refused, with its stages named", () => {
    specify(`
      submit j : a[x] b[y]<c c[z]<b,a d[w]<c -> REFUSED cycle stages=b+c+d
      submit j : a[x]<a                      -> REFUSED cycle stages=a
    `);
  });
});

describe("cancelling", () => {
  test("unclaimed tasks are cancelled at once, claimed ones when their executor confirms", () => {
    specify(`
      submit j : a[x,y] b[z]<a     -> job 1 new; x y READY, z HELD, a RUNNING, b BLOCKED, j RUNNING
      reserve ada start            -> x#1; x RUNNING
      cancel j                     -> phase=CANCELLING; x CANCELLING, y z b CANCELLED, j CANCELLING
      cancel j                     -> phase=CANCELLING
      renew ada                    -> held x#1! lost -
      start ada x                  -> REFUSED task-phase task=1 phase=CANCELLING wanted=to start
      fail ada x cancelled         -> ok; x a j CANCELLED
      fail ada x cancelled         -> ok
      cancel j                     -> phase=CANCELLED
    `);
  });

  test("or when their lease has expired", () => {
    specify(`
      submit j : a[x]   -> job 1 new; x READY, a j RUNNING
      reserve ada start -> x#1; x RUNNING
      cancel j          -> phase=CANCELLING; x j CANCELLING
      +9s               ->
      +1s               -> x a j CANCELLED
    `);
  });

  test("a commit during cancellation ends the claim without committing, and a repeat gets the same answer", () => {
    specify(`
      submit j : a[x]   -> job 1 new; x READY, a j RUNNING
      reserve ada start -> x#1; x RUNNING
      cancel j          -> phase=CANCELLING; x j CANCELLING
      commit ada x      -> not-committed generation=1; x a j CANCELLED
      commit ada x      -> not-committed generation=1
    `);
  });

  test("so do a release and a plan", () => {
    specify(`
      submit j : a[x]   -> job 1 new; x READY, a j RUNNING
      reserve ada       -> x#1; x CLAIMED
      cancel j          -> phase=CANCELLING; x j CANCELLING
      release ada x     -> released; x a j CANCELLED
      release ada x     -> released
    `);
    specify(`
      submit j : a[?]       -> job 1 new; a/plan a READY, j RUNNING
      reserve ada           -> a/plan#1; a/plan CLAIMED
      cancel j              -> phase=CANCELLING; a/plan j CANCELLING
      plan ada a/plan [x,y] -> not-recorded plan=tasks; a/plan a j CANCELLED
      plan ada a/plan [x,y] -> not-recorded plan=tasks
    `);
  });

  test("a task with two attempts is cancelled when both have ended", () => {
    const start = `
      submit j : a[x,y];speculate -> job 1 new; x y READY, a j RUNNING
      reserve ada n=2 start       -> x#1 y#2; x y RUNNING
      +1s                         ->
      commit ada x                -> committed generation=1; x SUCCEEDED
      +2s                         ->
      renew ada                   -> held y#2 lost -
      +8s                         ->
      reserve bea                 -> y#3
      cancel j                    -> phase=CANCELLING; y j CANCELLING
    `;
    specify(`${start}
      fail ada y cancelled        -> ok
      fail bea y cancelled        -> ok; y a j CANCELLED
    `);
    specify(`${start}
      commit ada y                -> not-committed generation=1
      release bea y               -> released; y a j CANCELLED
    `);
    specify(`${start}
      release bea y               -> released
      renew ada                   -> held y#2! lost -
      +10s                        -> y a j CANCELLED
    `);
    specify(`${start}
      +10s                        -> y a j CANCELLED
    `);
  });

  test("only its own tenant can cancel a job", () => {
    specify(`
      submit j : a[x]          -> job 1 new; x READY, a j RUNNING
      cancel j tenant=other    -> REFUSED job-unknown job=1
      cancel 9                 -> REFUSED job-unknown job=9
      cancel j tenant=acme     -> phase=CANCELLING; x a j CANCELLED
    `);
  });

  test("K9: an executor that keeps renewing a cancelled claim cannot keep the job alive for ever", () => {
    const t = specify(`
      submit j : a[x];attempt=1m -> job 1 new; x READY, a j RUNNING
      reserve ada start          -> x#1; x RUNNING
      cancel j                   -> phase=CANCELLING; x j CANCELLING
    `);
    for (let i = 0; i < 11; i += 1) t.specify("+5s ->\nrenew ada -> held x#1! lost -");
    t.specify(`
      +5s       ->
      renew ada -> held x#1! lost -
      +4s       ->
      renew ada -> held x#1! lost -
      +1s       -> x a j CANCELLED
    `);
  });
});
