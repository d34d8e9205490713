import { deepEqual, equal, ok, rejects } from "node:assert/strict";
import { mkdir, mkdtemp, readdir, rename, rm, utimes, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { isFault } from "#base/fault.ts";
import { exerciseBlobs, put, text } from "#blobs/testing/exercise.ts";
import { ManualClock } from "#base/testing/manual-clock.ts";
import { DurableImage } from "#blobs/durable-image.ts";
import { openSharedDirectory } from "./shared-directory.ts";

const clock = new ManualClock();

const fresh = async (): Promise<AsyncDisposable & { readonly path: string }> => {
  const path = await mkdtemp(join(tmpdir(), "millrace-shared-"));
  return { path, [Symbol.asyncDispose]: () => rm(path, { recursive: true, force: true }) };
};

exerciseBlobs("a shared folder", async () => {
  const root = await fresh();
  return { blobs: await openSharedDirectory(root.path, clock), dispose: async () => await root[Symbol.asyncDispose]() };
});

test("nodes see each other's blobs; old leftovers of a crash are removed", async () => {
  await using root = await fresh();
  const one = await openSharedDirectory(root.path, clock);
  for (const name of ["half", "somebody-is-at-it"]) await writeFile(join(root.path, "blobs/tmp", name), "hal");
  const longAgo = Date.now() / 1_000 - 2 * 86_400;
  await utimes(join(root.path, "blobs/tmp", "half"), longAgo, longAgo);
  const two = await openSharedDirectory(root.path, clock);
  deepEqual(await readdir(join(root.path, "blobs/tmp")), ["somebody-is-at-it"]);
  equal(await text(two.read(await put(one, "for all"))), "for all");
});

test("B1: bit rot is noticed, the blob counts as missing, and can be written again", async () => {
  await using root = await fresh();
  const blobs = await openSharedDirectory(root.path, clock);
  const digest = await put(blobs, "sound");
  const [file] = (await readdir(join(root.path, "blobs/sha256"), { recursive: true })).filter((name) =>
    name.endsWith("-5"),
  );
  ok(file);
  for (const rotten of ["wrong", "sounder", "sou", ""]) {
    await writeFile(join(root.path, "blobs/sha256", file), rotten);
    await rejects(text(blobs.read(digest)), (e) => isFault(e, "corrupt"));
  }
  deepEqual(await blobs.missing([digest]), [digest]);
  await put(blobs, "sound");
  equal(await text(blobs.read(digest)), "sound");
});

test("B3: a folder that is gone, such as a lost mount, is unavailable, and nothing is guessed", async () => {
  await using root = await fresh();
  const blobs = await openSharedDirectory(root.path, clock);
  const digest = await put(blobs, "here");
  await rename(root.path, `${root.path}-elsewhere`);
  await mkdir(root.path);
  await rejects(blobs.missing([digest]), (e) => isFault(e, "unavailable"));
  await rejects(text(blobs.read(digest)), (e) => isFault(e, "unavailable"));
  await rejects(put(blobs, "x"), (e) => isFault(e, "unavailable"));
  await rejects(blobs.pin([digest], 5), (e) => isFault(e, "unavailable"));
  await rm(`${root.path}-elsewhere`, { recursive: true });
  await rejects(openSharedDirectory(join(root.path, "nowhere"), clock), (e) => isFault(e, "unavailable"));
});

test("a blob seen a moment ago is assumed to be there; a read notices that it was removed by hand", async () => {
  await using root = await fresh();
  const [one, two] = [await openSharedDirectory(root.path, clock), await openSharedDirectory(root.path, clock)];
  const digests = [await put(one, "read"), await put(one, "asked for")];
  deepEqual(await two.missing(digests), []);
  await rm(join(root.path, "blobs/sha256"), { recursive: true });
  for (const blobs of [one, two]) deepEqual(await blobs.missing(digests), []);
  await rejects(text(one.read(digests[0] ?? "")), (e) => isFault(e, "not-found"));
  deepEqual(await one.missing(digests), digests.slice(0, 1));
  await put(one, "read");
  equal(await text(two.read(digests[0] ?? "")), "read");
  await clock.advance(60_001);
  deepEqual(await two.missing(digests), digests.slice(1));
});

test("a subfolder removed by hand is created again, at any depth", async () => {
  await using root = await fresh();
  const blobs = await openSharedDirectory(root.path, clock);
  for (const below of ["", "sha256", "sha256"]) {
    await put(blobs, "one");
    const [leaf = ""] = (await readdir(join(root.path, "blobs/sha256"), { recursive: true })).filter((name) =>
      /^..[/]..$/.test(name),
    );
    await rm(join(root.path, "blobs", below === "" ? join("sha256", leaf) : below), { recursive: true });
    await put(blobs, "one");
    await put(blobs, "two");
    equal(await text(blobs.read(await put(blobs, "one"))), "one");
  }
});

test("B4: acknowledged writes survive power loss, also concurrent ones", async () => {
  await using root = await fresh();
  await using left = await fresh();
  const image = new DurableImage();
  image.adopt(root.path);
  const blobs = await openSharedDirectory(root.path, clock, "blobs", image.syncs);
  const digests = [await put(blobs, "first")];
  for (const text of ["second", "third"]) digests.push(await put(blobs, text));
  digests.push(...(await Promise.all(["fourth", "fifth", "sixth"].map((text) => put(blobs, text)))));
  image.restore(root.path, left.path);
  const again = await openSharedDirectory(left.path, clock);
  deepEqual(await again.missing(digests), []);
  for (const [i, word] of ["first", "second", "third", "fourth", "fifth", "sixth"].entries())
    equal(await text(again.read(digests[i] ?? "")), word);
});
