import { deepEqual, equal, ok } from "node:assert/strict";
import { describe, test } from "node:test";
import { type Finding, findingText, rules } from "./finding.ts";
import { lint } from "./lint.ts";
import { sarifOf } from "./sarif.ts";

const found = (text: string, labels?: readonly string[]): readonly Finding[] =>
  lint({ path: "w.yml", text }, labels ? { labels } : {});

const rulesIn = (text: string, labels?: readonly string[]): readonly string[] =>
  found(text, labels).map(({ rule }) => rule);

const job = (steps: string, more = "", on = "[push, pull_request]"): string =>
  `on: ${on}\njobs:\n  a:\n    runs-on: ubuntu-latest\n${more}    steps:\n${steps.replaceAll(/^/gm, "      ")}\n`;

describe("lint", () => {
  test("a workflow in order has no findings", () => {
    const pinned = "actions/checkout@0123456789012345678901234567890123456789";
    deepEqual(
      found(job(`- uses: ${pinned}\n- { id: x, run: echo }\n- run: echo \${{ steps.x.outcome }} \${{ github.sha }}`)),
      [],
    );
  });

  test("CI-33: what strangers choose may not become part of a script", () => {
    const untrusted = [
      "github.event.issue.title",
      "github.event.pull_request.body",
      "github.event.comment.body",
      "github.head_ref",
      "github.event.pull_request.head.ref",
      "github.event.commits[0].message",
      "github.event.head_commit.author.name",
      "GitHub['event'].review.body",
      "toJSON(github.event)",
      "format('{0}', github.event.issue.body)",
    ];
    for (const expression of untrusted)
      deepEqual(rulesIn(job(`- run: echo "\${{ ${expression} }}"`)), ["script-injection"], expression);
    for (const expression of ["github.sha", "github.event.number", "github.event.pull_request.number", "github.actor"])
      deepEqual(rulesIn(job(`- run: echo "\${{ ${expression} }}"`)), [], expression);
    deepEqual(rulesIn(job("- { env: { T: '${{ github.event.issue.title }}' }, run: echo $T }")), []);
    const script =
      "- uses: actions/github-script@0123456789012345678901234567890123456789\n" +
      "  with: { script: 'x(${{ github.head_ref }})' }";
    deepEqual(rulesIn(job(script)), ["script-injection"]);
  });

  test("CI-61: a called workflow of an unknown repository is a warning, one that is not there an error", () => {
    const sha = "0123456789012345678901234567890123456789";
    const call = (uses: string): string => `on: push\njobs: { a: { uses: ${uses} } }`;
    const far = call(`Acme/shared/.github/workflows/x.yml@${sha}`);
    const called = () => undefined;
    const [warning, ...rest] = lint({ path: "w.yml", text: far }, { called });
    deepEqual([warning?.rule, warning?.level, rest], ["unknown-repository", "warning", []]);
    ok(warning?.message.endsWith("millrace ci add Acme/shared <url>"));
    deepEqual(lint({ path: "w.yml", text: far }, { repositories: new Set(["acme/shared"]) }), []);
    const near = lint({ path: "w.yml", text: call("./.github/workflows/x.yml") }, { called });
    deepEqual(
      near.map(({ rule, level }) => [rule, level]),
      [["workflow-error", "error"]],
    );
  });

  test("labels that no runner has, with the nearest", () => {
    const [finding] = found("on: push\njobs: { a: { runs-on: [self-hosted, ubunto-latest] } }");
    equal(
      finding && findingText(finding),
      "w.yml:2:37: warning: no runner is known to have the label ubunto-latest; did you " +
        "mean ubuntu-latest? [unknown-label]",
    );
    deepEqual(rulesIn("on: push\njobs: { a: { runs-on: gpu } }", ["GPU"]), []);
    deepEqual(rulesIn("on: push\njobs: { a: { runs-on: '${{ vars.x }}' } }"), []);
  });

  test("actions and workflows that their owners can change", () => {
    deepEqual(rulesIn(job("- uses: a/b@v1\n- uses: ./local\n- uses: docker://alpine:3")), ["unpinned-action"]);
    deepEqual(rulesIn("on: push\njobs: { a: { uses: o/r/.github/workflows/x.yml@main } }"), [
      "unpinned-action",
      "unknown-repository",
    ]);
  });

  test("jobs that can never run, and conditions that always hold", () => {
    deepEqual(rulesIn(job("- run: echo", "    if: false\n")), ["never-runs"]);
    deepEqual(rulesIn(job("- run: echo", "    if: github.event_name == 'schedule' && true\n")), ["never-runs"]);
    deepEqual(rulesIn(job("- run: echo", "    if: github.event_name == 'schedule' || true\n")), []);
    deepEqual(rulesIn(job("- run: echo", "    if: github.event_name == 'schedule'\n", "[workflow_call]")), []);
    const needing = (condition: string): string =>
      `on: push\njobs:\n  a: { runs-on: linux, if: 1 == 2 }\n  b: { runs-on: linux, needs: a${condition} }\n`;
    deepEqual(rulesIn(needing("")), ["never-runs", "never-runs"]);
    deepEqual(rulesIn(needing(", if: always()")), ["never-runs"]);
    deepEqual(rulesIn(job("- { if: '${{ false }} || x', run: echo }")), ["always-runs"]);
  });

  test("steps and needs that are not there, and commands of old", () => {
    deepEqual(rulesIn(job("- run: echo ${{ steps.later.outputs.x }}\n- { id: later, run: echo }")), ["unknown-step"]);
    deepEqual(rulesIn(job("- run: echo ${{ needs.b.result }}")), ["unknown-need"]);
    deepEqual(rulesIn(job("- run: echo '::set-output name=a::b'")), ["deprecated-command"]);
  });

  test("what cannot run is an error with its place, and SARIF has the same", () => {
    const findings = found("on: push\njobs: { a: { runs-on: linux, wrong: 1 } }");
    deepEqual(
      findings.map((finding) => findingText(finding)),
      ["w.yml:2:30: error: Unexpected value 'wrong' [workflow-error]"],
    );
    const sarif = JSON.stringify(sarifOf(findings, "1"));
    ok(sarif.includes('"startLine":2') && sarif.includes('"ruleId":"workflow-error"'));
    for (const rule of Object.keys(rules)) ok(sarif.includes(`"id":"${rule}"`));
  });
});
