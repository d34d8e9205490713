/**
 * What hostile workflows, jobs and clients of one tenant send to a node: it is refused with the reason, or kept within
 * its limits, and the jobs of another tenant are served meanwhile.
 */
import { deepEqual, equal, match, ok } from "node:assert/strict";
import { createHash } from "node:crypto";
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { tokenSha256 } from "#edge/identity/bearer.ts";
import { NodeProcess } from "#e2e/store/node-process.ts";
import { clearAway } from "#testing/clear-away.ts";
import { bwrapMissing } from "#testing/bubblewrap.ts";
import { CiNode } from "./ci-node.ts";
import { TestRepository } from "./repository.ts";

const MiB = 1024 * 1024;
const steps = (...lines: readonly string[]): string =>
  `    runs-on: ubuntu-latest\n    steps:\n${lines.map((line) => `      ${line}\n`).join("")}`;
const job = (...lines: readonly string[]): string => `on: workflow_dispatch\njobs:\n  a:\n${steps(...lines)}`;

const grow = (inner: string): string => `format('{0}{0}{0}{0}{0}{0}{0}{0}{0}{0}', ${inner})`;
const expressionBomb = Array.from({ length: 9 }).reduce<string>((text) => grow(text), "'0123456789'");
const levels = Array.from({ length: 9 }, (_, at) => `x${at + 1}: &l${at + 1} [${`*l${at},`.repeat(9)}]`);

/** Texts that never become a run, with what is said of them. */
const texts: Readonly<Record<string, readonly [text: string, why: RegExp]>> = {
  "a YAML bomb": [`x0: &l0 [a]\n${levels.join("\n")}`, /Maximum YAML nodes exceeded/],
  "an anchor within itself": ["on: push\njobs: &a { b: *a }", /w\.yml|alias|anchor|cycle/i],
  "a text that is nothing but brackets": ["[".repeat(MiB - 10), /Maximum object depth exceeded/],
  "a file above a MiB": [`# ${"x".repeat(MiB)}`, /maximum file size of 1048576/],
  "a matrix above 256 jobs": [
    `on: push\njobs:\n  a:\n    strategy: { matrix: { a: [${Array.from({ length: 300 }, (_, at) => at).join()}] } }\n${steps("- run: echo")}`,
    /./,
  ],
  "an expression too long": [job(`- run: "\${{ '${"x".repeat(30_000)}' }}"`), /Exceeded max expression length 21000/],
  "an expression too deep": [
    job(`- run: "\${{ ${"(".repeat(90)}1${")".repeat(90)} }}"`),
    /Exceeded max expression depth/,
  ],
};

const made = `const fs = require("fs");
const [, , what, bytes] = process.argv;
const out = (part) => fs.writeSync(1, part);
const lines = Buffer.from(("x".repeat(99) + "\\n").repeat(1000));
if (what === "lines") for (let sent = 0; sent < Number(bytes); sent += lines.length) out(lines);
if (what === "line") {
  for (let at = 0; at < 10; at += 1) out(Buffer.alloc(1048576, "y"));
  out("end of the line\\n");
}
if (what === "bytes") {
  out(Buffer.from([0xff, 0xfe, 0x41, 0x0a, 0xc3, 0x0a, 0xed, 0xa0, 0x80, 0x0a, 0x00, 0x1b, 0x5b, 0x0a]));
  out("still there\\n");
}
`;
const matcher = { problemMatcher: [{ owner: "o", pattern: [{ regexp: "^(a+)+$", message: 1 }] }] };
const runs: Readonly<Record<string, string>> = {
  lines: job(`- run: node make.js lines ${48 * MiB}`, "- run: echo after the flood"),
  line: job("- run: node make.js line", "- run: echo after the line"),
  bytes: job("- run: node make.js bytes", "- run: echo after the bytes"),
  matrix:
    `on: workflow_dispatch\njobs:\n  m:\n    outputs: { m: "\${{ steps.m.outputs.m }}" }\n` +
    `${steps(`- { id: m, run: 'echo "m=[$(seq -s, 1 9000)]" >> "$GITHUB_OUTPUT"' }`)}` +
    `  a:\n    needs: m\n    strategy: { matrix: { x: "\${{ fromJSON(needs.m.outputs.m) }}" } }\n${steps("- run: echo")}`,
  expression: `on: workflow_dispatch\njobs:\n  a:\n    if: ${expressionBomb} == ''\n${steps("- run: echo")}`,
  inStep: job("- { name: fine, run: echo fine }", `- run: echo "\${{ ${expressionBomb} }}"`),
  files: job(
    '- { name: env, continue-on-error: true, run: \'head -c 70000000 /dev/zero | tr "\\0" x >> "$GITHUB_ENV"\' }',
    '- { name: link, continue-on-error: true, run: \'rm "$GITHUB_OUTPUT"; mkfifo "$GITHUB_OUTPUT"\' }',
    "- { name: many, run: 'for i in $(seq 1 5000); do echo \"::error::$i\"; done' }",
    "- run: echo after the files",
  ),
  bomb: job(
    `- run: "echo '::add-matcher::m.json'; for i in $(seq 1 50); do echo ${"a".repeat(50)}!; done"`,
    "- run: echo after the matcher",
  ),
};

const token = (name: string): string => `${name}-${"0123456789".repeat(4)}`;
const grant = (name: string, tenant: string) => ({
  name,
  tenant,
  roles: ["member"],
  sha256: tokenSha256(token(name)),
});

describe("poison", { skip: bwrapMissing(), timeout: 300_000 }, () => {
  const folder = mkdtempSync(join(tmpdir(), "millrace-ci-poison-"));
  const files = Object.fromEntries(Object.entries(runs).map(([name, text]) => [`.github/workflows/${name}.yml`, text]));
  let node: NodeProcess;
  let mallory: CiNode;
  let victim: CiNode;
  let hostile: TestRepository;
  let honest: TestRepository;

  const register = async (tenant: string, url: string): Promise<void> => {
    const body = JSON.stringify({ repository: "mill/flour", url });
    const headers = { ...node.headers, "content-type": "application/json" };
    const init = { method: "POST", body, headers };
    const answer = await fetch(`http://${node.address}/v1/repositories?tenant=${tenant}`, init);
    equal(answer.status, 201, await answer.text());
  };
  before(async () => {
    hostile = new TestRepository({ ...files, "make.js": made, "m.json": JSON.stringify(matcher) });
    honest = new TestRepository({ ".github/workflows/w.yml": job("- run: echo served") });
    const identity = { tokens: [grant("mallory", "bad"), grant("ann", "good")] };
    node = await NodeProcess.open(folder, { worker: { slots: 3 }, edge: { identity } });
    const as = (name: string): CiNode => new CiNode(`http://${node.address}`, () => token(name));
    [mallory, victim] = [as("mallory"), as("ann")];
    await register("bad", hostile.folder);
    await register("good", honest.folder);
  });
  after(async () => {
    await node?.[Symbol.asyncDispose]();
    hostile?.[Symbol.dispose]();
    honest?.[Symbol.dispose]();
    clearAway(folder);
  });

  for (const [name, [text, why]] of Object.entries(texts))
    test(`refused before it is a run: ${name}`, async () => {
      const body = JSON.stringify({ path: "w.yml", text });
      const init = { method: "POST", body, headers: { "content-type": "application/json" } };
      const answer = await mallory.fetch("/v1/workflows:validate", init);
      const said = await answer.text();
      equal(answer.status, 200, said.slice(0, 300));
      const { valid, problems } = JSON.parse(said) as { valid: boolean; problems: readonly { message: string }[] };
      if (name.startsWith("a matrix")) return; // what it comes to is known when it is planned
      equal(valid, false);
      match(problems.map(({ message }) => message).join("\n"), why);
    });

  test("hostile runs end with their reasons, while another tenant's runs are served", async () => {
    const started = await Promise.all(Object.keys(runs).map((name) => mallory.dispatch("mill/flour", name)));
    let served = 0;
    const honestRuns = async (): Promise<void> => {
      for (; served < 5; served += 1)
        equal((await victim.ended(await victim.dispatch("mill/flour", "w"), 60_000)).conclusion, "success");
    };
    await honestRuns();
    const ended = await Promise.all(started.map((run) => mallory.ended(run, 200_000)));
    const ends = Object.fromEntries(Object.keys(runs).map((name, at) => [name, ended[at]]));
    deepEqual(
      Object.entries(ends).map(([name, end]) => `${name} ${end?.conclusion}`),
      [
        "lines success",
        "line success",
        "bytes success",
        "matrix failure",
        "expression failure",
        "inStep failure",
        "files success",
        "bomb success",
      ],
    );
    const reason = (name: string): string => ends[name]?.jobs.find(({ id }) => id === "a")?.reason ?? "";
    match(reason("matrix"), /makes 9000 jobs; at most 256/);
    match(reason("expression"), /maximum allowed memory size was exceeded/);
    const logOf = async (name: string): Promise<string> => await mallory.log(ends[name]?.run ?? "", "a");
    match(await logOf("inStep"), /maximum allowed memory size was exceeded/);
    for (const [name, text] of [
      ["lines", "after the flood"],
      ["line", "after the line"],
      ["bytes", "after the bytes"],
      ["bytes", "still there"],
      ["files", "after the files"],
      ["bomb", "after the matcher"],
    ] as const)
      ok((await logOf(name)).includes(`| ${text}\n`), name);
    ok((await logOf("line")).split("\n").every((line) => line.length < 70_000));
    const count = (await logOf("lines")).split("\n").filter((line) => /\| x{99}$/.test(line)).length;
    equal(count, Math.ceil((48 * MiB) / 100_000) * 1000, "no line of the flood is lost");
    ok(Buffer.from(await logOf("bytes")).equals(Buffer.from(await logOf("bytes"), "utf8")));
  });

  test("a hook's forgery is refused as if there were no such repository", async () => {
    const body = JSON.stringify({ ref: "refs/heads/main", after: "0".repeat(40) });
    const sign = (secret: string): string =>
      createHash("sha256")
        .update(secret + body)
        .digest("hex");
    for (const headers of [
      { "x-github-event": "push", "x-github-delivery": "1", "x-hub-signature-256": `sha256=${sign("guess")}` },
      { "x-github-event": "push", "x-github-delivery": "1" },
      { "x-gitlab-event": "Push Hook", "x-gitlab-event-uuid": "1", "x-gitlab-token": "guess" },
      { "x-gitea-event": "push", "x-gitea-delivery": "1", "x-gitea-signature": sign("guess") },
    ] as readonly Record<string, string>[]) {
      const answers = await Promise.all(
        ["bad/mill/flour", "good/mill/flour", "good/no/such"].map(async (path) => {
          const init = { method: "POST", body, headers: { ...headers, "content-type": "application/json" } };
          const answer = await fetch(`http://${node.address}/ci/hooks/${path}`, init);
          return [answer.status, (await answer.text()).replace(path, "")] as const;
        }),
      );
      equal(answers[0]?.[0], 401);
      equal(new Set(answers.map(([status]) => status)).size, 1, "nothing tells which repositories there are");
    }
    deepEqual(
      (await victim.list()).every(({ status }) => status === "completed"),
      true,
    );
  });
});
