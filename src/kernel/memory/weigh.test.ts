/** Compares the estimates of weigh.ts with the real heap: limits in bytes are only as good as the estimate. */
import { ok } from "node:assert/strict";
import { describe, test } from "node:test";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import type { Command, Submit } from "#kernel/model/command.ts";
import { defaultLimits, type Limits } from "#kernel/model/limits.ts";
import type { StageSpec, TaskPlan } from "#kernel/model/model.ts";
import { createState, type State } from "#kernel/model/state.ts";
import { step } from "#kernel/step.ts";
import { plainTemplate } from "#kernel/testing/template.ts";

setFlagsFromString("--expose-gc");
const collect = runInNewContext("gc") as () => void;

/**
 * The estimate may be below the heap by the first factor, and above it by the second: too low and the node runs out of
 * memory, too high and memory stays unused.
 */
const belowMax = 1.15;
const aboveMax = 2;

const limits: Limits = { ...defaultLimits, queuedMax: 0, stateBytesMax: 8 * 1024 ** 3 };

function heapBytes(): number {
  collect();
  collect();
  return process.memoryUsage().heapUsed;
}

/** Texts as they come from the network: each one decoded separately, without shared parts. */
let texts = 0;
function text(length: number, filling = "x"): string {
  texts += 1;
  return Buffer.from(`${texts}`.padEnd(length, filling)).toString("utf8");
}

const template = { ...plainTemplate, kind: "measured", requires: ["arch=x64", "os=linux", "pool=default"] } as const;

const stage: Omit<StageSpec, "tasks"> = {
  name: "all",
  needs: [],
  after: "success",
  failFast: false,
  mayFail: false,
  parallelMax: 0,
};

const tasksOf = (count: number, specLength: number, filling?: string): TaskPlan[] =>
  Array.from({ length: count }, () => ({ key: text(10), spec: text(specLength, filling) }));

function submitOf(stages: readonly StageSpec[], more: Partial<Submit> = {}): Submit {
  const base = { kind: "submit", tenant: "acme", door: "d", payloadHash: "", priority: 0 } as const;
  return { ...base, name: text(10), spec: text(100), stages, deadlineMs: 3_600_000, ...more };
}

const job = (tasks: number, specLength: number, filling?: string): Submit =>
  submitOf([{ ...stage, tasks: { template, tasks: tasksOf(tasks, specLength, filling) } }]);

let nowMs = 1;
function say(state: State, command: Command): unknown {
  nowMs += 1;
  // The events are not kept.
  const outcome = step(state, command, nowMs, { applied() {} });
  ok(outcome.ok, JSON.stringify(outcome));
  return outcome.reply;
}

function repeat(count: number, act: () => void): void {
  for (let i = 0; i < count; i += 1) act();
}

/** By how much the heap and the estimate grow, measured once. */
function grown(fill: (state: State) => void): { readonly estimated: number; readonly real: number } {
  const state = createState(0, limits);
  say(state, job(1, 100));
  const [heapBefore, bytesBefore] = [heapBytes(), state.bytes];
  fill(state);
  return { real: heapBytes() - heapBefore, estimated: state.bytes - bytesBefore };
}

/** Compiled code and the like are added to the heap and removed at any time: take the median of several tries. */
function measured(what: string, fill: (state: State) => void): void {
  const tries = Array.from({ length: 3 }, () => grown(fill)).toSorted((a, b) => a.real - b.real);
  const { estimated, real } = tries[1] ?? { estimated: 0, real: 0 };
  const facts = `${what}: ${estimated} estimated, ${real} of heap: ${(estimated / real).toFixed(2)}`;
  if (process.env["SHOW_WEIGHTS"]) console.log(facts);
  ok(estimated * belowMax >= real, `too low; ${facts}`);
  ok(estimated <= real * aboveMax, `too high; ${facts}`);
}

function claimAll(state: State): { task: number; token: number }[] {
  const reserve = { kind: "reserve", executor: "ada", offers: template.requires, prefer: [], start: true } as const;
  const all: { task: number; token: number }[] = [];
  for (;;) {
    const { grants } = say(state, { ...reserve, count: 1_000, nonce: String(all.length) }) as { grants: typeof all };
    if (grants.length === 0) return all;
    all.push(...grants.map(({ task, token }) => ({ task, token })));
  }
}

describe("the estimated memory of a shard's things is close to the heap they use", () => {
  test("jobs of one small task", () => {
    measured("jobs", (state) => repeat(20_000, () => say(state, job(1, 100))));
  });
  test("jobs of many tasks", () => {
    measured("tasks", (state) => repeat(20, () => say(state, job(2_000, 60))));
  });
  test("large specs, also with two-byte characters", () => {
    measured("specs", (state) => repeat(200, () => say(state, job(10, 8_000))));
    measured("wide specs", (state) => repeat(100, () => say(state, job(10, 4_000, "\u6c34"))));
    measured("accents", (state) => repeat(100, () => say(state, job(10, 4_000, "\u00e9"))));
  });
  test("stages that all differ and that need each other", () => {
    const stages = (count: number): StageSpec[] =>
      Array.from({ length: count }, (_, i) => ({
        ...stage,
        name: text(200),
        needs: Array.from({ length: i }, (_, need) => need),
        tasks: { template: { ...template, requires: [text(250), text(251)].toSorted() }, tasks: tasksOf(1, 20) },
      }));
    measured("stages", (state) => repeat(50, () => say(state, submitOf(stages(80)))));
  });
  test("request keys, merge keys, locks and subscribers", () => {
    const one = (more: () => Partial<Submit>) => (state: State) =>
      repeat(3_000, () => say(state, { ...job(1, 10), ...more() }));
    measured(
      "request keys",
      one(() => ({ requestKey: text(200), payloadHash: text(64) })),
    );
    measured(
      "merge keys",
      one(() => ({ mergeKey: text(200), subscriber: text(100) })),
    );
    measured(
      "locks",
      one(() => ({ lock: { name: text(200), limit: 1, queueMax: 1, cancelInProgress: false } })),
    );
    measured("subscribers", (state) => {
      say(state, { ...job(1, 10), mergeKey: "m", subscriber: "first" });
      repeat(9_000, () => say(state, { ...job(1, 10), mergeKey: "m", subscriber: text(100) }));
    });
  });

  test("claims", () => {
    measured("claims", (state) => {
      repeat(20, () => say(state, job(1_000, 10)));
      claimAll(state);
    });
  });

  test("results, with their digests", () => {
    const digest = (): string => `${text(64, "a")}/12345`;
    const results = (make: () => { payload: string; digests: string[] }) => (state: State) => {
      repeat(3, () => say(state, job(1_000, 10)));
      for (const claim of claimAll(state)) {
        const result = make();
        const evidence = { digests: result.digests, pinnedForMs: 1_000 };
        say(state, { kind: "commit", executor: "ada", ...claim, result, evidence });
      }
    };
    measured(
      "results",
      results(() => ({ payload: text(500), digests: [digest(), digest()] })),
    );
    measured(
      "digests",
      results(() => ({ payload: "", digests: Array.from({ length: 50 }, digest) })),
    );
  });

  test("failures, steps, signals and executors", () => {
    measured("failures", (state) => {
      repeat(3, () => say(state, job(1_000, 10)));
      const failed = { kind: "fail", executor: "ada", reason: "user-failure" } as const;
      for (const claim of claimAll(state)) say(state, { ...failed, ...claim, message: text(60_000) });
    });
    measured("steps", (state) => {
      say(state, job(100, 10));
      const steps = () =>
        Array.from({ length: 200 }, (_, i) => ({ step: i, name: text(30), status: "started" as const }));
      for (const claim of claimAll(state)) say(state, { kind: "report", executor: "ada", ...claim, steps: steps() });
    });
    measured("signals", (state) => {
      const { job: no } = say(state, job(1, 10)) as { job: number };
      const signal = () => ({ id: text(30), name: "go", payload: text(2_000) });
      repeat(1_000, () => say(state, { kind: "signal", job: no, stage: 0, signal: signal() }));
    });
    const reserve = { kind: "reserve", prefer: [], count: 1, start: true } as const;
    measured("executors", (state) =>
      repeat(3_000, () =>
        say(state, { ...reserve, executor: text(60), nonce: text(20), offers: [text(90), text(91)].toSorted() }),
      ),
    );
    measured("tenants", (state) => repeat(3_000, () => say(state, { ...job(1, 10), tenant: text(60) })));
  });
});
