import { deepEqual, equal } from "node:assert/strict";
import { describe, test } from "node:test";
import type { JobLine, Query } from "#kernel/read/query.ts";
import type { Submit } from "#kernel/model/command.ts";
import type { Tag } from "#kernel/model/model.ts";
import { Restorer } from "#kernel/snapshot/restore.ts";
import { submitOf, tagsOf } from "#kernel/testing/commands.ts";
import { factsOf, snapshotOf } from "#kernel/testing/facts.ts";
import { specify, Transcript } from "#kernel/testing/transcript.ts";

const listed = (t: Transcript, query: Partial<Extract<Query, { kind: "jobs" }>>): number[] =>
  (t.ask({ kind: "jobs", limit: 100, ...query }) as { jobs: JobLine[] }).jobs.map(({ job }) => job);

describe("tags", () => {
  const script = `
    submit a tags=branch:main,repo:mill : s[x]              -> job 1 new; x READY, s a RUNNING
    submit b tags=branch:dev,repo:mill : s[y]               -> job 2 new; y READY, s b RUNNING
    submit c tags=branch:main,repo:mill tenant=other : s[z] -> job 3 new; z READY, s c RUNNING
    submit d : s[w]                                         -> job 4 new; w READY, s d RUNNING
    submit e tags=branch:main,repo:race : s[v]              -> job 5 new; v READY, s e RUNNING
  `;

  test("jobs are listed by all tags that are asked for, newest first, of one tenant or all", () => {
    const t = specify(script);
    deepEqual(listed(t, { tags: tagsOf("branch:main"), tenant: "acme" }), [5, 1]);
    deepEqual(listed(t, { tags: tagsOf("branch:main,repo:mill"), tenant: "acme" }), [1]);
    deepEqual(listed(t, { tags: tagsOf("branch:main") }), [5, 3, 1]);
    deepEqual(listed(t, { tags: tagsOf("branch:main"), tenant: "acme", limit: 1 }), [5]);
    deepEqual(listed(t, { tags: tagsOf("branch:main"), tenant: "acme", before: 5 }), [1]);
    deepEqual(listed(t, { tags: tagsOf("branch:none"), tenant: "acme" }), []);
    deepEqual(listed(t, { tags: tagsOf("repo:mill"), tenant: "nobody" }), []);
    deepEqual(listed(t, {}), [5, 4, 3, 2, 1]);
  });

  test("and by phase and time of submission", () => {
    const t = new Transcript();
    const startMs = t.nowMs;
    t.specify("submit a tags=repo:mill : s[x] -> job 1 new; x READY, s a RUNNING");
    t.specify("+1s ->");
    t.specify("submit b tags=repo:mill : s[y] -> job 2 new; y READY, s b RUNNING");
    t.say("cancel a");
    const tags = tagsOf("repo:mill");
    deepEqual(listed(t, { tags, phase: "CANCELLED" }), [1]);
    deepEqual(listed(t, { tags, phase: "RUNNING" }), [2]);
    deepEqual(listed(t, { phase: "CANCELLED" }), [1]);
    deepEqual(listed(t, { tags, fromMs: startMs + 1 }), [2]);
    deepEqual(listed(t, { tags, toMs: startMs + 1 }), [1]);
    t.specify("forget a -> forgotten=1");
    deepEqual(listed(t, { tags }), [2]);
  });

  test("a job shows its tags, and a snapshot keeps them", () => {
    const t = specify(script);
    deepEqual((t.ask({ kind: "job", job: 1 }) as { tags: readonly Tag[] }).tags, tagsOf("branch:main,repo:mill"));
    const restorer = new Restorer(0, t.state.limits);
    for (const chunk of snapshotOf(t.state)) restorer.add(chunk);
    const state = restorer.finish();
    deepEqual(factsOf(state), factsOf(t.state));
    deepEqual([...state.tagged.having("acme", tagsOf("repo:race"))], [state.jobs.get(5)]);
  });

  const refused = (part: Partial<Submit>, featureLevel?: number): string => {
    const t = new Transcript();
    if (featureLevel !== undefined) t.state.featureLevel = featureLevel;
    const outcome = t.do({ ...submitOf(["j", ":", "a[x]"]), ...part });
    return outcome.ok ? "taken" : `${outcome.rejection.kind} ${JSON.stringify(outcome.rejection)}`;
  };

  test("are few, short, plain and sorted", () => {
    const many = Array.from({ length: 17 }, (_, i) => ({ name: `n${String(i).padStart(2, "0")}`, value: "v" }));
    const cases: [unknown, string][] = [
      [many, "limit"],
      [[{ name: "x".repeat(65), value: "v" }], "limit"],
      [[{ name: "n", value: "v".repeat(257) }], "limit"],
      [[{ name: "", value: "v" }], "invalid"],
      [[{ name: "a=b", value: "v" }], "invalid"],
      [[{ name: "n", value: "v\u0000" }], "invalid"],
      [[{ name: "n", value: 7 }], "invalid"],
      [[null], "invalid"],
      ["n=v", "invalid"],
      [tagsOf("b:1,a:2"), "invalid"],
      [tagsOf("a:1,a:2"), "invalid"],
      [many.slice(1), "taken"],
    ];
    for (const [tags, outcome] of cases)
      equal(refused({ tags: tags as readonly Tag[] }).split(" ")[0], outcome, JSON.stringify(tags));
  });

  test("are refused while a member of the cluster could not read them", () => {
    equal(refused({ tags: tagsOf("a:1") }, 2).includes("needs feature level 3, the cluster is at 2"), true);
    equal(refused({ series: "s" }, 2).split(" ")[0], "invalid");
    equal(refused({ tags: tagsOf("a:1"), series: "s" }, 3), "taken");
    equal(refused({}, 2), "taken");
  });
});

describe("series", () => {
  test("give each number once, in order, to new jobs only", () => {
    specify(`
      submit a series=ci key=k : s[x]     -> job 1 new no=1; x READY, s a RUNNING
      submit a series=ci key=k : s[x]     -> job 1 known no=1
      submit b series=ci merge=m : s[y]   -> job 2 new no=2; y READY, s b RUNNING
      submit c series=ci merge=m : s[z]   -> job 2 joined no=2
      submit d series=other : s[z]        -> job 3 new no=1; z READY, s d RUNNING
      submit e : s[w]                     -> job 4 new; w READY, s e RUNNING
      submit f series=ci : s[v]           -> job 5 new no=3; v READY, s f RUNNING
      submit g series=ci tenant=two : s[u] -> job 6 new no=1; u READY, s g RUNNING
      submit h series=ci door=side : s[t] -> job 7 new no=1; t READY, s h RUNNING
    `);
  });

  test("go on when their jobs are forgotten, over a snapshot and a replay", () => {
    const t = specify(`
      submit a series=ci key=k : s[x] -> job 1 new no=1; x READY, s a RUNNING
      cancel a                        -> phase=CANCELLING; x s a CANCELLED
      forget a                        -> forgotten=1
      submit a series=ci key=k : s[x] -> job 1 known
      submit b series=ci : s[y]       -> job 2 new no=2; y READY, s b RUNNING
    `);
    const restorer = new Restorer(0, t.state.limits);
    for (const chunk of snapshotOf(t.state)) restorer.add(chunk);
    const state = restorer.finish();
    equal(state.series.last("acme", "front", "ci"), 2);
    equal(state.bytes, t.state.bytes);
  });

  test("are limited per tenant; a known series goes on", () => {
    specify(
      `
      submit a series=one : s[x]             -> job 1 new no=1; x READY, s a RUNNING
      submit b series=two : s[y]             -> job 2 new no=1; y READY, s b RUNNING
      submit c series=three : s[z]           -> REFUSED limit what=series of the tenant limit=2 got=3
      submit d series=one : s[z]             -> job 3 new no=2; z READY, s d RUNNING
      submit e series=three tenant=b : s[v]  -> job 4 new no=1; v READY, s e RUNNING
    `,
      { seriesMax: 2 },
    );
  });
});
