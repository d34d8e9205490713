/** A run that failed late is run again from the step that failed, with another script; nothing before it repeats. */
import { deepEqual, doesNotMatch, equal, match, rejects } from "node:assert/strict";
import { mkdtemp, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { startNode } from "#app/compose/compose.ts";
import { Config } from "#app/config/config.ts";
import { dataFolder } from "#app/node/data-folder.ts";
import { runLine } from "#cli/line.ts";
import { tokenSha256 } from "#edge/identity/bearer.ts";
import { clearAway } from "#testing/clear-away.ts";
import { CiNode } from "#e2e/ci/ci-node.ts";
import { TestRepository } from "#e2e/ci/repository.ts";

const workflow = `
on: workflow_dispatch
jobs:
  build:
    strategy: { matrix: { part: [a, b] }, fail-fast: false }
    runs-on: ubuntu-latest
    outputs: { word: "\${{ steps.last.outputs.word }}" }
    steps:
      - run: echo "made once in \${{ github.run_id }}" | tee made
      - run: echo "LATER=yes" >> "$GITHUB_ENV"; mkdir -p "$HOME/d"; echo tool > "$HOME/d/tool"
      - run: 'test "\${{ matrix.part }}" = a || exit 3'
      - id: last
        if: success()
        run: echo "word=$(cat made | cut -d' ' -f1,2) $LATER $(cat "$HOME/d/tool")" | tee -a "$GITHUB_OUTPUT"
  after:
    needs: build
    runs-on: ubuntu-latest
    steps: [{ run: 'echo "after: \${{ needs.build.outputs.word }}"' }]
`;
const member = "member-0123456789abcdef0123456789";

test("a run goes on from a step, with an edited script", { timeout: 120_000 }, async () => {
  const folder = await mkdtemp(join(tmpdir(), "millrace-ci-from-step-"));
  using repository = new TestRepository({ ".github/workflows/w.yml": workflow });
  const tokens = [{ name: "ada", sha256: tokenSha256(member), tenant: "default", roles: ["member"] }];
  const settings = {
    edge: { listen: ["127.0.0.1:0"], identity: { tokens } },
    cluster: { shards: 1 },
    node: { stopWithin: "100ms" },
  };
  const node = await startNode(Config.parse(settings), dataFolder(folder), { log: () => {} });
  try {
    const base = `http://127.0.0.1:${node.edgePorts[0]}`;
    const ci = new CiNode(base, () => node.owner);
    await ci.register("mill/flour", repository.folder);
    const first = await ci.dispatch("mill/flour", "w");
    const shown = await ci.ended(first);
    deepEqual(
      shown.jobs.map(({ name, conclusion }) => `${name} ${conclusion}`),
      ["build (a) success", "build (b) failure", "after skipped"],
    );
    const made = /made once in \d+/.exec(await ci.log(first, "build (b)"))?.[0];
    const lost = { job: "build (b)", fromStep: 2 };
    await rejects(ci.rerun(first, { job: "build (a)", fromStep: 2 }), /nothing of this job was kept/);
    await rejects(ci.rerun(first, { job: "build (b)", fromStep: 77 }), /known=0, 1, 2, 3, 4/);
    await rejects(ci.rerun(first, { job: "build (b)", fromStep: 2, script: "echo ${{" }), /not closed/);
    const ada = new CiNode(base, () => member);
    await rejects(ada.rerun(first, { ...lost, script: "true" }), /only operators/);

    // with the same script it fails the same way, and the steps before it are those of the first run
    const same = await ada.rerun(first, lost);
    equal((await ci.ended(same)).conclusion, "failure");
    const log = await ci.log(same, "build (b)");
    match(log, new RegExp(`${made}\\n[^]*The job goes on at step 2; what is before it is of the run ${first}`));

    // from a run that went on itself
    await writeFile(join(folder, "fixed.sh"), 'echo "fixed ${{ matrix.part }} $LATER"');
    const said: string[] = [];
    const note = (line: string): void => void said.push(line);
    const world = { env: { MILLRACE_TOKEN: node.owner }, out: note, note, progress() {} };
    const words = ["ci", "rerun", same, "--job", "build (b)", "--from-step", "2"];
    equal(await runLine([...words, "--script", join(folder, "fixed.sh"), "--server", base], world as never), 0);
    const fixed = await ci.ended(said.at(-1) ?? "");
    deepEqual(
      fixed.jobs.map(({ name, conclusion }) => `${name} ${conclusion}`),
      ["build (a) success", "build (b) success", "after success"],
    );
    const fixedLog = await ci.log(fixed.run, "build (b)");
    match(fixedLog, new RegExp(`${made}\\n[^]*The script of that step is not the one of the commit`));
    match(fixedLog, /\| fixed b yes\n[^]*\| word=made once yes tool\n/);
    match(await ci.log(fixed.run, "after"), /after: made once yes tool/);
    equal(fixed.jobs[1]?.steps.length, 4, "all steps are shown");

    // an ordinary re-run begins at the first step, with the script of the commit
    const whole = await ci.ended(await ci.rerun(fixed.run, {}));
    equal(whole.conclusion, "failure");
    doesNotMatch(await ci.log(whole.run, "build (b)"), new RegExp(`${made}\\n`));
  } finally {
    await node.stop();
    clearAway(folder);
  }
});
