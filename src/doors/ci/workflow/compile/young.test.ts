/** Words that workflows have had for a short time only: each compiles, and means what it says. */
import { deepEqual, equal, ok } from "node:assert/strict";
import { describe, test } from "node:test";
import { problemText } from "#doors/ci/workflow/problem.ts";
import { lint } from "#doors/ci/lint/lint.ts";
import { compile } from "./compile.ts";
import type { NormalJob, Workflow } from "./model.ts";

const text = `
name: Young
run-name: "\${{ case(github.event_name == 'schedule', 'nightly', inputs.what != '', inputs.what, 'by hand') }}"
on:
  schedule: [{ cron: "30 2 * * MON-FRI", timezone: Europe/Berlin }, { cron: "0 5 1 */3 *" }]
  workflow_dispatch: { inputs: { what: { type: choice, options: [a, b], default: a }, where: { type: environment } } }
  workflow_call: { inputs: { what: { type: string } }, secrets: { key: { required: false } } }
  merge_group: { types: [checks_requested], branches: [main] }
permissions: { contents: read, id-token: write, attestations: write, models: read }
concurrency: { group: "\${{ github.workflow }}", queue: max }
jobs:
  build: &build
    runs-on: { group: large, labels: [linux, x64] }
    permissions: {}
    environment: { name: "\${{ inputs.where || 'staging' }}", url: "\${{ steps.last.outputs.url }}", deployment: false }
    services:
      db: { image: "postgres:18", entrypoint: /bin/sh, command: -c 'exec postgres', options: --health-cmd x }
    container: { image: "node:24", env: &env { A: "1" }, volumes: ["/tmp:/tmp"] }
    strategy: { fail-fast: "\${{ github.ref != 'refs/heads/main' }}", max-parallel: 2, matrix: { node: [20, 22] } }
    env: *env
    steps: &steps
      - { id: server, run: sleep 5, background: true }
      - parallel: [{ run: echo 1 }, { uses: actions/checkout@v4 }]
      - { id: last, run: echo url=https://x.example >> $GITHUB_OUTPUT, if: "!cancelled()" }
      - wait: [server]
      - { id: other, run: sleep 5, background: true }
      - cancel: other
      - wait-all:
  again: { needs: build, runs-on: ubuntu-latest, steps: *steps }
  whole: { runs-on: ubuntu-latest, env: "\${{ fromJSON(vars.ENV) }}", steps: [{ run: echo }] }
`;

function compiled(): Workflow {
  const made = compile({ path: "w.yml", text });
  ok(made.ok, made.ok ? "" : made.problems.map((problem) => problemText(problem)).join("\n"));
  return made.workflow;
}

describe("young words", () => {
  test("CI-34, CI-58, CI-60, CI-67: all of them compile", () => {
    const { jobs, on } = compiled();
    deepEqual(
      jobs.map(({ id }) => id),
      ["build", "again", "whole"],
    );
    deepEqual(on.schedules, [{ cron: "30 2 * * MON-FRI", timezone: "Europe/Berlin" }, { cron: "0 5 1 */3 *" }]);
    const [build, again] = jobs as readonly NormalJob[];
    const kinds = ["run", "parallel", "run", "wait", "run", "cancel", "wait-all"];
    for (const job of [build, again])
      deepEqual(
        job?.steps.map(({ kind }) => kind),
        kinds,
      );
    deepEqual(build?.permissions, {});
  });

  test("lint finds no errors in them", () => {
    equal(lint({ path: "w.yml", text }).filter(({ level }) => level === "error").length, 0);
  });
});
