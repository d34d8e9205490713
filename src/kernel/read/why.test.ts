import { deepEqual, equal } from "node:assert/strict";
import { describe, test } from "node:test";
import type { Why, WhyOf, WhyReason } from "./query.ts";
import { specify, Transcript } from "#kernel/testing/transcript.ts";

const seen = new Set<string>();

/** A transcript whose last answer has this reason. */
function because(kind: WhyReason["kind"], text: string): void {
  const t = specify(text);
  const job = t.state.nextJob - 1;
  const { why } = t.ask({ kind: "why", job }) as { why: { because: WhyReason }[] };
  equal(
    why.some((line) => line.because.kind === kind),
    true,
  );
  seen.add(kind);
}

describe("why is this not running?", () => {
  test("running, or ended", () => {
    because(
      "running",
      `
      submit j : a[x]   -> job 1 new; x READY, a j RUNNING
      reserve ada       -> x#1; x CLAIMED
      why j             -> x running executor=ada
    `,
    );
    because(
      "ended",
      `
      submit j : a[x]   -> job 1 new; x READY, a j RUNNING
      cancel j          -> phase=CANCELLING; x a j CANCELLED
      why j             -> j ended phase=CANCELLED
    `,
    );
  });

  test("its needs have not ended", () => {
    because(
      "needs",
      `
      submit j : a[x] b[y] c[z]<a,b -> job 1 new; x y READY, z HELD, a b RUNNING, c BLOCKED, j RUNNING
      reserve ada n=2               -> x#1 y#2; x y CLAIMED
      commit ada x                  -> committed generation=1; x SUCCEEDED, a COMPLETED
      why j                         -> y running executor=ada; c needs stages=b
    `,
    );
  });

  test("another job holds its lock, and others wait before it", () => {
    because(
      "lock",
      `
      submit h lock=l:1:9 : a[x] -> job 1 new; x READY, a h RUNNING
      submit i lock=l:1:9 : a[y] -> job 2 new; y HELD, a BLOCKED, i WAITING
      submit j lock=l:1:9 : a[z] -> job 3 new; z HELD, a BLOCKED, j WAITING
      why i                      -> a lock name=l heldBy=1 ahead=0
      why j                      -> a lock name=l heldBy=1 ahead=1
    `,
    );
    specify(`
      submit h : a[x];lock=l:1:9 -> job 1 new; x READY, a h RUNNING
      submit i : b[y];lock=l:1:9 -> job 2 new; y HELD, b BLOCKED, i RUNNING
      why i                      -> b lock name=l heldBy=1 ahead=0
    `);
  });

  test("its planner waits for a signal", () => {
    because(
      "signal",
      `
      submit j : a[?]               -> job 1 new; a/plan a READY, j RUNNING
      reserve ada                   -> a/plan#1; a/plan CLAIMED
      plan ada a/plan wait=1m:go,no -> recorded plan=wait; a/plan WAITING
      +10s                          ->
      why j                         -> plan signal names=go+no forMs=50000
    `,
    );
  });

  test("it failed and is retried later", () => {
    because(
      "back-off",
      `
      submit j : a[x]                       -> job 1 new; x READY, a j RUNNING
      reserve ada                           -> x#1; x CLAIMED
      fail ada x preempted message=away     -> retryInMs=928; x RETRY_PENDING
      why j                                 -> x back-off forMs=928 lastFailure=preempted: away
    `,
    );
  });

  test("its stage's parallelMax is reached", () => {
    because(
      "parallel-max",
      `
      submit j : a[x,y];par=1 -> job 1 new; x READY, y HELD, a j RUNNING
      reserve ada             -> x#1; x CLAIMED
      why j                   -> x running executor=ada; y parallel-max limit=1
    `,
    );
  });

  test("its tenant has no free slot", () => {
    because(
      "quota",
      `
      tenant acme running=1 -> changed
      submit j : a[x,y]     -> job 1 new; x y READY, a j RUNNING
      reserve ada n=2       -> x#1; x CLAIMED
      why j                 -> x running executor=ada; y quota running=1 runningMax=1
    `,
    );
  });

  test("no executor can run it, and the closest one lacks these labels", () => {
    because(
      "no-executor",
      `
      submit j : a[x];on=arm+big+gpu -> job 1 new; x READY, a j RUNNING
      why j                          -> x no-executor missing=arm+big+gpu
      reserve ada offers=gpu         -> nothing
      reserve bea offers=big+gpu     -> nothing
      why j                          -> x no-executor nearest=bea missing=arm
      reserve cyd offers=arm+big+gpu tenant=other -> nothing
      why j                          -> x no-executor nearest=cyd missing=tenant=acme
    `,
    );
  });

  test("an executor that only plans is not the closest one to a task", () => {
    because(
      "no-executor",
      `
      submit j : a[x];on=arm         -> job 1 new; x READY, a j RUNNING
      reserve ada/plans offers=arm+only=plans -> nothing
      why j                          -> x no-executor missing=arm
      reserve ada offers=big+only=tasks -> nothing
      why j                          -> x no-executor nearest=ada missing=arm
    `,
    );
  });

  test("the executors that could run it are drained", () => {
    because(
      "drained",
      `
      reserve ada     -> nothing
      submit j : a[x] -> job 1 new; x READY, a j RUNNING
      drain ada       -> draining
      why j           -> x drained executors=ada
    `,
    );
  });

  test("other tasks are before it", () => {
    because(
      "queued",
      `
      submit i tenant=other : a[w]  -> job 1 new; w READY, a i RUNNING
      submit h prio=1 : a[x,y]      -> job 2 new; x y READY, a h RUNNING
      submit j : a[z]               -> job 3 new; z READY, a j RUNNING
      reserve ada tenant=acme       -> x#1; x CLAIMED
      why j                         -> z queued position=1 executors=1 tenantsAhead=1
    `,
    );
  });

  test("all work is done, but results are still being published", () => {
    because(
      "publishing",
      `
      submit j : a[x]           -> job 1 new; x READY, a j RUNNING
      reserve ada               -> x#1; x CLAIMED
      commit ada x publish=one  -> committed generation=1; x SUCCEEDED, a COMPLETED
      why j                     -> j publishing results=1 forMs=0
    `,
    );
  });

  test("a cancelled job: what still cleans up, and for how long", () => {
    because(
      "cleaning-up",
      `
      submit j : a[x] b[?]<a;end  -> job 1 new; x READY, a RUNNING, b BLOCKED, j RUNNING
      reserve ada                 -> x#1; x CLAIMED
      cancel j grace=1m           -> phase=CANCELLING; x j CANCELLING
      +10s                        -> x CANCELLED, b/plan READY, a CANCELLED, b READY
      why j
        -> j cleaning-up stages=b forMs=50000; plan queued position=0 executors=1 tenantsAhead=0
    `,
    );
  });

  test("an array as a whole, before its tasks that are queued or run", () => {
    const running = "0 running executor=ada";
    const queued = [1, 2].map((i) => `${i} queued position=${i - 1} executors=1 tenantsAhead=0`).join("; ");
    because(
      "array",
      `
      submit j : a[#3]  -> job 1 new; a j RUNNING
      reserve ada       -> 0#1
      why j
        -> a array count=3 ended=0 running=1 queued=2 ahead=0; ${running}; ${queued}
    `,
    );
  });

  test("a job has ended, and others have not heard it yet", () => {
    because(
      "notices",
      `
      submit j notify=1.7.0.child : a[x] -> job 1 new; x READY, a j RUNNING
      cancel j                           -> phase=CANCELLING; x a j CANCELLED
      +5s                                ->
      why j                              -> j notices notices=1 forMs=5000
    `,
    );
  });

  test("every kind of reason is shown above", () => {
    const kinds: Record<WhyReason["kind"], true> = {
      running: true,
      ended: true,
      needs: true,
      lock: true,
      signal: true,
      "back-off": true,
      "parallel-max": true,
      quota: true,
      "no-executor": true,
      drained: true,
      queued: true,
      publishing: true,
      "cleaning-up": true,
      array: true,
      notices: true,
    };
    deepEqual([...seen].toSorted(), Object.keys(kinds).toSorted());
  });

  test("a wide job is answered in a bounded number of lines, and not to another tenant", () => {
    const t = new Transcript();
    t.say("submit j : a[x*500]");
    equal((t.ask({ kind: "why", job: 1 }) as { why: unknown[] }).why.length, 20);
    deepEqual(t.ask({ kind: "why", job: 1, tenant: "other" }), { kind: "job-unknown", job: 1 });
  });

  test("one task or one stage of a wide job is explained wherever it is in the job", () => {
    const t = new Transcript();
    t.say("submit i : a[x]");
    t.say("submit j : a[x*500] b[y]<a c[z]<b");
    const told = (of: WhyOf) =>
      (t.ask({ kind: "why", job: 2, ...of }) as { why: Why[] }).why.map(({ task, stage, because: { kind } }) => ({
        task,
        stage,
        kind,
      }));
    const [first] = told({ stage: 0 });
    const last = (first?.task ?? 0) + 499;
    deepEqual(told({ task: last }), [{ task: last, stage: 0, kind: "no-executor" }]);
    deepEqual(told({ stage: 2 }), [{ task: 0, stage: 2, kind: "needs" }]);
    equal(told({ stage: 0 }).length, 20, "still bounded");
    deepEqual(told({ stage: 7 }), []);
    deepEqual(told({ task: 1 }), [], "another job's");
    t.say("cancel j");
    deepEqual(told({ task: last }), [], "it is over, and so is the job: its view says that");
  });
});

describe("besides the reason, why says", () => {
  const lines = (t: Transcript, of: WhyOf = {}) => (t.ask({ kind: "why", job: 1, ...of }) as { why: Why[] }).why;

  test("where the next attempt goes on, and how attempts have failed", () => {
    const t = specify(`
      submit j : a[x];outside           -> job 1 new; x READY, a j RUNNING
      reserve ada start                 -> x#1; x RUNNING
      checkpoint ada x at=one           -> recorded
      +1s                               ->
    `);
    deepEqual(lines(t)[0]?.checkpoint, { token: 1, agoMs: 1_000 });
    t.say("fail ada x executor-lost");
    const { because: reason, checkpoint, failures } = lines(t)[0] as Why;
    deepEqual([reason.kind, checkpoint, failures], ["back-off", { token: 1, agoMs: 1_000 }, { "executor-lost": 1 }]);
  });

  test("who makes a second attempt", () => {
    const t = specify(`
      submit j : a[x,y];speculate -> job 1 new; x y READY, a j RUNNING
      reserve ada n=2 start       -> x#1 y#2; x y RUNNING
      +1s                         ->
      commit ada x                -> committed generation=1; x SUCCEEDED
      +5s                         ->
      renew ada                   -> held y#2 lost -
      +5s                         ->
    `);
    deepEqual(lines(t)[0]?.second, undefined);
    t.say("reserve bea");
    deepEqual(
      lines(t).map(({ because: reason, second }) => [reason, second]),
      [[{ kind: "running", executor: "ada" }, "bea"]],
    );
  });

  test("which signals a planner has not received, and which ones an executor", () => {
    const t = new Transcript();
    t.say("submit j : a[?] b[y]<a");
    t.say("signal j a go id=1");
    deepEqual(lines(t)[0]?.pending, ["go"], "not claimed yet");
    t.say("reserve ada");
    deepEqual(lines(t)[0]?.pending, undefined);
    t.say("signal j a stop id=2");
    deepEqual(lines(t)[0]?.pending, ["stop"], "it came after the claim");
    t.say("plan ada a/plan [x]");
    t.say("reserve bea start");
    const renew = (heard: number) =>
      t.do({ kind: "renew", executor: "bea", claims: [{ task: t.task("x").no, token: 2, heard }] });
    renew(0);
    deepEqual(lines(t)[0]?.pending, ["go", "stop"]);
    renew(1);
    deepEqual(lines(t)[0]?.pending, ["stop"]);
    renew(2);
    deepEqual(lines(t)[0]?.pending, undefined);
    t.say("signal j b later id=3");
    deepEqual(lines(t, { stage: 1 })[0]?.pending, ["later"], "a stage that is not planned yet");
  });

  test("how many tasks of an array are queued before one that is not queued yet", () => {
    const t = new Transcript({ limits: { arrayAheadMax: 2 } });
    t.say("submit j : a[#500]");
    t.say("reserve ada");
    const first = t.state.tasks.keys().next().value as number;
    const facts = { kind: "array", count: 500, ended: 0, running: 1, queued: 2 };
    deepEqual(
      lines(t, { task: first + 499 }).map(({ key, because: reason }) => ({ key, because: reason })),
      [{ key: "499", because: { ...facts, ahead: 498 } }],
    );
    deepEqual(
      lines(t).map(({ key, because: { kind } }) => `${key} ${kind}`),
      ["a array", "0 running", "1 queued", "2 queued"],
    );
    t.say("cancel j");
    deepEqual(lines(t, { task: first + 499 }), []);
  });
});

describe("queries", () => {
  test("a job, its tasks, lists in pages, executors and counts", () => {
    const t = new Transcript();
    t.say("submit i tenant=b : a[x]");
    t.say("submit j : a[x] b[y]<a");
    t.say("submit k door=side : a[z]");
    t.say("reserve ada start tenant=acme");
    const list = (query: object): number[] =>
      (t.ask({ kind: "jobs", limit: 10, ...query }) as { jobs: { job: number }[] }).jobs.map(({ job }) => job);
    deepEqual(list({}), [3, 2, 1]);
    deepEqual(list({ limit: 1 }), [3]);
    deepEqual(list({ before: 3, limit: 1 }), [2]);
    deepEqual(list({ tenant: "b" }), [1]);
    deepEqual(list({ door: "side" }), [3]);
    deepEqual(list({ limit: Number.NaN }), []);
    const job = t.ask({ kind: "job", job: 2, tasksMax: 1 }) as { phase: string; tasks: unknown[]; stages: unknown[] };
    equal(job.phase, "RUNNING");
    equal(job.tasks.length, 1);
    equal(job.stages.length, 2);
    deepEqual(t.ask({ kind: "job", job: 2, tenant: "b" }), { kind: "job-unknown", job: 2 });
    const task = t.ask({ kind: "task", task: 2 }) as { phase: string; claims: unknown[] };
    deepEqual(task.claims, [{ token: 1, executor: "ada", expiresInMs: 10_000, started: true }]);
    deepEqual(t.ask({ kind: "task", task: 2, tenant: "b" }), { kind: "task-unknown", task: 2 });
    deepEqual(t.ask({ kind: "executors" }), {
      executors: [{ executor: "ada", offers: [], claims: 1, drained: undefined, failures: 0, seenAgoMs: 0 }],
    });
    const stats = t.ask({ kind: "stats" }) as Record<string, number>;
    deepEqual(
      [stats["jobs"], stats["liveJobs"], stats["tasks"], stats["ready"], stats["claims"], stats["readyWeight"]],
      [3, 3, 4, 2, 1, 2],
    );
    deepEqual(t.ask({ kind: "nonsense" } as never), { kind: "invalid", path: "kind", why: "no such query" });
  });

  test("an old job is listed however many have come and gone since", () => {
    const t = new Transcript();
    t.say("submit i : a[x]");
    t.say("submit j door=side : a[x]");
    t.state.nextJob += 1_000_000;
    t.say("submit k : a[x]");
    const list = (query: object): number[] =>
      (t.ask({ kind: "jobs", limit: 10, ...query }) as { jobs: { job: number }[] }).jobs.map(({ job }) => job);
    deepEqual(list({}), [1_000_003, 2, 1]);
    deepEqual(list({ limit: 2 }), [1_000_003, 2]);
    deepEqual(list({ before: 900_000, limit: 1 }), [2]);
    deepEqual(list({ before: 2 }), [1]);
    deepEqual(list({ door: "side" }), [2]);
  });
});
