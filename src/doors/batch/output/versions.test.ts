import { deepEqual, equal, rejects } from "node:assert/strict";
import { mkdtemp, readdir, readFile, rm, symlink, utimes, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, test } from "node:test";
import { commitVersion, openStaging, versionsOf } from "./versions.ts";

const home = await mkdtemp(join(tmpdir(), "millrace-versions-"));
after(() => rm(home, { recursive: true, force: true }));

const granted = async (): Promise<void> => {};

async function write(folder: string, version: string, mayCommit = granted, attempt = version): Promise<void> {
  await using staging = await openStaging(folder, attempt);
  for (const file of ["a", "b"]) await writeFile(join(staging.path, file), version);
  await commitVersion(folder, staging.path, version, mayCommit);
}

const content = async (folder: string): Promise<readonly string[]> =>
  await Promise.all((await readdir(folder)).toSorted().map((name) => readFile(join(folder, name), "utf8")));

describe("a folder of versions", () => {
  test("BO1: an attempt that may not commit any more leaves the version that was there", async () => {
    const folder = join(home, "stale");
    await write(folder, "v1");
    await rejects(
      write(folder, "v2", async () => {
        throw new Error("the claim has run out");
      }),
    );
    deepEqual(await content(folder), ["v1", "v1"]);
    await write(folder, "v2");
    deepEqual(await content(folder), ["v2", "v2"]);
  });

  test("BO1: a crash while files are staged leaves the version that was there", async () => {
    const folder = join(home, "crash");
    await write(folder, "v1");
    const { path } = await openStaging(folder, "crashed"); // never committed, never disposed
    await writeFile(join(path, "a"), "half");
    deepEqual(await content(folder), ["v1", "v1"]);
    await write(folder, "v2", granted, "crashed");
    deepEqual(await content(folder), ["v2", "v2"]);
  });

  test("BO2: a version that is committed again, by two at once as well, stays as it is", async () => {
    const folder = join(home, "again");
    await Promise.all([write(folder, "v1", granted, "one"), write(folder, "v1", granted, "two")]);
    await write(folder, "v1");
    deepEqual(await content(folder), ["v1", "v1"]);
    deepEqual(await readdir(versionsOf(folder)), ["v1"]);
  });

  test("keeps the version before the present one, and none older", async () => {
    const folder = join(home, "older");
    for (const version of ["v1", "v2", "v3", "v1", "v4"]) await write(folder, version);
    deepEqual((await readdir(versionsOf(folder))).toSorted(), ["v1", "v4"]);
    deepEqual(await content(folder), ["v4", "v4"]);
  });

  test("a version whose files were made long before it was committed stays", async () => {
    const folder = join(home, "slow");
    await using staging = await openStaging(folder, "slow");
    for (const file of ["a", "b"]) await writeFile(join(staging.path, file), "slow");
    await utimes(staging.path, new Date(0), new Date(0));
    await write(folder, "v1");
    await commitVersion(folder, staging.path, "slow", granted);
    deepEqual(await content(folder), ["slow", "slow"]);
  });

  test("takes the place of an empty folder, and of nothing else", async () => {
    const folder = join(home, "link");
    await symlink("/etc", folder);
    await rejects(write(folder, "v1"), /something else is there/);
    equal((await readdir(home)).includes(".link.versions"), false);
  });
});
