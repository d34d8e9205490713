/** A repository that one node keeps, used through another: pushes, fetches, runs and jobs; and when it is away. */
import { equal, match, ok } from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { dataFolder } from "#app/node/data-folder.ts";
import { readOwnerToken } from "#app/node/owner-token.ts";
import { NodeProcess } from "#e2e/store/node-process.ts";
import { clearAway } from "#testing/clear-away.ts";
import { startPostgres } from "#testing/postgres.ts";
import { until } from "#testing/until.ts";
import { CiNode } from "./ci-node.ts";
import { TestRepository } from "./repository.ts";

const workflow = `
on: [push, workflow_dispatch]
jobs:
  grind: { runs-on: ubuntu-latest, steps: [{ run: 'echo "$GITHUB_EVENT_NAME $(cat corn.txt)"' }] }
`;

const postgres = await startPostgres();
after(() => postgres.stop());

test("a repository that another node keeps", { skip: postgres.skip, timeout: 180_000 }, async () => {
  await using stack = new AsyncDisposableStack();
  const folder = mkdtempSync(join(tmpdir(), "millrace-ci-kept-"));
  stack.defer(() => clearAway(folder));
  const keyFile = join(folder, "vault.key");
  writeFileSync(keyFile, `k1 ${Buffer.alloc(32, 7).toString("base64")}\n`, { mode: 0o600 });
  const journal = { kind: "postgres", url: await postgres.server().freshDatabase() };
  mkdirSync(join(folder, "blobs"));
  const open = async (name: string, worker: object): Promise<CiNode & { readonly process: NodeProcess }> => {
    const data = join(folder, name);
    const node = await NodeProcess.open(data, {
      cluster: { shards: 2, ownerLease: "3s" },
      node: { name, listen: [`unix:${join(folder, `${name}.sock`)}`] },
      journal,
      blobs: { kind: "disk", authoritative: { kind: "directory", directory: join(folder, "blobs"), names: journal } },
      vault: { keyFile },
      worker,
    });
    stack.use(node);
    const ci = new CiNode(`http://${node.address}`, () => readOwnerToken(dataFolder(data)) ?? "");
    return Object.assign(ci, { process: node });
  };
  const alpha = await open("alpha", { enabled: false });
  const beta = await open("beta", { slots: 2 });
  await alpha.register("mill/flour");

  using own = new TestRepository({ ".github/workflows/w.yml": workflow, "corn.txt": "rye\n" });
  const token = readOwnerToken(dataFolder(join(folder, "beta"))) ?? "";
  const at = `http://x:${token}@${beta.process.address}/mill/flour.git`;
  const push = (...args: readonly string[]) =>
    spawnSync("git", ["push", at, ...args], { cwd: own.folder, encoding: "utf8" });
  const pushed = push("main");
  equal(pushed.status, 0, pushed.stderr);
  const all = async () => (await beta.list().catch(() => [])).length;
  await until("the push has started its run", async () => (await all()) === 1, { limitMs: 60_000, everyMs: 100 });
  const [first] = await beta.list();
  equal((await beta.ended(first?.run ?? "")).conclusion, "success");
  const log = await beta.log(first?.run ?? "", "grind");
  ok(log.includes("| push rye\n"), log);

  own.commit({ "corn.txt": "oats\n" });
  own.git("tag", "v1");
  equal(push("main", "v1").status, 0);
  equal(push("--force", "HEAD~1:refs/heads/other").status, 0);
  const refs = execFileSync("git", ["ls-remote", at], { encoding: "utf8" });
  match(refs, new RegExp(`^${own.git("rev-parse", "HEAD").trim()}\trefs/tags/v1$`, "m"));
  match(refs, new RegExp(`^${own.git("rev-parse", "HEAD~1").trim()}\trefs/heads/other$`, "m"));
  execFileSync("git", ["clone", "--quiet", at, "copy"], { cwd: folder });
  equal(
    execFileSync("git", ["rev-parse", "HEAD"], { cwd: join(folder, "copy"), encoding: "utf8" }),
    own.git("rev-parse", "HEAD"),
  );

  const run = await beta.dispatch("mill/flour", "w");
  equal((await beta.ended(run)).conclusion, "success");
  ok((await beta.log(run, "grind")).includes("| workflow_dispatch oats\n"));
  equal(push(":other").status, 0);
  ok(!execFileSync("git", ["ls-remote", at], { encoding: "utf8" }).includes("refs/heads/other"));

  await alpha.process.kill();
  const said = async () => await beta.dispatch("mill/flour", "w").then(String, (error: unknown) => String(error));
  await until("it is said that it is not there", async () => /use the repository: unavailable/.test(await said()), {
    limitMs: 60_000,
    everyMs: 500,
  });
});
