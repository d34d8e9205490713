import { deepEqual } from "node:assert/strict";
import { describe, test } from "node:test";
import { specify, Transcript } from "#kernel/testing/transcript.ts";

const planned = ({ events }: Transcript): readonly string[] =>
  events.flatMap((event) => (event.kind === "stage-planned" ? [Object.keys(event).join()] : []));

describe("a plan says everything about its tasks", () => {
  test("several sets: each task runs on executors that its own set asks for", () => {
    specify(`
      submit j : a[?] b[w]<a                 -> job 1 new; a/plan READY, w HELD, a READY, b BLOCKED, j RUNNING
      reserve ada                            -> a/plan#1; a/plan CLAIMED
      plan ada a/plan [x];on=gpu&[y,z];lease=20s
        -> recorded plan=tasks; a/plan SUCCEEDED, x y z READY, a RUNNING
      plan ada a/plan [x];on=gpu&[y,z];lease=20s -> recorded plan=tasks
      reserve ada n=9                        -> y#2 z#3; y z CLAIMED
      reserve bea n=9 offers=gpu             -> x#4; x CLAIMED
      commit ada y                           -> committed generation=1; y SUCCEEDED
      commit ada z                           -> committed generation=1; z SUCCEEDED
      commit bea x
        -> committed generation=1; x SUCCEEDED, w READY, a COMPLETED, b RUNNING
    `);
  });

  test("keys are unique over all sets, there is at least one set, and their tasks are counted together", () => {
    specify(
      `
      submit j : a[?]                -> job 1 new; a/plan a READY, j RUNNING
      reserve ada                    -> a/plan#1; a/plan CLAIMED
      plan ada a/plan [x]&[y,x]      -> REFUSED invalid path=plan.sets why=must not repeat a key
      plan ada a/plan says;failfast
        -> REFUSED invalid path=plan.sets why=must have at least one set, and no other beside them
      plan ada a/plan [x,y]&[z,w]    -> REFUSED limit what=plan.sets limit=3 got=4
      plan ada a/plan [x]&says;par=9 -> REFUSED limit what=plan.decides.parallelMax limit=3 got=9
    `,
      { tasksPerStageMax: 3 },
    );
  });

  test("what it decides overrides the stage's spec: parallelMax, failFast, mayFail", () => {
    const held = "y parallel-max limit=1; z parallel-max limit=1";
    specify(`
      submit j : a[?];par=5 b[w]<a           -> job 1 new; a/plan READY, w HELD, a READY, b BLOCKED, j RUNNING
      reserve ada                            -> a/plan#1; a/plan CLAIMED
      plan ada a/plan [x,y]&[z]&says;par=1;failfast;mayfail
        -> recorded plan=tasks; a/plan SUCCEEDED, x READY, y z HELD, a RUNNING
      why j
        -> x queued position=0 executors=1 tenantsAhead=0; ${held}; b needs stages=a
      reserve ada n=9                        -> x#2; x CLAIMED
      fail ada x
        -> ok; x FAILED, y z CANCELLED, w READY, a FAILED, b RUNNING
    `);
  });

  test("one set that decides nothing is logged as it always was", () => {
    const t = specify(`
      submit j : a[?] b[?]   -> job 1 new; a/plan b/plan a b READY, j RUNNING
      reserve ada n=2        -> a/plan#1 b/plan#2; a/plan b/plan CLAIMED
      plan ada a/plan [x]    -> recorded plan=tasks; a/plan SUCCEEDED, x READY, a RUNNING
      plan ada b/plan [y]&[z] -> recorded plan=tasks; b/plan SUCCEEDED, y z READY, b RUNNING
    `);
    deepEqual(planned(t), [
      "kind,job,stage,at,generation,token,set,firstTask",
      "kind,job,stage,at,generation,token,sets,firstTask",
    ]);
  });

  test("while the cluster cannot read them, several sets are refused and one is not", () => {
    const t = new Transcript();
    t.state.featureLevel = 2;
    t.specify(`
      submit j : a[?]             -> job 1 new; a/plan a READY, j RUNNING
      reserve ada                 -> a/plan#1; a/plan CLAIMED
      plan ada a/plan [x]&[y]
        -> REFUSED invalid path=plan.sets why=needs feature level 3, the cluster is at 2: upgrade its remaining nodes
      plan ada a/plan [x]         -> recorded plan=tasks; a/plan SUCCEEDED, x READY, a RUNNING
    `);
  });
});

describe("a lock that a plan decides", () => {
  test("is taken after planning: a stage that is skipped disturbs no holder", () => {
    specify(`
      submit i : a[?]                               -> job 1 new; a/plan a READY, i RUNNING
      reserve ada                                   -> a/plan#1; a/plan CLAIMED
      plan ada a/plan [x]&says;lock=n:1:1:cancel    -> recorded plan=tasks; a/plan SUCCEEDED, x READY, a RUNNING
      reserve ada start                             -> x#2; x RUNNING
      submit j : b[?]                               -> job 2 new; b/plan b READY, j RUNNING
      reserve ada                                   -> b/plan#3; b/plan CLAIMED
      plan ada b/plan skip                          -> recorded plan=skip; b/plan SUCCEEDED, b SKIPPED, j SUCCEEDED
      submit k : c[?]                               -> job 3 new; c/plan c READY, k RUNNING
      reserve ada                                   -> c/plan#4; c/plan CLAIMED
      plan ada c/plan [z]&says;lock=n:1:1:cancel
        -> recorded plan=tasks; x CANCELLING, c/plan SUCCEEDED, z HELD
      why k                                         -> c lock name=n heldBy=1 ahead=0
      fail ada x cancelled
        -> ok; x a i CANCELLED, z READY, c RUNNING
      reserve ada                                   -> z#5; z CLAIMED
      commit ada z                                  -> committed generation=1; z SUCCEEDED, c COMPLETED, k SUCCEEDED
    `);
  });

  test("a stage that waits for it can be cancelled, and leaves the queue", () => {
    specify(`
      submit i : a[?]                     -> job 1 new; a/plan a READY, i RUNNING
      submit j : b[?]                     -> job 2 new; b/plan b READY, j RUNNING
      reserve ada n=2                     -> a/plan#1 b/plan#2; a/plan b/plan CLAIMED
      plan ada a/plan [x]&says;lock=n     -> recorded plan=tasks; a/plan SUCCEEDED, x READY, a RUNNING
      plan ada b/plan [y]&says;lock=n     -> recorded plan=tasks; b/plan SUCCEEDED, y HELD
      cancel j                            -> phase=CANCELLING; y b j CANCELLED
      reserve ada                         -> x#3; x CLAIMED
      commit ada x                        -> committed generation=1; x SUCCEEDED, a COMPLETED, i SUCCEEDED
    `);
  });

  test("is refused where the stage's spec or the job has one already", () => {
    specify(`
      submit i : a[?];lock=n               -> job 1 new; a/plan a READY, i RUNNING
      reserve ada                          -> a/plan#1; a/plan CLAIMED
      plan ada a/plan [x]&says;lock=m
        -> REFUSED invalid path=plan.decides.lock why=the stage's spec has a lock
      submit j lock=k : b[?]               -> job 2 new; b/plan b READY, j RUNNING
      reserve ada                          -> b/plan#2; b/plan CLAIMED
      plan ada b/plan [x]&says;lock=k
        -> REFUSED invalid path=plan.decides.lock.name why=must not be the lock of the job itself
    `);
  });

  test("when the stage is planned again with another lock, the first is freed once nothing of it runs", () => {
    specify(`
      submit i : p[w] a[?]<p               -> job 1 new; w READY, p RUNNING, a BLOCKED, i RUNNING
      reserve ada start                    -> w#1; w RUNNING
      commit ada w                         -> committed generation=1; w SUCCEEDED, a/plan READY, p COMPLETED, a READY
      reserve ada                          -> a/plan#2; a/plan CLAIMED
      plan ada a/plan [x]&says;lock=n      -> recorded plan=tasks; a/plan SUCCEEDED, x READY, a RUNNING
      reserve bea start                    -> x#3; x RUNNING
      invalidate w                         -> generation=2; w READY, p RUNNING
      reserve ada start                    -> w#4; w RUNNING
      commit ada w result=other            -> committed generation=2; w SUCCEEDED, a/plan READY, p COMPLETED, a READY
      reserve ada                          -> a/plan#5; a/plan CLAIMED
      plan ada a/plan [y]&says;lock=m      -> recorded plan=tasks; a/plan SUCCEEDED, y HELD
      +10s                                 -> y READY, a RUNNING
      reserve ada                          -> y#6; y CLAIMED
      commit ada y                         -> committed generation=2; y SUCCEEDED, a COMPLETED, i SUCCEEDED
    `);
  });
});
