/** Turborepo: two clones of one workspace without a local cache, plain and with signed artifacts. */
import { equal, match } from "node:assert/strict";
import { join } from "node:path";
import { before, describe, test, type TestContext } from "node:test";
import { startCaches, type Caches } from "./caches.ts";
import { npmTool, type NpmTool } from "./npm-tool.ts";
import { run, type Ran } from "./processes.ts";
import { makeCheckout, temporaryFolder, treeText, type Files } from "./workspace.ts";

const version = "turbo@2.11.10";
const packages = ["wheat", "rye", "oats"];
const script = [
  "echo grinding",
  "mkdir -p out/sub",
  "cp src.txt out/copy.txt",
  "chmod +x out/copy.txt",
  "ln -sf copy.txt out/link.txt",
  "head -c 200000 /dev/zero >out/sub/z.bin",
].join("\n");

const files = (seed: string, signature: boolean): Files => ({
  "package.json": '{"name":"mill","private":true,"packageManager":"npm@10.0.0","workspaces":["p/*"]}',
  "package-lock.json": '{"lockfileVersion":3,"packages":{}}',
  "turbo.json": JSON.stringify({
    remoteCache: { enabled: true, signature },
    tasks: { build: { outputs: ["out/**"], inputs: ["src.txt", "b.sh"] } },
  }),
  ...Object.fromEntries(
    packages.flatMap((name) => [
      [`p/${name}/package.json`, JSON.stringify({ name, version: "1.0.0", scripts: { build: "sh b.sh" } })],
      [`p/${name}/src.txt`, `${name} ${seed}\n`],
      [`p/${name}/b.sh`, script],
    ]),
  ),
});

describe("turborepo", () => {
  let tool: NpmTool;
  before(async () => (tool = await npmTool(version)));

  async function build(cwd: string, { url }: Caches, token: string): Promise<Ran> {
    const turbo = "folder" in tool ? join(tool.folder, ".bin", "turbo") : "";
    const env = {
      TURBO_API: url,
      TURBO_TOKEN: token,
      TURBO_TEAM: "mill",
      TURBO_TELEMETRY_DISABLED: "1",
      TURBO_NO_UPDATE_NOTIFIER: "1",
      TURBO_REMOTE_CACHE_SIGNATURE_KEY: "0123456789abcdef0123456789abcdef",
    };
    return await run(turbo, ["run", "build", "--cache=local:,remote:rw", "--no-color"], { cwd, env });
  }

  async function twoClones(context: TestContext, signature: boolean): Promise<void> {
    if ("why" in tool) return context.skip(`needs turbo: ${tool.why}`);
    await using caches = await startCaches();
    await using work = await temporaryFolder();
    const seed = signature ? "signed" : "plain";
    const clones = ["one", "two"].map((name) => join(work.path, name));
    for (const [i, clone] of clones.entries()) {
      await makeCheckout(clone, files(seed, signature));
      const { code, output } = await build(clone, caches, i === 0 ? caches.token : caches.readOnlyToken);
      equal(code, 0, output);
      match(output, new RegExp(`${i === 0 ? 0 : packages.length} cached, ${packages.length} total`));
      match(output, /rye:build: grinding/);
    }
    const [one = "", two = ""] = await Promise.all(clones.map((clone) => treeText(join(clone, "p"))));
    equal(withoutLogs(two), withoutLogs(one));
  }

  test("the second clone builds nothing", (context) => twoClones(context, false));
  test("the same with signed artifacts", (context) => twoClones(context, true));
});

/** Its run summaries contain times. */
const withoutLogs = (tree: string): string =>
  tree
    .split("\n")
    .filter((line) => !line.includes(".turbo"))
    .join("\n");
