import { deepEqual, equal, match, throws } from "node:assert/strict";
import { describe, test } from "node:test";
import fc from "fast-check";
import { isFault } from "#base/fault.ts";
import { commandJob, planGate, planSubmit } from "./plan.ts";
import { ShellJob } from "./request.ts";
import { viewBesides, viewWhy } from "#door/view.ts";

const wishes = { tenant: "t", unique: "u" };
const job = (more: object = {}, stage: object = {}): ShellJob =>
  ShellJob.parse({ stages: [{ name: "s", sleep: "1s", ...stage }], ...more });

describe("a job file", () => {
  test("is read strictly: what is not known, or says too much or too little, is refused with its place", () => {
    const problems = (value: unknown): string =>
      ShellJob.safeParse(value)
        .error?.issues.map(({ path, message }) => `${path.join(".")}: ${message}`)
        .join("; ") ?? "none";
    equal(problems({ stages: [{ name: "a", sleep: "1s", nedes: [] }] }), 'stages.0: Unrecognized key: "nedes"');
    equal(problems({ stages: [{ name: "a" }] }), "stages.0: say what to do: run, sleep, fail or gate");
    equal(
      problems({ stages: [{ name: "a", run: "x", sleep: "1s" }] }),
      "stages.0: say one of run, sleep and fail, not several",
    );
    equal(
      problems({ stages: [{ name: "a", sleep: "5 minutes" }] }).startsWith("stages.0.sleep: write a number and a unit"),
      true,
    );
  });

  test("may name stages in any order, but not stages that are not there", () => {
    const order = planSubmit(
      ShellJob.parse({
        stages: [
          { name: "b", sleep: "1s", needs: ["a"] },
          { name: "a", sleep: "1s" },
        ],
      }),
      wishes,
    );
    deepEqual(
      order.stages.map(({ needs }) => needs),
      [[1], []],
    );
    throws(
      () => planSubmit(job({}, { needs: ["c"] }), wishes),
      (e) => isFault(e, "invalid"),
    );
  });

  test("can be a plain command line", () => {
    const { name, stages } = ShellJob.parse(commandJob(["echo", "hello $USER"]));
    deepEqual([name, stages[0]?.run], ["echo 'hello $USER'", ["echo", "hello $USER"]]);
  });

  test("is called by its command line as typed, on one line and within bounds", () => {
    const nameOf = (...command: readonly string[]): string => ShellJob.parse(commandJob(command)).name;
    equal(nameOf("sh", "-c", "sleep 8; echo done"), "sh -c 'sleep 8; echo done'");
    equal(nameOf("make", "-j2", "CC=gcc", "./all"), "make -j2 CC=gcc ./all");
    equal(nameOf("echo", "it's", ""), "echo 'it'\\''s' ''");
    equal(nameOf("printf", "a\nb\u001b[31m"), "printf 'a b [31m'");
    equal(nameOf("x".repeat(500)).length, 200);
    fc.assert(fc.property(fc.array(fc.string({ unit: "binary" }), { minLength: 1 }), (words) => void nameOf(...words)));
  });
});

describe("the shard key", () => {
  test("ties together what shares a key, a merge or a lock; what shares nothing is spread", () => {
    equal(planSubmit(job(), wishes).shardKey, "t/u");
    equal(planSubmit(job(), { ...wishes, key: "k" }).shardKey, "t/key k");
    equal(planSubmit(job(), { ...wishes, merge: "m" }).shardKey, "t/merge m");
    equal(planSubmit(job({ lock: { name: "l" } }), wishes).shardKey, "t/lock l");
    equal(planSubmit(job({ group: "g", lock: { name: "l" } }), { ...wishes, key: "k" }).shardKey, "t/group g");
  });

  test("K1: several ties without a group are refused: one of them would be looked up in the wrong place", () => {
    throws(
      () => planSubmit(job({ lock: { name: "l" } }), { ...wishes, key: "k" }),
      (e) => isFault(e, "invalid"),
    );
  });
});

describe("a gate", () => {
  const inputs = (...signals: string[]) => ({
    spec: JSON.stringify(job({}, { gate: {} })),
    stage: "s",
    generation: 1,
    needs: [],
    signals: signals.map((name, i) => ({ id: String(i), name, payload: "" })),
    results: [],
    next: undefined,
  });

  test("waits, goes on, or fails; the first word counts", () => {
    equal(planGate(inputs()).kind, "wait");
    equal(planGate(inputs("hello")).kind, "wait");
    equal(planGate(inputs("approve", "reject")).kind, "tasks");
    deepEqual(planGate(inputs("reject", "approve")), { kind: "fail", reason: "rejected" });
  });
});

test("why a task waits is said in a sentence", () => {
  equal(
    viewWhy({ kind: "no-executor", nearest: "w", missing: ["gpu=yes"] }),
    "no worker can run it; the nearest, w, lacks gpu=yes",
  );
  equal(
    viewWhy({ kind: "back-off", forMs: 1_500, lastFailure: "exit code 1" }),
    "it is tried again in 1.5s; it failed with exit code 1",
  );
  equal(viewWhy({ kind: "notices", notices: 1, forMs: 2_000 }), "it ended 2s ago; 1 end notice not delivered yet");
  const array = { kind: "array", count: 9, ended: 2, running: 1, queued: 3 } as const;
  equal(viewWhy({ ...array, ahead: 0 }), "2 of 9 tasks have ended, 1 run, 3 are queued");
  match(viewWhy({ ...array, ahead: 5 }), /^5 tasks of its array are queued before it; 2 of 9/);
  deepEqual(viewBesides({}), []);
  deepEqual(
    viewBesides({ checkpoint: { token: 1, agoMs: 2_000 }, failures: { preempted: 2 }, pending: ["go", "stop"] }),
    [
      "it failed before: preempted 2 times",
      "it goes on from a checkpoint, recorded 2s ago",
      "it has not received these signals yet: go, stop",
    ],
  );
});
