/** Steps that use actions. */
import { deepEqual, equal, ok } from "node:assert/strict";
import { describe, test } from "node:test";
import { runRig } from "./testing/job-rig.ts";

const posix = {
  skip: process.platform === "win32" ? "needs a POSIX shell" : false,
  timeout: 60_000,
  concurrency: true,
};

const javascript = (runs: string): string =>
  `name: js\ninputs:\n  in put: { default: none }\n  with-dash: { default: '\${{ github.event_name }}' }\nruns: { using: node20, ${runs} }\n`;

describe("actions", posix, () => {
  test("CI-13, CI-38: inputs with their defaults, state for post, posts in reverse, even after a failure", async () => {
    const { lines, ends } = await runRig({
      files: {
        "a/action.yml": javascript("main: m.js, post: p.js"),
        "a/m.js":
          'console.log(process.env["INPUT_IN_PUT"], process.env["INPUT_WITH-DASH"]); require("fs").appendFileSync(process.env.GITHUB_STATE, `n=${process.env["INPUT_IN_PUT"]}\\n`)',
        "a/p.js": 'console.log("post", process.env.STATE_n)',
      },
      steps:
        "- { uses: ./a, with: { in put: one } }\n- { uses: ./a, with: { in put: two } }\n" +
        "- { name: bad, run: exit 1 }\n- { uses: ./a }",
    });
    deepEqual(
      lines.filter((line) => !line.includes("exit code")),
      ["one push", "two push", "post two", "post one"],
    );
    deepEqual(ends.slice(-2), ["Post Run ./a: success/success", "Post Run ./a: success/success"]);
  });

  test("CI-13: pre of actions from elsewhere runs before all steps, post-if decides about post", async () => {
    const { lines } = await runRig({
      files: {
        "/actions/o/r/action.yml": javascript("pre: e.js, main: m.js, post: p.js, post-if: success()"),
        "/actions/o/r/e.js": 'console.log("pre")',
        "/actions/o/r/m.js": 'console.log("main", process.env.GITHUB_ACTION_REPOSITORY, process.env.GITHUB_ACTION_REF)',
        "/actions/o/r/p.js": 'console.log("post")',
      },
      steps: "- run: echo first\n- uses: o/r@v1\n- run: exit 1",
    });
    deepEqual(lines.slice(0, 3), ["pre", "first", "main o/r v1"]);
    ok(!lines.includes("post"));
  });

  test("CI-13: what pre saves, main and post find; actions that composite ones use have a pre, too", async () => {
    const save = (name: string): string =>
      `require("fs").appendFileSync(process.env.GITHUB_STATE, "${name}=${name}\\n")`;
    const seen = "process.env.STATE_pre, process.env.STATE_main, process.env.INPUT_IN_PUT";
    const { lines, result } = await runRig({
      files: {
        "/actions/o/r/action.yml": javascript("pre: e.js, main: m.js, post: p.js"),
        "/actions/o/r/e.js": `console.log("pre", ${seen}); ${save("pre")}`,
        "/actions/o/r/m.js": `console.log("main", ${seen}); ${save("main")}`,
        "/actions/o/r/p.js": `console.log("post", ${seen})`,
        "/actions/o/c/action.yml":
          "inputs: { in: {} }\nruns:\n  using: composite\n  steps:\n" +
          "    - { uses: o/r@v1, with: { in put: 'for ${{ inputs.in }}' } }\n",
      },
      steps: "- run: echo first\n- { uses: o/r@v1, with: { in put: me } }\n- { uses: o/c@v1, with: { in: you } }",
    });
    equal(result, "success", lines.join("\n"));
    deepEqual(lines, [
      "pre undefined undefined me",
      "pre undefined undefined for you",
      "first",
      "main pre undefined me",
      "main pre undefined for you",
      "post pre main for you",
      "post pre main me",
    ]);
  });

  test("CI-64: a composite action has inputs, steps and outputs of its own, and no secrets", async () => {
    const { lines, ends } = await runRig({
      secrets: { S: "not-for-actions" },
      files: {
        "c/action.yml": [
          "inputs: { who: { default: nobody } }",
          "outputs: { said: { value: '${{ steps.s.outputs.t }}' } }",
          "runs:",
          "  using: composite",
          "  steps:",
          "    - { id: s, shell: bash, run: 'echo t=hi ${{ inputs.who }} $OUTER [${{ steps.outer.outcome " +
            "}}] >> $GITHUB_OUTPUT; echo FROM=inside >> $GITHUB_ENV' }",
          "    - { shell: sh, run: 'echo $FROM; basename $GITHUB_ACTION_PATH' }",
        ].join("\n"),
      },
      steps:
        "- { id: outer, run: echo }\n- { id: c, uses: ./c, with: { who: you }, env: { OUTER: " +
        "seen } }\n- run: echo ${{ steps.c.outputs.said }} $FROM [$OUTER]",
    });
    deepEqual(
      lines.filter((line) => line !== ""),
      ["inside", "c", "hi you seen [] inside []"],
    );
    equal(ends.at(-1)?.endsWith("success/success"), true);
  });

  test("CI-7, CI-64: inside, the status is that of the action's own steps, and fails the step", async () => {
    const { ends, result } = await runRig({
      files: {
        "c/action.yml":
          "runs:\n  using: composite\n  steps:\n    - { name: runs, if: success(), shell: sh, " +
          "run: echo }\n    - { name: bad, shell: sh, run: exit 1 }\n" +
          "    - { name: skipped, shell: sh, run: echo }\n" +
          "    - { name: tidy, if: failure(), shell: sh, run: echo }\n",
      },
      steps: "- { name: first, run: exit 1 }\n- { name: outer, if: always(), uses: ./c }",
    });
    deepEqual(ends, [
      "first: failure/failure",
      "runs: success/success",
      "bad: failure/failure",
      "skipped: skipped",
      "tidy: success/success",
      "outer: failure/failure",
    ]);
    equal(result, "failure");
  });

  test("CI-40, CI-64: a run step needs a shell; actions end ten deep; a missing one says so", async () => {
    const wrong = await runRig({
      files: { "c/action.yml": "runs:\n  using: composite\n  steps: [{ run: echo }]" },
      steps: "- uses: ./c",
    });
    ok(wrong.lines.some((line) => line.includes("Required property is missing: shell")));
    const deep = await runRig({
      files: { "c/action.yml": "runs:\n  using: composite\n  steps: [{ uses: ./c }]" },
      steps: "- uses: ./c",
    });
    ok(deep.lines.some((line) => line.includes("more than 9 deep")));
    const none = await runRig({ steps: "- uses: ./nowhere" });
    ok(none.lines.some((line) => line.includes("Can't find 'action.yml'")));
    const outside = await runRig({ steps: "- uses: ./../elsewhere" });
    ok(outside.lines.some((line) => line.includes("leads out of the workspace")));
  });

  test("CI-67: background steps run beside the others, and count when they are waited for", async () => {
    const { lines, ends, result } = await runRig({
      steps: [
        "- { id: bg, name: bg, background: true, run: 'while [ ! -e go ]; do sleep 0.02; done; " +
          "echo x=1 >> $GITHUB_OUTPUT; exit 1' }",
        "- run: echo before [${{ steps.bg.outputs.x }}]; touch go",
        "- wait: bg",
        "- { if: always(), run: 'echo after ${{ steps.bg.outputs.x }} ${{ job.status }}' }",
        "- parallel: [{ run: 'touch one; while [ ! -e two ]; do sleep 0.02; done' }, { run: " +
          "'touch two; while [ ! -e one ]; do sleep 0.02; done' }]",
      ].join("\n"),
    });
    ok(lines.includes("before []") && lines.includes("after 1 failure"), lines.join("\n"));
    ok(ends.includes("bg: failure/failure"));
    equal(result, "failure");
  });
});
