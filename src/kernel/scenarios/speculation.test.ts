import { equal } from "node:assert/strict";
import { describe, test } from "node:test";
import { specify, Transcript } from "#kernel/testing/transcript.ts";

const lagging = `
  submit j : a[x,y];speculate -> job 1 new; x y READY, a j RUNNING
  reserve ada n=2 start       -> x#1 y#2; x y RUNNING
  +1s                         ->
  commit ada x                -> committed generation=1; x SUCCEEDED
  +5s                         ->
  renew ada                   -> held y#2 lost -
  +5s                         ->
`;

describe("speculation: a straggler may get one more attempt", () => {
  test("the second attempt goes to another executor, and only if it finds no other work (K10)", () => {
    specify(`${lagging}
      reserve ada            -> nothing
      submit i : b[z]        -> job 2 new; z READY, b i RUNNING
      reserve ada            -> z#3; z CLAIMED
      reserve bea            -> y#4
      reserve cyd            -> nothing
    `);
  });

  test("K6: the first commit wins, and the other executor learns that it lost", () => {
    specify(`${lagging}
      reserve bea start      -> y#3
      commit ada y result=a  -> committed generation=1; y SUCCEEDED, a COMPLETED, j SUCCEEDED
      renew bea              -> held - lost y#3
      commit bea y result=b  -> REFUSED token-stale task=2 offered=3 current=0
      commit ada y result=a  -> committed generation=1
    `);
    specify(`${lagging}
      reserve bea start      -> y#3
      commit bea y result=b  -> committed generation=1; y SUCCEEDED, a COMPLETED, j SUCCEEDED
      renew ada              -> held - lost y#2
      commit ada y result=a  -> REFUSED token-stale task=2 offered=2 current=0
      commit bea y result=b  -> committed generation=1
    `);
  });

  test("when one attempt fails or expires the other goes on; the task ends only when both have ended", () => {
    specify(`${lagging}
      reserve bea start        -> y#3
      fail ada y executor-lost -> ok
      fail bea y executor-lost -> retryInMs=1740; y RETRY_PENDING
    `);
    specify(`${lagging}
      reserve bea start      -> y#3
      +5s                    ->
      renew bea              -> held y#3 lost -
      commit ada y           -> REFUSED token-stale task=2 offered=2 current=3
      commit bea y           -> committed generation=1; y SUCCEEDED, a COMPLETED, j SUCCEEDED
    `);
    specify(`${lagging}
      reserve bea            -> y#3
      release bea y          -> released
      commit ada y           -> committed generation=1; y SUCCEEDED, a COMPLETED, j SUCCEEDED
    `);
  });

  test("the offer of a second attempt ends with the first", () => {
    specify(`${lagging}
      fail ada y preempted -> retryInMs=585; y RETRY_PENDING
      reserve bea          -> nothing
    `);
    specify(`${lagging}
      commit ada y -> committed generation=1; y SUCCEEDED, a COMPLETED, j SUCCEEDED
      reserve bea  -> nothing
    `);
    specify(`${lagging}
      cancel j    -> phase=CANCELLING; y j CANCELLING
      reserve bea -> nothing
    `);
  });

  test("not before half of the siblings are done, and only if the template allows it", () => {
    specify(`
      submit j : a[x,y,z];speculate -> job 1 new; x y z READY, a j RUNNING
      reserve ada n=3 start         -> x#1 y#2 z#3; x y z RUNNING
      +1s                           ->
      commit ada x                  -> committed generation=1; x SUCCEEDED
      +8s                           ->
      renew ada                     -> held y#2 z#3 lost -
      +8s                           ->
      reserve bea                   -> nothing
    `);
    specify(`${lagging.replace(";speculate", "")}
      reserve bea                   -> nothing
    `);
  });

  test("never for outside effects", () => {
    const never = "path=stages[0].tasks.template why=work with outside effects may have neither speculation nor grace";
    specify(`
      submit j : a[x];outside;speculate -> REFUSED invalid ${never}
      submit j : a[x];outside;grace=1s -> REFUSED invalid ${never}
      submit j : a[x];outside           -> job 1 new; x READY, a j RUNNING
    `);
  });

  test("a tenant without a free slot gets no second attempt", () => {
    const t = new Transcript();
    t.say("tenant acme running=2");
    t.specify(lagging);
    t.specify(`
      tenant acme running=1 -> changed
      reserve bea           -> nothing
      tenant acme running=2 -> changed
      reserve bea           -> y#3
    `);
    equal(t.state.tenant("acme").running, 2);
  });

  test("reused results do not make the others look slow", () => {
    specify(`
      submit j reuse=a.x,a.w pinned=x,w : a[x,w,y,z];speculate -> job 1 new; x w SUCCEEDED, y z READY, a j RUNNING
      reserve ada n=2 start                                    -> y#1 z#2; y z RUNNING
      +5s                                                      ->
      renew ada                                                -> held y#1 z#2 lost -
      +5s                                                      ->
      commit ada y                                             -> committed generation=1; y SUCCEEDED
      reserve bea                                              -> nothing
      +3s                                                      ->
      reserve bea                                              -> nothing
    `);
  });
});
