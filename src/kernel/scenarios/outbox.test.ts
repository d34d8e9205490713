import { deepEqual, equal, ok } from "node:assert/strict";
import { describe, test } from "node:test";
import { Restorer } from "#kernel/snapshot/restore.ts";
import { checkState } from "#kernel/testing/check.ts";
import { factsOf, snapshotOf } from "#kernel/testing/facts.ts";
import { specify, Transcript } from "#kernel/testing/transcript.ts";

describe("results that are to be published", () => {
  test("a job succeeds when its last result is published, and stages do not wait for that", () => {
    specify(`
      submit j : a[x] b[y]<a      -> job 1 new; x READY, y HELD, a RUNNING, b BLOCKED, j RUNNING
      reserve ada                 -> x#1; x CLAIMED
      commit ada x publish=one    -> committed generation=1; x SUCCEEDED, y READY, a COMPLETED, b RUNNING
      again                       -> committed generation=1
      reserve ada                 -> y#2; y CLAIMED
      commit ada y publish=two    -> committed generation=1; y SUCCEEDED, b COMPLETED
      why j                       -> j publishing results=2 forMs=0
      published x                 -> published
      again                       -> not-published
      published y generation=2    -> not-published
      +3s                         ->
      why j                       -> j publishing results=1 forMs=3000
      published y                 -> published; j SUCCEEDED
      published y                 -> not-published
    `);
  });

  test("the same commit with another `publish` is a different commit", () => {
    specify(`
      submit j : a[x,y]           -> job 1 new; x y READY, a j RUNNING
      reserve ada                 -> x#1; x CLAIMED
      commit ada x publish=one    -> committed generation=1; x SUCCEEDED
      commit ada x publish=two    -> REFUSED token-stale task=1 offered=1 current=0
      commit ada x                -> REFUSED token-stale task=1 offered=1 current=0
    `);
  });

  test("an executor that lost its claim or is being cancelled publishes nothing", () => {
    const t = specify(`
      submit j : a[x];lease=2s    -> job 1 new; x READY, a j RUNNING
      reserve ada                 -> x#1; x CLAIMED
      +5s                         -> x READY
      reserve bea                 -> x#2; x CLAIMED
      commit ada x publish=stale  -> REFUSED token-stale task=1 offered=1 current=2
      cancel j                    -> phase=CANCELLING; x j CANCELLING
      commit bea x publish=late   -> not-committed generation=1; x a j CANCELLED
    `);
    equal(t.state.outbox.size, 0);
  });

  test("K9: the deadline ends a job that waits for a publication, which is retried and then given up", () => {
    const t = specify(
      `
      submit j deadline=5s : a[x] -> job 1 new; x READY, a j RUNNING
      reserve ada                 -> x#1; x CLAIMED
      commit ada x publish=one    -> committed generation=1; x SUCCEEDED, a COMPLETED
      +6s                         -> j FAILED
      forget j                    -> forgotten=0
      +5s                         ->
      published x generation=7    -> not-published
    `,
      { publishMsMax: 10_000 },
    );
    equal(t.state.jobs.get(1)?.reason, "the job's deadline has passed before 1 of its results were published");
    equal(t.state.outbox.size, 1);
    t.specify(`
      +6s      ->
      forget j -> forgotten=1
    `);
    equal(t.state.outbox.size, 0);
    ok(t.events.some(({ kind }) => kind === "publishing-given-up"));
    t.checkReplay();
  });

  test("a job that is cancelled ends at once, and its results are still published", () => {
    specify(`
      submit j : a[x]             -> job 1 new; x READY, a j RUNNING
      reserve ada                 -> x#1; x CLAIMED
      commit ada x publish=one    -> committed generation=1; x SUCCEEDED, a COMPLETED
      cancel j                    -> phase=CANCELLING; j CANCELLED
      forget j                    -> forgotten=0
      published x                 -> published
      forget j                    -> forgotten=1
    `);
  });

  test("a failed job does not wait for publications", () => {
    specify(`
      submit j : a[x,y]           -> job 1 new; x y READY, a j RUNNING
      reserve ada n=2             -> x#1 y#2; x y CLAIMED
      commit ada x publish=one    -> committed generation=1; x SUCCEEDED
      fail ada y                  -> ok; y a j FAILED
      published x                 -> published
    `);
  });

  test("an invalid result is not published, its replacement is", () => {
    specify(`
      submit j : a[x]             -> job 1 new; x READY, a j RUNNING
      reserve ada                 -> x#1; x CLAIMED
      commit ada x publish=one    -> committed generation=1; x SUCCEEDED, a COMPLETED
      invalidate x                -> generation=2; x READY, a RUNNING
      published x generation=1    -> not-published
      reserve ada                 -> x#2; x CLAIMED
      commit ada x publish=two    -> committed generation=2; x SUCCEEDED, a COMPLETED
      published x generation=1    -> not-published
      published x                 -> published; j SUCCEEDED
    `);
  });

  test("a stage that is planned again keeps its unpublished results, through a snapshot too", () => {
    const t = new Transcript();
    t.specify(`
      submit j : a[x] b[y,z]<a    -> job 1 new; x READY, y z HELD, a RUNNING, b BLOCKED, j RUNNING
      reserve ada                 -> x#1; x CLAIMED
      commit ada x                -> committed generation=1; x SUCCEEDED, y z READY, a COMPLETED, b RUNNING
      reserve ada                 -> y#2; y CLAIMED
      commit ada y publish=one    -> committed generation=1; y SUCCEEDED
      invalidate x                -> generation=2; x READY, a RUNNING
      reserve ada                 -> x#3; x CLAIMED
      commit ada x result=other   -> committed generation=2; x y SUCCEEDED, z READY, a COMPLETED
      reserve ada                 -> z#4; z CLAIMED
      commit ada z publish=two    -> committed generation=2; z SUCCEEDED, b COMPLETED
    `);
    t.checkReplay();
    const restorer = new Restorer(0, t.state.limits);
    for (const chunk of snapshotOf(t.state)) restorer.add(chunk);
    const restored = restorer.finish();
    restored.unsettled.clear();
    deepEqual(checkState(restored), []);
    deepEqual(factsOf(restored), factsOf(t.state));
    const waiting = [...restored.outbox.values()].map(({ task, spec, result }) => `${task} ${spec} ${result.publish}`);
    deepEqual(new Set(waiting), new Set(["2 do-y one", "5 do-z two"]));
    t.specify(`
      published #2 generation=1   -> published
      published z                 -> published; j SUCCEEDED
    `);
    t.checkReplay();
  });

  test("a result that a re-run reuses is not published again", () => {
    const t = new Transcript();
    const submit = { kind: "submit", tenant: "t", door: "d", name: "j", payloadHash: "h", priority: 0, spec: "" };
    const stage = { name: "a", needs: [], after: "success", failFast: false, mayFail: false, parallelMax: 0 };
    t.say("submit i : a[x]");
    const { template } = t.task("x");
    const result = { payload: "old", digests: [], publish: "anything" };
    const reuse = [{ stage: "a", key: "x", spec: "do-x", result }];
    const stages = [{ ...stage, tasks: { template, tasks: [{ key: "x", spec: "do-x" }] } }];
    const evidence = { reuseEvidence: { digests: [], pinnedForMs: 1 } };
    t.do({ ...submit, ...evidence, stages, reuse, deadlineMs: 1_000 } as never);
    equal(t.state.jobs.get(2)?.phase, "SUCCEEDED");
    equal(t.state.outbox.size, 0);
  });

  test("with too many unpublished results no new work is accepted", () => {
    specify(
      `
      submit j : a[x]             -> job 1 new; x READY, a j RUNNING
      reserve ada                 -> x#1; x CLAIMED
      commit ada x publish=one    -> committed generation=1; x SUCCEEDED, a COMPLETED
      submit k : a[y]             -> REFUSED shard-full what=unpublished results retryAfterMs=1000
      published x                 -> published; j SUCCEEDED
      submit k : a[y]             -> job 2 new; y READY, a k RUNNING
    `,
      { unpublishedMax: 1 },
    );
  });

  test("the size of `publish` is limited", () => {
    specify(
      `
      submit j : a[x]             -> job 1 new; x READY, a j RUNNING
      reserve ada                 -> x#1; x CLAIMED
      commit ada x publish=four   -> REFUSED limit what=result.publish limit=3 got=4
      commit ada x publish=       -> REFUSED invalid path=result.publish why=must not be empty
      commit ada x publish=two    -> committed generation=1; x SUCCEEDED, a COMPLETED
    `,
      { publishBytesMax: 3 },
    );
  });
});
