/** CI-61: workflows that call others, as stages of one run on the real kernel. */
import { deepEqual, equal, match, throws } from "node:assert/strict";
import { test } from "node:test";
import { cellOf, type CellTask } from "./cell-task.ts";
import { planRun, planStage } from "./plan.ts";
import { keptRun, plan, play, record, stored, told, wishes } from "./testing/run-rig.ts";

const called = (text: string) => ({ ".github/workflows/b.yml": text });
const uses = "uses: ./.github/workflows/b.yml";
const job = "runs-on: x, steps: [{ run: echo }]";
const two = `
on:
  workflow_call:
    inputs:
      who: { type: string, default: nobody }
      count: { type: number }
      loud: { type: boolean, default: true }
    outputs: { made: { value: "\${{ jobs.build.outputs.id }}" } }
jobs:
  build: { ${job} }
  test:
    needs: build
    if: inputs.loud && inputs.who != 'x'
    ${job.replaceAll(", ", "\n    ")}
`;

test("CI-61: a called workflow's jobs are named behind their caller; its outputs and results come back", async () => {
  const text = `on: push
jobs:
  first: { ${job} }
  call: { needs: first, ${uses}, with: { who: "\${{ needs.first.outputs.who }}", count: 2 } }
  last: { needs: call, if: "needs.call.outputs.made == '7' && needs.call.result == 'success'", ${job} }
`;
  const { run, ran } = await play(text, { first: "success who=ada", "call / build": "success id=7" }, called(two));
  deepEqual(ran, ["first", "call / build", "call / test", "last"]);
  deepEqual(told(run), ["first success", "call/build success", "call/test success", "last success"]);
  equal(run.conclusion, "success");
});

test("CI-61: inputs have their types and defaults; what is wrong fails the call with the reason", async () => {
  const text = (given: string): string => `on: push\njobs:\n  call: { ${uses}${given} }\n`;
  const quiet = await play(text(", with: { loud: false }"), {}, called(two));
  deepEqual(told(quiet.run), ["call/build success", "call/test skipped"]);
  equal(quiet.run.jobs[1]?.reason, "if: inputs.loud && inputs.who != 'x' is false");
  const wrong = await play(text(`, with: { count: "\${{ github.ref }}" }`), {}, called(two));
  deepEqual([wrong.run.conclusion, ...told(wrong.run)], ["failure", "call/build failure", "call/test failure"]);
  match(wrong.run.jobs[0]?.reason ?? "", /The input count must be a number/);
});

test("CI-3, CI-5, CI-61: a call that is skipped skips its jobs, and what needs it", async () => {
  const text = `on: push
jobs:
  call: { if: false, ${uses} }
  after: { needs: call, ${job} }
  anyway: { needs: call, if: "always() && needs.call.result == 'skipped'", ${job} }
`;
  const { run } = await play(text, {}, called(two));
  deepEqual(told(run), ["call/build skipped", "call/test skipped", "after skipped", "anyway success"]);
  equal(run.jobs[0]?.reason, "if: false is false");
});

test("CI-61: a failure inside fails the call, and the status functions of callers see it", async () => {
  const text = `on: push
jobs:
  call: { ${uses} }
  after: { needs: call, ${job} }
  mend: { needs: call, if: failure(), ${job} }
`;
  const { run } = await play(text, { "call / build": "failure" }, called(two));
  deepEqual(
    [run.conclusion, ...told(run)],
    ["failure", "call/build failure", "call/test skipped", "after skipped", "mend success"],
  );
});

test("CI-61: each cell of a matrix over a call is a call of its own", async () => {
  const text = `on: push
jobs:
  call:
    strategy: { fail-fast: false, matrix: { who: [x, y] } }
    ${uses}
    with: { who: "\${{ matrix.who }}" }
  last: { needs: call, ${job} }
`;
  const all = await play(text, {}, called(two));
  deepEqual(all.ran, ["call (x) / build", "call (y) / build", "call (y) / test", "last"]);
  const failed = await play(text, { "call (x) / build": "failure" }, called(two));
  deepEqual(failed.ran, ["call (x) / build", "call (y) / build", "call (y) / test"]);
  deepEqual([failed.run.conclusion, told(failed.run).at(-1)], ["failure", "last skipped"]);
});

test("CI-20, CI-61: with fail-fast, jobs of the other calls that have not begun do not begin", async () => {
  const text = `on: push
jobs:
  call: { strategy: { max-parallel: 1, matrix: { who: [a, b] } }, ${uses}, with: { who: "\${{ matrix.who }}" } }
`;
  const { run, ran } = await play(text, { "call (b) / build": "failure" }, called(two));
  deepEqual(ran, ["call (a) / build", "call (b) / build"]);
  equal(run.conclusion, "failure");
});

const nested = (depth: number): Readonly<Record<string, string>> =>
  Object.fromEntries(
    Array.from({ length: depth }, (_, at) => [
      `.github/workflows/c${at}.yml`,
      at === depth - 1
        ? `on: workflow_call\njobs: { leaf: { ${job} } }`
        : `on: workflow_call\njobs: { next: { uses: ./.github/workflows/c${at + 1}.yml } }`,
    ]),
  );

test("CI-61: ten levels may call one another, and eleven may not", async () => {
  const text = "on: push\njobs: { call: { uses: ./.github/workflows/c0.yml } }";
  const { run, ran } = await play(text, {}, nested(10));
  deepEqual([run.conclusion, ran.length, ran[0]?.split(" / ").length], ["success", 1, 11]);
  throws(() => plan(text, nested(11)), /Nested reusable workflow depth exceeded 10/);
});

test("CI-61: files of other repositories call with ./ what is in their own", async () => {
  const files = {
    "acme/tools/.github/workflows/a.yml@v1": "on: workflow_call\njobs: { in: { uses: ./.github/workflows/z.yml } }",
    "acme/tools/.github/workflows/z.yml@v1": `on: workflow_call\njobs: { leaf: { ${job} } }`,
  };
  const { ran } = await play("on: push\njobs: { call: { uses: acme/tools/.github/workflows/a.yml@v1 } }", {}, files);
  deepEqual(ran, ["call / in / leaf"]);
});

test("CI-19, CI-31: matrices over calls that multiply without end are refused", async () => {
  const many = `strategy: { matrix: { x: "\${{ fromJSON('[${Array.from({ length: 100 }, (_, at) => at).join()}]') }}" } }`;
  const middle = (next: string): string =>
    `on: workflow_call\njobs: { in: { ${many}, uses: ./.github/workflows/${next}.yml } }`;
  const files = {
    ".github/workflows/b.yml": middle("c"),
    ".github/workflows/c.yml": middle("d"),
    ".github/workflows/d.yml": `on: workflow_call\njobs: { leaf: { ${many}, ${job} } }`,
  };
  const { run, ran } = await play(`on: push\njobs: { call: { ${many}, ${uses} } }`, {}, files);
  deepEqual([run.conclusion, ran.length], ["failure", 0]);
  match(run.jobs[0]?.reason ?? "", /at most 1000 calls/);
});

test("CI-31: workflows that call themselves, or one another often, are refused", () => {
  const calls = (count: number, next: string): string =>
    `on: workflow_call\njobs:\n${Array.from({ length: count }, (_, at) => `  j${at}: { uses: ${next} }`).join("\n")}`;
  const self = ".github/workflows/b.yml";
  throws(() => plan(`on: push\njobs: { a: { ${uses} } }`, { [self]: calls(1, `./${self}`) }), /depth exceeded/);
  throws(
    () => plan(`on: push\njobs: { a: { ${uses} } }`, { [self]: calls(900, `./${self}`) }),
    /depth exceeded|1000 jobs/,
  );
  const padding = `\n# ${"-".repeat(900_000)}\n`;
  const files = { [self]: calls(900, "./c.yml"), "c.yml": `on: workflow_call\njobs: { leaf: { ${job} } }${padding}` };
  throws(() => plan(`on: push\njobs: { a: { ${uses} }, b: { ${uses} } }`, files), /1000 jobs|compile/);
});

const inputsFor = (text: string, files: Readonly<Record<string, string>>, stage: string) => ({
  spec: JSON.stringify(stored(record(text, files))),
  stage,
  generation: 1,
  needs: [],
  signals: [],
  results: [],
  next: undefined,
});

test("CI-61: secrets pass by name or all together, level by level, and the token always", () => {
  const inner = `on: { workflow_call: { secrets: { key: { required: true } } } }\njobs: { leaf: { ${job} } }`;
  const secretsOf = (given: string): Record<string, string> => {
    const text = `on: push\njobs: { call: { ${uses}, secrets: ${given} } }`;
    const planned = planStage(inputsFor(text, called(inner), "call/leaf"), record(text, called(inner)));
    const spec = planned.kind === "tasks" ? planned.sets?.[0]?.tasks?.[0]?.spec : undefined;
    const { secrets } = cellOf(JSON.parse(spec ?? "") as CellTask, record(text, called(inner)));
    return Object.fromEntries(secrets(new Map(Object.entries({ A: "1", B: "2", GITHUB_TOKEN: "t" }))));
  };
  deepEqual(secretsOf(`{ key: "\${{ secrets.A }}-x" }`), { key: "1-x", GITHUB_TOKEN: "t" });
  deepEqual(secretsOf("inherit"), { A: "1", B: "2", GITHUB_TOKEN: "t" });
});

test("CI-60, CI-61: a call's group is held by its one job, or by the run where it has several", () => {
  const lockOf = (text: string, files: Readonly<Record<string, string>>, stage: string): string | undefined => {
    const planned = planStage(inputsFor(text, files, stage), record(text, files));
    return planned.kind === "tasks" ? planned.decides?.lock?.name.split(" ")[2] : planned.kind;
  };
  const one = `on: workflow_call\nconcurrency: inner\njobs: { leaf: { ${job} } }`;
  equal(lockOf(`on: push\njobs: { call: { ${uses} } }`, called(one), "call/leaf"), "inner");
  equal(lockOf(`on: push\njobs: { call: { ${uses}, concurrency: INNER } }`, called(one), "call/leaf"), "inner");
  equal(lockOf(`on: push\njobs: { call: { ${uses}, concurrency: outer } }`, called(one), "call/leaf"), "fail");
  const many = `on: push\njobs: { call: { ${uses}, concurrency: "\${{ github.ref }}" } }`;
  equal(plan(many, called(two)).lock?.name.split(" ")[2], "refs/heads/main");
  const cells = `on: push\njobs: { call: { ${uses}, strategy: { matrix: { a: [1] } }, concurrency: a } }`;
  throws(() => plan(cells, called(two)), /depends on needs or a matrix/);
  throws(
    () => planRun(record(`${many}\nconcurrency: b`, called(two)), keptRun(many, called(two)), wishes),
    /one concurrency/,
  );
});

test("CI-62: a called workflow may not ask for more than its caller has", () => {
  const greedy = `on: workflow_call\npermissions: { contents: write }\njobs: { leaf: { ${job} } }`;
  const text = `on: push\npermissions: { contents: read }\njobs: { call: { ${uses} } }`;
  throws(() => plan(text, called(greedy)), /requesting 'contents: write', but is only allowed 'contents: read'/);
});
