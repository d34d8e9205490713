import { deepEqual, equal, ok } from "node:assert/strict";
import { describe, test } from "node:test";
import { apply } from "#kernel/apply/apply.ts";
import type { Submit } from "#kernel/model/command.ts";
import type { Claim } from "#kernel/model/entities.ts";
import { specify, Transcript } from "#kernel/testing/transcript.ts";
import { stagesOf } from "#kernel/testing/parse.ts";
import { listedIn } from "#kernel/model/task-set.ts";

/** Which tenant each grant went to, one letter per grant. */
function turns(t: Transcript, count: number): string {
  let letters = "";
  for (let i = 0; i < count; i += 1) {
    const outcome = t.do({
      kind: "reserve",
      executor: `e${i}`,
      offers: [],
      prefer: [],
      count: 1,
      start: true,
      nonce: `n${t.events.length}`,
    });
    letters += outcome.ok && "grants" in outcome.reply ? (outcome.reply.grants[0]?.tenant ?? "-") : "!";
  }
  return letters;
}

function commit(t: Transcript, { token, executor, task }: Claim): void {
  const result = { payload: "", digests: [] };
  const evidence = { digests: [], pinnedForMs: 0 };
  t.do({ kind: "commit", executor: executor.id, task: task.no, token, result, evidence });
}

describe("K10: fair shares between tenants", () => {
  test("one tenant's ten thousand tasks do not delay another's single one", () => {
    const t = new Transcript();
    t.say("submit j tenant=a : s[x*10000]");
    equal(turns(t, 5), "aaaaa");
    t.say("submit i tenant=b : s[y]");
    equal(turns(t, 3), "baa");
  });

  test("shares follow the weights", () => {
    const t = new Transcript();
    t.say("tenant a weight=3");
    t.say("tenant b weight=1");
    t.say("submit j tenant=a : s[x*40]");
    t.say("submit i tenant=b : s[y*40]");
    const got = turns(t, 40);
    equal(got.split("a").length - 1, 30);
    ok(!got.includes("bb") && !got.includes("aaaaa"), got);
  });

  test("also across different classes of work, and when the weight changes in between", () => {
    const t = new Transcript();
    t.say("submit j tenant=a : s[x*20] r[w*20];kind=other");
    t.say("submit i tenant=b : s[y*40]");
    equal(turns(t, 10).split("a").length - 1, 5);
    t.say("tenant b weight=4");
    // They hold five each; when everything is granted, a should have six and b twenty-four.
    equal(turns(t, 20).split("b").length - 1, 19);
  });

  test("the tenant that holds less goes first, however much either was served before", () => {
    const t = new Transcript();
    t.say("submit j tenant=a : s[x*100]");
    turns(t, 50);
    t.say("submit i tenant=b : s[y*100]");
    equal(turns(t, 50), "b".repeat(50));
    equal(turns(t, 4).split("b").length - 1, 2);
  });

  test("tenants that hold the same take turns; rest earns no credit, and past use does not count", () => {
    const t = new Transcript();
    const take = (count: number): string => {
      let letters = "";
      for (let i = 0; i < count; i += 1) {
        letters += turns(t, 1);
        for (const task of t.state.tasks.values()) if (task.claim) commit(t, task.claim);
      }
      return letters;
    };
    t.say("submit j tenant=a : s[x*100]");
    equal(take(30), "a".repeat(30));
    t.say("submit i tenant=b : s[y*100]");
    const got = take(20);
    ok(!got.includes("aa") && !got.includes("bb"), got);
  });

  test("long work fills its share of the fleet, not all of it", () => {
    const t = new Transcript();
    t.say("submit j tenant=a : s[x*100];lease=1h");
    t.say("submit i tenant=b : s[y*500];lease=1h");
    // Ten slots; b's work ends at once, a's goes on: a gets half of the slots and no more.
    turns(t, 10);
    const running = (): Claim | undefined =>
      [...t.state.tasks.values()].find(({ claim, stage }) => claim && stage.job.tenant.name === "b")?.claim;
    for (let claim = running(), left = 100; claim && left > 0; claim = running(), left -= 1) {
      commit(t, claim);
      turns(t, 1);
    }
    equal(t.state.tenants.get("a")?.running, 5);
  });

  test("within a tenant priority goes first, then age, also across classes; a retry keeps its turn", () => {
    specify(`
      submit h : a[x1]               -> job 1 new; x1 READY, a h RUNNING
      submit i prio=5 : a[y1];on=gpu -> job 2 new; y1 READY, a i RUNNING
      submit j prio=5 : a[z1]        -> job 3 new; z1 READY, a j RUNNING
      submit k prio=-5 : a[w1]       -> job 4 new; w1 READY, a k RUNNING
      submit l : a[x2];on=gpu        -> job 5 new; x2 READY, a l RUNNING
      reserve ada n=2 offers=gpu     -> y1#1 z1#2; y1 z1 CLAIMED
      release ada z1                 -> released; z1 READY
      reserve ada n=9 offers=gpu     -> z1#3 x1#4 x2#5 w1#6; x1 z1 w1 x2 CLAIMED
    `);
  });
});

describe("matching", () => {
  test("an executor gets only work whose labels it offers in full", () => {
    specify(`
      submit j : a[x];on=arm+gpu b[y];on=gpu c[z] -> job 1 new; x y z READY, a b c j RUNNING
      reserve ada n=9                             -> z#1; z CLAIMED
      reserve bea n=9 offers=gpu+big              -> y#2; y CLAIMED
      reserve cyd n=9 offers=gpu                  -> nothing
      reserve dot n=9 offers=arm+big+gpu          -> x#3; x CLAIMED
    `);
  });

  test("labels are compared as a whole, whatever characters they contain", () => {
    const t = new Transcript();
    const [stage] = stagesOf(["a[x]"]);
    const submit = (kind: string, requires: string[]): void => {
      const template = { ...stage!.tasks!.template, kind, requires };
      const command: Submit = {
        kind: "submit",
        tenant: "acme",
        door: "front",
        name: "j",
        payloadHash: "h",
        priority: 0,
        spec: "",
        stages: [{ ...stage!, tasks: { template, tasks: listedIn(stage!.tasks) } }],
        deadlineMs: 1_000,
      };
      equal(t.do(command).ok, true);
    };
    submit("run", ["a", "b"]);
    submit("run", ["a,b"]);
    submit("k", ["a|5"]);
    submit("k|a", ["5"]);
    deepEqual(
      [...t.state.tasks.values()].map(({ template }) => [template.kind, ...template.requires].join(" ")),
      ["run a b", "run a,b", "k a|5", "k|a 5"],
    );
  });

  test("a preferred task is searched for a little beyond the head of the queue", () => {
    specify(`
      submit j : a[x*3,y@here,z@there,w@here] -> job 1 new; x1 x2 x3 y z w READY, a j RUNNING
      reserve ada n=3 prefer=here             -> y#1 w#2 x1#3; x1 y w CLAIMED
      reserve bea n=2 prefer=nowhere,there    -> z#4 x2#5; x2 z CLAIMED
    `);
    specify(`
      submit j : a[x*20,y@here]   -> job 1 new; 21 READY, a j RUNNING
      reserve ada prefer=here     -> x1#1; x1 CLAIMED
    `);
  });

  test("an executor of one tenant serves that tenant only", () => {
    specify(`
      submit i tenant=a : s[x]   -> job 1 new; x READY, s i RUNNING
      submit j tenant=b : s[y]   -> job 2 new; y READY, s j RUNNING
      reserve ada n=9 tenant=b   -> y#1; y CLAIMED
      reserve ada n=9 tenant=c   -> nothing
      reserve bea n=9            -> x#2; x CLAIMED
    `);
  });

  test("classes without work are removed, and come back", () => {
    const t = new Transcript();
    for (let i = 0; i < 1_200; i += 1) {
      t.say(`submit j : a[x];on=label${i}`);
      t.do({ kind: "cancel", job: i + 1, reason: "" });
      t.do({ kind: "forget", jobs: [i + 1] });
    }
    equal(t.state.ready.classes, 0);
    t.say("submit j : a[x];on=label7");
    equal(t.say("reserve ada offers=label7"), "x#1; x CLAIMED");
  });
});

describe("quotas", () => {
  test("of running work: a limited number of claims at once, and the next when one has ended", () => {
    specify(`
      tenant acme running=2   -> changed
      tenant acme running=2   -> not-changed
      submit j : a[x,y,z]     -> job 1 new; x y z READY, a j RUNNING
      reserve ada n=9 start   -> x#1 y#2; x y RUNNING
      reserve bea n=9         -> nothing
      commit ada x            -> committed generation=1; x SUCCEEDED
      reserve bea n=9         -> z#3; z CLAIMED
      release bea z           -> released; z READY
      tenant acme running=1   -> changed
      reserve bea n=9         -> nothing
      tenant acme             -> changed
      reserve bea n=9         -> z#4; z CLAIMED
    `);
  });

  test("a tenant at its limit does not block others", () => {
    specify(`
      tenant a running=1         -> changed
      submit i tenant=a : s[x,y] -> job 1 new; x y READY, s i RUNNING
      submit j tenant=b : s[z]   -> job 2 new; z READY, s j RUNNING
      reserve ada n=9            -> x#1 z#2; x z CLAIMED
      reserve ada n=9 tenant=a   -> nothing
    `);
  });

  test("of queued work: a full queue refuses with a hint, and accepts more when tasks have left it", () => {
    specify(`
      tenant acme queued=2 -> changed
      submit i : a[x,y,z]  -> REFUSED queue-full tenant=acme queuedMax=2 retryAfterMs=1000
      submit j : a[x] b[?] -> job 1 new; x b/plan READY, a RUNNING, b READY, j RUNNING
      submit k : a[z]      -> REFUSED queue-full tenant=acme queuedMax=2 retryAfterMs=1000
      reserve ada          -> x#1; x CLAIMED
      submit k : a[z]      -> job 2 new; z READY, a k RUNNING
    `);
  });

  const pair = (): { home: Transcript; away: Transcript } => {
    const home = new Transcript({ shard: 0 });
    const away = new Transcript({ shard: 1 });
    for (const one of [home, away]) one.say("tenant acme running=4 home=0");
    return { home, away };
  };

  test("over shards: the home shard lends slots for a while, and has that many fewer itself", () => {
    const { home, away } = pair();
    away.specify(`
      submit j : a[x*9]                    -> job 1 new; 9 READY, a j RUNNING
      reserve ada n=9                      -> nothing
      take acme slots=3 for=10s            -> slots=3
      reserve ada n=9 start                -> x1#1 x2#2 x3#3; x1 x2 x3 RUNNING
    `);
    home.specify(`
      submit j : a[x*9]                    -> job 1 new; 9 READY, a j RUNNING
      lend acme to=1 want=3 for=10s        -> slots=2 forMs=10000 slice=1000000
      reserve ada n=9                      -> x1#1 x2#2; x1 x2 CLAIMED
      lend acme to=1 want=9 running=2      -> slots=2 forMs=10000 slice=1000001
      lend acme to=2 want=9                -> slots=0 forMs=10000 slice=1000002
      +10s                                 -> x1 x2 RETRY_PENDING
      +1s                                  -> x1 x2 READY
      reserve ada n=9                      -> x1#3 x2#4 x3#5 x4#6; x1 x2 x3 x4 CLAIMED
    `);
    away.specify(`
      renew ada                            -> held x1#1 x2#2 x3#3 lost -
      +9s                                  ->
      renew ada                            -> held x1#1 x2#2 x3#3 lost -
      +2s                                  ->
      commit ada x1                        -> committed generation=1; x1 SUCCEEDED
      reserve ada n=9                      -> nothing
      take acme slots=4 for=10s            -> slots=4
      reserve ada n=9                      -> x4#4 x5#5; x4 x5 CLAIMED
    `);
  });

  test("an expired slice no longer counts, even before a tick has noticed", () => {
    const { away } = pair();
    away.specify(`
      submit j : a[x*9]            -> job 1 new; 9 READY, a j RUNNING
      take acme slots=2 for=500ms  -> slots=2
      reserve ada                  -> x1#1; x1 CLAIMED
    `);
    away.nowMs += 501;
    away.specify("reserve ada -> nothing");
  });

  test("a home shard without work lends everything; fewer slots count once the borrower must know", () => {
    const { home } = pair();
    home.specify(`
      lend acme to=1 want=9             -> slots=4 forMs=10000 slice=1000000
      lend acme to=2 want=9             -> slots=0 forMs=10000 slice=1000001
      +5s                               ->
      lend acme to=1 want=0 running=3   -> slots=3 forMs=10000 slice=1005000
      lend acme to=2 want=9             -> slots=0 forMs=10000 slice=1005001
      +5s                               ->
      lend acme to=2 want=9             -> slots=1 forMs=10000 slice=1010000
      lend acme to=1 want=1 running=1   -> slots=1 forMs=10000 slice=1010001
      lend acme to=2 want=9 running=1   -> slots=1 forMs=10000 slice=1010002
      +5s                               ->
      lend acme to=2 want=9 running=1   -> slots=2 forMs=10000 slice=1015000
    `);
  });

  test("slots that a borrower gives back are lent to others as soon as it confirms the smaller slice", () => {
    const { home } = pair();
    home.specify(`
      lend acme to=1 want=4                       -> slots=4 forMs=10000 slice=1000000
      lend acme to=1 want=0 running=1             -> slots=1 forMs=10000 slice=1000001
      # Until it has taken the smaller slice it may use the larger one.
      lend acme to=2 want=9                       -> slots=0 forMs=10000 slice=1000002
      # Meanwhile it has granted one more under the larger one: that is covered.
      lend acme to=1 want=0 running=2 holds=1000001 -> slots=2 forMs=10000 slice=1000003
      lend acme to=2 want=9                       -> slots=2 forMs=10000 slice=1000004
    `);
  });

  test("a borrower that needs no quota any more leaves all of it to the others, including its fair part", () => {
    const { home } = pair();
    home.specify(`
      lend acme to=1 want=4                    -> slots=4 forMs=10000 slice=1000000
      lend acme to=1 want=0                    -> slots=0 forMs=0 slice=1000001
      lend acme to=2 want=4                    -> slots=0 forMs=10000 slice=1000002
      lend acme to=1 want=0 holds=1000001      -> slots=0 forMs=0 slice=1000003
      lend acme to=2 want=4                    -> slots=4 forMs=10000 slice=1000004
    `);
    equal(home.state.tenants.get("acme")?.lent.size, 1);
  });

  test("the slice that a borrower confirmed counts until the borrower confirms the next one", () => {
    const { home } = pair();
    home.specify(`
      lend acme to=1 want=4               -> slots=4 forMs=10000 slice=1000000
      lend acme to=1 want=2               -> slots=2 forMs=10000 slice=1000001
      lend acme to=1 want=1 holds=1000001 -> slots=1 forMs=10000 slice=1000002
      lend acme to=2 want=9 running=4     -> slots=2 forMs=10000 slice=1000003
    `);
  });

  test("the home shard continues its own work when its slots come back", () => {
    const { home } = pair();
    home.specify(`
      lend acme to=1 want=4               -> slots=4 forMs=10000 slice=1000000
      submit j : a[x*9]                   -> job 1 new; 9 READY, a j RUNNING
      reserve ada n=9                     -> nothing
      lend acme to=1 want=0               -> slots=0 forMs=0 slice=1000001
      reserve ada n=9                     -> nothing
      lend acme to=1 want=0 holds=1000001 -> slots=0 forMs=0 slice=1000002
      reserve ada n=9                     -> x1#1 x2#2 x3#3 x4#4; x1 x2 x3 x4 CLAIMED
    `);
  });

  test("a delayed message does not take back slots that were lent after it was sent", () => {
    const { home } = pair();
    home.specify(`
      lend acme to=1 want=1               -> slots=1 forMs=10000 slice=1000000
      lend acme to=1 want=4               -> slots=4 forMs=10000 slice=1000001
      lend acme to=1 want=0 holds=1000000 -> slots=0 forMs=0 slice=1000002
      lend acme to=2 want=9               -> slots=0 forMs=10000 slice=1000003
    `);
  });

  test("slices without a number, from an older version, count until they expire", () => {
    const { home } = pair();
    apply(home.state, { kind: "quota-lent", tenant: "acme", borrower: 1, slots: 3, untilMs: home.nowMs + 10_000 });
    home.specify(`
      lend acme to=1 want=0 holds=1000009 -> slots=0 forMs=0 slice=1000000
      lend acme to=2 want=9               -> slots=1 forMs=10000 slice=1000001
      +10s                                ->
      lend acme to=2 want=9               -> slots=4 forMs=10000 slice=1010000
    `);
  });

  test("expired slices are not kept", () => {
    const { home } = pair();
    for (const want of [4, 3, 2, 1]) {
      home.say(`lend acme to=1 want=${want} for=1s`);
      home.say("+2s");
    }
    equal(home.state.tenants.get("acme")?.lent.get(1)?.length, 1);
  });

  test("only the home shard of a tenant with a quota lends, and not to itself", () => {
    const { home, away } = pair();
    away.specify("lend acme to=2 want=1 -> REFUSED invalid path=tenant why=this shard lends no quota for the tenant");
    home.specify(`
      lend acme to=0 want=1  -> REFUSED invalid path=tenant why=this shard lends no quota for the tenant
      lend other to=1 want=1 -> REFUSED invalid path=tenant why=this shard lends no quota for the tenant
      take other slots=1     -> REFUSED invalid path=tenant why=not known in this shard
    `);
  });
});
