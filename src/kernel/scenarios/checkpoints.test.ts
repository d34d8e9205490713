import { deepEqual, equal } from "node:assert/strict";
import { describe, test } from "node:test";
import type { PlanInputs, TaskView } from "#kernel/read/query.ts";
import type { Grant } from "#kernel/model/model.ts";
import { digestOf } from "#kernel/testing/commands.ts";
import { specify, Transcript } from "#kernel/testing/transcript.ts";

const reserve = (t: Transcript, executor: string): readonly Grant[] => {
  const asked = { kind: "reserve", executor, offers: [], prefer: [], count: 9, start: true, nonce: executor } as const;
  const outcome = t.do(asked);
  return outcome.ok && "grants" in outcome.reply ? outcome.reply.grants : [];
};

describe("a checkpoint", () => {
  test("is recorded under the token of a live claim, and the next attempt gets the last one", () => {
    const t = specify(`
      submit j : a[x];outside             -> job 1 new; x READY, a j RUNNING
      reserve ada start                   -> x#1; x RUNNING
      checkpoint ada x at=one digests=d   -> recorded
      checkpoint ada x at=one digests=d   -> recorded
      checkpoint ada x at=two             -> REFUSED shard-full what=checkpoints of the task retryAfterMs=10
      +1s                                 ->
      checkpoint ada x at=two             -> recorded
      checkpoint bea x at=lie             -> REFUSED token-stale task=1 offered=0 current=1
      fail ada x executor-lost            -> retryInMs=928; x RETRY_PENDING
      checkpoint ada x at=late            -> REFUSED token-stale task=1 offered=1 current=1
      +1s                                 -> x READY
    `);
    const view = t.ask({ kind: "task", task: 1 }) as TaskView;
    deepEqual(view.checkpoint, { token: 1, agoMs: 1_000 });
    deepEqual(
      reserve(t, "bea").map(({ checkpoint }) => checkpoint),
      [{ payload: "two", digests: [], token: 1 }],
    );
    t.specify(`
      commit bea x token=2                -> committed generation=1; x SUCCEEDED, a COMPLETED, j SUCCEEDED
      checkpoint bea x token=2 at=three   -> REFUSED token-stale task=1 offered=2 current=1
    `);
    equal(t.task("x").checkpoint, undefined, "a task that has ended keeps none");
  });

  test("K3: names only blobs that are pinned; planning has none", () => {
    specify(`
      submit j : a[x] b[?]                        -> job 1 new; x b/plan READY, a RUNNING, b READY, j RUNNING
      reserve ada n=2 start                       -> x#1 b/plan#2; x b/plan RUNNING
      checkpoint ada x at=one digests=d pinned=e  -> REFUSED evidence-missing digest=${digestOf("d")}
      checkpoint ada b/plan at=one                -> REFUSED invalid path=task why=planning has no checkpoints
    `);
  });

  test("started work with outside effects is given back only with one, and costs no attempt", () => {
    const t = specify(`
      submit j : a[x,y];outside;tries=1  -> job 1 new; x y READY, a j RUNNING
      reserve ada n=2 start              -> x#1 y#2; x y RUNNING
      release ada x
        -> REFUSED task-phase task=1 phase=RUNNING wanted=unstarted or with a checkpoint, to be released
      release ada x at=half digests=d    -> released; x READY
      release ada x at=half digests=d    -> released
      checkpoint ada y at=part           -> recorded
      release ada y                      -> released; y READY
    `);
    const grants = reserve(t, "bea");
    deepEqual(
      grants.map(({ attempt, checkpoint }) => [attempt, checkpoint?.payload]),
      [
        [1, "half"],
        [1, "part"],
      ],
    );
  });

  test("of a task that is being cancelled: released, it just ends", () => {
    specify(`
      submit j : a[x];outside         -> job 1 new; x READY, a j RUNNING
      reserve ada start               -> x#1; x RUNNING
      cancel j                        -> phase=CANCELLING; x j CANCELLING
      release ada x at=half           -> released; x a j CANCELLED
    `);
  });
});

describe("an attempt without success leaves a result too", () => {
  test("in views, in planners' inputs and in the log; pinned like any other", () => {
    const t = specify(`
      submit j : a[x] b[?]<a;end              -> job 1 new; x READY, a RUNNING, b BLOCKED, j RUNNING
      reserve ada start                       -> x#1; x RUNNING
      fail ada x left=log digests=d pinned=e  -> REFUSED evidence-missing digest=${digestOf("d")}
      fail ada x left=log digests=d           -> ok; x FAILED, b/plan READY, a FAILED, b READY
      fail ada x left=log digests=d           -> ok
      reserve ada                             -> b/plan#2; b/plan CLAIMED
    `);
    const left = { reason: "user-failure", message: "", result: { payload: "log", digests: [digestOf("d")] } };
    deepEqual((t.ask({ kind: "task", task: 1 }) as TaskView).lastFailure, left);
    const { results } = t.ask({ kind: "plan-inputs", task: 2, token: 2, limit: 9 }) as PlanInputs;
    deepEqual(results[0]?.failure, left);
  });

  test("also when it is cancelled, even with a result that came too late", () => {
    const t = specify(`
      submit j : a[x,y]               -> job 1 new; x y READY, a j RUNNING
      reserve ada n=2 start           -> x#1 y#2; x y RUNNING
      cancel j                        -> phase=CANCELLING; x y j CANCELLING
      fail ada x cancelled left=half  -> ok; x CANCELLED
      commit ada y result=whole publish=it -> not-committed generation=1; y a j CANCELLED
    `);
    const left = [1, 2].map((task) => (t.ask({ kind: "task", task }) as TaskView).lastFailure?.result);
    deepEqual(left, [
      { payload: "half", digests: [] },
      { payload: "whole", digests: [] },
    ]);
  });

  test("where there is no memory for it, or an older program reads the log, the failure counts without it", () => {
    const t = new Transcript({ limits: { stateBytesMax: 20_000 } });
    t.say("submit j : a[x]");
    t.say("reserve ada start");
    t.say(`fail ada x message=bad left=${"y".repeat(30_000)}`);
    deepEqual((t.ask({ kind: "task", task: 1 }) as TaskView).lastFailure, {
      reason: "user-failure",
      message: "bad (there was no memory for what it left)",
    });
    const old = new Transcript();
    old.state.featureLevel = 2;
    for (const line of ["submit j : a[x]", "reserve ada start", "fail ada x left=log"]) old.say(line);
    deepEqual((old.ask({ kind: "task", task: 1 }) as TaskView).lastFailure, { reason: "user-failure", message: "" });
  });

  test("it publishes nothing", () => {
    const t = new Transcript();
    for (const line of ["submit j : a[x]", "reserve ada start"]) t.say(line);
    const result = { payload: "", digests: [], publish: "it" };
    const claim = { executor: "ada", task: 1, token: 1 };
    const outcome = t.do({ kind: "fail", ...claim, reason: "user-failure", message: "", result });
    equal(!outcome.ok && outcome.rejection.kind === "invalid" && outcome.rejection.path, "result.publish");
  });
});
