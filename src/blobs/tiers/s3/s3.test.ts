/** The S3 tier: the suite of all stores, its requests to the bucket, and its failures. */
import { deepEqual, equal, ok, rejects } from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { test } from "node:test";
import { isFault } from "#base/fault.ts";
import { ManualClock } from "#base/testing/manual-clock.ts";
import { realClock } from "#testing/real-clock.ts";
import { bytes, exerciseBlobs, put, text } from "#blobs/testing/exercise.ts";
import { digestOf } from "#blobs/hashing.ts";
import type { BlobStore } from "#blobs/store.ts";
import { s3Blobs, type S3BlobsOptions } from "./s3.ts";
import { littleClient, LittleS3, littleCredentials, type Misbehaviour } from "#blobs/tiers/testing/little-s3.ts";

const clientOf = (s3: LittleS3, secretAccessKey = littleCredentials.secretAccessKey) =>
  littleClient(s3, { credentials: { ...littleCredentials, secretAccessKey }, idleMs: 300 });

async function withBucket(
  body: (blobs: BlobStore, s3: LittleS3) => Promise<void>,
  options: Partial<S3BlobsOptions> = {},
  partBytesMin = 1_000,
): Promise<void> {
  await using s3 = await LittleS3.start({ partBytesMin });
  using client = clientOf(s3);
  await body(s3Blobs({ clock: realClock, client, prefix: "t/a/", ...options }), s3);
}

exerciseBlobs("the S3 tier", async () => {
  const s3 = await LittleS3.start();
  const client = clientOf(s3);
  return {
    blobs: s3Blobs({ clock: realClock, client, prefix: "" }),
    dispose: async () => {
      client[Symbol.dispose]();
      await s3[Symbol.asyncDispose]();
    },
  };
});

test("a blob is kept under its function, its hash and its size", () =>
  withBucket(async (blobs, s3) => {
    const digest = await put(blobs, "grain");
    const sha1 = digestOf(bytes("grain"), "sha1");
    await blobs.write(sha1, bytes("grain"));
    const [hash = "", hash1 = ""] = [digest.split("/")[0], sha1.slice("sha1:".length).split("/")[0]];
    deepEqual(
      [...s3.objects.keys()],
      [`t/a/cas/sha256/${hash.slice(0, 2)}/${hash}-5`, `t/a/cas/sha1/${hash1.slice(0, 2)}/${hash1}-5`],
    );
  }));

test("large blobs are sent in parts, and leave nothing behind if they are wrong", () =>
  withBucket(
    async (blobs, s3) => {
      const large = randomBytes(10_500);
      const digest = digestOf(large);
      await blobs.write(digest, large);
      equal(s3.asked.filter((one) => one.startsWith("PUT")).length, 6);
      const parts: Uint8Array[] = [];
      for await (const part of blobs.read(digest)) parts.push(Uint8Array.from(part));
      ok(Buffer.concat(parts).equals(large));
      const other = digestOf(randomBytes(10_500));
      await rejects(blobs.write(other, large), (e) => isFault(e, "invalid"));
      deepEqual(await blobs.missing([other]), [other]);
      equal(s3.uploads.size, 0);
    },
    { partBytes: 2_000 },
  ));

test("B3: a blob that was seen is not looked up again for a while; a missing one is looked up every time", async () => {
  const clock = new ManualClock();
  await withBucket(
    async (blobs, s3) => {
      const digest = await put(blobs, "seen");
      const gone = digestOf(bytes("gone"));
      s3.asked.length = 0;
      for (let i = 0; i < 3; i += 1) deepEqual(await blobs.missing([digest, gone, gone]), [gone, gone]);
      equal(s3.asked.length, 3, "one for each lookup of the missing blob");
      await clock.advance(1_001);
      deepEqual(await blobs.missing([digest]), []);
      equal(s3.asked.length, 4);
    },
    { clock, knownForMs: 1_000 },
  );
});

test("a bucket with a lifetime keeps used and pinned blobs", () =>
  withBucket(
    async (blobs, s3) => {
      const digest = await put(blobs, "old");
      const [stored] = s3.objects.values();
      ok(stored);
      stored.changedAtMs = s3.nowMs() - 40_000;
      ok("pinnedForMs" in (await blobs.pin([digest], 50_000)));
      equal(s3.asked.filter((one) => one.startsWith("PUT")).length, 1, "young enough for that");
      ok("pinnedForMs" in (await blobs.pin([digest], 80_000)));
      ok(s3.nowMs() - stored.changedAtMs < 10_000, "copied onto itself, which resets its age");
      await rejects(blobs.pin([digest], 200_000), (e) => isFault(e, "invalid"));
    },
    { lifetimeMs: 100_000 },
  ));

/** The first `count` requests of a method go wrong. */
const first = (count: number, method: string, wrong: Misbehaviour) => {
  let left = count;
  return (asked: string): Misbehaviour | undefined => (asked === method && left-- > 0 ? wrong : undefined);
};

const passing: readonly Misbehaviour[] = [
  { kind: "status", status: 500 },
  { kind: "status", status: 503, code: "SlowDown" },
  { kind: "reset" },
  { kind: "hang" },
];

for (const wrong of passing) {
  const name = wrong.kind === "status" ? `answers ${wrong.status}` : wrong.kind;
  test(`a bucket that ${name} for a moment is retried`, () =>
    withBucket(
      async (blobs, s3) => {
        for (const method of ["PUT", "GET", "HEAD"]) {
          s3.misbehave = first(2, method, wrong);
          const digest = await put(blobs, method);
          equal(await text(blobs.read(digest)), method);
          deepEqual(await blobs.missing([digest]), []);
        }
      },
      { knownForMs: 0 },
    ));

  test(`a bucket that ${name} forever is unavailable, and nothing is guessed`, () =>
    withBucket(
      async (blobs, s3) => {
        const digest = await put(blobs, "there");
        s3.misbehave = () => wrong;
        await rejects(blobs.missing([digest]), (e) => isFault(e, "unavailable"));
        await rejects(text(blobs.read(digest)), (e) => isFault(e, "unavailable"));
        await rejects(put(blobs, "more"), (e) => isFault(e, "unavailable"));
        await rejects(blobs.pin([digest], 10), (e) => isFault(e, "unavailable"));
      },
      { knownForMs: 0 },
    ));
}

test("B1: a lying bucket is noticed before the last byte, and the blob is uploaded again", () =>
  withBucket(async (blobs, s3) => {
    const digest = await put(blobs, "true words");
    s3.misbehave = (method) => (method === "GET" ? { kind: "lie" } : undefined);
    let got = "";
    await rejects(
      async () => {
        for await (const part of blobs.read(digest)) got += Buffer.from(part).toString();
      },
      (e) => isFault(e, "corrupt"),
    );
    ok(got.length < 10);
    deepEqual(await blobs.missing([digest]), [digest]);
    await put(blobs, "true words");
    deepEqual(await blobs.missing([digest]), []);
    s3.misbehave = () => undefined;
    equal(await text(blobs.read(digest)), "true words");
  }));

test("an answer that breaks off is a fault, never a truncated blob", () =>
  withBucket(async (blobs, s3) => {
    const digest = digestOf(randomBytes(100_000));
    const large = randomBytes(100_000);
    await blobs.write(digestOf(large), large);
    s3.misbehave = (method) => (method === "GET" ? { kind: "truncate" } : undefined);
    await rejects(text(blobs.read(digestOf(large))), (e) => isFault(e, "unavailable") || isFault(e, "corrupt"));
    await rejects(text(blobs.read(digest)), (e) => isFault(e, "not-found"));
  }));

test("a wrong access key is a configuration fault and is not retried", async () => {
  await using s3 = await LittleS3.start();
  using client = clientOf(s3, "wrong");
  const blobs = s3Blobs({ clock: realClock, client, prefix: "" });
  await rejects(put(blobs, "x"), (e) => isFault(e, "internal") && e.facts["code"] === "SignatureDoesNotMatch");
});
