import { deepEqual, equal } from "node:assert/strict";
import { describe, test } from "node:test";
import type { Submit } from "./command.ts";
import { specify, Transcript } from "./transcript.ts";
import { stagesOf } from "./transcript-parse.ts";

describe("K1: a request key is bound to one job while it is kept", () => {
  test("the same request again is the same job, also when that has ended and is forgotten", () => {
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

  test("a key that is bound again before anyone swept goes to the end of the line and weighs once", () => {
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

  test("too many keys leave memory early, and what the journal knows of them counts like memory", () => {
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
  test("who comes later joins, and the one in most of a hurry sets the pace for all", () => {
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

  test("one who joins with a request key gets that job under the key for as long as keys are kept (K1)", () => {
    specify(`
      submit j merge=m : a[x]        -> job 1 new; x READY, a j RUNNING
      submit j merge=m key=k : a[x]  -> job 1 joined
      cancel j                       -> phase=CANCELLING; x a j CANCELLED
      submit j merge=m key=k : a[x]  -> job 1 known
    `);
  });

  test("when the last has left, the job is cancelled after the grace", () => {
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

  test("who comes back within the grace keeps the job alive", () => {
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

  test("one who joins without a name waits for ever", () => {
    specify(`
      submit j merge=m by=ann : a[x] -> job 1 new; x READY, a j RUNNING
      submit j merge=m : a[x]        -> job 1 joined
      leave j ann                    -> left
      +1m                            ->
    `);
  });
});

describe("a full shard says no before it is in trouble", () => {
  const full = (limits: object, text: string): void => new Transcript({ limits }).specify(text);

  test("tenants, jobs, tasks, memory and classes", () => {
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
    full({ stateBytesMax: 1_000 }, "submit j : a[x] -> REFUSED shard-full what=memory retryAfterMs=1000");
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
