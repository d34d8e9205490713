/** Gradle: two clones of one project, no local cache, the token as a password. */
import { doesNotMatch, equal, match } from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { startCaches, type Caches } from "./caches.ts";
import { onPath, run, type Ran } from "./processes.ts";
import { makeFiles, temporaryFolder, treeText } from "./workspace.ts";

const missing = onPath("gradle") ? false : "needs gradle: not on the path";

const settings = (url: string, password: string): string => `
rootProject.name = 'mill'
buildCache {
  local { enabled = false }
  remote(HttpBuildCache) {
    url = '${url}/gradle/'
    push = true
    allowUntrustedServer = true
    credentials { username = 'ci'; password = '${password}' }
  }
}
`;

const script = `
task grind {
  inputs.file('grain.txt').withPathSensitivity(PathSensitivity.NONE)
  outputs.dir "$buildDir/flour"
  outputs.cacheIf { true }
  doLast { file("$buildDir/flour/flour.txt").text = file('grain.txt').text * 1000 }
}
`;

async function build(root: string, clone: string, { url }: Caches, token: string): Promise<Ran> {
  const cwd = join(root, clone);
  await makeFiles(cwd, { "settings.gradle": settings(url, token), "build.gradle": script, "grain.txt": "rye\n" });
  const args = ["--no-daemon", "--build-cache", "--console=plain", "grind"];
  const env = { GRADLE_USER_HOME: join(root, "home") };
  return await run("gradle", args, { cwd, env, timeoutMs: 240_000 });
}

test("gradle: the second clone takes its task from the cache", { skip: missing }, async () => {
  await using caches = await startCaches();
  await using work = await temporaryFolder();
  const cold = await build(work.path, "one", caches, caches.token);
  equal(cold.code, 0, cold.output);
  doesNotMatch(cold.output, /FROM-CACHE|disabled during the build/);
  const warm = await build(work.path, "two", caches, caches.readOnlyToken);
  equal(warm.code, 0, warm.output);
  match(warm.output, /:grind FROM-CACHE/);
  doesNotMatch(warm.output, /disabled during the build/);
  equal(await treeText(join(work.path, "two/build/flour")), await treeText(join(work.path, "one/build/flour")));
});
