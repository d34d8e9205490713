/** The compiler by tables of our own; the number is that of the semantic in docs/reference/ci.md. */
import { deepEqual, equal, ok } from "node:assert/strict";
import { describe, test } from "node:test";
import { problemText } from "#doors/ci/workflow/problem.ts";
import { compile } from "./compile.ts";
import type { CompileOptions } from "./file.ts";
import { ancestorsOf } from "./jobs.ts";
import type { NormalJob, Workflow } from "./model.ts";

function right(text: string, options?: CompileOptions): Workflow {
  const compiled = compile({ path: "w.yml", text }, options);
  ok(compiled.ok, compiled.ok ? "" : compiled.problems.map((problem) => problemText(problem)).join("\n"));
  return compiled.workflow;
}

function wrong(text: string, options?: CompileOptions): readonly string[] {
  const compiled = compile({ path: "w.yml", text }, options);
  return compiled.ok ? [] : compiled.problems.map((problem) => problemText(problem));
}

const job = (lines: string, steps = "- run: echo"): string =>
  `on: push\njobs:\n  a:\n    runs-on: x\n${lines.replaceAll(/^/gm, "    ")}\n    steps:\n      ${steps}\n`;

const conditionOf = (lines: string): string | undefined => right(job(lines)).jobs[0]?.if.expression;
const stepsOf = (steps: string): NormalJob["steps"] => (right(job("name: n", steps)).jobs[0] as NormalJob).steps;

describe("conditions", () => {
  test("CI-1: without a status function success() is added, and only the syntax tree decides that", () => {
    equal(conditionOf("name: n"), "success()");
    equal(conditionOf("if: github.ref == 'x'"), "success() && (github.ref == 'x')");
    equal(conditionOf("if: always() && true"), "always() && true");
    equal(conditionOf("if: github.ref == 'always()'"), "success() && (github.ref == 'always()')");
    equal(conditionOf("if: FAILURE('b')"), "FAILURE('b')");
  });

  test("CI-2: ${{ }} is optional, and text around it makes a text of the condition", () => {
    equal(conditionOf("if: ${{ true }}"), "success() && (true)");
    equal(conditionOf("if: ${{ false }} x"), "success() && (format('{0} x', false))");
  });

  test("CI-3: ancestors are found however far away", () => {
    const { jobs } = right(
      ["on: push", "jobs:"].join("\n") +
        ["a", "b: a", "c: b", "d: [c, a]"]
          .map((line) => {
            const [id, needs] = line.split(": ");
            return `\n  ${id}:\n    runs-on: x${needs === undefined ? "" : `\n    needs: ${needs}`}\n    steps: [{ run: echo }]`;
          })
          .join(""),
    );
    deepEqual(ancestorsOf(jobs[3] as NormalJob, jobs), ["c", "a", "b"]);
  });

  test("CI-32: what a key may not use is said with its place", () => {
    deepEqual(wrong(job("if: secrets.x == ''")), [
      "w.yml (Line: 5, Col: 9): Unrecognized named-value: 'secrets'. Located at position " +
        "1 within expression: secrets.x == ''",
    ]);
    deepEqual(wrong(job("env:\n  A: ${{ env.B }}")), [
      "w.yml (Line: 6, Col: 10): Unrecognized named-value: 'env'. Located at position 1 within expression: env.B",
    ]);
    equal(wrong(job("timeout-minutes: ${{ hashFiles('x') }}")).length, 2);
  });
});

describe("files", () => {
  test("CI-31: a file, its depth, its expansion and its expressions have limits", () => {
    const limits = (text: string): string => wrong(text)[0] ?? "accepted";
    equal(
      limits(`# ${"x".repeat(1024 * 1024)}`),
      "w.yml: The maximum file size of 1048576 characters has been exceeded",
    );
    equal(limits("[".repeat(100_000)), "w.yml: Maximum object depth exceeded");
    equal(limits(`a: ${"{a: ".repeat(60)}1${"}".repeat(60)}`), "w.yml: Maximum object depth exceeded");
    const levels = Array.from({ length: 9 }, (_, at) => `x${at + 1}: &l${at + 1} [${`*l${at},`.repeat(9)}]`);
    equal(limits(`x0: &l0 [a]\n${levels.join("\n")}`), "w.yml: Maximum YAML nodes exceeded");
    equal(limits("a: &a [*a]").includes("w.yml"), true);
  });

  test("CI-31: a hostile file is refused in little time", () => {
    const startedMs = performance.now();
    const million = 1024 * 1024 - 8;
    const words = ["[", "[1,", "{a: ", "- ", "? ", "&a ", "*a ", ": ", "'", "a:\n", "\u0000"];
    const texts = words.map((word) => word.repeat(million / word.length));
    for (const text of [...texts, `on: "${"${{ a }}".repeat(million / 9)}"`, "%YAML 9\n---\n"])
      ok(wrong(text).length > 0, text.slice(0, 20));
    ok(performance.now() - startedMs < 10_000);
  });

  test("CI-34: the core schema, keys in any case once, no tags of others, no merge keys, anchors", () => {
    const { env } = right(
      "on: push\nenv: { A: 0x10, B: 1_0, C: 3.10, D: yes, E: ~, F: 1e3 }\njobs: { a: { runs-on: x } }",
    );
    const values =
      env?.kind === "mapping" ? env.entries.map(({ value }) => (value.kind === "scalar" ? value.value : "")) : [];
    deepEqual(values, ["16", "1_0", "3.1", "yes", "", "1000"]);
    ok(wrong(job("Name: a\nname: b"))[0]?.endsWith("Unexpected value 'Name'"));
    ok(wrong(job("name: a\nname: b"))[0]?.endsWith("'name' is already defined"));
    ok(wrong(job("name: !!binary a"))[0]?.includes("Unexpected tag"));
    ok(wrong("on: push\nx: &x { a: 1 }\njobs:\n  a:\n    <<: *x\n    runs-on: x")[0]?.includes("merge key"));
    right(
      "on: push\njobs:\n  a: &a { runs-on: x, steps: &s [{ run: echo }] }\n  b: { runs-on: y, steps: *s }\n  c: *a",
    );
  });

  test("every error has its line and column, and at most ten are told", () => {
    const many = Array.from({ length: 30 }, (_, at) => `  job${at}: { runs-on: x, wrong: 1 }`).join("\n");
    const problems = wrong(`on: push\njobs:\n${many}\n`);
    equal(problems.length, 10);
    equal(problems[2], "w.yml (Line: 5, Col: 23): Unexpected value 'wrong'");
  });
});

describe("ids and uses", () => {
  test("CI-35: ids are checked, and steps without one get one", () => {
    const steps = stepsOf(
      "- run: a\n      - run: b\n      - uses: actions/checkout@v4\n" +
        "      - uses: ./x\n      - id: mine\n        run: c",
    );
    deepEqual(
      steps.map((step) => step.id),
      ["__run", "__run_2", "__actions_checkout", "__self", "mine"],
    );
    ok(wrong(job("name: n", "- { id: __x, run: a }"))[0]?.includes("IDs starting with '__' are reserved"));
    ok(
      wrong(job("name: n", "- { id: x, run: a }\n      - { id: X, run: b }"))[0]?.includes(
        "may not be used more than once",
      ),
    );
    ok(wrong(job("name: n", `- { id: ${"x".repeat(100)}, run: a }`))[0]?.includes("less than 100 characters"));
  });

  test("CI-71: uses is one of four forms", () => {
    for (const uses of ["a/b@v1", "a/b/c/d@main", "./x", "$/x", "docker://alpine"])
      equal(stepsOf(`- uses: ${uses}`).length, 1);
    for (const uses of ["a@v1", "a/b", "a/b@", "a/b@c@d"])
      ok(wrong(job("name: n", `- uses: ${uses}`))[0]?.includes("Expected format"));
  });
});

describe("what is checked before a run", () => {
  test("CI-17, CI-19: matrices without values, and excludes of nothing", () => {
    ok(wrong(job("strategy: { matrix: { a: [] } }"))[0]?.includes("Matrix vector 'a' does not contain any values"));
    ok(wrong(job("strategy: { matrix: { a: [1], exclude: [{ b: 1 }] } }"))[0]?.includes("'b' does not match any key"));
    ok(wrong(job("strategy: { matrix: { include: [] } }"))[0]?.includes("at least one vector"));
    right(job("strategy: { matrix: '${{ fromJSON(vars.x) }}' }"));
  });

  test("CI-53, CI-58: filters that only exclude, and schedules that cannot be kept", () => {
    const on = (text: string): readonly string[] => wrong(`on:\n  ${text}\njobs: { a: { runs-on: x } }`);
    ok(on("push: { branches: ['!main'] }")[0]?.includes("must not start with '!'"));
    ok(on("schedule: [{ cron: '@daily' }]")[0]?.includes("Invalid cron expression"));
    ok(on("schedule: [{ cron: '60 * * * *' }]")[0]?.includes("Invalid cron expression"));
    deepEqual(on("schedule: [{ cron: '*/5 0-6 1,15 jan-mar MON', timezone: Europe/Berlin }]"), []);
    ok(on("pusch: {}")[0]?.includes("Unexpected value 'pusch'"));
    ok(on("pull_request: { types: [opend] }")[0]?.includes("Unexpected value 'opend'"));
  });

  test("CI-60: concurrency groups have a name of at most 400 characters; a long queue cancels nothing", () => {
    ok(wrong(job(`concurrency: ${"g".repeat(401)}`))[0]?.includes("less than 400 characters"));
    ok(
      wrong(job("concurrency: { group: g, cancel-in-progress: true, queue: max }"))[0]?.includes("cannot be combined"),
    );
  });

  test("circles and strangers among needs", () => {
    const jobs = (needs: Readonly<Record<string, string>>): readonly string[] =>
      wrong(
        `on: push\njobs:${Object.entries(needs)
          .map(([id, need]) => `\n  ${id}: { runs-on: x, needs: [${need}] }`)
          .join("")}`,
      );
    ok(jobs({ a: "", b: "c", c: "b" })[0]?.includes("creates a cycle"));
    ok(jobs({ a: "", b: "z" })[0]?.includes("depends on unknown job 'z'"));
    ok(jobs({ a: "b", b: "a" })[0]?.includes("at least one job with no dependencies"));
  });
});

describe("called workflows", () => {
  const called = (text: string): CompileOptions => ({ called: (uses) => ({ path: uses, text }) });
  const call = (lines = "name: n"): string =>
    `on: push\njobs:\n  a:\n    uses: ./.github/workflows/b.yml\n${lines.replaceAll(/^/gm, "    ")}`;
  const inner = "jobs: { x: { runs-on: x, steps: [{ run: echo }] } }";

  test("CI-61: inputs are typed and required, secrets are named or inherited", () => {
    const typed = `on: { workflow_call: { inputs: { n: { type: number, required: true } }, secrets: { s: { required: true } } } }\n${inner}`;
    ok(wrong(call(), called(typed))[0]?.includes("Input n is required"));
    ok(wrong(call("with: { n: one }\nsecrets: inherit"), called(typed))[0]?.includes("Unexpected value 'one'"));
    ok(wrong(call("with: { n: 1 }"), called(typed))[0]?.includes("Secret s is required"));
    ok(wrong(call("with: { n: 1, m: 2 }\nsecrets: inherit"), called(typed))[0]?.includes("m is not defined"));
    right(call("with: { n: 1 }\nsecrets: { s: '${{ secrets.x }}' }"), called(typed));
    ok(wrong(call(), called(`on: push\n${inner}`))[0]?.includes("workflow_call key is not defined"));
  });

  test("CI-61: ten levels at most, and a circle ends there", () => {
    const circle = `on: workflow_call\njobs: { x: { uses: ./.github/workflows/b.yml } }`;
    deepEqual(wrong(call(), called(circle)), ["Nested reusable workflow depth exceeded 10."]);
  });

  test("CI-61, CI-62: permissions only shrink", () => {
    const asks = `on: workflow_call\npermissions: { contents: write }\n${inner}`;
    ok(wrong(`permissions: read-all\n${call()}`, called(asks))[0]?.includes("is only allowed 'contents: read'"));
    const { jobs } = right(`permissions: write-all\n${call()}`, called(asks));
    const [first] = jobs;
    deepEqual(first?.kind === "call" && first.called?.workflow.jobs[0]?.permissions, { contents: "write" });
  });

  test("CI-62: naming one scope closes all others", () => {
    deepEqual(right(job("permissions: { contents: read, issues: none }")).jobs[0]?.permissions, { contents: "read" });
    deepEqual(right(job("permissions: {}")).jobs[0]?.permissions, {});
    equal(right(job("permissions: write-all")).jobs[0]?.permissions?.["id-token"], "write");
  });
});
