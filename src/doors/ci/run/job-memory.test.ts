/** A job that ends in the middle goes on in another process as if nothing had happened. */
import { deepEqual, equal, ok, rejects } from "node:assert/strict";
import { mkdtempSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, test } from "node:test";
import { clearAway } from "#testing/clear-away.ts";
import type { JobMemory } from "./job-memory.ts";
import { type Rig, runRig } from "./testing/job-rig.ts";

const posix = {
  skip: process.platform === "win32" ? "needs a POSIX shell" : false,
  timeout: 120_000,
  concurrency: true,
};

const action =
  "name: js\ninputs: { in: { default: none } }\nruns: { using: node20, main: m.js, post: p.js, post-if: always() }\n";
const rig: Rig = {
  job: "outputs: { said: '${{ steps.say.outputs.word }}' }",
  workflow: "env: { TOKEN: '${{ secrets.T }}' }",
  secrets: { T: "first-token" },
  files: {
    "a/action.yml": action,
    "a/m.js": 'require("fs").appendFileSync(process.env.GITHUB_STATE, `n=${process.env.INPUT_IN}\\n`)',
    "a/p.js": 'require("fs").appendFileSync("done", `post ${process.env.STATE_n}\\n`)',
    "/actions/o/r/action.yml": "name: r\nruns: { using: node20, pre: e.js, main: m.js }\n",
    "/actions/o/r/e.js": 'require("fs").appendFileSync(process.env.GITHUB_STATE, "early=bird\\n")',
    "/actions/o/r/m.js": 'require("fs").appendFileSync("done", `early ${process.env.STATE_early}\\n`)',
  },
  steps: [
    "- { name: one, run: 'echo one >> done; echo KEEP=kept >> $GITHUB_ENV; echo $PWD/bin >> $GITHUB_PATH' }",
    "- { uses: ./a, with: { in: inner } }",
    "- { uses: o/r@v1 }",
    "- { id: say, run: 'echo say >> done; echo word=hello >> $GITHUB_OUTPUT; echo \"::add-mask::hidden-value\"' }",
    "- { name: bad, continue-on-error: true, run: 'echo bad >> done; exit 1' }",
    "- { run: 'echo \"$KEEP ${{ steps.say.outputs.word }} $TOKEN\" >> done; echo hidden-value' }",
    "- { run: 'basename ${PATH%%:*} >> done' }",
  ].join("\n"),
};

class Crash extends Error {}

/** Ends after `after` memories were kept, goes on from the last one, until the job has ended. */
async function withCrashes(after: number) {
  const folder = mkdtempSync(join(tmpdir(), "millrace-ci-memory-"));
  try {
    let memory: JobMemory | undefined;
    for (let crashes = 0; ; crashes += 1) {
      let kept = 0;
      const keep = async (given: JobMemory): Promise<void> => {
        memory = JSON.parse(JSON.stringify(given)) as JobMemory;
        kept += 1;
        if (kept > after) throw new Crash();
      };
      const again = crashes === 0 ? {} : { files: {}, memory };
      try {
        const end = await runRig({ ...rig, ...again, secrets: { T: `token-${crashes}` }, folder, keep });
        return { ...end, crashes, done: readFileSync(join(folder, "work/done"), "utf8").split("\n") };
      } catch (error) {
        if (!(error instanceof Crash)) throw error;
      }
    }
  } finally {
    clearAway(folder);
  }
}

describe("a job that goes on", posix, () => {
  test("runs no step twice, and knows what the steps before it said, wherever it was interrupted", async () => {
    const whole = await withCrashes(99);
    equal(whole.crashes, 0);
    equal(whole.result, "success");
    for (const after of [0, 1, 2]) {
      const { crashes, done, result, outputs } = await withCrashes(after);
      ok(crashes >= 2, `${crashes} crashes`);
      equal(result, "success");
      deepEqual([...outputs], [["said", "hello"]]);
      deepEqual(
        done.map((line) => line.replace(/token-\d+/, "token-0")),
        whole.done,
      );
    }
  });

  test("begins with the tokens of its own attempt, and hides what steps have hidden", async () => {
    const { crashes, done, lines } = await withCrashes(1);
    const [, token = ""] = /hello (token-\d+)/.exec(done.join("\n")) ?? [];
    ok(token !== "" && token !== "token-0" && crashes > 0, token);
    ok(!lines.some((line) => line.includes("hidden-value")), lines.join("\n"));
  });

  test("is not kept while a step has left something running, nor while one runs in the background", async () => {
    let kept = 0;
    const keep = async (): Promise<void> => void (kept += 1);
    await runRig({ steps: "- run: sleep 30 > /dev/null 2>&1 &\n- run: echo next", keep });
    equal(kept, 1, "before the first step");
    kept = 0;
    await runRig({ steps: "- { id: b, background: true, run: sleep 0.3 }\n- run: echo next\n- wait: b", keep });
    equal(kept, 2, "before the first step, and after the wait");
  });

  test("fails as before when what it kept cannot be stored", async () => {
    await rejects(runRig({ steps: "- run: echo x", keep: async () => Promise.reject(new Crash()) }), Crash);
  });
});
