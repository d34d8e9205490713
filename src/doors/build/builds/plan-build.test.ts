import { deepEqual, equal, match, notEqual, rejects, throws } from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { createMemoryStore } from "#blobs/memory/memory-store.ts";
import { realClock } from "#testing/real-clock.ts";
import { digestOf } from "#blobs/hashing.ts";
import type { PlanInputs } from "#kernel/read/query.ts";
import { Directory } from "#wire/generated/build/bazel/remote/execution/v2/remote_execution.ts";
import { decode } from "#wire/message.ts";
import { executionSettingsDefault as settings } from "#doors/build/execute/execution-settings.ts";
import { BuildDocument, buildOf, type FindFile } from "./document.ts";
import { failureText, readFailure } from "./failure-text.ts";
import { clashIn, treeOf } from "./input-tree.ts";
import { planBuild, readBuildSpec, readJobName, recordBuild } from "./plan-build.ts";
import { StagePlanning } from "./plan-stage.ts";
import { readStep } from "./step.ts";
import { placedTasks } from "#kernel/model/task-set.ts";

const noFiles: FindFile = () => Promise.reject(new Error("there are none"));
const wishes = { tenant: "mill", principal: "miller", mayReadCache: true };
const recordedAs = `${"a".repeat(64)}/7`;
const made = async (document: unknown) => await buildOf(BuildDocument.parse(document), noFiles);

const bread = {
  name: "bread",
  env: { LANG: "C" },
  deadline: "2h",
  actions: {
    wheat: { run: "grind", outputs: ["flour"] },
    rye: { run: ["mill", "-f"], outputs: ["flour"], platform: { Pool: "large" }, timeout: "90s" },
    dough: {
      run: "mix",
      inputs: [
        { path: "a", from: "wheat", output: "flour" },
        { path: "b", from: "rye", output: "flour" },
      ],
      outputs: ["dough"],
    },
    loaf: { run: "bake", inputs: [{ path: "dough", from: "dough" }], after: ["rye"], cache: "off" },
  },
} as const;

test("a build becomes a job with a stage for each set of actions that wait for the same", async () => {
  const build = await made(bread);
  const recorded = { ...recordBuild(build, wishes, settings), build };
  const order = planBuild(recorded, recordedAs, { tenant: "mill", requestId: "r1", priority: 3, nowMs: 5 }, settings);
  deepEqual(
    order.stages.map(({ name, needs, after, plan }) => [name, needs, after, plan?.requires]),
    [
      ["wheat", [], "end", ["plan=build/1"]],
      ["rye", [], "end", ["plan=build/1"]],
      ["dough", [0, 1], "end", ["plan=build/1"]],
      ["loaf", [1, 2], "end", ["plan=build/1"]],
    ],
  );
  deepEqual(
    recorded.groups.map(({ requires, timeoutMs }) => [requires, timeoutMs]),
    [
      [["door=build", "pool=default"], 3_600_000],
      [["door=build", "pool=large"], 90_000],
      [["door=build", "pool=default"], 3_600_000],
      [["door=build", "pool=default"], 3_600_000],
    ],
  );
  const { door, requestKey, priority, deadlineMs, shardKey } = order;
  deepEqual(
    { door, requestKey, priority, deadlineMs, shardKey },
    { door: "builds", requestKey: "r1", priority: 3, deadlineMs: 7_200_000, shardKey: "mill/build r1" },
  );
  deepEqual(readJobName(order.name), { recorded: recordedAs, name: "bread" });
  equal(readBuildSpec(order.spec)?.recorded, recordedAs);
});

test("equal requests are equal, however they are written and from any client; different ones are not", async () => {
  const hash = async (document: unknown, principal = "miller") => {
    const build = await made(document);
    const recorded = { ...recordBuild(build, { ...wishes, principal }, settings), build };
    return planBuild(recorded, recordedAs, { tenant: "mill", requestId: "r", priority: 0, nowMs: 1 }, settings)
      .payloadHash;
  };
  equal(await hash(bread), await hash({ ...bread, env: { PATH: "/usr/local/bin:/usr/bin:/bin", LANG: "C" } }, "other"));
  notEqual(await hash(bread), await hash({ ...bread, env: {} }));
});

test("D1, D2: planned again a stage is the same; actions that need a failed one are left out", async () => {
  const actions = {
    good: { run: "a", outputs: ["o"] },
    bad: { run: "b" },
    one: { run: "c", inputs: [{ path: "text", text: "hello" }], after: ["good"] },
    two: { run: "d", after: ["bad"] },
  };
  const build = await made({ actions });
  const recorded = { ...recordBuild(build, wishes, settings), build };
  const spec = { recorded: recordedAs, instance: "", submittedAtMs: 12 };
  const result = (key: string, phase: "SUCCEEDED" | "FAILED"): PlanInputs["results"][number] => ({
    stage: 0,
    key,
    generation: 1,
    phase,
    result: undefined,
  });
  const inputs = { results: [result("good", "SUCCEEDED"), result("bad", "FAILED")] };
  const plan = async (places: readonly number[]) => {
    const group = { actions: places, needs: [], requires: ["door=build"], timeoutMs: 1_000 };
    const { blobs } = createMemoryStore({ clock: realClock, sizeBytesMax: 1_000_000 }).forTenant("mill");
    return await new StagePlanning({ spec, recorded, group, inputs, blobs, settings }).plan();
  };
  const both = await plan([2, 3]);
  deepEqual(both.kind === "tasks" && placedTasks(both).map(({ key }) => key), ["one"]);
  deepEqual(await plan([2, 3]), both);
  deepEqual(await plan([3]), { kind: "skip", reason: "bad did not end well" });
  const step = both.kind === "tasks" ? readStep(placedTasks(both)[0]?.spec ?? "") : undefined;
  match(step && "action" in step ? step.action : "", /^[0-9a-f]{64}\/\d+$/);
});

test("an input that the other action did not make fails the step, and not its stage", async () => {
  const actions = {
    make: { run: "a", outputs: ["d"] },
    take: { run: "b", inputs: [{ path: "x", from: "make", output: "d/x" }] },
  };
  const build = await made({ actions });
  const recorded = { ...recordBuild(build, wishes, settings), build };
  const group = { actions: [1], needs: [0], requires: ["door=build"], timeoutMs: 1_000 };
  const results = [{ stage: 0, key: "make", generation: 1, phase: "SUCCEEDED", result: undefined } as const];
  const spec = { recorded: recordedAs, instance: "", submittedAtMs: 12 };
  const { blobs } = createMemoryStore({ clock: realClock, sizeBytesMax: 1_000_000 }).forTenant("mill");
  const plan = await new StagePlanning({ spec, recorded, group, inputs: { results }, blobs, settings }).plan();
  const step = plan.kind === "tasks" ? readStep(placedTasks(plan)[0]?.spec ?? "") : undefined;
  deepEqual(step, { refused: "there is nothing at d/x of make, which it takes" });
});

test("an input that was evicted in between is named, and fails only the actions that take it", async () => {
  const blob = `${"c".repeat(64)}/9`;
  const build = await made({ actions: { with: { run: "a", inputs: [{ path: "x", blob }] }, without: { run: "b" } } });
  const recorded = { ...recordBuild(build, wishes, settings), build };
  const group = { actions: [0, 1], needs: [], requires: ["door=build"], timeoutMs: 1_000 };
  const spec = { recorded: recordedAs, instance: "", submittedAtMs: 12 };
  const { blobs } = createMemoryStore({ clock: realClock, sizeBytesMax: 1_000_000 }).forTenant("mill");
  const plan = await new StagePlanning({ spec, recorded, group, inputs: { results: [] }, blobs, settings }).plan();
  const steps = plan.kind === "tasks" ? placedTasks(plan).map((task) => readStep(task.spec)) : [];
  deepEqual(steps[0], { refused: `an input of it is no longer in the store: ${blob}` });
  equal("action" in (steps[1] ?? {}), true);
});

test("a document gives each input one source, and has no unknown fields", async () => {
  const wrong = (input: unknown) => BuildDocument.parse({ actions: { a: { run: "x", inputs: [input] } } });
  throws(() => wrong({ path: "a", text: "b", link: "c" }), /say what it is with one of/);
  throws(() => wrong({ text: "b" }), /say where it is found/);
  throws(() => wrong({ path: "a", output: "b", text: "c" }), /output goes with from/);
  throws(() => wrong({ path: "a", blob: "nonsense" }), /HASH\/SIZE/);
  throws(() => wrong({ path: "a", text: "b", colour: "red" }), /colour/);
  throws(() => BuildDocument.parse({ actions: { a: { run: "x", timeout: "soon" } } }), /number and a unit/);
  await rejects(made({ actions: { a: { run: "x", inputs: ["file"] } } }), /there are none/);
});

test("a tree has every path where it was put, in any order", () => {
  const digest = digestOf(Buffer.from("x"));
  const file = (path: string) => ({ path, leaf: { kind: "file", digest, isExecutable: false } as const });
  const paths = fc.uniqueArray(fc.array(fc.constantFrom("a", "b", "c"), { minLength: 1, maxLength: 4 }), {
    selector: (parts) => parts.join("/"),
    maxLength: 12,
  });
  fc.assert(
    fc.property(paths, (all) => {
      const placed = all.map((parts) => file(parts.join("/")));
      const within = placed.some((a) => placed.some((b) => b.path.startsWith(`${a.path}/`)));
      equal(clashIn(placed) !== undefined, within);
      if (within) return;
      const { root, directories } = treeOf(placed);
      equal(treeOf(placed.toReversed()).root, root);
      const byDigest = new Map(directories.map((one) => [one.digest, decode(Directory, one.bytes)]));
      const listed = (at: string, name: string): readonly string[] => {
        const { files = [], directories: below = [] } = byDigest.get(at) ?? {};
        return [
          ...files.map((one) => `${name}${one.name}`),
          ...below.flatMap((one) => listed(`${one.digest?.hash}/${one.digest?.sizeBytes}`, `${name}${one.name}/`)),
        ];
      };
      deepEqual(listed(root, "").toSorted(), placed.map(({ path }) => path).toSorted());
    }),
  );
});

test("the text of a failed attempt is parsed, also with history's prefix", () => {
  fc.assert(
    fc.property(fc.string({ maxLength: 500 }), fc.boolean(), (text, isWhole) => {
      const [action, digest] = [`${"a".repeat(64)}/1`, `${"b".repeat(64)}/2`];
      const answer = isWhole ? { response: digest } : { result: digest };
      deepEqual(readFailure(`user-failure: ${failureText(text, action, answer)}`), { text, action, answer });
    }),
  );
  deepEqual(readFailure("executor-lost: gone"), { text: "gone", action: "" });
});
