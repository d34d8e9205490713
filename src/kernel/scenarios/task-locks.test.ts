import { describe, test } from "node:test";
import { specify } from "#kernel/testing/transcript.ts";

describe("locks of single tasks", () => {
  test("each task takes the lock before it is queued, and passes it on when it has ended", () => {
    specify(`
      submit j : a[x,y];own=l:1:9 -> job 1 new; x READY, y HELD, a j RUNNING
      submit k : b[z];own=l:1:9   -> job 2 new; z HELD, b k RUNNING
      why k                       -> z lock name=l heldBy=1 ahead=1
      reserve ada n=9 start       -> x#1; x RUNNING
      commit ada x                -> committed generation=1; x SUCCEEDED, y READY
      reserve ada n=9 start       -> y#2; y RUNNING
      commit ada y                -> committed generation=1; y SUCCEEDED, a COMPLETED, j SUCCEEDED, z READY
      reserve ada n=9 start       -> z#3; z RUNNING
      commit ada z                -> committed generation=1; z SUCCEEDED, b COMPLETED, k SUCCEEDED
    `);
  });

  test("a retry keeps the lock; an attempt that timed out holds it until its lease is over", () => {
    specify(`
      submit j : a[x];own=l:1:9;attempt=5s;tries=1;lease=1m -> job 1 new; x READY, a j RUNNING
      submit k : b[y];own=l:1:9    -> job 2 new; y HELD, b k RUNNING
      reserve ada start            -> x#1; x RUNNING
      +5s                          -> x a j FAILED
      why k                        -> y lock name=l heldBy=1 ahead=0
      +54s                         ->
      +1s                          -> y READY
    `);
    specify(`
      submit j : a[x];own=l:1:9    -> job 1 new; x READY, a j RUNNING
      submit k : b[y];own=l:1:9    -> job 2 new; y HELD, b k RUNNING
      reserve ada start            -> x#1; x RUNNING
      fail ada x executor-lost     -> retryInMs=928; x RETRY_PENDING
      +1s                          -> x READY
    `);
  });

  test("cancel in progress: the holder is asked to stop, and its stage cannot complete", () => {
    specify(`
      submit j : a[x,w];own=l:2:9  -> job 1 new; x w READY, a j RUNNING
      reserve ada start            -> x#1; x RUNNING
      reserve bea start            -> w#2; w RUNNING
      commit bea w                 -> committed generation=1; w SUCCEEDED
      submit k : b[y];own=l:1:9:cancel -> job 2 new; x CANCELLING, y HELD, b k RUNNING
      fail ada x cancelled         -> ok; x a j CANCELLED, y READY
    `);
  });

  test("the oldest that waits makes way when too many wait", () => {
    specify(`
      submit j : a[x];own=l:1:1    -> job 1 new; x READY, a j RUNNING
      submit k : b[y];own=l:1:1    -> job 2 new; y HELD, b k RUNNING
      submit m : c[z];own=l:1:1    -> job 3 new; y b k CANCELLED, z HELD, c m RUNNING
    `);
  });

  test("a plan gives each set its lock, beside that of another stage or job of the same name", () => {
    specify(`
      submit h : s[w];lock=l:1:9   -> job 1 new; w READY, s h RUNNING
      submit j : a[?]              -> job 2 new; a/plan a READY, j RUNNING
      reserve ada n=9 start        -> w#1 a/plan#2; w a/plan RUNNING
      plan ada a/plan [x];own=l:1:9&[y];own=m:1:9 -> recorded plan=tasks; a/plan SUCCEEDED, x HELD, y READY, a RUNNING
      commit ada w                 -> committed generation=1; w SUCCEEDED, s COMPLETED, h SUCCEEDED, x READY
      cancel j                     -> phase=CANCELLING; x y a j CANCELLED
    `);
  });

  test("what would wait for itself is refused, and so is an array", () => {
    specify(`
      submit j lock=l:1:9 : a[x];own=l:1:9
        -> REFUSED invalid path=stages[0].tasks.template.lock.name why=must not be the lock of its own stage or job
      submit j : a[x];own=l:1:9;lock=l:1:9
        -> REFUSED invalid path=stages[0].tasks.template.lock.name why=must not be the lock of its own stage or job
      submit j : a[#4];own=l:1:9
        -> REFUSED invalid path=stages[0].tasks.template.lock why=not for an array: use parallelMax
    `);
  });

  test("a lost result takes the lock again", () => {
    specify(`
      submit j : a[x];own=l:1:9 b[v]<a -> job 1 new; x READY, v HELD, a RUNNING, b BLOCKED, j RUNNING
      reserve ada start                -> x#1; x RUNNING
      commit ada x                     -> committed generation=1; x SUCCEEDED, v READY, a COMPLETED, b RUNNING
      submit k : c[y];own=l:1:9        -> job 2 new; y READY, c k RUNNING
      invalidate x                     -> generation=2; x HELD, a RUNNING
    `);
  });

  test("a lost result that its stage holds back gives up its lock, and gets its turn (K9)", () => {
    const lost = `
      submit j : a[x,y,z];own=l:1:9;par=1;attempt=5s;lease=1m;retry=any -> job 1 new; x READY, y z HELD, a j RUNNING
      reserve ada start                -> x#1; x RUNNING
      +5s                              -> x RETRY_PENDING
      +2s                              -> x READY
      reserve bea start                -> x#2; x RUNNING
      commit bea x                     -> committed generation=1; x SUCCEEDED
      invalidate x                     -> generation=2; x HELD`;
    // The attempt that timed out has the lock until its lease is over; meanwhile y asks for it, in the only place.
    specify(`${lost}
      why j                            -> x parallel-max limit=1; y lock name=l heldBy=1 ahead=0; z parallel-max limit=1
      +54s                             -> y READY
      reserve ada start                -> y#3; y RUNNING
      commit ada y                     -> committed generation=1; x READY, y SUCCEEDED
      reserve ada start                -> x#4; x RUNNING
      commit ada x                     -> committed generation=2; x SUCCEEDED, z READY
      reserve ada start                -> z#5; z RUNNING
      commit ada z                     -> committed generation=1; z SUCCEEDED, a COMPLETED, j SUCCEEDED
    `);
    specify(`${lost}
      cancel j                         -> phase=CANCELLING; x y z a j CANCELLED
    `);
  });
});
