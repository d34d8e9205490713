import { equal, match, notEqual, rejects } from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { isFault } from "#base/fault.ts";
import { dataFolder, lockFolder, nodeName, publishAddress, publishedAddress } from "./data-folder.ts";

async function withFolder(body: (folder: ReturnType<typeof dataFolder>) => Promise<void>): Promise<void> {
  const path = await mkdtemp(join(tmpdir(), "millrace-data-"));
  try {
    await body(dataFolder(path));
  } finally {
    await rm(path, { recursive: true });
  }
}

test("a data folder has one node at a time", async () =>
  withFolder(async (folder) => {
    {
      await using _lock = await lockFolder(folder);
      await rejects(lockFolder(folder), (e) => isFault(e, "exhausted") && /already running there/.test(e.message));
    }
    await using _again = await lockFolder(folder);
  }));

test("the lock of a killed process is taken over, also if its pid was reused", async () =>
  withFolder(async (folder) => {
    const dead = spawn("/bin/true");
    await new Promise((ended) => dead.once("close", ended));
    await writeFile(join(folder.path, "up.pid"), `${dead.pid} 1`);
    {
      await using _lock = await lockFolder(folder);
    }
    await writeFile(join(folder.path, "up.pid"), `${process.pid} 1`); // our pid, another birth
    await using _again = await lockFolder(folder);
  }));

test("a node keeps its name, and a given name is used", async () =>
  withFolder(async (folder) => {
    const name = await nodeName(folder, undefined);
    match(name, /^n-[0-9a-f]{10}$/);
    equal(await nodeName(folder, undefined), name);
    equal(await nodeName(folder, "mine"), "mine");
    await withFolder(async (other) => notEqual(await nodeName(other, undefined), name));
  }));

test("the address is published while the node runs", async () =>
  withFolder(async (folder) => {
    equal(publishedAddress(folder), undefined);
    {
      await using _address = await publishAddress(folder, "unix:/x");
      equal(publishedAddress(folder), "unix:/x");
    }
    equal(publishedAddress(folder), undefined);
  }));
