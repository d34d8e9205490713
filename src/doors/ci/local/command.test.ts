/** The two commands in a real repository. */
import { deepEqual, equal, ok } from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { describe, test } from "node:test";
import type { World } from "#door/command.ts";
import { clearAway } from "#testing/clear-away.ts";
import { lintWorkflows } from "#doors/ci/lint/command.ts";
import { type RunFlags, runWorkflows } from "./command.ts";

const posix = { skip: process.platform === "win32" ? "needs a POSIX shell" : false, timeout: 60_000 };

type End = { readonly code: number; readonly out: readonly string[]; readonly notes: readonly string[] };

class Repository implements Disposable {
  readonly folder = mkdtempSync(join(tmpdir(), "millrace-ci-repository-"));

  constructor(files: Readonly<Record<string, string>>) {
    for (const [path, text] of Object.entries(files)) this.write(path, text);
    this.git("init", "--quiet", "--initial-branch=main");
    this.git("add", "-A");
    this.git("-c", "user.name=t", "-c", "user.email=t@example.org", "commit", "--quiet", "-m", "first");
  }

  write(path: string, text: string): void {
    mkdirSync(dirname(join(this.folder, path)), { recursive: true });
    writeFileSync(join(this.folder, path), text);
  }

  git(...args: readonly string[]): void {
    execFileSync("git", ["-C", this.folder, ...args]);
  }

  async run(flags: RunFlags = {}): Promise<End> {
    return await this.#with((world) => runWorkflows(flags, world, this.folder));
  }

  async lint(): Promise<End> {
    return await this.#with((world) => lintWorkflows({ files: [] }, world, this.folder));
  }

  async #with(work: (world: World) => Promise<number>): Promise<End> {
    const out: string[] = [];
    const notes: string[] = [];
    const code = await work({
      env: process.env,
      out: (line) => out.push(line),
      note: (line) => notes.push(line),
      progress: () => undefined,
      isTerminal: false,
      http: () => Promise.reject(new Error("no node is needed")),
    });
    return { code, out, notes };
  }

  [Symbol.dispose](): void {
    clearAway(this.folder);
  }
}

const workflow = (name: string): string => `.github/workflows/${name}.yml`;

describe("ci run", posix, () => {
  test("CI-61: workflows of other repositories come from the folder of actions", async () => {
    const called = "on: workflow_call\njobs: { b: { uses: ./.github/workflows/c.yml } }";
    using repository = new Repository({
      [workflow("test")]: "on: push\njobs: { a: { uses: acme/shared/.github/workflows/b.yml@v1 } }",
      [`others/acme/shared@v1/${workflow("b")}`]: called,
      [`others/acme/shared@v1/${workflow("c")}`]:
        "on: workflow_call\njobs: { c: { runs-on: x, steps: [{ run: echo from afar }] } }",
    });
    const { code, out } = await repository.run({ actions: join(repository.folder, "others") });
    equal(code, 0, out.join("\n"));
    ok(out.some((line) => line.includes("[a / b / c]   from afar")));
    equal((await repository.run()).code, 1);
  });

  test("jobs run in a copy of the working tree, in the order of their needs", async () => {
    using repository = new Repository({
      [workflow("test")]: [
        "on: push",
        "jobs:",
        "  first:",
        "    runs-on: x",
        "    outputs: { v: '${{ steps.a.outputs.v }}' }",
        "    steps:",
        "      - uses: actions/checkout@v4",
        "      - { id: a, run: 'cat tracked new; git log --format=%s; touch made-by-step; " +
          "echo v=7 >> $GITHUB_OUTPUT' }",
        "  second:",
        "    needs: first",
        "    runs-on: x",
        "    steps: [{ run: 'echo got ${{ needs.first.outputs.v }}; test ! -e made-by-step; test ! -e ignored' }]",
      ].join("\n"),
      ".gitignore": "ignored\n",
      tracked: "tracked file\n",
    });
    repository.write("new", "new file\n");
    repository.write("ignored", "x");
    const { code, out } = await repository.run();
    equal(code, 0, out.join("\n"));
    for (const line of ["[first]   tracked file", "[first]   new file", "[first]   first", "[second]   got 7"])
      ok(out.includes(line), line);
    equal(out.at(-1), "✔ run: success");
    ok(!readdirSync(repository.folder).includes("made-by-step"));
  });

  test("a failing job gives 1, and what needs it is skipped with the reason", async () => {
    using repository = new Repository({
      [workflow("test")]:
        "on: push\njobs:\n  a: { runs-on: x, steps: [{ run: exit 1 }] }\n" +
        "  b: { runs-on: x, needs: a, steps: [{ run: echo }] }\n",
    });
    const { code, out } = await repository.run();
    equal(code, 1);
    ok(out.includes("[b] - skipped: if: success() is false (a was unsuccessful)"));
  });

  test("--job, --matrix, --input and --list choose", async () => {
    using repository = new Repository({
      [workflow("test")]: [
        "on: { workflow_dispatch: { inputs: { n: { type: number }, deep: { type: boolean, default: true } } } }",
        "jobs:",
        "  a: { runs-on: x, steps: [{ run: echo a }] }",
        "  b:",
        "    needs: a",
        "    runs-on: x",
        "    strategy: { matrix: { os: [linux, mac], v: [1, 2] } }",
        "    steps: [{ run: 'echo ${{ inputs.n + 0 }}' }]",
        "  c: { runs-on: x, steps: [{ run: echo c }] }",
      ]
        .join("\n")
        .replace("inputs.n + 0", "inputs.n == 5 && inputs.deep && github.event.inputs.n"),
    });
    const { code, out } = await repository.run({
      workflow: "test",
      job: ["b"],
      matrix: ["os:mac", "v:2"],
      input: ["n=5"],
    });
    equal(code, 0, out.join("\n"));
    deepEqual(
      out.filter((line) => line.endsWith("started")),
      ["[a] started", "[b (mac, 2)] started"],
    );
    ok(out.includes("[b (mac, 2)]   5"));
    const listed = await repository.run({ list: true });
    deepEqual(listed.out, [".github/workflows/test.yml (without a name)", "  a", "  b  after a", "  c"]);
  });

  test("secrets from a file are masked, also in JSON", async () => {
    using repository = new Repository({
      [workflow("test")]:
        "on: push\njobs:\n  a:\n    runs-on: x\n    steps:\n" +
        "      - { env: { M: '${{ secrets.M }}' }, run: 'echo ${{ secrets.T }}; echo \"$M\"' " +
        "}\n",
    });
    repository.write("secrets", 'T="quoted value"\nM<<END\nline one\nline two\nEND\n');
    const { out } = await repository.run({ json: true, "secret-file": join(repository.folder, "secrets") });
    const shown = out.join("\n");
    ok(shown.includes("***") && !shown.includes("quoted value") && !shown.includes("line one"));
    equal(out.at(-1), '{"kind":"run-ended","workflow":".github/workflows/test.yml","result":"success"}');
  });

  test("CI-61: workflows of the repository can be called, with inputs, secrets and outputs", async () => {
    using repository = new Repository({
      [workflow("main")]: [
        "on: push",
        "jobs:",
        "  call:",
        "    uses: ./.github/workflows/inner.yml",
        "    with: { who: world }",
        "    secrets: { key: '${{ secrets.T }}' }",
        "  after: { runs-on: x, needs: call, steps: [{ run: 'echo ${{ needs.call.outputs.said }}' }] }",
      ].join("\n"),
      [workflow("inner")]: [
        "on:",
        "  workflow_call:",
        "    inputs: { who: { type: string }, loud: { type: boolean } }",
        "    secrets: { key: {} }",
        "    outputs: { said: { value: '${{ jobs.say.outputs.text }}' } }",
        "jobs:",
        "  say:",
        "    runs-on: x",
        "    outputs: { text: '${{ steps.s.outputs.t }}' }",
        "    steps: [{ id: s, run: 'echo t=hello ${{ inputs.who }} ${{ inputs.loud }} ${{ " +
          "secrets.key != null }} >> $GITHUB_OUTPUT' }]",
      ].join("\n"),
    });
    repository.write("secrets", "T=some-value\n");
    const { out, code } = await repository.run({
      workflow: "main",
      "secret-file": join(repository.folder, "secrets"),
    });
    equal(code, 0, out.join("\n"));
    ok(out.includes("[call / say] started") && out.includes("[after]   hello world false true"), out.join("\n"));
  });

  test("workflows that the event does not start are not run, and wrong ones say where", async () => {
    using repository = new Repository({
      [workflow("other")]: "on: { push: { branches: [other] } }\njobs: { a: { runs-on: x, steps: [{ run: echo }] } }\n",
      [workflow("wrong")]: "on: push\njobs: { a: { runs-on: x, stebs: [] } }\n",
    });
    const { code, notes } = await repository.run();
    equal(code, 1);
    deepEqual(notes, [
      ".github/workflows/other.yml: not run, its filter does not let main pass",
      ".github/workflows/wrong.yml (Line: 2, Col: 26): Unexpected value 'stebs'",
    ]);
    const linted = await repository.lint();
    equal(linted.code, 1);
    ok(linted.out.includes(".github/workflows/wrong.yml:2:26: error: Unexpected value 'stebs' [workflow-error]"));
  });
});
