/** ccache: two machines, each with an empty local cache, in each of its layouts. */
import { equal, match, ok } from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { LittleS3, littleCredentials } from "#blobs/tiers/testing/little-s3.ts";
import { startCaches, type Caches } from "./caches.ts";
import { onPath, run } from "./processes.ts";
import { makeFiles, temporaryFolder } from "./workspace.ts";

const compiler = onPath("g++") ?? onPath("c++");
const missing = onPath("ccache") ? (compiler ? false : "needs g++: not on the path") : "needs ccache: not on the path";
const units = 6;

type Statistics = ReadonlyMap<string, number>;

async function compileAll(root: string, machine: string, storage: string): Promise<Statistics> {
  const env = {
    CCACHE_DIR: join(root, machine),
    CCACHE_BASEDIR: root,
    CCACHE_REMOTE_STORAGE: storage,
    CCACHE_LOGFILE: join(root, `${machine}.log`),
  };
  for (let i = 0; i < units; i += 1) {
    const args = [compiler ?? "c++", "-c", "-O0", `f${i}.cc`, "-o", `f${i}.o`];
    const { code, output } = await run("ccache", args, { cwd: root, env });
    equal(code, 0, output);
  }
  const { output } = await run("ccache", ["--print-stats"], { cwd: root, env });
  return new Map(output.split("\n").map((line) => [line.split("\t")[0] ?? "", Number(line.split("\t")[1])]));
}

/** The second machine may use another node. */
async function twoMachines(caches: Caches, layout: string, other = caches): Promise<void> {
  await using work = await temporaryFolder();
  const source = (i: number): string => `// ${layout}\n#include <vector>\nint f${i}(int x) { return x + ${i}; }\n`;
  await makeFiles(work.path, Object.fromEntries(Array.from({ length: units }, (_, i) => [`f${i}.cc`, source(i)])));
  const storage = ({ url, token }: Caches): string => `${url}/ccache|layout=${layout}|bearer-token=${token}`;
  const cold = await compileAll(work.path, "one", storage(caches));
  equal(cold.get("remote_storage_error") ?? 0, 0, await readFile(join(work.path, "one.log"), "utf8"));
  equal(cold.get("remote_storage_read_hit") ?? 0, 0);
  const warm = await compileAll(work.path, "two", storage(other));
  ok((warm.get("remote_storage_read_hit") ?? 0) >= units, `hits: ${warm.get("remote_storage_read_hit")}`);
  equal(warm.get("remote_storage_read_miss") ?? 0, 0);
}

for (const layout of ["bazel", "subdirs", "flat"])
  test(`ccache, layout=${layout}: the second machine compiles nothing`, { skip: missing }, async () => {
    await using caches = await startCaches();
    await twoMachines(caches, layout);
  });

test(
  "ccache on two nodes over one bucket: what one machine compiled, the other need not compile",
  { skip: missing },
  async () => {
    await using s3 = await LittleS3.start();
    await using keys = await temporaryFolder();
    await makeFiles(keys.path, { s3: `${littleCredentials.accessKeyId}\n${littleCredentials.secretAccessKey}\n` });
    const bucket = {
      kind: "s3",
      endpoint: s3.endpoint,
      region: "here",
      bucket: "mill",
      credentials: join(keys.path, "s3"),
    };
    const blobs = { kind: "disk", authoritative: bucket };
    await using one = await startCaches(blobs);
    await using two = await startCaches(blobs);
    await twoMachines(one, "subdirs", two);
  },
);

test("ccache with a read-only token: builds go on, and nothing is stored", { skip: missing }, async () => {
  await using caches = await startCaches();
  await using work = await temporaryFolder();
  await makeFiles(work.path, Object.fromEntries(Array.from({ length: units }, (_, i) => [`f${i}.cc`, `int f${i};`])));
  const storage = `${caches.url}/ccache|layout=flat|bearer-token=${caches.readOnlyToken}`;
  await compileAll(work.path, "one", storage);
  const second = await compileAll(work.path, "two", storage);
  equal(second.get("remote_storage_read_hit") ?? 0, 0);
  match(await readFile(join(work.path, "one.log"), "utf8"), /403/);
});
