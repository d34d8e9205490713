import { deepEqual, equal, ok } from "node:assert/strict";
import { describe, test } from "node:test";
import type { Command } from "#kernel/model/command.ts";
import type { Event } from "#kernel/model/event.ts";
import { defaultLimits, type Limits } from "#kernel/model/limits.ts";
import type { Grant } from "#kernel/model/model.ts";
import type { Replies } from "#kernel/model/reply.ts";
import { createState } from "#kernel/model/state.ts";
import { answer } from "#kernel/read/answer.ts";
import { historyOf, noRows } from "#kernel/read/history.ts";
import type { JobView } from "#kernel/read/query.ts";
import { step } from "#kernel/step.ts";
import { checkState } from "#kernel/testing/check.ts";
import { resultReserve } from "#kernel/memory/weigh.ts";
import { digestOf, submitOf } from "#kernel/testing/commands.ts";

/** A shard that is driven by hand; its state is checked after each command. */
class Shard {
  readonly state;
  readonly events: Event[] = [];
  readonly rows = noRows();
  nowMs = 1_000_000;
  #nonce = 0;

  constructor(limits: Partial<Limits> = {}) {
    this.state = createState(0, { ...defaultLimits, ...limits });
  }

  try(command: Command) {
    const outcome = step(this.state, command, this.nowMs);
    for (const event of outcome.events) historyOf(this.state, event, this.rows);
    this.events.push(...outcome.events);
    deepEqual(checkState(this.state), []);
    return outcome;
  }

  act<T>(command: Command): T {
    const outcome = this.try(command);
    ok(outcome.ok, JSON.stringify(outcome));
    return outcome.reply as T;
  }

  submit(text: string): number {
    return this.act<Replies["submit"]>(submitOf(text.split(" "))).job;
  }

  reserve(executor: string, count = 1): readonly Grant[] {
    this.#nonce += 1;
    const given = { kind: "reserve", executor, offers: [], prefer: [], count, start: true } as const;
    return this.act<Replies["reserve"]>({ ...given, nonce: `n${this.#nonce}` }).grants;
  }

  commit(executor: string, { task, token }: Grant, payload = "p") {
    const result = { payload, digests: [] };
    const evidence = { digests: [], pinnedForMs: 0 };
    return this.try({ kind: "commit", executor, task, token, result, evidence });
  }

  manifest(letter = "m"): Replies["record-manifest"] {
    const [no = 0] = this.state.manifests.keys();
    const evidence = { digests: [digestOf(letter)], pinnedForMs: 1_000 };
    return this.act({ kind: "record-manifest", no, digest: digestOf(letter), evidence });
  }

  view(job: number): JobView {
    const answered = answer(this.state, { kind: "job", job }, this.nowMs);
    ok(answered.ok);
    return answered.answer as JobView;
  }

  pass(ms: number): void {
    this.nowMs += ms;
    for (let more = true; more;) ({ more } = this.act<Replies["tick"]>({ kind: "tick" }));
  }
}

describe("an array of tasks", () => {
  test("costs the same in the log and in memory, however many tasks it has", () => {
    const [small, large] = [10, 1_000_000].map((count) => {
      const shard = new Shard();
      shard.submit(`j : a[#${count}]`);
      return { log: JSON.stringify(shard.events).length, bytes: shard.state.bytes, tasks: shard.state.tasks.size };
    });
    ok(small && large && large.log - small.log <= 5, JSON.stringify([small, large]));
    equal(large.tasks, 64);
    ok(large.bytes < small.bytes + 60 * 400 + 1_000_000 * resultReserve, "results have memory set aside");
  });

  test("each task has its index and the shared spec, and is there once it is its turn", () => {
    const shard = new Shard({ arrayAheadMax: 2 });
    shard.submit("j : a[#5+10]");
    equal(shard.state.tasks.size, 2);
    const grants = shard.reserve("ada", 4);
    deepEqual(
      grants.map(({ index, key, spec }) => ({ index, key, spec })),
      [10, 11, 12, 13].map((index) => ({ index, key: String(index), spec: "do-one" })),
    );
    equal(shard.state.tasks.size, 5);
    equal(shard.view(1).stages[0]?.tasks, 5);
    equal(shard.view(1).tasks.length, 4, "those that run are shown");
  });

  test("completes with its manifest, which consumers get, and its results leave memory", () => {
    const shard = new Shard({ arrayAheadMax: 3 });
    shard.submit("j : a[#200] b[#2]<a c[?]<a");
    const all = shard.reserve("ada", 1_000);
    for (const grant of all) shard.commit("ada", grant, `result ${grant.key}`);
    equal(shard.view(1).stages[0]?.phase, "RUNNING", "it waits for its manifest");
    deepEqual(shard.reserve("ada", 5), [], "and so do its consumers");
    const before = shard.state.bytes;
    deepEqual(shard.manifest(), { recorded: true });
    ok(shard.state.bytes < before - 200 * 100, "the results have left memory");
    const [stage] = shard.view(1).stages;
    deepEqual([stage?.phase, stage?.done, stage?.manifest], ["COMPLETED", 200, digestOf("m")]);
    const [consumer, , planning] = shard.reserve("ada", 3);
    deepEqual(consumer?.manifests, [{ stage: "a", generation: 1, digest: digestOf("m") }]);
    const { task = 0, token = 0 } = planning ?? {};
    const inputs = answer(shard.state, { kind: "plan-inputs", task, token, limit: 10 }, shard.nowMs);
    ok(inputs.ok && "needs" in inputs.answer && "results" in inputs.answer);
    deepEqual([inputs.answer.needs[0]?.manifest, inputs.answer.results], [digestOf("m"), []]);
    equal(shard.rows.tasks.length, 1, "history has one row for all of them");
    deepEqual(shard.rows.tasks[0]?.digests, [digestOf("m")]);
  });

  test("a manifest that is not pinned is refused (K3), one that comes twice changes nothing", () => {
    const shard = new Shard();
    shard.submit("j : a[#1]");
    for (const grant of shard.reserve("ada")) shard.commit("ada", grant);
    const [no = 0] = shard.state.manifests.keys();
    const evidence = { digests: [], pinnedForMs: 0 };
    const refused = shard.try({ kind: "record-manifest", no, digest: digestOf("m"), evidence });
    ok(!refused.ok && refused.rejection.kind === "evidence-missing");
    deepEqual(shard.manifest(), { recorded: true });
    deepEqual(shard.manifest("n"), { recorded: false });
  });

  test("a repeated commit or failure gets its first answer, also when the task has left memory", () => {
    const shard = new Shard();
    shard.submit("j : a[#3];tries=1;retry=any;mayfail");
    const [one, two, three] = shard.reserve("ada", 3);
    ok(one && two && three);
    for (const grant of [one, three]) ok(shard.commit("ada", grant).ok);
    ok(shard.commit("ada", one).ok, "while the result is in memory");
    equal(shard.commit("ada", one, "another").ok, false);
    const fail = { kind: "fail", executor: "ada", reason: "user-failure", message: "m" } as const;
    ok(shard.try({ ...fail, task: two.task, token: two.token }).ok);
    ok(shard.try({ ...fail, task: two.task, token: two.token }).ok);
    equal(shard.try({ ...fail, task: two.task, token: two.token + 50 }).ok, false);
    shard.manifest();
    ok(shard.commit("ada", one).ok, "when the manifest has it");
    equal(shard.commit("ada", one, "another").ok, false);
  });

  test("a lost result runs again alone, and makes the next generation's manifest", () => {
    const shard = new Shard();
    shard.submit("j : a[#3] b[x]<a");
    for (const grant of shard.reserve("ada", 3)) shard.commit("ada", grant);
    shard.manifest();
    const [consumer] = shard.reserve("bea");
    equal(consumer?.stageName, "b");
    shard.act({ kind: "invalidate", task: 2, generation: 1, reason: "gone" });
    const again = shard.reserve("ada", 5);
    deepEqual(
      again.map(({ key, generation }) => [key, generation]),
      [["1", 2]],
    );
    const [lost] = again;
    ok(lost);
    shard.commit("ada", lost);
    equal([...shard.state.manifests.values()][0]?.manifest?.base, digestOf("m"));
    shard.manifest("n");
    deepEqual(shard.reserve("ada")[0]?.manifests, [{ stage: "a", generation: 2, digest: digestOf("n") }]);
  });

  test("failFast, cancelling and a passed queue deadline end the tasks that were never queued, in one step", () => {
    const fast = new Shard({ arrayAheadMax: 2 });
    fast.submit("j : a[#1000];failfast;tries=1;retry=any");
    const [grant] = fast.reserve("ada");
    ok(grant);
    const { task, token } = grant;
    fast.act({ kind: "fail", executor: "ada", task, token, reason: "user-failure", message: "m" });
    fast.manifest();
    equal(fast.view(1).phase, "FAILED");
    ok(fast.events.length < 12);
    const cancelled = new Shard();
    cancelled.act({ kind: "cancel", job: cancelled.submit("j : a[#1000000]"), reason: "r" });
    equal(cancelled.view(1).phase, "CANCELLED");
    const late = new Shard({ arrayAheadMax: 2 });
    late.submit("j : a[#1000];queue=3s;on=gpu");
    late.pass(10_000);
    late.manifest();
    deepEqual([late.view(1).phase, late.view(1).stages[0]?.failed], ["FAILED", 1_000]);
    equal(late.view(1).tasks[0]?.lastFailure?.message, "no executor took it within 3000 ms");
  });

  test("counts in the tenant's queue by what is queued ahead (ADR 0070)", () => {
    const shard = new Shard({ queuedMax: 100 });
    shard.submit("j : a[#1000000]");
    equal(shard.try(submitOf("i : a[x*50]".split(" "))).ok, false);
    shard.submit("i : a[x*30]");
  });

  test("K10: an array delays neither another tenant's single task nor, for long, a later job of its own", () => {
    const shard = new Shard();
    shard.submit("j : a[#100000]");
    shard.submit("i tenant=best : b[x]");
    shard.submit("k : c[x]");
    const keys = shard.reserve("ada", 100).map(({ stageName }) => stageName);
    ok(keys.indexOf("b") < 3);
    ok(keys.indexOf("c") <= 70);
  });

  test("is refused where the cluster cannot read it, and beyond its limits", () => {
    const shard = new Shard();
    shard.state.featureLevel = 2;
    equal(shard.try(submitOf("j : a[#5]".split(" "))).ok, false);
    equal(shard.try(submitOf("j : a[x];manifest".split(" "))).ok, false);
    shard.state.featureLevel = 3;
    equal(shard.try(submitOf("j : a[#1000001]".split(" "))).ok, false);
  });
});
