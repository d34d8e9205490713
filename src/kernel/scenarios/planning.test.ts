import { deepEqual, equal } from "node:assert/strict";
import { describe, test } from "node:test";
import { specify, Transcript } from "#kernel/testing/transcript.ts";
import { digestOf } from "#kernel/testing/commands.ts";
import type { JobView } from "#kernel/read/query.ts";

describe("planning is claimed work", () => {
  test("K5: the first recorded plan wins; a repeat and a second planner get that plan", () => {
    specify(`
      submit j : a[?]          -> job 1 new; a/plan a READY, j RUNNING
      reserve ada              -> a/plan#1; a/plan CLAIMED
      +10s                     -> a/plan RETRY_PENDING
      +1s                      -> a/plan READY
      reserve bea              -> a/plan#2; a/plan CLAIMED
      plan ada a/plan [z]      -> REFUSED token-stale task=1 offered=1 current=2
      plan bea a/plan [x,y]    -> recorded plan=tasks; a/plan SUCCEEDED, x y READY, a RUNNING
      plan bea a/plan [x,y]    -> recorded plan=tasks
      plan ada a/plan [z]      -> not-recorded plan=tasks
      reserve ada n=9 start    -> x#3 y#4; x y RUNNING
      commit ada x             -> committed generation=1; x SUCCEEDED
      commit ada y             -> committed generation=1; y SUCCEEDED, a COMPLETED, j SUCCEEDED
      plan ada a/plan skip     -> not-recorded plan=tasks
    `);
  });

  test("a planner that is stuck is replaced after five minutes, as often as the stage has attempts", () => {
    specify(`
      submit j : a[?];lease=30m;tries=2 -> job 1 new; a/plan a READY, j RUNNING
      reserve ada start                 -> a/plan#1; a/plan RUNNING
      +299s                             ->
      +1s                               -> a/plan RETRY_PENDING
      plan ada a/plan [x]               -> REFUSED token-stale task=1 offered=1 current=1
      +1s                               -> a/plan READY
      reserve bea start                 -> a/plan#2; a/plan RUNNING
      +5m                               -> a/plan a j FAILED
    `);
  });

  test("executors get planning, tasks, or both, as the lane says that they offer", () => {
    specify(`
      submit j : a[?]                  -> job 1 new; a/plan a READY, j RUNNING
      submit k : b[x]                  -> job 2 new; x READY, b k RUNNING
      reserve ada n=9 offers=only=tasks -> x#1; x CLAIMED
      reserve bea n=9 offers=only=plans -> a/plan#2; a/plan CLAIMED
    `);
  });

  test("a plan without tasks completes the stage", () => {
    specify(`
      submit j : a[?]      -> job 1 new; a/plan a READY, j RUNNING
      reserve ada          -> a/plan#1; a/plan CLAIMED
      plan ada a/plan []   -> recorded plan=tasks; a/plan SUCCEEDED, a COMPLETED, j SUCCEEDED
    `);
  });

  test("skip and fail end the stage, and stages that need it follow", () => {
    specify(`
      submit j : a[?] b[x]<a -> job 1 new; a/plan READY, x HELD, a READY, b BLOCKED, j RUNNING
      reserve ada            -> a/plan#1; a/plan CLAIMED
      plan ada a/plan skip   -> recorded plan=skip; a/plan SUCCEEDED, x CANCELLED, a b SKIPPED, j SUCCEEDED
      plan ada a/plan skip   -> recorded plan=skip
    `);
    specify(`
      submit j : a[?] b[x]<a;end -> job 1 new; a/plan READY, x HELD, a READY, b BLOCKED, j RUNNING
      reserve ada                -> a/plan#1; a/plan CLAIMED
      plan ada a/plan fail       -> recorded plan=fail; a/plan SUCCEEDED, x READY, a FAILED, b RUNNING
      plan bea a/plan [x]        -> not-recorded plan=fail
    `);
  });

  test("wait: the planner is called again after the time", () => {
    specify(`
      submit j : a[?]             -> job 1 new; a/plan a READY, j RUNNING
      reserve ada                 -> a/plan#1; a/plan CLAIMED
      plan ada a/plan wait=1m:go  -> recorded plan=wait; a/plan WAITING
      plan ada a/plan wait=1m:go  -> recorded plan=wait
      +59s                        ->
      +1s                         -> a/plan READY
      reserve ada                 -> a/plan#2; a/plan CLAIMED
      plan ada a/plan [x]         -> recorded plan=tasks; a/plan SUCCEEDED, x READY, a RUNNING
    `);
  });

  test("wait: one of the named signals wakes the planner, once even if the signal is repeated", () => {
    specify(`
      submit j : a[?]               -> job 1 new; a/plan a READY, j RUNNING
      reserve ada                   -> a/plan#1; a/plan CLAIMED
      plan ada a/plan wait=1h:go,no -> recorded plan=wait; a/plan WAITING
      signal j a other id=1         -> recorded
      signal j a go id=2            -> recorded; a/plan READY
      signal j a go id=2            -> recorded
      reserve ada                   -> a/plan#2; a/plan CLAIMED
      plan ada a/plan wait=1h:go    -> recorded plan=wait; a/plan WAITING
    `);
  });

  test("wait: a signal that arrived while the planner was working wakes it at once", () => {
    specify(`
      submit j : a[?]            -> job 1 new; a/plan a READY, j RUNNING
      signal j a go id=1         -> recorded
      reserve ada                -> a/plan#1; a/plan CLAIMED
      plan ada a/plan wait=1h:go -> recorded plan=wait; a/plan WAITING
      signal j a go id=2         -> recorded; a/plan READY
      reserve ada                -> a/plan#2; a/plan CLAIMED
      signal j a no id=3         -> recorded
      signal j a go id=4         -> recorded
      plan ada a/plan wait=1h:go -> recorded plan=wait; a/plan READY
    `);
  });

  test("waiting costs no attempt, failing does", () => {
    specify(`
      submit j : a[?];tries=2    -> job 1 new; a/plan a READY, j RUNNING
      reserve ada                -> a/plan#1; a/plan CLAIMED
      plan ada a/plan wait=1s    -> recorded plan=wait; a/plan WAITING
      +1s                        -> a/plan READY
      reserve ada                -> a/plan#2; a/plan CLAIMED
      plan ada a/plan wait=1s    -> recorded plan=wait; a/plan WAITING
      +1s                        -> a/plan READY
      reserve ada                -> a/plan#3; a/plan CLAIMED
      fail ada a/plan preempted  -> retryInMs=849; a/plan RETRY_PENDING
      +1s                        -> a/plan READY
      reserve ada                -> a/plan#4; a/plan CLAIMED
      fail ada a/plan preempted  -> ok; a/plan a j FAILED
    `);
  });

  test("K9: the deadline counts from when the stage became ready, including waits", () => {
    specify(`
      submit j : a[?];deadline=1m -> job 1 new; a/plan a READY, j RUNNING
      +1m                         -> a/plan a j FAILED
    `);
    specify(`
      submit j : a[?];deadline=1m -> job 1 new; a/plan a READY, j RUNNING
      reserve ada                 -> a/plan#1; a/plan CLAIMED
      plan ada a/plan wait=1h:go  -> recorded plan=wait; a/plan WAITING
      +59s                        ->
      +1s                         -> a/plan a j FAILED
    `);
    specify(`
      submit j : a[?];deadline=1m -> job 1 new; a/plan a READY, j RUNNING
      reserve ada                 -> a/plan#1; a/plan CLAIMED
      plan ada a/plan wait=40s    -> recorded plan=wait; a/plan WAITING
      +40s                        -> a/plan READY
      reserve ada                 -> a/plan#2; a/plan CLAIMED
      +5s                         ->
      renew ada                   -> held a/plan#2 lost -
      +5s                         ->
      renew ada                   -> held a/plan#2 lost -
      +5s                         ->
      renew ada                   -> held a/plan#2 lost -
      +5s                         -> a/plan a j FAILED
    `);
    specify(`
      submit j : a[?];deadline=1m -> job 1 new; a/plan a READY, j RUNNING
      reserve ada                 -> a/plan#1; a/plan CLAIMED
      plan ada a/plan wait=40s    -> recorded plan=wait; a/plan WAITING
      +40s                        -> a/plan READY
      +20s                        -> a/plan a j FAILED
    `);
  });

  test("a planner's inputs are the spec, how the needs ended, their results and the signals, in pages", () => {
    const t = new Transcript();
    t.specify(`
      submit j spec=whole : a[x,y,w] b[?]<a;end -> job 1 new; x y w READY, a RUNNING, b BLOCKED, j RUNNING
      signal j b go payload=now                 -> recorded
      reserve ada n=3                           -> x#1 y#2 w#3; x y w CLAIMED
      commit ada x result=r digests=d           -> committed generation=1; x SUCCEEDED
      fail ada y                                -> ok; y FAILED
      commit ada w                              -> committed generation=1; w SUCCEEDED, b/plan READY, a FAILED, b READY
      reserve ada                               -> b/plan#4; b/plan CLAIMED
    `);
    const ask = (token: number, from?: { stage: number; index: number }): unknown =>
      t.ask({ kind: "plan-inputs", task: 4, token, limit: 2, ...(from && { from }) });
    deepEqual(ask(4), {
      spec: "whole",
      stage: "b",
      generation: 1,
      needs: [{ stage: 0, name: "a", phase: "FAILED", generation: 1 }],
      signals: [{ id: "b", name: "go", payload: "now", atMs: 1_000_000 }],
      results: [
        { stage: 0, key: "x", generation: 1, phase: "SUCCEEDED", result: { payload: "r", digests: [digestOf("d")] } },
        {
          stage: 0,
          key: "y",
          generation: 1,
          phase: "FAILED",
          result: undefined,
          failure: { reason: "user-failure", message: "" },
        },
      ],
      next: { stage: 0, index: 2 },
    });
    const second = ask(4, { stage: 0, index: 2 }) as { results: { key: string }[]; next: unknown };
    equal(second.results.map((result) => result.key).join(), "w");
    equal(second.next, undefined);
    deepEqual(ask(3), { kind: "token-stale", task: 4, offered: 3, current: 4 });
    deepEqual(t.ask({ kind: "plan-inputs", task: 1, token: 1, limit: 1 }), { kind: "task-unknown", task: 1 });
  });
});

describe("signals", () => {
  test("go to a stage of a live job, once per id, and only from its tenant", () => {
    specify(`
      submit j : a[?]                  -> job 1 new; a/plan a READY, j RUNNING
      signal j a go id=1 tenant=other  -> REFUSED job-unknown job=1
      signal j 7 go id=1               -> REFUSED stage-unknown job=1 stage=7
      signal j a go id=1               -> recorded
      cancel j                         -> phase=CANCELLING; a/plan a j CANCELLED
      signal j a go id=1               -> recorded
      signal j a go id=2               -> REFUSED job-ended job=1 phase=CANCELLED
    `);
  });

  test("say who sent them and when, and reach running tasks until they are acknowledged", () => {
    const t = new Transcript();
    t.specify(`
      submit j : a[x] b[y]         -> job 1 new; x y READY, a b j RUNNING
      reserve ada n=2 start        -> x#1 y#2; x y RUNNING
      signal j a pause by=anna     -> recorded
      signal j a pause by=anna     -> recorded
      signal j a resume id=2       -> recorded
    `);
    const renew = (heard?: number) => {
      const claims = [{ task: 1, token: 1, ...(heard === undefined ? {} : { heard }) }];
      const outcome = t.do({ kind: "renew", executor: "ada", claims });
      return outcome.ok && "held" in outcome.reply ? outcome.reply.held.map(({ signals }) => signals) : [];
    };
    const at = { payload: "", atMs: 1_000_000 };
    const first = { id: "a", name: "pause", by: "anna", ...at, number: 1 };
    const second = { id: "2", name: "resume", ...at, number: 2 };
    deepEqual(renew(), [[first, second], undefined]);
    deepEqual(renew(0), [[first, second], undefined]);
    deepEqual(renew(1), [[second], undefined]);
    deepEqual(renew(2), [undefined, undefined]);
    deepEqual(renew(-1), [[first, second], undefined]);
    const view = t.ask({ kind: "job", job: 1 }) as JobView;
    deepEqual(
      view.stages.map(({ signals }) => signals?.map(({ name, by }) => `${name} by ${by}`)),
      [["pause by anna", "resume by undefined"], undefined],
    );
    t.checkReplay();
  });

  test("are limited in number", () => {
    const t = new Transcript({ limits: { signalsPerStageMax: 1 } });
    t.specify(`
      submit j : a[?]    -> job 1 new; a/plan a READY, j RUNNING
      signal j a go id=1 -> recorded
      signal j a go id=2 -> REFUSED limit what=signals limit=1 got=2
    `);
  });

  test("cannot add other fields to the log", () => {
    const t = new Transcript();
    t.say("submit j : a[?]");
    const signal = { id: "1", name: "go", payload: "", kind: "forgotten", jobs: [1], job: 9, at: 1 };
    const { events } = t.do({ kind: "signal", job: 1, stage: 0, signal });
    deepEqual(events, [{ kind: "signalled", job: 1, stage: 0, id: "1", name: "go", payload: "", at: t.nowMs }]);
  });

  test("a plan that exceeds free memory is refused, and the planner may try again", () => {
    const t = new Transcript({ limits: { tasksMax: 3 } });
    t.specify(`
      submit j : a[?]            -> job 1 new; a/plan a READY, j RUNNING
      reserve pia                -> a/plan#1; a/plan CLAIMED
      plan pia a/plan [x,y,z]    -> REFUSED shard-full what=tasks retryAfterMs=1000
      plan pia a/plan [x,y]      -> recorded plan=tasks; a/plan SUCCEEDED, x y READY, a RUNNING
    `);
  });
});
