/**
 * BuildStream: what one machine built, another pulls and checks out. It stores artifacts as remote assets
 * (PushDirectory, FetchDirectory) that name trees of the CAS, and supports only certificates as credentials.
 */
import { equal, match } from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { chmod, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { startCaches } from "./caches.ts";
import { onPath, run, type Ran } from "./processes.ts";
import { makeFiles, temporaryFolder, treeText } from "./workspace.ts";

const missing = onPath("bst") ? false : "needs buildstream: not on the path";
const filesInFolder = 300;
/** More than fits into a batch. */
const largeBytes = 6_000_000;

const project = (url: string): string =>
  ["name: mill", "element-path: elements", "artifacts:", `  url: ${url}`, "  push: true", ""].join("\n");
const element = ["kind: import", "sources:", "- kind: local", "  path: files", ""].join("\n");

async function makeProject(root: string, url: string): Promise<void> {
  const many = Array.from({ length: filesInFolder }, (_, i) => [`files/grain/g${i}`, `grain ${i}\n`]);
  await makeFiles(root, {
    "project.conf": project(url),
    "elements/flour.bst": element,
    "files/seed.txt": randomBytes(16).toString("hex"),
    "files/mill.sh": "#!/bin/sh\n",
    ...(Object.fromEntries(many) as Record<string, string>),
  });
  await writeFile(join(root, "files/large.bin"), randomBytes(largeBytes));
  await symlink("seed.txt", join(root, "files/link"));
  await chmod(join(root, "files/grain/g0"), 0o755);
}

test(
  "BuildStream: an artifact that one machine pushed is pulled and checked out by another",
  { skip: missing },
  async () => {
    await using caches = await startCaches({ kind: "disk" }, {});
    await using work = await temporaryFolder();
    const root = join(work.path, "project");
    await makeProject(root, caches.url);
    const bst = async (machine: string, ...args: readonly string[]): Promise<Ran> => {
      const env = { XDG_CACHE_HOME: join(work.path, machine), XDG_CONFIG_HOME: join(work.path, "config") };
      const ran = await run("bst", ["--no-interactive", "--no-colors", ...args], { cwd: root, env });
      equal(ran.code, 0, ran.output);
      return ran;
    };
    match((await bst("one", "build", "flour.bst")).output, /SUCCESS/);
    await bst("one", "push", "flour.bst");
    match((await bst("two", "pull", "flour.bst")).output, /Pulled artifact/);
    await bst("two", "checkout", "--no-integrate", "flour.bst", join(work.path, "out"));
    equal(await treeText(join(work.path, "out")), await treeText(join(root, "files")));
  },
);
