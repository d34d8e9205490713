/**
 * The bundles of official actions, unchanged, in jobs of a real node. MILLRACE_ACTIONS names a folder that has them as
 * `actions/checkout@v4/dist/index.js` and so on; what is not there is skipped. docs/how-to/conformance.md says how.
 */
import { deepEqual, equal, ok } from "node:assert/strict";
import { existsSync, mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { dataFolder } from "#app/node/data-folder.ts";
import { readOwnerToken } from "#app/node/owner-token.ts";
import { clearAway } from "#testing/clear-away.ts";
import { NodeProcess } from "#e2e/store/node-process.ts";
import { CiNode } from "./ci-node.ts";
import { TestRepository } from "./repository.ts";

const folder = process.env["MILLRACE_ACTIONS"] ?? "";
const versions: Readonly<Record<string, readonly string[]>> = {
  "actions/checkout": ["v4", "v5", "v6", "v7"],
  "actions/cache": ["v3", "v4", "v5"],
  "actions/setup-node": ["v4", "v6", "v7"],
  "actions/github-script": ["v6", "v7", "v8"],
  "actions/upload-artifact": ["v4", "v7"],
  "actions/download-artifact": ["v4", "v8"],
};
const names = Object.entries(versions).flatMap(([name, all]) => all.map((version) => `${name}@${version}`));
const isThere = (action: string): boolean => folder !== "" && existsSync(join(folder, action, "action.yml"));
const unless = (...actions: readonly string[]): string | false => {
  const missing = actions.filter((action) => !isThere(action));
  return missing.length === 0 ? false : `needs actions: MILLRACE_ACTIONS has no ${missing.join(", ")}`;
};
const skip = names.some(isThere) ? false : "needs actions: MILLRACE_ACTIONS names no folder of official actions";

const job = (steps: string, more = ""): string =>
  `on: [push, workflow_dispatch]\njobs:\n  it:\n    runs-on: ubuntu-latest\n${more}    steps:\n${steps
    .trim()
    .replaceAll(/^/gm, "      ")}\n`;

const checkout = (action: string): string =>
  job(`
- uses: ${action}
  with: { fetch-depth: 0 }
- run: |
    test "$(cat corn.txt)" = rye
    test "$(git rev-parse HEAD)" = "$GITHUB_SHA" && test "$(git rev-list --count HEAD)" = 2
- uses: ${action}
  with: { repository: mill/other, path: near/other, ref: side, token: "\${{ secrets.READER }}" }
- run: test "$(cat near/other/what.txt)" = "the side branch" && echo "the other is here"
- uses: ${action}
  with: { path: sparse, sparse-checkout: deep }
- run: test -e sparse/deep/down.txt && test ! -e sparse/high/late.txt && echo "sparse as asked"
- uses: ${action}
  with: { path: whole, submodules: true, token: "\${{ secrets.READER }}" }
- run: cat whole/parts/what.txt; git -C whole fetch --quiet origin main && echo "the token is still there"
`);

const cache = (action: string): string =>
  job(`
- run: test "\${{ github.run_number }}" != 1 || { mkdir -p grain && seq 1 20000 > grain/rye.txt; }
- id: c
  uses: ${action}
  with: { path: grain, key: "${action}-\${{ github.sha }}", restore-keys: "${action}-" }
- run: echo "hit=[\${{ steps.c.outputs.cache-hit }}] lines=$(wc -l < grain/rye.txt)"
`);

const setupNode = (action: string): string =>
  job(`
- run: |
    version="$(node --version | cut -c2-)"
    tool="$RUNNER_TOOL_CACHE/node/$version/x64"; mkdir -p "$tool/bin"
    printf '#!/bin/sh\\nexec %s "$@"\\n' "$(command -v node)" > "$tool/bin/node"; chmod +x "$tool/bin/node"
    touch "$tool.complete"; echo "NODE_WANTED=$version" >> "$GITHUB_ENV"
- uses: ${action}
  with: { node-version: "\${{ env.NODE_WANTED }}", package-manager-cache: false }
- run: |
    test "$(command -v node)" = "$RUNNER_TOOL_CACHE/node/$NODE_WANTED/x64/bin/node"
    echo "node from the tool cache"
`);

const script = (action: string): string =>
  job(`
- id: s
  uses: ${action}
  with:
    result-encoding: string
    script: |
      const { data } = await github.rest.repos.get(context.repo);
      const { data: commit } = await github.rest.repos.getCommit({ ...context.repo, ref: context.sha });
      const files = await github.paginate(github.rest.repos.listBranches, context.repo);
      core.summary.addHeading("Grain");
      await core.summary.write();
      return [data.full_name, commit.sha === context.sha, files.length, context.eventName].join(" ");
- run: echo "said \${{ steps.s.outputs.result }}"
`);

const artifacts = (upload: string, download: string): string => `
on: [push, workflow_dispatch]
jobs:
  put:
    runs-on: ubuntu-latest
    outputs: { digest: "\${{ steps.u.outputs.artifact-digest }}" }
    steps:
      - run: mkdir -p out/deep && seq 1 50000 > out/a.txt && echo down > out/deep/b.txt
      - { id: u, uses: ${upload}, with: { name: grain, path: out, retention-days: 3 } }
      - { uses: ${upload}, with: { name: grain, path: out/deep, overwrite: true } }
      - { uses: ${upload}, with: { name: other-1, path: out/a.txt } }
      - { id: twice, continue-on-error: true, uses: ${upload}, with: { name: other-1, path: out } }
      - run: echo "twice \${{ steps.twice.outcome }}"
  get:
    needs: put
    runs-on: ubuntu-latest
    steps:
      - { uses: ${download}, with: { name: grain } }
      - run: test "$(cat b.txt)" = down && test ! -e a.txt && echo "overwritten"
      - { uses: ${download}, with: { path: all } }
      - { uses: ${download}, with: { pattern: "other-*", merge-multiple: true, path: merged } }
      - run: test "$(wc -l < merged/a.txt)" = 50000 && test -e all/grain/b.txt && echo "all is here"
`;

const files: Record<string, string> = {};
const workflow = (name: string, text: string): string => {
  files[`.github/workflows/${name}.yml`] = text;
  return name;
};
const fileName = (action: string): string => action.replaceAll(/[/@]/g, "-");

describe("official actions", { skip, timeout: 900_000 }, () => {
  const all = (prefix: string, text: (action: string) => string) =>
    names
      .filter((name) => name.startsWith(prefix))
      .map((action) => ({ action, name: workflow(fileName(action), text(action)) }));
  const checkouts = all("actions/checkout", checkout);
  const caches = all("actions/cache", cache);
  const nodes = all("actions/setup-node", setupNode);
  const scripts = all("actions/github-script", script);
  const pairs = [
    ["actions/upload-artifact@v4", "actions/download-artifact@v4"],
    ["actions/upload-artifact@v7", "actions/download-artifact@v8"],
  ].map(([up = "", down = ""]) => ({ up, down, name: workflow(fileName(up), artifacts(up, down)) }));

  const data = mkdtempSync(join(tmpdir(), "millrace-ci-official-"));
  let node: NodeProcess;
  let ci: CiNode;
  let own: TestRepository;
  let other: TestRepository;

  before(async () => {
    other = new TestRepository({ "what.txt": "the main branch\n" });
    other.git("checkout", "--quiet", "-b", "side");
    other.commit({ "what.txt": "the side branch\n" });
    other.git("checkout", "--quiet", "main");
    own = new TestRepository({ "corn.txt": "wheat\n", "deep/down.txt": "x\n" });
    own.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", other.folder, "parts");
    own.git("config", "-f", ".gitmodules", "submodule.parts.url", "../other");
    own.commit({ ...files, "corn.txt": "rye\n", "high/late.txt": "x\n" });
    node = await NodeProcess.open(data, { worker: { slots: 2 }, ci: { actions: folder } });
    ci = new CiNode(`http://${node.address}`, () => readOwnerToken(dataFolder(data)) ?? "");
    await ci.register("mill/flour", own.folder);
    await ci.register("mill/other", other.folder);
    // a job's own token reads the repository of its run, and no other
    const value = readOwnerToken(dataFolder(data));
    const body = { method: "PUT", body: JSON.stringify({ value }), headers: { "content-type": "application/json" } };
    equal((await ci.fetch("/v1/secrets/ci/READER", body)).ok, true);
  });
  after(async () => {
    await node?.[Symbol.asyncDispose]();
    own?.[Symbol.dispose]();
    other?.[Symbol.dispose]();
    clearAway(data);
  });

  const ran = async (name: string, id = "it"): Promise<string> => {
    const run = await ci.dispatch("mill/flour", name);
    const { conclusion, jobs } = await ci.ended(run, 240_000);
    const log = await ci.log(run, jobs.find((one) => one.id === id)?.id ?? id).catch(() => "");
    const first = id === "it" ? log : `${await ci.log(run, jobs[0]?.id ?? "").catch(() => "")}${log}`;
    equal(conclusion, "success", `${JSON.stringify(jobs.map(({ id: of, conclusion: end }) => [of, end]))}\n${first}`);
    return first;
  };

  for (const { action, name } of checkouts)
    test(`${action}: history, another repository, sparse, submodules`, { skip: unless(action) }, async () => {
      const log = await ran(name);
      for (const text of ["the other is here", "sparse as asked", "the main branch", "the token is still there"])
        ok(log.includes(`| ${text}\n`), `${text}\n${log}`);
    });

  for (const { action, name } of caches)
    test(`${action}: a miss, a hit, and what a prefix finds`, { skip: unless(action) }, async () => {
      const said = (log: string): string | undefined => /\| (hit=.*)\n/.exec(log)?.[1];
      const first = said(await ran(name));
      const second = said(await ran(name));
      own.commit({ "corn.txt": `${action}\n` });
      const third = said(await ran(name));
      ok(first === "hit=[] lines=20000" || first === "hit=[false] lines=20000", String(first));
      deepEqual([second, third], ["hit=[true] lines=20000", "hit=[false] lines=20000"]);
    });

  for (const { action, name } of nodes)
    test(`${action}: finds Node in the tool cache`, { skip: unless(action) }, async () => {
      ok((await ran(name)).includes("| node from the tool cache\n"));
    });

  for (const { action, name } of scripts)
    test(`${action}: calls the REST interface`, { skip: unless(action) }, async () => {
      const log = await ran(name);
      ok(log.includes("| said mill/flour true 1 workflow_dispatch\n"), log);
    });

  for (const { up, down, name } of pairs)
    test(`${up} and ${down}: uploaded, overwritten, refused, found`, { skip: unless(up, down) }, async () => {
      const log = await ran(name, "get");
      for (const text of ["twice failure", "overwritten", "all is here"]) ok(log.includes(`| ${text}\n`), log);
    });
});
