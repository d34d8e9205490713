import { equal } from "node:assert/strict";
import { describe, test } from "node:test";
import { specify } from "#kernel/testing/transcript.ts";

describe("locks of jobs", () => {
  test("one job holds the lock, the next waits until the holder has ended", () => {
    specify(`
      submit i lock=l : a[x] -> job 1 new; x READY, a i RUNNING
      submit j lock=l : a[y] -> job 2 new; y HELD, a BLOCKED, j WAITING
      reserve ada n=9        -> x#1; x CLAIMED
      commit ada x           -> committed generation=1; x SUCCEEDED, a COMPLETED, i SUCCEEDED, y READY, a j RUNNING
    `);
  });

  test("locks of other tenants and locks with other names are independent", () => {
    specify(`
      submit i lock=l : a[x]              -> job 1 new; x READY, a i RUNNING
      submit j lock=l tenant=other : a[y] -> job 2 new; y READY, a j RUNNING
      submit k lock=m : a[z]              -> job 3 new; z READY, a k RUNNING
    `);
  });

  test("a limit of two lets two hold it", () => {
    specify(`
      submit i lock=l:2:9 : a[x] -> job 1 new; x READY, a i RUNNING
      submit j lock=l:2:9 : a[y] -> job 2 new; y READY, a j RUNNING
      submit k lock=l:2:9 : a[z] -> job 3 new; z HELD, a BLOCKED, k WAITING
      cancel i                   -> phase=CANCELLING; x a i CANCELLED, z READY, a k RUNNING
    `);
  });

  test("a request beyond queueMax displaces the oldest that waits", () => {
    specify(`
      submit h lock=l:1:1 : a[x] -> job 1 new; x READY, a h RUNNING
      submit i lock=l:1:1 : a[y] -> job 2 new; y HELD, a BLOCKED, i WAITING
      submit j lock=l:1:1 : a[z] -> job 3 new; y a i CANCELLED, z HELD, a BLOCKED, j WAITING
      cancel h                   -> phase=CANCELLING; x a h CANCELLED, z READY, a j RUNNING
    `);
  });

  test("with a larger queueMax the order is that of arrival", () => {
    specify(`
      submit h lock=l:1:5 : a[x] -> job 1 new; x READY, a h RUNNING
      submit i lock=l:1:5 : a[y] -> job 2 new; y HELD, a BLOCKED, i WAITING
      submit j lock=l:1:5 : a[z] -> job 3 new; z HELD, a BLOCKED, j WAITING
      cancel h                   -> phase=CANCELLING; x a h CANCELLED, y READY, a i RUNNING
      cancel i                   -> phase=CANCELLING; y a i CANCELLED, z READY, a j RUNNING
    `);
  });

  test("cancelInProgress stops the holder, and the next job waits until all of the holder's claims have ended", () => {
    specify(`
      submit i lock=l:1:1:cancel : a[x,y] -> job 1 new; x y READY, a i RUNNING
      reserve ada start                   -> x#1; x RUNNING
      submit j lock=l:1:1:cancel : a[z]
        -> job 2 new; x CANCELLING, y CANCELLED, i CANCELLING, z HELD, a BLOCKED, j WAITING
      renew ada                           -> held x#1! lost -
      reserve bea n=9                     -> nothing
      fail ada x cancelled                -> ok; x a i CANCELLED, z READY, a j RUNNING
    `);
  });

  test("or until they have expired", () => {
    specify(`
      submit i lock=l:1:1:cancel : a[x] -> job 1 new; x READY, a i RUNNING
      reserve ada start                 -> x#1; x RUNNING
      submit j lock=l:1:1:cancel : a[z] -> job 2 new; x i CANCELLING, z HELD, a BLOCKED, j WAITING
      +10s                              -> x a i CANCELLED, z READY, a j RUNNING
    `);
  });

  test("a void claim (timed out) keeps the lock until its executor confirms that it has stopped", () => {
    specify(`
      submit i lock=l : a[x];attempt=5s;tries=1 -> job 1 new; x READY, a i RUNNING
      submit j lock=l : a[z]                    -> job 2 new; z HELD, a BLOCKED, j WAITING
      reserve ada start                         -> x#1; x RUNNING
      +5s                                       -> x a i FAILED
      forget i                                  -> forgotten=0
      renew ada                                 -> held - lost x#1
      fail ada x timed-out                      -> REFUSED token-stale task=1 offered=1 current=0; z READY, a j RUNNING
      forget i                                  -> forgotten=1
    `);
  });

  test("or until its lease has expired, because a void claim is not renewed (K9)", () => {
    const t = specify(`
      submit i lock=l : a[x];attempt=5s;tries=1 -> job 1 new; x READY, a i RUNNING
      submit j lock=l : a[z] b[w]               -> job 2 new; z w HELD, a b BLOCKED, j WAITING
      reserve ada start                         -> x#1; x RUNNING
      +5s                                       -> x a i FAILED
      renew ada empty                           -> held - lost -
      +5s                                       -> z w READY, a b j RUNNING
    `);
    equal(t.state.executor("ada").claims.size, 0);
  });

  test("an executor that names a void claim for ever does not hold the lock for ever (K9)", () => {
    specify(`
      submit i lock=l : a[x];attempt=5s;tries=1 -> job 1 new; x READY, a i RUNNING
      submit j lock=l : a[z]                    -> job 2 new; z HELD, a BLOCKED, j WAITING
      reserve ada start                         -> x#1; x RUNNING
      +5s                                       -> x a i FAILED
      +3s                                       ->
      renew ada                                 -> held - lost x#1
      +1s                                       ->
      renew ada                                 -> held - lost x#1
      +1s                                       -> z READY, a j RUNNING
    `);
  });

  test("the losing attempt of two holds the lock until it has stopped", () => {
    specify(`
      submit i lock=l : a[x,y];speculate -> job 1 new; x y READY, a i RUNNING
      submit j lock=l : b[z]             -> job 2 new; z HELD, b BLOCKED, j WAITING
      reserve ada n=2 start              -> x#1 y#2; x y RUNNING
      +1s                                ->
      commit ada x                       -> committed generation=1; x SUCCEEDED
      +5s                                ->
      renew ada                          -> held y#2 lost -
      +5s                                ->
      reserve bea start                  -> y#3
      commit bea y                       -> committed generation=1; y SUCCEEDED, a COMPLETED, i SUCCEEDED
      renew ada                          -> held - lost y#2
      fail ada y cancelled               -> REFUSED token-stale task=2 offered=2 current=0; z READY, b j RUNNING
    `);
  });
});

describe("locks of stages", () => {
  test("a stage asks for its lock when its needs have ended, and not before", () => {
    specify(`
      submit i : a[x] b[y]<a;lock=l -> job 1 new; x READY, y HELD, a RUNNING, b BLOCKED, i RUNNING
      submit j : c[z];lock=l        -> job 2 new; z READY, c j RUNNING
      reserve ada n=9               -> x#1 z#2; x z CLAIMED
      commit ada x                  -> committed generation=1; x SUCCEEDED, a COMPLETED
      commit ada z                  -> committed generation=1; y READY, b RUNNING, z SUCCEEDED, c COMPLETED, j SUCCEEDED
    `);
  });

  test("a stage that is displaced or cancelled in progress is CANCELLED, and its job with it", () => {
    specify(`
      submit h : a[x] b[v];lock=l:1:1:cancel -> job 1 new; x v READY, a b h RUNNING
      submit i : a[y] b[w];lock=l:1:1:cancel -> job 2 new; v b CANCELLED, y w READY, a b i RUNNING
      reserve ada n=9 start                  -> x#1 y#2 w#3; x y w RUNNING
      submit j : b[z];lock=l:1:1:cancel      -> job 3 new; w CANCELLING, z HELD, b BLOCKED, j RUNNING
      commit ada w                           -> not-committed generation=1; w b CANCELLED, z READY, b RUNNING
      commit ada x                           -> committed generation=1; x SUCCEEDED, a COMPLETED, h CANCELLED
      commit ada y                           -> committed generation=1; y SUCCEEDED, a COMPLETED, i CANCELLED
    `);
  });

  test("a stage that is skipped or cancelled while it waits leaves the queue", () => {
    specify(`
      submit i : b[x];lock=l:1:9 -> job 1 new; x READY, b i RUNNING
      submit j : b[y];lock=l:1:9 -> job 2 new; y HELD, b BLOCKED, j RUNNING
      submit k : b[z];lock=l:1:9 -> job 3 new; z HELD, b BLOCKED, k RUNNING
      cancel j                   -> phase=CANCELLING; y b j CANCELLED
      cancel i                   -> phase=CANCELLING; x b i CANCELLED, z READY, b RUNNING
    `);
  });

  test("two stages of one job take turns; a job's own lock in one of its stages is refused", () => {
    specify(`
      submit j : a[x];lock=l:1:9 b[y];lock=l:1:9 -> job 1 new; x READY, y HELD, a RUNNING, b BLOCKED, j RUNNING
      reserve ada n=9                            -> x#1; x CLAIMED
      commit ada x                               -> committed generation=1; x SUCCEEDED, y READY, a COMPLETED, b RUNNING
      submit i lock=m : a[x];lock=m
        -> REFUSED invalid path=stages[0].lock.name why=must not be the lock of the job itself
    `);
  });

  test("a stage that has ended holds its lock until all of its claims have ended", () => {
    specify(`
      submit i : a[x];lock=l;attempt=5s;tries=1 -> job 1 new; x READY, a i RUNNING
      submit j : b[z];lock=l                    -> job 2 new; z HELD, b BLOCKED, j RUNNING
      reserve ada start                         -> x#1; x RUNNING
      +5s                                       -> x a i FAILED
      why j                                     -> b lock name=l heldBy=1 ahead=0
      fail ada x timed-out                      -> REFUSED token-stale task=1 offered=1 current=0; z READY, b RUNNING
    `);
  });

  test("a planned stage holds its lock through its planning", () => {
    specify(`
      submit i : a[?];lock=l -> job 1 new; a/plan a READY, i RUNNING
      submit j : b[y];lock=l -> job 2 new; y HELD, b BLOCKED, j RUNNING
      reserve ada            -> a/plan#1; a/plan CLAIMED
      plan ada a/plan skip   -> recorded plan=skip; a/plan SUCCEEDED, a SKIPPED, i SUCCEEDED, y READY, b RUNNING
    `);
  });
});
