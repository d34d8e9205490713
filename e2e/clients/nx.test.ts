/** Nx: two clones of one workspace, the second one with a read-only token. */
import { doesNotMatch, equal, match, ok } from "node:assert/strict";
import { symlink } from "node:fs/promises";
import { join } from "node:path";
import { before, describe, test } from "node:test";
import { startCaches, type Caches } from "./caches.ts";
import { npmTool, type NpmTool } from "./npm-tool.ts";
import { run, type Ran } from "./processes.ts";
import { makeCheckout, temporaryFolder, treeText, type Files } from "./workspace.ts";

const version = "nx@24.0.0";
const projects = ["wheat", "rye", "oats"];

const files: Files = {
  "package.json": '{"name":"mill","version":"0.0.0","private":true,"devDependencies":{"nx":"*"}}',
  ".gitignore": "node_modules\n.nx\np/*/out\n",
  "nx.json": JSON.stringify({
    neverConnectToCloud: true,
    analytics: false,
    targetDefaults: {
      build: {
        cache: true,
        inputs: ["{projectRoot}/src.txt", "{projectRoot}/b.sh"],
        outputs: ["{projectRoot}/out"],
      },
    },
  }),
  ...Object.fromEntries(
    projects.flatMap((name) => {
      const targets = { build: { command: "sh b.sh", options: { cwd: `p/${name}` } } };
      return [
        [`p/${name}/project.json`, JSON.stringify({ name, root: `p/${name}`, targets })],
        [`p/${name}/src.txt`, `${name}\n`],
        [
          `p/${name}/b.sh`,
          "mkdir -p out/sub; cp src.txt out/copy.txt; head -c 200000 /dev/zero >out/sub/z.bin; echo ground\n",
        ],
      ];
    }),
  ),
};

describe("nx", () => {
  let tool: NpmTool;
  before(async () => (tool = await npmTool(version)));

  async function build(cwd: string, { url }: Caches, token: string, folder: string): Promise<Ran> {
    await makeCheckout(cwd, files);
    await symlink(folder, join(cwd, "node_modules"));
    const env = {
      NX_SELF_HOSTED_REMOTE_CACHE_SERVER: url,
      NX_SELF_HOSTED_REMOTE_CACHE_ACCESS_TOKEN: token,
      NX_DAEMON: "false",
      // Clones on one machine may share Nx's local cache; those on three machines do not.
      NX_CACHE_DIRECTORY: join(cwd, ".nx", "cache"),
      NX_WORKSPACE_DATA_DIRECTORY: join(cwd, ".nx", "workspace-data"),
      NX_NO_CLOUD: "true",
      NX_TUI: "false",
      CI: "true",
    };
    const args = [join(folder, "nx/dist/bin/nx.js"), "run-many", "-t", "build", "--outputStyle=stream"];
    return await run(process.execPath, args, { cwd, env, timeoutMs: 180_000 });
  }

  test("the second clone builds nothing; a wrong token is reported as such", async (context) => {
    if ("why" in tool) return context.skip(`needs nx: ${tool.why}`);
    await using caches = await startCaches();
    await using work = await temporaryFolder();
    const [one, two, three] = ["one", "two", "three"].map((name) => join(work.path, name)) as [string, string, string];
    const cold = await build(one, caches, caches.token, tool.folder);
    equal(cold.code, 0, cold.output);
    doesNotMatch(cold.output, /remote cache/);
    const warm = await build(two, caches, caches.readOnlyToken, tool.folder);
    equal(warm.code, 0, warm.output);
    ok(warm.output.split("remote cache").length > projects.length, warm.output);
    for (const name of projects)
      equal(await treeText(join(two, "p", name, "out")), await treeText(join(one, "p", name, "out")));
    const stranger = await build(three, caches, "nobody", tool.folder);
    match(stranger.output, /not known here/);
  });
});
