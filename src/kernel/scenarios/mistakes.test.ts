/** Bugs in our own code: an exception while deciding is recorded, and the rest of the shard goes on. */
import { deepEqual, equal, ok } from "node:assert/strict";
import { describe, test } from "node:test";
import { must } from "#base/assert.ts";
import type { Replies } from "#kernel/model/reply.ts";
import { step } from "#kernel/step.ts";
import { submitOf } from "#kernel/testing/commands.ts";
import { Transcript } from "#kernel/testing/transcript.ts";

/** Makes the next read of the property throw. */
function breakNextLook(thing: object, name: string): void {
  const value = Reflect.get(thing, name) as unknown;
  Object.defineProperty(thing, name, {
    configurable: true,
    get() {
      Object.defineProperty(thing, name, { configurable: true, writable: true, enumerable: true, value });
      throw new Error("a mistake");
    },
  });
}

describe("an exception in our own code", () => {
  test("while handling what is due: it is tried again a second later", () => {
    const t = new Transcript();
    t.say("submit j : build[x]");
    t.say("reserve ada n=1");
    const claim = must(must(t.state.tasks.get(1), "task").claim, "claim");
    breakNextLook(claim, "task");
    const lateMs = t.nowMs + 1_000;
    t.state.agenda.drop(claim);
    t.state.agenda.file(claim, lateMs, t.nowMs);
    step(t.state, { kind: "tick" }, lateMs);
    deepEqual(t.state.faults, ["a mistake"]);
    equal(t.state.agenda.filedAtMs(claim), lateMs + 1_000);
    equal(claim.task.phase, "CLAIMED");
  });

  test("while granting: it is recorded, nothing is granted, and the next request gets the task", () => {
    const t = new Transcript();
    t.say("submit j : build[x]");
    breakNextLook(must(t.state.jobs.get(1), "job").tenant, "runningMax");
    const reserve = { kind: "reserve" as const, executor: "ada", offers: [], prefer: [], count: 1, start: false };
    const granted = (nonce: string): number => {
      const outcome = step(t.state, { ...reserve, nonce }, t.nowMs);
      return outcome.ok ? (outcome.reply as Replies["reserve"]).grants.length : -1;
    };
    equal(granted("one"), 0);
    deepEqual(t.state.faults, ["a mistake"]);
    equal(granted("two"), 1);
  });

  test("in a follow-up step: it is recorded, and the decided events stand", () => {
    const t = new Transcript();
    t.say("submit j : build[x]");
    t.say("reserve ada n=1");
    const stage = must(t.state.jobs.get(1), "job").stages[0];
    breakNextLook(must(stage, "stage"), "failed");
    const commit = { kind: "commit" as const, executor: "ada", task: 1, token: 1 };
    const evidence = { digests: [], pinnedForMs: 0 };
    ok(step(t.state, { ...commit, result: { payload: "", digests: [] }, evidence }, t.nowMs).ok);
    equal(t.state.tasks.get(1)?.phase, "SUCCEEDED");
    deepEqual(t.state.faults, ["a mistake"]);
  });
});

describe("bounds on the work done at once", () => {
  test("follow-up steps continue with the next command or tick", () => {
    const { state } = new Transcript({ limits: { settleStepsMax: 1 } });
    step(state, submitOf(["j", ":", "a[x]", "b[y]"]), 1_000);
    const phases = () => must(state.jobs.get(1), "job").stages.map(({ phase }) => phase);
    deepEqual(phases(), ["RUNNING", "BLOCKED"]);
    const ticked = step(state, { kind: "tick" }, 1_000);
    deepEqual(phases(), ["RUNNING", "RUNNING"]);
    ok(ticked.ok && (ticked.reply as Replies["tick"]).more, "and says that there is more to do");
  });

  test("shared stage shapes are dropped when there are too many", () => {
    const { state } = new Transcript();
    const submit = submitOf(["j", ":", "s[x]"]);
    const [stage] = submit.stages;
    for (let i = 0; i < 10_050; i += 1)
      step(state, { ...submit, stages: [{ ...must(stage, "stage"), name: `s${i}` }] }, 1_000);
    equal(state.jobs.size, 10_050);
    ok(state.shapes.size <= 10_000);
  });
});
