import { deepEqual, equal, ok } from "node:assert/strict";
import { describe, test } from "node:test";
import type { Submit } from "#kernel/model/command.ts";
import { specify, Transcript } from "#kernel/testing/transcript.ts";
import { joinOf, submitOf } from "#kernel/testing/commands.ts";
import { factsOf } from "#kernel/testing/facts.ts";
import { lockOf, stagesOf } from "#kernel/testing/parse.ts";

const whatItGoesWithout =
  "joinOnly: must have no stages, deadlineMs, lock, reuse, tags, series or notify: it starts no job";

describe("K1: a request key is bound to one job while it is kept", () => {
  test("the same request again gets the same job, also after that has ended and was forgotten", () => {
    specify(`
      submit j key=k : a[x]  -> job 1 new; x READY, a j RUNNING
      submit j key=k : a[x]  -> job 1 known
      reserve ada start      -> x#1; x RUNNING
      commit ada x           -> committed generation=1; x SUCCEEDED, a COMPLETED, j SUCCEEDED
      submit j key=k : a[x]  -> job 1 known
      forget j               -> forgotten=1
      submit j key=k : a[x]  -> job 1 known
    `);
  });

  test("another payload under the same key is refused", () => {
    specify(`
      submit j key=k hash=h1 : a[x] -> job 1 new; x READY, a j RUNNING
      submit i key=k hash=h2 : a[x] -> REFUSED key-reused key=k job=1
    `);
  });

  test("keys of other tenants and doors are other keys", () => {
    specify(`
      submit j key=k : a[x]              -> job 1 new; x READY, a j RUNNING
      submit i key=k tenant=other : a[y] -> job 2 new; y READY, a i RUNNING
      submit h key=k door=side : a[z]    -> job 3 new; z READY, a h RUNNING
    `);
  });

  test("after its time the key is free again", () => {
    specify(`
      submit j key=k deadline=1h : a[x] -> job 1 new; x READY, a j RUNNING
      +23h                              -> x CANCELLED, a j FAILED
      submit j key=k : a[x]             -> job 1 known
      +1h                               ->
      submit i key=k hash=h2 : a[y]     -> job 2 new; y READY, a i RUNNING
    `);
  });

  test("an expired key is free at once, before a sweep", () => {
    const t = new Transcript({ limits: { keyRetentionMs: 1_000 } });
    t.specify("submit j key=k : a[x] -> job 1 new; x READY, a j RUNNING");
    t.nowMs += 999;
    t.specify("submit j key=k : a[x] -> job 1 known");
    t.nowMs += 1;
    t.specify("submit i key=k : a[y] -> job 2 new; y READY, a i RUNNING");
  });

  test("a key that is bound again before a sweep moves to the end of the order and is counted once", () => {
    const t = new Transcript({ limits: { keyRetentionMs: 1_000 } });
    const keys = (): string => [...t.state.keys.keys()].map((key) => key.at(-1)).join();
    t.say("submit j key=k : a[x]");
    t.nowMs += 500;
    t.say("submit i key=l : a[y]");
    t.nowMs += 600;
    t.say("submit h key=k : a[z]");
    equal(keys(), "l,k");
    t.nowMs += 500;
    t.say("tick");
    equal(keys(), "k");
  });

  test("with too many keys the oldest leave memory early, and the journal's copy counts like memory's", () => {
    const t = new Transcript({ limits: { keysInMemoryMax: 1 } });
    t.say("submit j key=k : a[x]");
    t.say("submit i key=l : a[y]");
    t.say("tick");
    equal(t.state.keys.size, 1);
    equal(t.state.keysElsewhereUntilMs, t.nowMs + t.state.limits.keyRetentionMs);
    const submit: Submit = {
      kind: "submit",
      tenant: "acme",
      door: "front",
      name: "j",
      requestKey: "k",
      payloadHash: "h",
      priority: 0,
      spec: "",
      stages: stagesOf(["a[x]"]),
      deadlineMs: 1_000,
      keyFound: { job: 1, payloadHash: "h" },
    };
    deepEqual(t.do(submit), { ok: true, changes: 0, events: [], reply: { job: 1, created: false, merged: false } });
    const other = t.do({ ...submit, payloadHash: "other" });
    deepEqual(other, { ok: false, changes: 0, events: [], rejection: { kind: "key-reused", key: "k", job: 1 } });
  });
});

describe("merging: live jobs of one tenant and door with the same merge key are one", () => {
  test("later submissions join, and the most urgent one sets the priority for all", () => {
    const t = specify(`
      submit i prio=1 : b[y]                -> job 1 new; y READY, b i RUNNING
      submit j merge=m by=ann : a[x]        -> job 2 new; x READY, a j RUNNING
      submit j merge=m by=bob prio=5 : a[x] -> job 2 joined
      submit j merge=m by=cyd prio=2 : a[x] -> job 2 joined
      reserve ada n=2                       -> x#1 y#2; y x CLAIMED
    `);
    equal(t.state.job(2).priority, 5);
  });

  test("other tenants and doors do not share, and an ended job is not joined", () => {
    specify(`
      submit j merge=m : a[x]              -> job 1 new; x READY, a j RUNNING
      submit i merge=m tenant=other : a[y] -> job 2 new; y READY, a i RUNNING
      submit h merge=m door=side : a[z]    -> job 3 new; z READY, a h RUNNING
      cancel j                             -> phase=CANCELLING; x a j CANCELLED
      submit g merge=m : a[w]              -> job 4 new; w READY, a g RUNNING
    `);
  });

  test("a submission that joins with a request key binds the key to that job (K1)", () => {
    specify(`
      submit j merge=m : a[x]        -> job 1 new; x READY, a j RUNNING
      submit j merge=m key=k : a[x]  -> job 1 joined
      cancel j                       -> phase=CANCELLING; x a j CANCELLED
      submit j merge=m key=k : a[x]  -> job 1 known
    `);
  });

  test("when the last subscriber has left, the job is cancelled after the grace", () => {
    specify(`
      submit j merge=m by=ann grace=10s : a[x] -> job 1 new; x READY, a j RUNNING
      submit j merge=m by=bob : a[x]           -> job 1 joined
      leave j ann                              -> left
      leave j ann                              -> left
      +1m                                      ->
      leave j bob                              -> left
      +9s                                      ->
      +1s                                      -> x a j CANCELLED
      leave j bob                              -> left
    `);
  });

  test("a subscriber that comes back within the grace keeps the job alive", () => {
    specify(`
      submit j merge=m by=ann grace=10s : a[x] -> job 1 new; x READY, a j RUNNING
      leave j ann                              -> left
      +5s                                      ->
      submit j merge=m by=bob : a[x]           -> job 1 joined
      +1m                                      ->
      leave j nobody                           -> left
      leave 7 ann                              -> REFUSED job-unknown job=7
    `);
  });

  test("at the subscriber limit, existing subscribers still get their answer", () => {
    new Transcript({ limits: { subscribersMax: 2 } }).specify(`
      submit j merge=m by=ann : a[x] -> job 1 new; x READY, a j RUNNING
      submit j merge=m by=bob : a[x] -> job 1 joined
      submit j merge=m by=cyd : a[x] -> REFUSED limit what=subscribers limit=2 got=3
      submit j merge=m by=bob : a[x] -> job 1 joined
      join m by=ann                  -> job 1 joined
    `);
  });

  test("a subscriber without a name never leaves", () => {
    specify(`
      submit j merge=m by=ann : a[x] -> job 1 new; x READY, a j RUNNING
      submit j merge=m : a[x]        -> job 1 joined
      leave j ann                    -> left
      +1m                            ->
    `);
  });
});

describe("a submission that only joins starts no job", () => {
  const merged = "submit j merge=m by=ann : a[x] -> job 1 new; x READY, a j RUNNING";

  test("it joins as any other does, until the job has ended or is being cancelled", () => {
    specify(`
      join m              -> REFUSED nothing-to-join mergeKey=m
      ${merged}
      join m by=bob       -> job 1 joined
      reserve ada start   -> x#1; x RUNNING
      join m by=cyd       -> job 1 joined
      commit ada x        -> committed generation=1; x SUCCEEDED, a COMPLETED, j SUCCEEDED
      join m by=bob       -> REFUSED nothing-to-join mergeKey=m
      submit i merge=m : a[y] -> job 2 new; y READY, a i RUNNING
      join m by=bob       -> job 2 joined
      reserve ada start   -> y#2; y RUNNING
      cancel i            -> phase=CANCELLING; y i CANCELLING
      join m by=bob       -> REFUSED nothing-to-join mergeKey=m
    `);
  });

  test("a job can be joined until its results are published", () => {
    specify(`
      ${merged}
      reserve ada start            -> x#1; x RUNNING
      commit ada x publish=known   -> committed generation=1; x SUCCEEDED, a COMPLETED
      join m by=bob                -> job 1 joined
      published x                  -> published; j SUCCEEDED
      join m by=bob                -> REFUSED nothing-to-join mergeKey=m
    `);
  });

  test("it does not see jobs of other tenants and doors", () => {
    specify(`
      ${merged}
      join m tenant=other -> REFUSED nothing-to-join mergeKey=m
      join m door=side    -> REFUSED nothing-to-join mergeKey=m
      join n              -> REFUSED nothing-to-join mergeKey=n
    `);
  });

  test("its subscriber counts, raises the priority and keeps the job alive like all others", () => {
    const t = specify(`
      submit i prio=1 : b[y]                   -> job 1 new; y READY, b i RUNNING
      submit j merge=m by=ann grace=10s : a[x] -> job 2 new; x READY, a j RUNNING
      leave j ann                              -> left
      +5s                                      ->
      join m by=bob prio=-3                    -> job 2 joined
      +1m                                      ->
      join m by=cyd prio=5                     -> job 2 joined
      leave j bob                              -> left
      +1m                                      ->
      reserve ada n=2                          -> x#1 y#2; y x CLAIMED
      leave j cyd                              -> left
      +9s                                      ->
      +1s                                      -> y RETRY_PENDING, x a j CANCELLED
    `);
    equal(t.state.job(2).priority, 5);
  });

  test("K1: a request key is bound if the submission joins, and not otherwise", () => {
    specify(`
      join m key=k                      -> REFUSED nothing-to-join mergeKey=m
      ${merged}
      join m key=k                      -> job 1 joined
      join m key=k hash=h2              -> REFUSED key-reused key=k job=1
      cancel j                          -> phase=CANCELLING; x a j CANCELLED
      join m key=k                      -> job 1 known
      join m key=l                      -> REFUSED nothing-to-join mergeKey=m
      submit i key=l hash=h2 : a[y]     -> job 2 new; y READY, a i RUNNING
    `);
  });

  test("neither a full shard nor a full tenant queue refuses it", () => {
    new Transcript({ limits: { jobsMax: 1, tasksMax: 1 } }).specify(`
      tenant acme queued=1          -> changed
      ${merged}
      submit i merge=n : a[x]       -> REFUSED queue-full tenant=acme queuedMax=1 retryAfterMs=1000
      join m by=bob                 -> job 1 joined
      join n                        -> REFUSED nothing-to-join mergeKey=n
    `);
  });

  test("if it does not join, it leaves no trace", () => {
    const t = new Transcript();
    const joining = joinOf(["m", "key=k", "by=bob"]);
    const before = factsOf(t.state);
    const rejection = { kind: "nothing-to-join", mergeKey: "m" };
    deepEqual(t.do(joining), { ok: false, changes: 0, events: [], rejection });
    deepEqual(factsOf(t.state), before);
  });

  test("an older shard, which does not know the flag, refuses it as a submission without stages", () => {
    const t = new Transcript();
    t.say("submit j merge=m : a[x]");
    const { joinOnly: _unknown, ...older } = joinOf(["m"]);
    const outcome = t.do(older);
    equal(!outcome.ok && outcome.rejection.kind, "invalid");
    equal(t.state.jobs.size, 1);
  });

  const work = submitOf(["j", ":", "a[x]"]);
  for (const [what, wrong, rejection] of [
    ["no merge key", { mergeKey: undefined }, "mergeKey: is needed to say which job to join"],
    ["stages", { stages: work.stages }, whatItGoesWithout],
    ["what are no stages at all", { stages: undefined }, whatItGoesWithout],
    ["a deadline", { deadlineMs: 1 }, whatItGoesWithout],
    ["a lock", { lock: lockOf("l") }, whatItGoesWithout],
    ["results to take over", { reuse: [] }, whatItGoesWithout],
    ["a wish that is neither yes nor no", { joinOnly: "yes" }, "joinOnly: must be one of true, false"],
  ] as const)
    test(`with ${what} it is refused, whether or not there is a job to join`, () => {
      for (const line of ["tick", "submit j merge=m : a[x]"]) {
        const t = new Transcript();
        t.say(line);
        const outcome = t.do({ ...joinOf(["m"]), ...wrong } as unknown as Submit);
        ok(!outcome.ok && outcome.rejection.kind === "invalid");
        equal(`${outcome.rejection.path}: ${outcome.rejection.why}`, rejection);
      }
    });
});

describe("a full shard refuses before it is in trouble", () => {
  const full = (limits: object, text: string): void => new Transcript({ limits }).specify(text);

  test("limits on tenants, jobs, tasks and classes", () => {
    full(
      { tenantsMax: 1 },
      `
      submit j : a[x]              -> job 1 new; x READY, a j RUNNING
      submit i tenant=other : a[x] -> REFUSED shard-full what=tenants retryAfterMs=1000
      tenant other                 -> REFUSED shard-full what=tenants retryAfterMs=1000
    `,
    );
    full(
      { jobsMax: 1 },
      `
      submit j : a[x] -> job 1 new; x READY, a j RUNNING
      submit i : a[x] -> REFUSED shard-full what=jobs retryAfterMs=1000
      cancel j        -> phase=CANCELLING; x a j CANCELLED
      forget j        -> forgotten=1
      submit i : a[x] -> job 2 new; x READY, a i RUNNING
    `,
    );
    full({ tasksMax: 2 }, "submit j : a[x*3] -> REFUSED shard-full what=tasks retryAfterMs=1000");
    full(
      { classesMax: 1 },
      `
      submit j : a[x]         -> job 1 new; x READY, a j RUNNING
      submit i : a[x];on=gpu  -> REFUSED shard-full what=requirement classes retryAfterMs=1000
      submit h : a[y]         -> job 2 new; y READY, a h RUNNING
    `,
    );
    full(
      { executorsMax: 1 },
      `
      reserve ada -> nothing
      reserve bea -> REFUSED shard-full what=executors retryAfterMs=1000
      drain bea   -> REFUSED shard-full what=executors retryAfterMs=1000
    `,
    );
  });
});
