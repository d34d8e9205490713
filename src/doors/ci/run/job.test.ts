/** Jobs with real processes; the number is that of the semantic in docs/reference/ci.md. */
import { deepEqual, equal, ok } from "node:assert/strict";
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { describe, test } from "node:test";
import { until } from "#testing/until.ts";
import { runRig } from "./testing/job-rig.ts";

const posix = {
  skip: process.platform === "win32" ? "needs a POSIX shell" : false,
  timeout: 60_000,
  concurrency: true,
};

describe("conditions and results", posix, () => {
  test("CI-7, CI-8: after a failure only steps that ask for it run", async () => {
    const { ends, result } = await runRig({
      steps: [
        "- { name: bad, run: exit 1 }",
        "- { name: next, run: echo }",
        "- { name: on failure, if: failure(), run: echo }",
        "- { name: always, if: always(), run: echo }",
        "- { name: never, if: cancelled(), run: echo }",
      ].join("\n"),
    });
    deepEqual(ends, [
      "bad: failure/failure",
      "next: skipped",
      "on failure: success/success",
      "always: success/success",
      "never: skipped",
    ]);
    equal(result, "failure");
  });

  test("the job's context says nothing of containers and services where there are none", async () => {
    const { lines } = await runRig({
      steps: `- run: echo "\${{ job.container && 'in a container' || 'on the machine' }} \${{ toJSON(job.services) }}"`,
    });
    ok(lines.includes("on the machine null"), lines.join("\n"));
  });

  test("CI-9: a step that may fail has failed and counts as done; an error in that wish leaves it failed", async () => {
    const { ends, lines, result } = await runRig({
      steps: [
        "- { name: bad, id: bad, run: exit 3, continue-on-error: true }",
        "- run: echo ${{ steps.bad.outcome }} ${{ steps.bad.conclusion }}",
        "- { name: worse, run: exit 3, continue-on-error: \"${{ fromJSON('no') }}\" }",
      ].join("\n"),
    });
    equal(ends[0], "bad: failure/success");
    ok(lines.includes("failure success"));
    equal(ends[2], "worse: failure/failure");
    equal(result, "failure");
  });

  test("a step is tried again for the reasons that its retry names, and no other", async () => {
    const { ends, lines } = await runRig({
      steps: [
        "- { name: late, run: 'echo x >> tries; test $(wc -l < tries) = 3', x-millrace: { retry: { max: 2 } } }",
        "- { name: short, run: 'echo x >> less; exit 1', continue-on-error: true, x-millrace: { retry: { max: 1 } } }",
        "- { name: other, run: 'echo x >> only; exit 1', continue-on-error: true," +
          " x-millrace: { retry: { max: 2, on: timed-out } } }",
        "- run: echo $(wc -l < tries) $(wc -l < less) $(wc -l < only)",
      ].join("\n"),
    });
    deepEqual(ends.slice(0, 3), ["late: success/success", "short: failure/success", "other: failure/success"]);
    ok(lines.includes("3 2 1"), lines.join("\n"));
  });

  test("CI-10: an error in if or env fails the step", async () => {
    const { ends } = await runRig({
      steps:
        "- { name: a, if: \"fromJSON('x') == 1\", run: echo }\n" +
        "- { name: b, if: always(), env: { A: \"${{ fromJSON('x') }}\" }, run: echo }",
    });
    deepEqual(ends, ["a: failure/failure", "b: failure/failure"]);
  });

  test("CI-14: a step over its time has failed, a job over its time is cancelled", async () => {
    const step = await runRig({
      steps: "- { name: slow, run: sleep 60, timeout-minutes: 0.005 }\n- { name: after, if: failure(), run: echo }",
    });
    deepEqual(step.ends, ["slow: failure/failure", "after: success/success"]);
    ok(step.lines.includes("The action 'slow' has timed out after 0.005 minutes."));
    const job = await runRig({ steps: "- { name: slow, run: sleep 60 }", spec: { timeoutMinutes: 0.005 } });
    equal(job.result, "cancelled");
  });
});

describe("cancelling", posix, () => {
  test("CI-11: SIGINT first, and steps whose condition still holds run on", async () => {
    const controller = new AbortController();
    const { ends, lines, result } = await runRig({
      steps: [
        "- { name: works, run: \"trap 'echo interrupted; exit 0' INT; echo ready; sleep 60 & wait\" }",
        "- { name: next, run: echo }",
        "- { name: cleanup, if: always(), run: 'echo ${{ job.status }}' }",
      ].join("\n"),
      signal: controller.signal,
      onReport: (report) => report.kind === "line" && report.text === "ready" && controller.abort(),
    });
    deepEqual(ends, ["works: cancelled/cancelled", "next: skipped", "cleanup: success/success"]);
    ok(lines.includes("interrupted") && lines.includes("cancelled"));
    equal(result, "cancelled");
  });

  test("CI-11: who does not listen is killed with all that it started", async () => {
    const controller = new AbortController();
    const { ends, lines } = await runRig({
      steps: "- { name: deaf, run: \"trap '' INT TERM; sleep 61 & echo $!; wait; wait; sleep 62\" }",
      signal: controller.signal,
      onReport: (report) => report.kind === "line" && /^\d+$/.test(report.text) && controller.abort(),
    });
    equal(ends[0], "deaf: cancelled/cancelled");
    const pid = Number(lines.find((line) => /^\d+$/.test(line)));
    await until("the sleeping child is gone", () => !isAlive(pid));
  });

  test("CI-11: a running step with always() is left to end by itself", async () => {
    const controller = new AbortController();
    const { ends } = await runRig({
      steps: "- { name: must, if: always(), run: echo ready; sleep 0.2; echo done }",
      signal: controller.signal,
      onReport: (report) => report.kind === "line" && report.text === "ready" && controller.abort(),
    });
    deepEqual(ends, ["must: success/success"]);
  });

  test("what a step leaves running ends with the job", async () => {
    const { lines } = await runRig({ steps: "- run: sleep 63 & echo $!" });
    await until("the sleeping child is gone", () => !isAlive(Number(lines[0])));
  });
});

/** One that was killed and has no parent to notice is not alive, though it has its number still. */
function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return !/^\d+ \(.*\) Z/.test(readFileSync(`/proc/${pid}/stat`, "utf8"));
  } catch {
    return false;
  }
}

describe("variables and files", posix, () => {
  test("CI-36: step before job before workflow, GITHUB_ENV between, and the runner's own stay", async () => {
    const { lines } = await runRig({
      workflow: "env: { A: workflow, B: workflow, C: workflow }",
      job: "env: { B: job, C: job }",
      steps: [
        "- { env: { C: step, GITHUB_REF: mine }, run: 'echo $A $B $C $GITHUB_REF' }",
        "- run: echo B=file >> $GITHUB_ENV; echo C=file >> $GITHUB_ENV",
        "- { env: { C: step }, run: 'echo $B $C ${{ env.B }} ${{ env.C }}' }",
      ].join("\n"),
    });
    deepEqual(lines, ["workflow job step refs/heads/main", "file step file step"]);
  });

  test("CI-37: the usual variables are there, the token is not", async () => {
    const { lines } = await runRig({
      secrets: { GITHUB_TOKEN: "t0ken-value" },
      steps:
        "- run: 'echo $CI $GITHUB_ACTIONS $GITHUB_JOB $RUNNER_OS [$GITHUB_TOKEN] $GITHUB_ACTION; " +
        "cat $GITHUB_EVENT_PATH; test $PWD = $GITHUB_WORKSPACE'\n" +
        "- run: echo ${{ github.token }}",
    });
    equal(lines[0], "true true it Linux [] __run");
    ok(lines.includes('  "n": 1'));
    equal(lines.at(-1), "***");
  });

  test("CI-40: defaults of the job, then of the workflow; a folder that is not there fails", async () => {
    const { lines, ends } = await runRig({
      workflow: "defaults: { run: { shell: sh, working-directory: a } }",
      job: "defaults: { run: { working-directory: b } }",
      files: { "a/x": "", "b/x": "" },
      steps:
        "- run: basename $PWD; ps -o comm= -p $$ || true\n" +
        "- { working-directory: a, shell: bash, run: basename $PWD }\n" +
        "- { name: gone, working-directory: c, run: echo }",
    });
    equal(lines[0], "b");
    ok(lines.includes("a"));
    equal(ends.at(-1), "gone: failure/failure");
  });

  test("CI-41: files are read even after a failure, and a wrong one fails the step", async () => {
    const { lines, ends } = await runRig({
      steps: [
        "- { id: a, run: 'echo x=1 >> $GITHUB_OUTPUT; exit 1', continue-on-error: true }",
        "- run: echo x is ${{ steps.a.outputs.x }}",
        "- { name: wrong, run: echo nonsense >> $GITHUB_OUTPUT }",
      ].join("\n"),
    });
    ok(lines.includes("x is 1"));
    equal(ends.at(-1), "wrong: failure/failure");
    ok(lines.some((line) => line.includes("Invalid format 'nonsense'")));
  });

  test("CI-43, CI-44: paths come first, summaries are masked and have a limit", async () => {
    const { lines, reports, ends } = await runRig({
      secrets: { S: "sesame-open" },
      files: { "bin/hello": "#!/bin/sh\necho hello from bin\n" },
      steps: [
        "- run: chmod +x bin/hello; echo $PWD/bin >> $GITHUB_PATH; echo sesame-open >> $GITHUB_STEP_SUMMARY",
        "- run: hello",
        "- { name: long, run: head -c 1100000 /dev/zero >> $GITHUB_STEP_SUMMARY }",
      ].join("\n"),
    });
    ok(lines.includes("hello from bin"));
    deepEqual(
      reports.flatMap((report) => (report.kind === "summary" ? [report.text] : [])),
      ["***\n"],
    );
    equal(ends.at(-1), "long: success/success");
    ok(lines.some((line) => line.includes("STEP_SUMMARY upload aborted") && line.includes("1024k, got 1075k")));
  });

  test("CI-41, CI-43: each file counts by itself, and a variable that may not be set is left out", async () => {
    const { lines, ends } = await runRig({
      steps: [
        "- id: a",
        "  name: a",
        "  continue-on-error: true",
        "  run: |",
        '    printf "GOOD=1\\nnonsense\\n" >> $GITHUB_ENV; echo out=2 >> $GITHUB_OUTPUT; echo $PWD/bin >> $GITHUB_PATH',
        '- { name: b, run: \'echo "$GOOD ${{ steps.a.outputs.out }} ${PATH%%:*}"; ' +
          'printf "NODE_OPTIONS=--x\\nNEXT=3\\n" >> $GITHUB_ENV\' }',
        "- { name: c, run: 'echo \"[$NODE_OPTIONS] $NEXT\"' }",
      ].join("\n"),
    });
    deepEqual(ends, ["a: failure/success", "b: success/success", "c: success/success"]);
    ok(
      lines.some((line) => line.startsWith("1 2 ") && line.endsWith("/bin")),
      lines.join("\n"),
    );
    ok(
      lines.includes("Can't store NODE_OPTIONS output parameter using '$GITHUB_ENV' command.") &&
        lines.includes("[] 3"),
    );
  });

  test("CI-41: what steps declare as artifacts, later steps read; lines that are wrong fail the step", async () => {
    const digest = createHash("sha256").update("grain").digest("hex");
    const { lines, ends } = await runRig({
      files: { "dist/a.bin": "grain" },
      steps: [
        `- { name: a, run: 'echo dist/a.bin >> $GITHUB_ARTIFACTS; echo "reg.example/x@sha256:${digest}" >> $GITHUB_ARTIFACTS; cat $GITHUB_ARTIFACTS_LIST' }`,
        '- { name: b, run: \'echo "# again" > $GITHUB_ARTIFACTS; echo file://dist/a.bin >> $GITHUB_ARTIFACTS; ' +
          "cat $GITHUB_ARTIFACTS_LIST' }",
        "- { name: none, continue-on-error: true, run: echo nothing >> $GITHUB_ARTIFACTS }",
        "- { name: equals, continue-on-error: true, run: echo a=b >> $GITHUB_ARTIFACTS }",
        "- { name: scheme, continue-on-error: true, run: 'echo https://x >> $GITHUB_ARTIFACTS' }",
        "- { name: other, continue-on-error: true, run: echo changed > dist/a.bin; " +
          "echo dist/a.bin >> $GITHUB_ARTIFACTS }",
      ].join("\n"),
    });
    ok(lines.includes('{"version":1,"subjects":[]}'), lines.join("\n"));
    const subjects = [
      { name: "a.bin", digest: `sha256:${digest}`, kind: "file" },
      { name: "reg.example/x", digest: `sha256:${digest}`, kind: "oci" },
    ];
    ok(lines.includes(JSON.stringify({ version: 1, subjects })), lines.join("\n"));
    ok(lines.includes("Captured 2 artifact subject(s) from this step (job total: 2)."));
    deepEqual(
      ends.map((end) => end.split("/")[0]),
      ["a: success", "b: success", "none: failure", "equals: failure", "scheme: failure", "other: failure"],
    );
    for (const why of ["does not exist, from the workspace", "with '='", "https:// is not known", "declared before"])
      ok(
        lines.some((line) => line.includes(`Line 1: `) && line.includes(why)),
        why,
      );
  });

  test("CI-52: an output that looks like a secret is not handed on, empty ones neither", async () => {
    const { outputs, lines } = await runRig({
      secrets: { S: "very-secret" },
      job:
        "outputs: { good: '${{ steps.a.outputs.good }}', bad: '${{ steps.a.outputs.bad }}', " +
        "none: '${{ steps.a.outputs.none }}' }",
      steps: "- { id: a, run: 'echo good=1 >> $GITHUB_OUTPUT; echo bad=very-secret >> $GITHUB_OUTPUT' }",
    });
    deepEqual([...outputs], [["good", "1"]]);
    ok(lines.includes("Skip output 'bad' since it may contain secret."));
  });
});

describe("commands", posix, () => {
  test("CI-46, CI-47, CI-48: annotations, groups, masks, outputs, and a pause", async () => {
    const { reports, lines } = await runRig({
      steps: [
        "- id: a",
        "  run: |",
        '    echo "::add-mask::hide-me"; echo "now hide-me"',
        '    echo "::error file=a.js,endLine=3,col=1::broken"; echo "::group::G"; echo "::endgroup::"',
        '    echo "::set-output name=o::old way"; echo "::stop-commands::t0k3n-long"; echo ' +
          '"::error::not an error"; echo "::t0k3n-long::"',
        '    for i in 1 2 3 4 5 6 7 8 9 10 11 12; do echo "::notice::$i"; done; echo "::debug::quiet"',
        "- run: echo ${{ steps.a.outputs.o }}",
        "- { name: refused, run: 'echo ::set-env name=A::b' }",
      ].join("\n"),
    });
    ok(
      lines.includes("now ***") &&
        lines.includes("::error::not an error") &&
        lines.includes("old way") &&
        !lines.includes("quiet"),
    );
    const annotations = reports.flatMap((report) => (report.kind === "annotation" ? [report.annotation] : []));
    deepEqual(annotations[0], { level: "error", message: "broken", file: "a.js", line: 3, endLine: 3, column: 1 });
    equal(annotations.filter(({ level }) => level === "notice").length, 10);
    ok(lines.some((line) => line.includes("The `set-env` command is disabled")));
  });

  test("CI-49: problem matchers find what tools print", async () => {
    const matcher = {
      problemMatcher: [
        {
          owner: "lint",
          pattern: [
            { regexp: "^(\\S+\\.js)$", file: 1 },
            {
              regexp: "^\\s+(\\d+):(\\d+)\\s+(error|warning)\\s+(.*)$",
              line: 1,
              column: 2,
              severity: 3,
              message: 4,
              loop: true,
            },
          ],
        },
      ],
    };
    const { reports } = await runRig({
      files: { "m.json": JSON.stringify(matcher), "src/a.js": "" },
      steps:
        "- run: |\n    echo '::add-matcher::m.json'\n" +
        "    printf 'src/a.js\\n  3:5  error  no semicolon\\n  4:1  \\033[33mwarning  long " +
        "line\\nother\\n  9:9 error nothing\\n'",
    });
    const annotations = reports.flatMap((report) => (report.kind === "annotation" ? [report.annotation] : []));
    deepEqual(
      annotations.map(({ level, message, file, line }) => [level, message, file, line]),
      [
        ["error", "no semicolon", "src/a.js", 3],
        ["warning", "long line", "src/a.js", 4],
      ],
    );
  });

  test("CI-30: hashFiles is one digest over the files in order, and empty for none", async () => {
    const { lines } = await runRig({
      files: { "a/1.lock": "one", "a/b/2.lock": "two", "c.txt": "x" },
      steps: [
        "- run: echo ${{ hashFiles('**/*.lock') }} [${{ hashFiles('nothing*') }}] ${{ hashFiles('**/*.lock', " +
          "'!a/b/**') }}",
        '- run: "printf one | sha256sum | cut -c1-64 | xxd -r -p | sha256sum | cut -c1-64"',
      ].join("\n"),
    });
    const [all = "", none, without] = lines[0]?.split(" ") ?? [];
    equal(none, "[]");
    const one = createHash("sha256").update("one").digest();
    equal(without, createHash("sha256").update(one).digest("hex"));
    const two = createHash("sha256").update("two").digest();
    equal(all, createHash("sha256").update(one).update(two).digest("hex"));
  });

  test("a secret never shows, in no encoding and in no name", async () => {
    const { reports } = await runRig({
      secrets: { S: "p4ss w0rd/+&\"'" },
      steps: [
        "- { name: 'with ${{ secrets.S }}', env: { S: '${{ secrets.S }}' }, run: 'echo " +
          '"$S"; echo -n "user:$S" | base64; echo -n "$S" | base64 -w0; echo "::error::$S"; ' +
          'echo "::group::$S"\' }',
        "- { run: \"printf 'p4ss '; printf 'w0rd/+&\\\"'; echo \\\"'\\\"\" }",
      ].join("\n"),
    });
    const shown = JSON.stringify(reports);
    ok(!shown.includes("p4ss w0rd") && !shown.includes(Buffer.from("p4ss w0rd").toString("base64").slice(0, 10)));
  });
});
