import { deepEqual, equal } from "node:assert/strict";
import { describe, test } from "node:test";
import type { PlanInputs } from "#kernel/read/query.ts";
import { specify, Transcript } from "#kernel/testing/transcript.ts";

describe("cancelling a job", () => {
  test("a stage that runs after any end still gets its turn, and its planner knows", () => {
    const t = specify(`
      submit j : a[x] b[y]<a c[?]<a;end d[w]<c;end
        -> job 1 new; x READY, y w HELD, a RUNNING, b c d BLOCKED, j RUNNING
      reserve ada start       -> x#1; x RUNNING
      cancel j                -> phase=CANCELLING; x CANCELLING, y b CANCELLED, j CANCELLING
      cancel j                -> phase=CANCELLING
      fail ada x cancelled    -> ok; x CANCELLED, c/plan READY, a CANCELLED, c READY
      reserve ada             -> c/plan#2; c/plan CLAIMED
    `);
    const inputs = t.ask({ kind: "plan-inputs", task: t.task("c/plan").no, token: 2, limit: 10 }) as PlanInputs;
    deepEqual(inputs.cancelled, { reason: "told to", forMs: 600_000 });
    deepEqual(
      inputs.needs.map(({ name, phase }) => `${name} ${phase}`),
      ["a CANCELLED"],
    );
    t.specify(`
      plan ada c/plan [z]     -> recorded plan=tasks; c/plan SUCCEEDED, z READY, c RUNNING
      reserve ada             -> z#3; z CLAIMED
      commit ada z            -> committed generation=1; z SUCCEEDED, w READY, c COMPLETED, d RUNNING
      reserve ada             -> w#4; w CLAIMED
      commit ada w            -> committed generation=1; w SUCCEEDED, d COMPLETED, j CANCELLED
    `);
    t.checkReplay();
  });

  test("when the grace is over, everything stops", () => {
    specify(`
      submit j : a[x] c[z]<a;end    -> job 1 new; x READY, z HELD, a RUNNING, c BLOCKED, j RUNNING
      cancel j grace=30s            -> phase=CANCELLING; x CANCELLED, z READY, a CANCELLED, c RUNNING, j CANCELLING
      reserve ada start             -> z#1; z RUNNING
      +9s                           ->
      renew ada                     -> held z#1 lost -
      +9s                           ->
      renew ada                     -> held z#1 lost -
      +9s                           ->
      renew ada                     -> held z#1 lost -
      +3s                           -> z CANCELLING
      fail ada z cancelled          -> ok; z c j CANCELLED
    `);
  });

  test("a hard one ends the grace, and at once means at once", () => {
    specify(`
      submit j : a[x] c[z]<a;end  -> job 1 new; x READY, z HELD, a RUNNING, c BLOCKED, j RUNNING
      cancel j                    -> phase=CANCELLING; x CANCELLED, z READY, a CANCELLED, c RUNNING, j CANCELLING
      cancel j hard               -> phase=CANCELLING; z c j CANCELLED
      submit k : a[v] c[u]<a;end  -> job 2 new; v READY, u HELD, a RUNNING, c BLOCKED, k RUNNING
      cancel k hard               -> phase=CANCELLING; v u a c k CANCELLED
    `);
  });

  test("a planner that began before the job was cancelled is not heard", () => {
    specify(`
      submit j : a[x] c[?]<a;end    -> job 1 new; x READY, a RUNNING, c BLOCKED, j RUNNING
      reserve ada                   -> x#1; x CLAIMED
      commit ada x                  -> committed generation=1; x SUCCEEDED, c/plan READY, a COMPLETED, c READY
      reserve ada                   -> c/plan#2; c/plan CLAIMED
      cancel j                      -> phase=CANCELLING; c/plan READY, j CANCELLING
      plan ada c/plan [z]           -> REFUSED token-stale task=2 offered=2 current=0
      reserve bea                   -> c/plan#3; c/plan CLAIMED
      plan bea c/plan skip          -> recorded plan=skip; c/plan SUCCEEDED, c SKIPPED, j CANCELLED
    `);
    specify(`
      submit j : c[?];end           -> job 1 new; c/plan c READY, j RUNNING
      reserve ada                   -> c/plan#1; c/plan CLAIMED
      plan ada c/plan wait=1h:go    -> recorded plan=wait; c/plan WAITING
      cancel j                      -> phase=CANCELLING; c/plan READY, j CANCELLING
      reserve ada                   -> c/plan#2; c/plan CLAIMED
      plan ada c/plan [z]           -> recorded plan=tasks; c/plan SUCCEEDED, z READY, c RUNNING
    `);
  });

  test("the grace never goes beyond the job's deadline, and a job that waits for its lock has none", () => {
    specify(`
      submit j deadline=1m : a[x] c[z]<a;end -> job 1 new; x READY, z HELD, a RUNNING, c BLOCKED, j RUNNING
      +50s                           ->
      cancel j                       -> phase=CANCELLING; x CANCELLED, z READY, a CANCELLED, c RUNNING, j CANCELLING
      +10s                           -> z c j CANCELLED
    `);
    specify(`
      submit i lock=n : a[x]           -> job 1 new; x READY, a i RUNNING
      submit j lock=n : b[y] c[z]<b;end -> job 2 new; y z HELD, b c BLOCKED, j WAITING
      cancel j                         -> phase=CANCELLING; y z b c j CANCELLED
    `);
  });

  test("while the cluster cannot read that, every cancellation is a hard one", () => {
    const t = new Transcript();
    t.state.featureLevel = 2;
    t.specify(`
      submit j : a[x] c[z]<a;end  -> job 1 new; x READY, z HELD, a RUNNING, c BLOCKED, j RUNNING
      cancel j                    -> phase=CANCELLING; x z a c j CANCELLED
    `);
    equal(t.say("submit k cancelgrace=1m : a[x]").startsWith("REFUSED invalid path=cancelGraceMs"), true);
    equal(t.say("submit k : a[x];stop=1m").startsWith("REFUSED invalid path=stages[0].tasks.template"), true);
  });

  test("the job says how long its grace is", () => {
    specify(`
      submit j cancelgrace=1s : a[x] c[z]<a;end -> job 1 new; x READY, z HELD, a RUNNING, c BLOCKED, j RUNNING
      cancel j                  -> phase=CANCELLING; x CANCELLED, z READY, a CANCELLED, c RUNNING, j CANCELLING
      +1s                       -> z c j CANCELLED
    `);
  });
});

describe("cancelling one stage", () => {
  test("leaves the others alone; what needs it sees how it ended", () => {
    specify(`
      submit j : a[x] b[y] c[z]<a d[w]<a;end
        -> job 1 new; x y READY, z w HELD, a b RUNNING, c d BLOCKED, j RUNNING
      reserve ada n=2           -> x#1 y#2; x y CLAIMED
      cancel j stage=a          -> phase=RUNNING; x CANCELLING
      cancel j stage=a          -> phase=RUNNING
      fail ada x cancelled      -> ok; x z CANCELLED, w READY, a CANCELLED, c SKIPPED, d RUNNING
      commit ada y              -> committed generation=1; y SUCCEEDED, b COMPLETED
      cancel j stage=b          -> phase=RUNNING
      reserve ada               -> w#3; w CLAIMED
      commit ada w              -> committed generation=1; w SUCCEEDED, d COMPLETED, j CANCELLED
      cancel j stage=9          -> REFUSED stage-unknown job=1 stage=9
    `);
  });
});

test("a grant says how long its attempt has to stop", () => {
  const t = new Transcript();
  t.say("submit j : a[x];stop=5m b[y]");
  const { reply } = t.do({
    kind: "reserve",
    executor: "ada",
    offers: [],
    prefer: [],
    count: 2,
    start: true,
    nonce: "1",
  }) as {
    reply: { grants: readonly { stopMs?: number }[] };
  };
  deepEqual(
    reply.grants.map(({ stopMs }) => stopMs),
    [300_000, undefined],
  );
  equal("stopMs" in (reply.grants[1] ?? {}), false);
});
