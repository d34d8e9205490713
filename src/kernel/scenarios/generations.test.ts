import { deepEqual, equal } from "node:assert/strict";
import { describe, test } from "node:test";
import { specify, Transcript } from "#kernel/testing/transcript.ts";
import { digestOf } from "#kernel/testing/commands.ts";

describe("generations: a lost result is made again", () => {
  test("in a running stage, the task is queued again under the next generation", () => {
    specify(`
      submit j : a[x,y]      -> job 1 new; x y READY, a j RUNNING
      reserve ada            -> x#1; x CLAIMED
      commit ada x result=1  -> committed generation=1; x SUCCEEDED
      invalidate x           -> generation=2; x READY
      invalidate x generation=1 -> generation=2
      commit ada x result=1  -> REFUSED token-stale task=1 offered=1 current=0
      reserve ada n=2        -> x#2 y#3; x y CLAIMED
      commit ada x result=2  -> committed generation=2; x SUCCEEDED
      invalidate x generation=1 -> generation=2
      commit ada y           -> committed generation=1; y SUCCEEDED, a COMPLETED, j SUCCEEDED
      invalidate x generation=2 -> REFUSED job-ended job=1 phase=SUCCEEDED
    `);
  });

  test("a task that runs again respects parallelMax", () => {
    specify(`
      submit j : a[x,y,z];par=1 -> job 1 new; x READY, y z HELD, a j RUNNING
      reserve ada               -> x#1; x CLAIMED
      commit ada x              -> committed generation=1; x SUCCEEDED, y READY
      reserve ada               -> y#2; y CLAIMED
      invalidate x              -> generation=2; x HELD
      commit ada y              -> committed generation=1; x READY, y SUCCEEDED
      reserve ada               -> x#3; x CLAIMED
      commit ada x              -> committed generation=2; x SUCCEEDED, z READY
      invalidate y              -> generation=2; y HELD
      cancel j                  -> phase=CANCELLING; y z a j CANCELLED
    `);
  });

  test("K5: a completed stage is opened again, and a stage that was being planned from it is planned again", () => {
    specify(`
      submit j : a[x,y] b[?]<a    -> job 1 new; x y READY, a RUNNING, b BLOCKED, j RUNNING
      reserve ada n=2             -> x#1 y#2; x y CLAIMED
      commit ada x                -> committed generation=1; x SUCCEEDED
      commit ada y                -> committed generation=1; y SUCCEEDED, b/plan READY, a COMPLETED, b READY
      reserve bea                 -> b/plan#3; b/plan CLAIMED
      invalidate x                -> generation=2; x READY, a RUNNING, b BLOCKED
      plan bea #3 [z]             -> REFUSED task-unknown task=3
      renew bea                   -> held - lost 3#3
      reserve ada                 -> x#4; x CLAIMED
      commit ada x                -> committed generation=2; x SUCCEEDED, b/plan READY, a COMPLETED, b READY
      reserve bea                 -> b/plan#5; b/plan CLAIMED
      plan bea b/plan [z]         -> recorded plan=tasks; b/plan SUCCEEDED, z READY, b RUNNING
    `);
  });

  test("downstream reuses results of tasks that stay the same, and runs the others again", () => {
    const t = specify(`
      submit j : a[x] b[?]<a        -> job 1 new; x READY, a RUNNING, b BLOCKED, j RUNNING
      reserve ada                   -> x#1; x CLAIMED
      commit ada x                  -> committed generation=1; x SUCCEEDED, b/plan READY, a COMPLETED, b READY
      reserve ada                   -> b/plan#2; b/plan CLAIMED
      plan ada b/plan [p,q!one,r]   -> recorded plan=tasks; b/plan SUCCEEDED, p q r READY, b RUNNING
      reserve ada n=3 start         -> p#3 q#4 r#5; p q r RUNNING
      commit ada p result=old       -> committed generation=1; p SUCCEEDED
      commit ada q result=old       -> committed generation=1; q SUCCEEDED
      invalidate x                  -> generation=2; x READY, a RUNNING
      reserve ada                   -> x#6; x CLAIMED
      commit ada x result=other     -> committed generation=2; x SUCCEEDED, b/plan READY, a COMPLETED, b READY
      commit ada #6 token=5         -> REFUSED token-stale task=6 offered=5 current=0
      reserve ada                   -> b/plan#7; b/plan CLAIMED
      plan ada b/plan [p,q!two]     -> recorded plan=tasks; b/plan p SUCCEEDED, q READY, b RUNNING
      reserve ada                   -> q#8; q CLAIMED
      commit ada q result=new       -> committed generation=2; q SUCCEEDED, b COMPLETED, j SUCCEEDED
    `);
    equal(t.task("p").result?.payload, "old");
    equal(t.task("p").resultToken, 0);
    equal(t.task("q").result?.payload, "new");
  });

  test("K5: running consumers go on when the result comes out with the same blobs", () => {
    const t = new Transcript();
    t.specify(`
      submit j : a[x,y] b[?]<a c[?]<a,b  -> job 1 new; x y READY, a RUNNING, b c BLOCKED, j RUNNING
      reserve ada n=2                    -> x#1 y#2; x y CLAIMED
      commit ada x result=1 digests=x    -> committed generation=1; x SUCCEEDED
      commit ada y result=1 digests=y    -> committed generation=1; y SUCCEEDED, b/plan READY, a COMPLETED, b READY
      reserve ada                        -> b/plan#3; b/plan CLAIMED
      plan ada b/plan [p,q,r]            -> recorded plan=tasks; b/plan SUCCEEDED, p q r READY, b RUNNING
      reserve ada n=2 start              -> p#4 q#5; p q RUNNING
      invalidate x                       -> generation=2; x READY, a RUNNING
      fail ada q input-lost              -> retryInMs=5000; q RETRY_PENDING
      reserve bea n=2                    -> x#6 r#7; x r CLAIMED
      commit bea r result=r              -> committed generation=1; r SUCCEEDED
      commit ada p result=p              -> committed generation=1; p SUCCEEDED
      commit bea x result=2 digests=x    -> committed generation=2; x SUCCEEDED, a COMPLETED
      +5s                                -> q READY
      reserve ada                        -> q#8; q CLAIMED
      commit ada q result=q              -> committed generation=1; q SUCCEEDED, c/plan READY, b COMPLETED, c READY
    `);
    equal(t.task("q").attempts, 1);
    t.checkReplay();
  });

  test("a consumer that waits for its input is not used up, and ends when the input can never be made", () => {
    specify(`
      submit j : a[x];tries=1 b[p,q]<a -> job 1 new; x READY, p q HELD, a RUNNING, b BLOCKED, j RUNNING
      reserve ada                      -> x#1; x CLAIMED
      commit ada x                     -> committed generation=1; x SUCCEEDED, p q READY, a COMPLETED, b RUNNING
      reserve bea n=2 start            -> p#2 q#3; p q RUNNING
      invalidate x                     -> generation=2; x READY, a RUNNING
      reserve ada                      -> x#4; x CLAIMED
      fail bea p input-lost            -> retryInMs=5000; p RETRY_PENDING
      +5s                              -> p READY
      reserve bea start                -> p#5; p RUNNING
      fail bea p input-lost            -> retryInMs=5000; p RETRY_PENDING
      fail ada x user-failure
        -> ok; x FAILED, p CANCELLED, q CANCELLING, a FAILED
      commit bea q                     -> not-committed generation=1; q b CANCELLED, j FAILED
    `);
  });

  test("K5: what has run on is blocked with the stage it reads, even if no task of that commits again", () => {
    specify(`
      submit j : a[x] b[?]<a c[?]<b     -> job 1 new; x READY, a RUNNING, b c BLOCKED, j RUNNING
      reserve ada                       -> x#1; x CLAIMED
      commit ada x digests=x            -> committed generation=1; x SUCCEEDED, b/plan READY, a COMPLETED, b READY
      reserve ada                       -> b/plan#2; b/plan CLAIMED
      plan ada b/plan [p,q]             -> recorded plan=tasks; b/plan SUCCEEDED, p q READY, b RUNNING
      reserve ada n=2                   -> p#3 q#4; p q CLAIMED
      commit ada q digests=q            -> committed generation=1; q SUCCEEDED
      commit ada p digests=p            -> committed generation=1; p SUCCEEDED, c/plan READY, b COMPLETED, c READY
      reserve ada                       -> c/plan#5; c/plan CLAIMED
      plan ada c/plan [r]               -> recorded plan=tasks; c/plan SUCCEEDED, r READY, c RUNNING
      reserve bea start                 -> r#6; r RUNNING
      invalidate p                      -> generation=2; p READY, b RUNNING
      invalidate x                      -> generation=2; x READY, a RUNNING
      reserve ada                       -> x#7; x CLAIMED
      commit ada x digests=other
        -> committed generation=2; x SUCCEEDED, b/plan READY, a COMPLETED, b READY, c BLOCKED
      reserve ada                       -> b/plan#8; b/plan CLAIMED
      plan ada b/plan [q]               -> recorded plan=tasks; b/plan q SUCCEEDED, c/plan READY, b COMPLETED, c READY
    `);
  });

  test("downstream with tasks known from the start runs again, reusing what stayed the same", () => {
    specify(`
      submit j : a[x] b[p,q]<a -> job 1 new; x READY, p q HELD, a RUNNING, b BLOCKED, j RUNNING
      reserve ada              -> x#1; x CLAIMED
      commit ada x             -> committed generation=1; x SUCCEEDED, p q READY, a COMPLETED, b RUNNING
      reserve ada n=2 start    -> p#2 q#3; p q RUNNING
      commit ada p             -> committed generation=1; p SUCCEEDED
      invalidate x             -> generation=2; x READY, a RUNNING
      reserve ada              -> x#4; x CLAIMED
      commit ada x result=new  -> committed generation=2; x p SUCCEEDED, q READY, a COMPLETED
      renew ada                -> held - lost 3#3
    `);
  });

  test("completed downstream stages stay; only the next consumer waits", () => {
    specify(`
      submit j : a[x] b[y]<a c[z]<b -> job 1 new; x READY, y z HELD, a RUNNING, b c BLOCKED, j RUNNING
      reserve ada                   -> x#1; x CLAIMED
      commit ada x                  -> committed generation=1; x SUCCEEDED, y READY, a COMPLETED, b RUNNING
      reserve ada                   -> y#2; y CLAIMED
      commit ada y                  -> committed generation=1; y SUCCEEDED, z READY, b COMPLETED, c RUNNING
      invalidate x                  -> generation=2; x READY, a RUNNING
      reserve ada n=2               -> x#3 z#4; x z CLAIMED
      commit ada z                  -> committed generation=1; z SUCCEEDED, c COMPLETED
      commit ada x                  -> committed generation=2; x SUCCEEDED, a COMPLETED, j SUCCEEDED
    `);
  });

  test("refused: an unfinished task, another generation, an ended job, a stage that released its lock", () => {
    specify(`
      submit j : a[x,y];lock=l b[?]<a -> job 1 new; x y READY, a RUNNING, b BLOCKED, j RUNNING
      invalidate x                    -> REFUSED task-phase task=1 phase=READY wanted=SUCCEEDED, to be invalidated
      reserve ada n=2                 -> x#1 y#2; x y CLAIMED
      commit ada x                    -> committed generation=1; x SUCCEEDED
      invalidate x generation=7       -> REFUSED generation-stale task=1 offered=7 current=1
      commit ada y                    -> committed generation=1; y SUCCEEDED, b/plan READY, a COMPLETED, b READY
      invalidate x                    -> REFUSED invalid path=task why=its stage has released its lock
      reserve ada                     -> b/plan#3; b/plan CLAIMED
      plan ada b/plan []              -> recorded plan=tasks; b/plan SUCCEEDED, b COMPLETED, j SUCCEEDED
      invalidate x                    -> REFUSED job-ended job=1 phase=SUCCEEDED
      invalidate b/plan               -> REFUSED job-ended job=1 phase=SUCCEEDED
      forget j                        -> forgotten=1
    `);
  });
});

describe("a re-run reuses results of an earlier job", () => {
  test("where stage, key and spec are the same, with evidence (K3)", () => {
    const t = specify(`
      submit j reuse=a.x,a.y,b.z : a[x,y!other,w] b[z]<a            -> REFUSED evidence-missing digest=${digestOf("x")}
      submit j reuse=a.x,a.y,b.z pinned=x,y : a[x,y!other,w] b[z]<a -> REFUSED evidence-missing digest=${digestOf("z")}
      submit j reuse=a.x,a.y,b.z pinned=x,y,z : a[x,y!other,w] b[z]<a
        -> job 1 new; x SUCCEEDED, y w READY, z HELD, a RUNNING, b BLOCKED, j RUNNING
      reserve ada n=9                                               -> y#1 w#2; y w CLAIMED
      commit ada y                                                  -> committed generation=1; y SUCCEEDED
      commit ada w
        -> committed generation=1; w z SUCCEEDED, a b COMPLETED, j SUCCEEDED
    `);
    deepEqual(t.task("z").result, { payload: "reused", digests: [digestOf("z")] });
  });

  test("also for tasks that are planned later, and within parallelMax", () => {
    specify(`
      submit j reuse=a.x,a.y,a.z pinned=x,y,z : a[?];par=1 -> job 1 new; a/plan a READY, j RUNNING
      reserve ada                                          -> a/plan#1; a/plan CLAIMED
      plan ada a/plan [x,y,w,z,v]
        -> recorded plan=tasks; a/plan x y SUCCEEDED, w READY, z SUCCEEDED, v HELD, a RUNNING
      reserve ada n=2                                      -> w#2; w CLAIMED
      commit ada w                                         -> committed generation=1; w SUCCEEDED, v READY
    `);
  });
});
