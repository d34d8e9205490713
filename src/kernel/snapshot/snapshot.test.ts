import { deepEqual, equal, throws } from "node:assert/strict";
import { describe, test } from "node:test";
import { must } from "#base/assert.ts";
import { apply } from "#kernel/apply/apply.ts";
import { beginCapture } from "./capture.ts";
import { defaultLimits } from "#kernel/model/limits.ts";
import { Restorer } from "./restore.ts";
import type { State } from "#kernel/model/state.ts";
import { step } from "#kernel/step.ts";
import { submitOf } from "#kernel/testing/commands.ts";
import { Transcript } from "#kernel/testing/transcript.ts";
import { checkState } from "#kernel/testing/check.ts";
import { factsOf, snapshotOf } from "#kernel/testing/facts.ts";

function readBack(chunks: readonly string[], limits = defaultLimits, shard = 0): State {
  const restorer = new Restorer(shard, limits);
  for (const chunk of chunks) restorer.add(chunk);
  return restorer.finish();
}

describe("snapshots", () => {
  test("contain everything: claims, second attempts, void claims, locks, gates, keys, audiences, quotas", () => {
    const t = new Transcript();
    for (const line of [
      "tenant acme weight=2 running=9 queued=99",
      "lend acme to=3 want=1 for=1m",
      "submit i key=k merge=m by=ann grace=1s prio=3 spec=s : a[x,y,z@here];speculate b[?]<a",
      "submit j lock=l reuse=c.v pinned=v : c[?];lock=n d[w]<c;par=1",
      "submit k lock=l : e[u]",
      "reserve ada n=3 start",
      "reserve cyd",
      "signal j c go",
      "plan cyd c/plan wait=1m:no",
      "report ada x one two",
      "+1s",
      "commit ada x digests=d",
      "commit ada z",
      "+4s",
      "renew ada",
      "+5s",
      "reserve bea start",
      "commit bea y",
      "reserve bea",
      "fail bea b/plan out-of-memory",
      "+1m",
      "reserve bea",
      "fail bea b/plan preempted",
      "drain dot reason=moving",
    ])
      t.say(line);
    const back = readBack(snapshotOf(t.state));
    deepEqual(step(back, { kind: "resume", executor: "nobody" }, t.nowMs).events, []);
    deepEqual(checkState(back), []);
    deepEqual(factsOf(back), factsOf(t.state));
    const outOfMemory = (state: State): number[] => [...state.tasks.values()].map((task) => task.outOfMemory);
    deepEqual(outOfMemory(back), outOfMemory(t.state));
    deepEqual(new Set(outOfMemory(back)), new Set([0, 1]));
    deepEqual(snapshotOf(back).join(), snapshotOf(readBack(snapshotOf(back))).join());
  });

  test("hold the trace that a job was submitted with", () => {
    const t = new Transcript();
    t.do({ ...submitOf(["j", ":", "a[x]"]), trace: "00-trace" });
    t.say("submit i : a[y]");
    const back = readBack(snapshotOf(t.state));
    deepEqual(
      [...back.jobs.values()].map(({ trace }) => trace),
      ["00-trace", undefined],
    );
    deepEqual(checkState(back), []);
  });

  test("show the moment they began, whatever happens while they are written", () => {
    const t = new Transcript();
    t.say("submit i key=k : a[x*200] b[?]<a");
    t.say("submit j key=l : c[y]");
    t.say("reserve ada n=5 start");
    const before = factsOf(t.state);
    const capture = beginCapture(t.state);
    const chunks: string[] = [capture.next(1) ?? ""];
    const at = t.events.length;
    for (const line of [
      "commit ada x1",
      "cancel j",
      "forget j",
      "submit h key=m : f[w]",
      "fail ada x2 preempted",
      "+1s",
    ]) {
      t.say(line);
      chunks.push(capture.next(1) ?? "[]");
    }
    for (let chunk = capture.next(500); chunk !== undefined; chunk = capture.next(500)) chunks.push(chunk);
    // A key that was bound since may already be in it; replaying the log binds it to the same job again.
    const withoutNewKeys = (facts: string[]): string[] => facts.filter((fact) => !fact.includes("\\u0000m"));
    deepEqual(withoutNewKeys(factsOf(readBack(chunks))), before);
    const back = readBack(chunks);
    for (const event of t.events.slice(at)) apply(back, event);
    deepEqual(factsOf(back), factsOf(t.state));
    equal(back.bytes, t.state.bytes);
  });

  test("K2: show how many second attempts a stage had when they began", () => {
    const t = new Transcript();
    const { stages, ...submit } = submitOf(["j", ":", "a[x,y,z];speculate"]);
    const speculation = { percentile: 30, factorPercent: 150, slots: 1 };
    const ruled = stages.map((stage) => {
      const set = must(stage.tasks, "tasks");
      return { ...stage, tasks: { ...set, template: { ...set.template, speculation } } };
    });
    t.do({ ...submit, stages: ruled });
    for (const line of ["reserve ada n=3 start", "+100ms", "commit ada x"]) t.say(line);
    const spares = (state: State): number | undefined => state.job(1).stages[0]?.pace?.spares;
    for (let begun = 0; begun < 2; begun += 1) {
      const [capture, was, at] = [beginCapture(t.state), spares(t.state), t.events.length];
      // First a second attempt is offered, then it is lost.
      const straggler = t.state.tasks.values().find(({ speculated }) => speculated);
      t.say(straggler ? `fail ada ${straggler.plan.key} preempted` : "+2s");
      const chunks: string[] = [];
      for (let chunk = capture.next(500); chunk !== undefined; chunk = capture.next(500)) chunks.push(chunk);
      equal(spares(t.state), begun === 0 ? 1 : 0);
      const back = readBack(chunks);
      equal(spares(back), was);
      for (const event of t.events.slice(at)) apply(back, event);
      equal(spares(back), spares(t.state));
    }
  });

  test("K1: keys that leave memory while a snapshot is written are not lost", () => {
    const t = new Transcript({ limits: { keysInMemoryMax: 2 } });
    for (const key of ["k", "l", "m", "n"]) t.say(`submit j key=${key} : a[x]`);
    const capture = beginCapture(t.state);
    t.say("tick");
    const chunks: string[] = [];
    for (let chunk = capture.next(500); chunk !== undefined; chunk = capture.next(500)) chunks.push(chunk);
    const back = readBack(chunks, t.state.limits);
    const isKnown = (key: string): boolean =>
      back.keysElsewhereUntilMs > t.nowMs || [...back.keys.keys()].some((known) => known.endsWith(key));
    deepEqual(["k", "l", "m", "n"].map(isKnown), [true, true, true, true]);
    t.say("tick");
    equal(t.state.keys.size, 2);
  });

  test("an abandoned snapshot costs nothing more, and the next one starts from the beginning", () => {
    const t = new Transcript();
    t.say("submit i : a[x,y]");
    const capture = beginCapture(t.state);
    capture.next(1);
    capture.abort();
    equal(t.state.capture, undefined);
    t.say("reserve ada");
    deepEqual(factsOf(readBack(snapshotOf(t.state))), factsOf(t.state));
  });

  test("an older snapshot, without the out-of-memory count, derives it from how the last attempt ended", () => {
    const older = (...ends: readonly string[]): number | undefined => {
      const t = new Transcript();
      t.say("submit i : a[x];tries=9");
      for (const end of ends) for (const line of ["reserve ada", `fail ada x ${end}`, "+1m"]) t.say(line);
      equal(t.task("x").outOfMemory, ends.filter((end) => end === "out-of-memory").length);
      const chunks = snapshotOf(t.state).map((chunk) => chunk.replace(/,"outOfMemory":\d+/, ""));
      return [...readBack(chunks).tasks.values()][0]?.outOfMemory;
    };
    deepEqual([older("out-of-memory"), older("preempted"), older("preempted", "out-of-memory")], [1, 0, 1]);
  });

  test("text that is not a snapshot is refused", () => {
    throws(() => readBack([]), /read a snapshot: corrupt .*it has no header/);
    throws(() => readBack(['[["H",99,{"shard":0}]]']), /read a snapshot: corrupt \(version=99/);
    const t = new Transcript();
    throws(() => readBack(snapshotOf(t.state), defaultLimits, 5), /corrupt .*wantedShard=5/);
    throws(() => readBack(['[["?"]]']), /corrupt \(row=\?\)/);
    throws(() => readBack(["{"]), SyntaxError);
  });
});
