/** What the kernel promises to tasks of a query, with the template that they have. */
import { deepEqual, equal, match } from "node:assert/strict";
import { describe, test } from "node:test";
import { partTemplate, planSubmit, template, commitTemplate, wavesMax, type BatchJob } from "#doors/batch/plan.ts";
import { specify, Transcript } from "#kernel/testing/transcript.ts";

/** As partTemplate has it. */
const part = "lease=10s;tries=5;losses=20;backoff=200ms;queue=24h;attempt=6h;grace=60s;speculate;spare=75:200:2";

const frail = part.replace("losses=20", "losses=1").replace("tries=5", "tries=1");

describe("tasks of a query", () => {
  test("have the template that these transcripts are written for", () => {
    const { leaseMs, attemptsMax, lossesMax, backoffMs, queueMs, attemptMs, graceMs, retryOn } = partTemplate;
    deepEqual(
      [leaseMs, attemptsMax, lossesMax, backoffMs, queueMs, attemptMs, graceMs, retryOn],
      [10_000, 5, 20, 200, 86_400_000, 21_600_000, 60_000, "infrastructure"],
    );
    deepEqual(partTemplate.speculation, { percentile: 75, factorPercent: 200, slots: 2 });
  });

  test("BATCH-1, BATCH-2, BATCH-3: one result counts, and a commit under an older token is refused", () => {
    specify(`
      submit j : a[x];${part}     -> job 1 new; x READY, a j RUNNING
      reserve ada start           -> x#1; x RUNNING
      +10s                        -> x RETRY_PENDING
      +1s                         -> x READY
      reserve bea start           -> x#2; x RUNNING
      commit ada x result=late    -> REFUSED token-stale task=1 offered=1 current=2
      commit bea x result=right   -> committed generation=1; x SUCCEEDED, a COMPLETED, j SUCCEEDED
      commit bea x result=right   -> committed generation=1
      commit ada x result=late    -> REFUSED token-stale task=1 offered=1 current=1
    `);
  });

  test("BATCH-5: of twins the first commit counts, and the other one learns that it lost", () => {
    specify(`
      submit j : a[v,w,x,y];${part} -> job 1 new; v w x y READY, a j RUNNING
      reserve ada n=4 start         -> v#1 w#2 x#3 y#4; v w x y RUNNING
      +1s                           ->
      commit ada v                  -> committed generation=1; v SUCCEEDED
      commit ada w                  -> committed generation=1; w SUCCEEDED
      commit ada x                  -> committed generation=1; x SUCCEEDED
      +4s                           ->
      renew ada                     -> held y#4 lost -
      +6s                           ->
      renew ada                     -> held y#4 lost -
      reserve bea start             -> y#5
      commit bea y                  -> committed generation=1; y SUCCEEDED, a COMPLETED, j SUCCEEDED
      renew ada                     -> held - lost y#4
      commit ada y                  -> REFUSED token-stale task=4 offered=4 current=0
    `);
  });

  test("BATCH-11: lost machines do not use up the attempts, and what the query does wrong is not repeated", () => {
    specify(`
      submit j : a[x];${frail} -> job 1 new; x READY, a j RUNNING
      reserve ada start           -> x#1; x RUNNING
      fail ada x executor-lost    -> retryInMs=186; x RETRY_PENDING
      +1s                         -> x READY
      reserve ada start           -> x#2; x RUNNING
      fail ada x executor-lost    -> ok; x a j FAILED
    `);
    specify(`
      submit j : a[x];${part}     -> job 1 new; x READY, a j RUNNING
      reserve ada start           -> x#1; x RUNNING
      fail ada x user-failure     -> ok; x a j FAILED
    `);
  });

  test("BATCH-13: without executors they wait for a day, and then the job fails and says so", () => {
    const t = new Transcript();
    t.specify(`
      submit j : a[x];${part};queue=1h -> job 1 new; x READY, a j RUNNING
      +1h                              -> x a j FAILED
    `);
    match(JSON.stringify(t.events), /no executor took it within/);
    equal(partTemplate.queueMs, 86_400_000);
  });

  test("BATCH-14, BATCH-18: the log alone tells what is done; a stage is complete when all its parts are", () => {
    const t = new Transcript();
    t.specify(`
      submit j : a[x,y] b[?]<a;${part} -> job 1 new; x y READY, a RUNNING, b BLOCKED, j RUNNING
      reserve ada n=2 start            -> x#1 y#2; x y RUNNING
      commit ada x                     -> committed generation=1; x SUCCEEDED
      commit ada x                     -> committed generation=1
      invalidate x                     -> generation=2; x READY
      commit ada y                     -> committed generation=1; y SUCCEEDED
      reserve ada start                -> x#3; x RUNNING
      commit ada x                     -> committed generation=2; x SUCCEEDED, b/plan READY, a COMPLETED, b READY
    `);
    t.checkReplay();
  });

  test("BATCH-16: the same key is the same job, with another query under it a conflict", () => {
    const t = new Transcript();
    t.specify(`
      submit j key=nightly hash=q1 : a[x] -> job 1 new; x READY, a j RUNNING
      submit j key=nightly hash=q1 : a[x] -> job 1 known
    `);
    match(t.say("submit j key=nightly hash=q2 : a[x]"), /^REFUSED/);
    const job: BatchJob = {
      sql: "select 1",
      folder: "/",
      settings: { splitBytes: 1, broadcastBytes: 1, partitions: 1, reduceBytes: 1 },
      isExplained: false,
    };
    const [one, same, other] = [job, job, { ...job, sql: "select 2" }].map((each, i) =>
      planSubmit(each, { tenant: "t", key: "nightly", unique: `${i}` }),
    );
    deepEqual([one?.payloadHash, one?.shardKey], [same?.payloadHash, same?.shardKey]);
    equal(one?.payloadHash === other?.payloadHash, false);
  });

  test("BATCH-17: cancelled, nothing is claimed any more, and no later commit counts", () => {
    specify(`
      submit j : a[x,y];${part} -> job 1 new; x y READY, a j RUNNING
      reserve ada start         -> x#1; x RUNNING
      cancel j                  -> phase=CANCELLING; x CANCELLING, y CANCELLED, j CANCELLING
      reserve bea start         -> nothing
      commit ada x              -> not-committed generation=1; x a j CANCELLED
    `);
  });

  test("BATCH-38: a shard that slept expires no lease for it", () => {
    specify(`
      submit j : a[x];${part} -> job 1 new; x READY, a j RUNNING
      reserve ada start       -> x#1; x RUNNING
      leap 1h                 ->
      renew ada               -> held x#1 lost -
    `);
  });

  test("BATCH-33: what is seen outside is never tried twice at once, nor after its claim", () => {
    deepEqual([commitTemplate.effects, commitTemplate.speculate, commitTemplate.graceMs], ["outside", false, 0]);
  });

  test("BATCH-40: run on the engine that they were planned for", () => {
    match(template("batch.part").requires.join(), /engine=duckdb-\d/);
  });

  test("BATCH-45: as many waves and tasks as there may be, and not one more", () => {
    equal(wavesMax, 48);
    const t = new Transcript({ limits: { tasksPerStageMax: 3 } });
    match(t.say(`submit j : a[x*4];${part}`), /^REFUSED limit what=stages.*limit=3 got=4/);
  });
});
