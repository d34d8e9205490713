/** Runs of workflows on a node: dispatched, planned, run by its worker, and read back. */
import { deepEqual, equal, match, ok, rejects } from "node:assert/strict";
import { mkdtemp } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { startNode, type Running } from "#app/compose/compose.ts";
import { Config } from "#app/config/config.ts";
import { dataFolder } from "#app/node/data-folder.ts";
import { numericRunId } from "#doors/ci/job/run-id.ts";
import {
  listJobAttempts,
  listRunAttempts,
  listRunJobs,
  listRunnerGroups,
  listRunners,
  showRunJob,
} from "#doors/ci/lists/endpoints.ts";
import { callEndpoint } from "#http/client.ts";
import { until } from "#testing/until.ts";
import { clearAway } from "#testing/clear-away.ts";
import { CiNode } from "./ci-node.ts";
import { TestRepository } from "./repository.ts";

const wait = { limitMs: 60_000, everyMs: 50 };

const mill = `
name: Mill
run-name: Grind \${{ inputs.corn }}
on:
  workflow_dispatch:
    inputs:
      corn: { type: choice, options: [wheat, rye], default: rye }
      twice: { type: boolean }
jobs:
  weigh:
    runs-on: ubuntu-latest
    outputs: { stones: "\${{ steps.s.outputs.stones }}", total: "\${{ steps.w.outputs.total }}" }
    steps:
      - uses: actions/checkout@v4
      - id: w
        uses: ./.github/actions/weigh
      - id: s
        name: Choose stones
        run: echo 'stones=["coarse","fine"]' >> "$GITHUB_OUTPUT"
  grind:
    needs: weigh
    runs-on: [self-hosted, Linux]
    strategy: { matrix: { stone: "\${{ fromJSON(needs.weigh.outputs.stones) }}" } }
    steps:
      - run: echo "\${{ matrix.stone }} \${{ inputs.corn }} \${{ needs.weigh.outputs.total }} in $GITHUB_REPOSITORY"
      - run: test "$GITHUB_RUN_ID" -gt 0 && test "\${{ inputs.twice }}" = false
  sell:
    needs: grind
    if: github.ref == 'refs/heads/other'
    runs-on: ubuntu-latest
    steps: [{ run: exit 1 }]
`;
const weigh = `
name: Weigh
outputs: { total: { value: "\${{ steps.sum.outputs.total }}" } }
runs:
  using: composite
  steps:
    - { id: sum, shell: bash, run: 'echo "total=$(cat corn.txt)" >> "$GITHUB_OUTPUT"' }
`;
const broken = `
on: workflow_dispatch
jobs:
  a:
    runs-on: ubuntu-latest
    steps: [{ run: echo before }, { name: Break, run: exit 3 }, { run: echo never }, { if: failure(), run: echo after }]
  b: { needs: a, runs-on: ubuntu-latest, steps: [{ run: echo }] }
  c: { needs: a, if: failure(), runs-on: ubuntu-latest, steps: [{ run: echo cleared }] }
`;

const patient = `
on: workflow_dispatch
jobs:
  grind:
    runs-on: ubuntu-latest
    steps:
      - run: |
          trap 'echo stopped politely; exit 1' INT
          echo grinding; while true; do sleep 0.1; done
      - if: always()
        run: echo "swept after $STATUS"
        env: { STATUS: "\${{ job.status }}" }
  sell: { needs: grind, runs-on: ubuntu-latest, steps: [{ run: echo }] }
  clear: { needs: grind, if: always(), runs-on: ubuntu-latest, steps: [{ run: echo "all is clear" }] }
`;
const lucky = `
run-name: Try \${{ github.run_attempt }} of \${{ github.run_number }} in \${{ github.run_id }}
on: workflow_dispatch
jobs:
  first:
    runs-on: ubuntu-latest
    outputs: { n: "\${{ steps.n.outputs.n }}" }
    steps: [{ id: n, run: 'echo "n=$GITHUB_RUN_ATTEMPT" >> "$GITHUB_OUTPUT"' }]
  second:
    needs: first
    runs-on: ubuntu-latest
    strategy: { fail-fast: false, matrix: { x: [a, b] } }
    steps:
      - run: test "\${{ matrix.x }}$GITHUB_RUN_ATTEMPT" != b1
      - run: echo "\${{ needs.first.outputs.n }} $GITHUB_RUN_ATTEMPT"
  third: { needs: second, runs-on: ubuntu-latest, steps: [{ run: echo third }] }
`;
const corn = `
on: { push: { branches: [main], paths: ["*.txt"] } }
jobs:
  a: { runs-on: ubuntu-latest, steps: [{ run: 'echo "\${{ github.event_name }} \${{ github.event.after }}"' }] }
`;
const secret = `
on: workflow_dispatch
jobs:
  a:
    runs-on: ubuntu-latest
    env: { KEY: "\${{ secrets.KEY }}", WHO: "\${{ secrets.CUSTOMER }}" }
    steps: [{ run: 'test "$KEY" = "a stone of the mill" && echo "for $WHO with $KEY"' }]
`;
const loud = `
on: workflow_dispatch
jobs:
  a: { runs-on: ubuntu-latest, steps: [{ run: "for i in $(seq 1 2000); do echo line $i; done; sleep 1; echo end" }] }
`;

describe("runs on a node", { timeout: 180_000 }, () => {
  let folder: string;
  let node: Running;
  let ci: CiNode;
  let repository: TestRepository;

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), "millrace-ci-node-"));
    repository = new TestRepository({
      ".github/workflows/mill.yml": mill,
      ".github/workflows/broken.yml": broken,
      ".github/workflows/patient.yml": patient,
      ".github/workflows/secret.yml": secret,
      ".github/workflows/lucky.yml": lucky,
      ".github/workflows/loud.yml": loud,
      ".github/workflows/push.yml": "on: push\njobs: { a: { runs-on: x, steps: [{ run: echo }] } }\n",
      ".github/actions/weigh/action.yml": weigh,
      "corn.txt": "7",
    });
    const config = Config.parse({
      edge: { listen: ["127.0.0.1:0"] },
      cluster: { shards: 2 },
      node: { stopWithin: "100ms" },
      ci: { groups: ["mills"] },
    });
    node = await startNode(config, dataFolder(folder), { log: () => {} });
    ci = new CiNode(`http://127.0.0.1:${node.edgePorts[0]}`, () => node.owner);
    await ci.register("mill/flour", repository.folder);
  });
  after(async () => {
    await node.stop();
    repository[Symbol.dispose]();
    clearAway(folder);
  });

  test("CI-6, CI-15, CI-19: outputs, a dynamic matrix, an action of the commit and a condition", async () => {
    const run = await ci.dispatch("mill/flour", "mill.yml", { inputs: { corn: "wheat" } });
    const shown = await ci.ended(run);
    deepEqual(
      shown.jobs.map(({ id, name, conclusion }) => [id, name, conclusion]),
      [
        ["weigh", "weigh", "success"],
        ["grind", "grind (coarse)", "success"],
        ["grind", "grind (fine)", "success"],
        ["sell", "sell", "skipped"],
      ],
      JSON.stringify(shown, undefined, 1),
    );
    equal(shown.conclusion, "success");
    equal(shown.title, "Grind wheat");
    equal(shown.jobs[3]?.reason, "if: github.ref == 'refs/heads/other' is false");
    deepEqual(
      shown.jobs[0]?.steps.map(({ name, conclusion }) => `${name} ${conclusion}`),
      ["Run actions/checkout@v4 success", "Run ./.github/actions/weigh success", "Choose stones success"],
    );
    match(await ci.log(run, "grind (fine)"), /\| fine wheat 7 in mill\/flour\n/);
    deepEqual(
      (await ci.list({ repository: "mill/flour", branch: "main" })).map((one) => one.run),
      [run],
    );
  });

  test("CI-3, CI-4: a failed job skips those that need it, and its log says where it failed", async () => {
    const run = await ci.dispatch("mill/flour", "broken");
    const shown = await ci.ended(run);
    equal(shown.conclusion, "failure");
    deepEqual(
      shown.jobs.map(({ id, conclusion }) => `${id} ${conclusion}`),
      ["a failure", "b skipped", "c success"],
    );
    deepEqual(
      shown.jobs[0]?.steps.map(({ name, conclusion }) => `${name} ${conclusion}`),
      ["Run echo before success", "Break failure", "Run echo never skipped", "Run echo after success"],
    );
    const log = await ci.log(run, "a", 1);
    match(log, /Process completed with exit code 3\./);
    ok(!log.includes("before"), "only the step that was asked for");
  });

  test("a dispatch is repeated under its key without a second run, and refused where it makes no sense", async () => {
    const once = await ci.dispatch("mill/flour", "mill", { key: "same" });
    equal(await ci.dispatch("mill/flour", "mill", { key: "same" }), once);
    await ci.ended(once);
    await rejects(ci.dispatch("mill/flour", "mill", { inputs: { corn: "barley" } }), /one of wheat, rye/);
    await rejects(ci.dispatch("mill/flour", "push"), /does not run on workflow_dispatch/);
    await rejects(ci.dispatch("mill/flour", "none"), /broken.yml, loud.yml, lucky.yml, mill.yml, patient.yml/);
    await rejects(ci.dispatch("mill/none", "mill"), /find the repository/);
    await rejects(ci.dispatch("mill/flour", "mill", { ref: "no-such-branch" }), /find the branch or tag/);
  });

  test("CI-11: a cancelled step gets its signal, and what runs always() still runs, steps and jobs", async () => {
    const run = await ci.dispatch("mill/flour", "patient");
    await until("it grinds", async () => (await ci.log(run, "grind").catch(() => "")).includes("| grinding"), wait);
    await ci.cancel(run);
    const shown = await ci.ended(run);
    equal(shown.conclusion, "cancelled");
    deepEqual(
      shown.jobs.map(({ id, conclusion }) => `${id} ${conclusion}`),
      ["grind cancelled", "sell skipped", "clear success"],
    );
    const log = await ci.log(run, "grind");
    match(log, /stopped politely/);
    match(log, /swept after cancelled/);
    match(await ci.log(run, "clear"), /all is clear/);
  });

  test("CI-68: what failed is run again, with what needs it; what succeeded is not", async () => {
    const run = await ci.dispatch("mill/flour", "lucky");
    const before = await ci.ended(run);
    deepEqual(
      before.jobs.map(({ name, conclusion }) => `${name} ${conclusion}`),
      ["first success", "second (a) success", "second (b) failure", "third skipped"],
    );
    const failed = await ci.ended(await ci.rerun(run, { failed: true }));
    equal(failed.conclusion, "success", JSON.stringify(failed));
    equal(failed.attempt, 2);
    equal(failed.number, before.number, "a repeated run keeps its number");
    equal(before.title, `Try 1 of ${before.number} in ${numericRunId(run)}`);
    equal(failed.title, `Try 2 of ${before.number} in ${numericRunId(failed.run)}`);
    const attempts = await callEndpoint(ci.fetch, listRunAttempts, { params: { run: failed.run } });
    deepEqual(
      attempts.items.map((one) => [one.run, one.conclusion]),
      [
        [run, "failure"],
        [failed.run, "success"],
      ],
    );
    deepEqual(
      failed.jobs.map(({ name, attempts }) => `${name} ${attempts}`),
      ["first 0", "second (a) 0", "second (b) 1", "third 1"],
    );
    const pages: string[] = [];
    for (let cursor: string | undefined, more = true; more; more = cursor !== undefined) {
      const query = { limit: 3, ...(cursor !== undefined && { cursor }) };
      const page = await callEndpoint(ci.fetch, listRunJobs, { params: { run: failed.run }, query });
      pages.push(page.items.map(({ name }) => name).join());
      cursor = page.next;
    }
    deepEqual(pages, ["first,second (a),second (b)", "third"]);
    equal(
      (await callEndpoint(ci.fetch, showRunJob, { params: { run: failed.run, job: "second (b)" } })).conclusion,
      "success",
    );
    await until("its attempt is in history", async () => {
      const { items } = await callEndpoint(ci.fetch, listJobAttempts, {
        params: { run: failed.run, job: "second (b)" },
      });
      return items.length === 1 && items[0]?.outcome === "committed" && items[0].number === 1;
    });
    match(await ci.log(failed.run, "second (b)"), /\| 1 2\n/);
    match(await ci.log(failed.run, "second (a)"), /\| 1 1\n/, "the log of what was reused");
    const one = await ci.ended(await ci.rerun(failed.run, { job: "third" }));
    deepEqual(
      one.jobs.map(({ name, attempts }) => `${name} ${attempts}`),
      ["first 0", "second (a) 0", "second (b) 0", "third 1"],
    );
    const all = await ci.ended(await ci.rerun(run, {}));
    deepEqual(
      all.jobs.map(({ attempts }) => attempts),
      [1, 1, 1, 1],
    );
    await rejects(ci.rerun(run, { job: "none" }), /first, second, third/);
  });

  test("runners and their groups are listed with what they offer", async () => {
    const { items } = await callEndpoint(ci.fetch, listRunners, { query: { label: "ubuntu-latest" } });
    deepEqual(
      items.map(({ groups, labels }) => [groups, labels.includes("self-hosted")]),
      [[["mills"], true]],
    );
    const groups = await callEndpoint(ci.fetch, listRunnerGroups, {});
    deepEqual(
      groups.items.map(({ group, runners }) => [group, runners]),
      [["mills", items.map(({ name }) => name)]],
    );
    equal((await callEndpoint(ci.fetch, listRunners, { query: { label: "none" } })).items.length, 0);
  });

  test("a log is followed while it grows, and after a break, without a gap or a repeated line", async () => {
    const run = await ci.dispatch("mill/flour", "loud");
    await until("it runs", async () => (await ci.show(run)).jobs[0]?.job !== undefined, wait);
    const texts: string[] = [];
    let from: string | undefined;
    for (let turn = 0; turn < 30; turn += 1) {
      const page = await ci.follow(run, "a", {
        ...(from !== undefined && { from }),
        enough: (all) => all.length > 300,
      });
      texts.push(...page.texts);
      from = page.id;
      if (page.texts.length <= 300) break;
    }
    deepEqual(
      texts.filter((text) => /^line \d+$/.test(text)),
      Array.from({ length: 2_000 }, (_, i) => `line ${i + 1}`),
    );
    equal(texts.filter((text) => text === "end").length, 1);
    equal((await ci.log(run, "a")).split("\n").length - 1, texts.length, "the text has the same lines");
  });

  test("CI-53, CI-55, CI-59: an event starts the workflows whose filters let it pass, each once", async () => {
    const before = repository.git("rev-parse", "HEAD").trim();
    const after = repository.commit({
      ".github/workflows/docs.yml":
        "on: { push: { paths: ['docs/**'] } }\njobs: { a: { runs-on: ubuntu-latest, steps: [{ run: echo }] } }\n",
      ".github/workflows/corn.yml": corn,
      "corn.txt": "8",
    });
    const event = { id: "push-1", event: "push", ref: "refs/heads/main", before, sha: after };
    const first = await ci.send("mill/flour", event);
    deepEqual(
      first.started.map(({ path, created }) => [path, created]),
      [
        [".github/workflows/corn.yml", true],
        [".github/workflows/push.yml", true],
      ],
    );
    equal(first.passed.find(({ path }) => path.endsWith("docs.yml"))?.why, "no changed file is among its paths");
    equal(first.passed.find(({ path }) => path.endsWith("mill.yml"))?.why, "the workflow does not run on push");
    const again = await ci.send("mill/flour", event);
    deepEqual(
      again.started.map(({ run, created }) => [run, created]),
      first.started.map(({ run }) => [run, false]),
    );
    const [started] = first.started;
    equal((await ci.ended(started?.run ?? "")).conclusion, "success");
    match(await ci.log(started?.run ?? "", "a"), new RegExp(`push ${after}`));
    const push = first.started[1]?.run ?? "";
    const why = await ci.fetch(`/v1/jobs/${push}/why`).then((response) => response.text());
    match(why, /runner=x/, "a label that no runner has is said");
    await ci.cancel(push);
  });

  test("CI-50, CI-63: secrets of the repository count more than the tenant's, and the log hides them", async () => {
    const set = async (name: string, value: string): Promise<void> => {
      const init = { method: "PUT", body: JSON.stringify({ value }), headers: { "content-type": "application/json" } };
      equal((await ci.fetch(`/v1/secrets/${name}`, init)).ok, true, name);
    };
    await set("ci/CUSTOMER", "the baker of Marburg");
    await set("ci/mill/flour/KEY", "a stone of the mill");
    await set("ci/KEY", "not this one");
    const run = await ci.dispatch("mill/flour", "secret");
    equal((await ci.ended(run)).conclusion, "success", await ci.log(run, "a"));
    const log = await ci.log(run, "a");
    match(log, /\| for \*\*\* with \*\*\*\n/);
    ok(!log.includes("baker") && !log.includes("stone"));
  });
});
