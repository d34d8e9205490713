import { deepEqual, equal, ok } from "node:assert/strict";
import { describe, test } from "node:test";
import { step } from "#kernel/step.ts";
import { submitOf } from "#kernel/testing/commands.ts";
import { specify, Transcript } from "#kernel/testing/transcript.ts";

describe("K2: a claim is granted only for a ready attempt, and an attempt has one", () => {
  test("tasks that are claimed, waiting, held or over are not granted", () => {
    specify(`
      submit j : a[x,y];par=1 b[z]<a -> job 1 new; x READY, y z HELD, a RUNNING, b BLOCKED, j RUNNING
      reserve ada n=9                -> x#1; x CLAIMED
      reserve bea n=9                -> nothing
      fail ada x executor-lost       -> retryInMs=928; x RETRY_PENDING
      reserve bea n=9                -> nothing
      +1s                            -> x READY
      reserve bea n=9                -> x#2; x CLAIMED
    `);
  });

  test("a token is valid only for its executor, also after its end: another executor is not told how it ended", () => {
    const { bea, cid } = endings();
    deepEqual(bea, { cancelled: "committed: false", failed: "retryInMs" });
    deepEqual(cid, { cancelled: "token-stale", failed: "token-stale" });
  });

  test("tokens grow with every grant", () => {
    specify(`
      submit j : a[x,y]  -> job 1 new; x y READY, a j RUNNING
      reserve ada        -> x#1; x CLAIMED
      release ada x      -> released; x READY
      reserve bea n=2    -> x#2 y#3; x y CLAIMED
    `);
  });

  test("a repeated reserve gets the same grants while they live, and new work after that", () => {
    specify(`
      submit j : a[x,y,z]      -> job 1 new; x y z READY, a j RUNNING
      reserve ada n=2 nonce=n1 -> x#1 y#2; x y CLAIMED
      reserve ada n=2 nonce=n1 -> x#1 y#2
      commit ada x             -> committed generation=1; x SUCCEEDED
      reserve ada n=2 nonce=n1 -> y#2
      commit ada y             -> committed generation=1; y SUCCEEDED
      reserve ada n=2 nonce=n1 -> z#3; z CLAIMED
      reserve ada n=2 nonce=n1 -> z#3
      reserve bea n=2 nonce=n1 -> nothing
    `);
  });

  test("a nonce that is used for ever does not accumulate claims", () => {
    const t = new Transcript();
    t.say("submit j : a[x*50]");
    for (let i = 1; i <= 50; i += 1) {
      t.say("reserve ada nonce=n");
      t.say(`commit ada x${i}`);
    }
    equal(t.state.executor("ada").granted.length, 1);
  });

  test("a grant tells the trace that its job was submitted with", () => {
    const t = new Transcript();
    const trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    const submitted = t.do({ ...submitOf(["j", ":", "a[x]"]), trace });
    ok(submitted.ok && submitted.events.some((event) => event.kind === "job-submitted" && event.trace === trace));
    const asked = { executor: "ada", offers: [], prefer: [], count: 1, start: false, nonce: "n" };
    const outcome = t.do({ kind: "reserve", ...asked });
    ok(outcome.ok && "grants" in outcome.reply);
    equal(outcome.reply.grants[0]?.trace, trace);
    const tooLong = t.do({ ...submitOf(["i", ":", "a[x]"]), trace: "0".repeat(257) });
    equal(tooLong.ok, false);
  });

  test("a grant has everything that an executor needs", () => {
    const t = new Transcript();
    t.say("submit j spec=whole : a[x];on=gpu;lease=7s;attempt=9s;grace=2s;kind=train");
    const outcome = t.do({
      kind: "reserve",
      executor: "ada",
      offers: ["gpu"],
      prefer: [],
      count: 1,
      start: false,
      nonce: "n",
    });
    deepEqual(outcome.ok && outcome.reply, {
      grants: [
        {
          task: 1,
          token: 1,
          job: 1,
          stage: 0,
          stageName: "a",
          tenant: "acme",
          door: "front",
          kind: "train",
          key: "x",
          spec: "do-x",
          planning: false,
          generation: 1,
          attempt: 1,
          leaseMs: 7_000,
          graceMs: 2_000,
          attemptMs: 9_000,
          effects: "pure",
          outOfMemory: 0,
        },
      ],
    });
  });
});

describe("a claim's life", () => {
  test("start, report and release may be repeated; a started claim with outside effects cannot be released", () => {
    specify(`
      submit j : a[x];outside   -> job 1 new; x READY, a j RUNNING
      reserve ada               -> x#1; x CLAIMED
      release ada x             -> released; x READY
      release ada x             -> released
      reserve ada               -> x#2; x CLAIMED
      start ada x               -> leaseMs=10000; x RUNNING
      start ada x               -> leaseMs=10000
      release ada x
        -> REFUSED task-phase task=1 phase=RUNNING wanted=unstarted or with a checkpoint, to be released
      report ada x fetch build  -> steps=2
      report ada x fetch build  -> steps=2
      report ada x fetch build test -> steps=3
    `);
  });

  test("a claim without outside effects may be granted as started, and can still be released", () => {
    specify(`
      submit j : a[x]                   -> job 1 new; x READY, a j RUNNING
      submit k : b[y];outside           -> job 2 new; y READY, b k RUNNING
      reserve ada start-pure            -> x#1; x RUNNING
      start ada x                       -> leaseMs=10000
      reserve ada start-pure            -> y#2; y CLAIMED
      release ada x                     -> released; x READY
      release ada x                     -> released
      commit ada x                      -> REFUSED token-stale task=1 offered=1 current=1
      start ada y                       -> leaseMs=10000; y RUNNING
      release ada y
        -> REFUSED task-phase task=2 phase=RUNNING wanted=unstarted or with a checkpoint, to be released
      reserve ada start-pure            -> x#3; x RUNNING
    `);
  });

  test("a released claim costs no attempt", () => {
    specify(`
      submit j : a[x];tries=1     -> job 1 new; x READY, a j RUNNING
      reserve ada                 -> x#1; x CLAIMED
      release ada x               -> released; x READY
      reserve ada start           -> x#2; x RUNNING
      fail ada x executor-lost    -> ok; x a j FAILED
    `);
  });

  test("a token is valid only for its executor and its task", () => {
    specify(`
      submit j : a[x,y]        -> job 1 new; x y READY, a j RUNNING
      reserve ada n=2          -> x#1 y#2; x y CLAIMED
      start bea x token=1      -> REFUSED token-stale task=1 offered=1 current=1
      start ada y token=1      -> REFUSED token-stale task=2 offered=1 current=2
      commit bea x token=1     -> REFUSED token-stale task=1 offered=1 current=1
      fail bea x token=1       -> REFUSED token-stale task=1 offered=1 current=1
      release bea x token=1    -> REFUSED token-stale task=1 offered=1 current=1
      report bea x             -> REFUSED token-stale task=1 offered=0 current=1
      start ada x token=9      -> REFUSED token-stale task=1 offered=9 current=1
      start ada #99 token=1    -> REFUSED task-unknown task=99
      release ada #99 token=1  -> REFUSED task-unknown task=99
    `);
  });

  test("renewing is a sync: the answer lists all claims that the executor holds, whatever it believed", () => {
    specify(`
      submit j : a[x,y]       -> job 1 new; x y READY, a j RUNNING
      reserve ada n=2 start   -> x#1 y#2; x y RUNNING
      renew ada empty         -> held x#1 y#2 lost -
      commit ada x            -> committed generation=1; x SUCCEEDED
      renew ada               -> held y#2 lost -
      +9s                     ->
      renew ada               -> held y#2 lost -
      +9s                     ->
      renew ada empty         -> held y#2 lost -
      +9s                     ->
      +1s                     -> y RETRY_PENDING
      renew ada               -> held - lost -
      renew cyd               -> held - lost -
    `);
    const t = new Transcript();
    const renewed = t.do({ kind: "renew", executor: "ada", claims: [{ task: 5, token: 6 }] });
    deepEqual(renewed.ok && renewed.reply, { held: [], lost: [{ task: 5, token: 6 }] });
  });

  test("a task's steps are shown with the last report of each", () => {
    const t = new Transcript();
    t.say("submit j : a[x]");
    t.say("reserve ada start");
    const report = { kind: "report", executor: "ada", task: 1, token: 1 } as const;
    t.do({ ...report, steps: [{ step: 1, name: "fetch", status: "started" }] });
    t.do({ ...report, steps: [{ step: 1, name: "fetch", status: "succeeded" }] });
    t.do({ ...report, steps: [{ step: 2, name: "build", status: "progress" }] });
    deepEqual(t.task("x").steps, [
      { step: 1, name: "fetch", status: "succeeded" },
      { step: 2, name: "build", status: "progress" },
    ]);
  });
});

describe("K3: a commit needs the token of a live attempt, and every blob pinned", () => {
  test("evidence is required for each digest, and must not have expired", () => {
    specify(`
      submit j : a[x]                          -> job 1 new; x READY, a j RUNNING
      reserve ada start                        -> x#1; x RUNNING
      commit ada x digests=d,e pinned=d        -> REFUSED evidence-missing digest=${"65".padStart(64, "0")}/1
      commit ada x digests=d,e pinned=         -> REFUSED evidence-missing digest=${"64".padStart(64, "0")}/1
      commit ada x digests=d,e for=0s          -> REFUSED evidence-expired pinnedForMs=0
      commit ada x digests=d,e pinned=e,f,d    -> committed generation=1; x SUCCEEDED, a COMPLETED, j SUCCEEDED
    `);
  });

  test("a repeated commit gets its first answer, a commit with another payload is refused", () => {
    specify(`
      submit j : a[x]                    -> job 1 new; x READY, a j RUNNING
      reserve ada start                  -> x#1; x RUNNING
      commit ada x digests=d             -> committed generation=1; x SUCCEEDED, a COMPLETED, j SUCCEEDED
      commit ada x digests=d             -> committed generation=1
      commit ada x digests=d pinned=     -> committed generation=1
      commit ada x result=other digests=d -> REFUSED token-stale task=1 offered=1 current=0
      commit ada x digests=e             -> REFUSED token-stale task=1 offered=1 current=0
    `);
  });

  test("K6: an executor that lost the lease cannot commit, the one that has it now can, once", () => {
    specify(`
      submit j : a[x]         -> job 1 new; x READY, a j RUNNING
      reserve ada start       -> x#1; x RUNNING
      +10s                    -> x RETRY_PENDING
      commit ada x            -> REFUSED token-stale task=1 offered=1 current=1
      +1s                     -> x READY
      commit ada x            -> REFUSED token-stale task=1 offered=1 current=1
      reserve bea start       -> x#2; x RUNNING
      commit ada x            -> REFUSED token-stale task=1 offered=1 current=2
      commit bea x result=b   -> committed generation=1; x SUCCEEDED, a COMPLETED, j SUCCEEDED
      commit ada x            -> REFUSED token-stale task=1 offered=1 current=1
      commit bea x result=b   -> committed generation=1
    `);
  });

  test("a planning task cannot be committed with a result, nor a normal task with a plan", () => {
    specify(`
      submit j : a[?] b[x]   -> job 1 new; a/plan x a READY, b j RUNNING
      reserve ada n=2        -> a/plan#1 x#2; a/plan x CLAIMED
      commit ada a/plan      -> REFUSED invalid path=task why=planning is answered with a plan, not a result
      plan ada x [y]         -> REFUSED invalid path=task why=the task is not planning, commit a result
    `);
  });
});

/**
 * The answers that the holder and another executor get when they repeat, with the right token, the command that ended
 * an attempt.
 */
function endings(): Record<"bea" | "cid", { readonly cancelled: string; readonly failed: string }> {
  const transcript = new Transcript();
  const before = ["submit j : a[x]", "reserve bea", "cancel j", "fail bea x cancelled"];
  for (const line of [...before, "submit k : a[y]", "reserve bea", "fail bea y executor-lost"]) transcript.say(line);
  const { state } = transcript;
  const hear = (executor: string): { readonly cancelled: string; readonly failed: string } => {
    const result = { payload: "", digests: [] };
    const evidence = { digests: [], pinnedForMs: 0 };
    const commit = step(state, { kind: "commit", executor, task: 1, token: 1, result, evidence }, state.nowMs);
    const reason = "executor-lost";
    const fail = step(state, { kind: "fail", executor, task: 2, token: 2, reason, message: "" }, state.nowMs);
    const said = (reply: object): string =>
      "committed" in reply ? `committed: ${String(reply.committed)}` : "retryInMs";
    return {
      cancelled: commit.ok ? said(commit.reply) : commit.rejection.kind,
      failed: fail.ok ? said(fail.reply) : fail.rejection.kind,
    };
  };
  return { bea: hear("bea"), cid: hear("cid") };
}
