/** What every implementation of Uploads must do, as tests: call `exerciseUploads` from its test file. */
import { deepEqual, equal, ok, rejects } from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { describe, test } from "node:test";
import { zstdCompressSync } from "node:zlib";
import { isFault, type FaultCode } from "#base/fault.ts";
import { bytes, text } from "./exercise.ts";
import { sha256Digest } from "#blobs/sha256.ts";
import type { BlobStore } from "#blobs/store.ts";
import type { Uploads } from "#blobs/uploads.ts";

export type UploadsRig = {
  readonly uploads: Uploads;
  /** Where finished uploads are stored. */
  readonly blobs: BlobStore;
  /** Opens the uploads again, as after a restart or on another node; left out if uploads do not survive the process. */
  readonly reopened?: () => Promise<UploadsRig>;
  readonly dispose?: () => Promise<void>;
};

const sentence = "the stream of water to every wheel of a mill";
const key = { uuid: "5d1f2f0e-0000-4000-8000-000000000001", digest: sha256Digest(bytes(sentence)) };
const isCode = (code: FaultCode) => (error: unknown) => isFault(error, code);

export function exerciseUploads(name: string, make: () => Promise<UploadsRig>): void {
  const check = (title: string, body: (rig: UploadsRig) => Promise<void>): void => {
    test(title, { timeout: 20_000 }, async () => {
      const rig = await make();
      try {
        await body(rig);
      } finally {
        await rig.dispose?.();
      }
    });
  };

  describe(`${name} passes the suite of uploads`, () => {
    check("an upload that is appended to and finished is a blob", async ({ uploads, blobs }) => {
      deepEqual(await uploads.committed(key), { sizeBytes: 0, complete: false });
      const upload = await uploads.open(key, 0);
      await upload.append(bytes(sentence.slice(0, 10)));
      await upload.append(bytes(sentence.slice(10)));
      equal(upload.sizeBytes, sentence.length);
      deepEqual(await blobs.missing([key.digest]), [key.digest], "not before it is finished");
      await upload.finish();
      equal(await text(blobs.read(key.digest)), sentence);
      deepEqual(await uploads.committed(key), { sizeBytes: sentence.length, complete: true });
    });

    check("the caller may reuse its memory after an append", async ({ uploads, blobs }) => {
      const upload = await uploads.open(key, 0);
      const memory = Buffer.from(sentence);
      await upload.append(memory);
      memory.fill(0);
      await upload.finish();
      equal(await text(blobs.read(key.digest)), sentence);
    });

    check("B6: a broken upload resumes at its committed size", async ({ uploads, blobs }) => {
      const first = await uploads.open(key, 0);
      await first.append(bytes(sentence.slice(0, 20)));
      await first.suspend();
      const { sizeBytes, complete } = await uploads.committed(key);
      equal(complete, false);
      equal(sizeBytes, 20);
      const second = await uploads.open(key, sizeBytes);
      equal(second.sizeBytes, sizeBytes);
      await second.append(bytes(sentence.slice(sizeBytes)));
      await second.finish();
      equal(await text(blobs.read(key.digest)), sentence);
    });

    check("B6: committed bytes are found after a restart", async (rig) => {
      if (!rig.reopened) return;
      const first = await rig.uploads.open(key, 0);
      await first.append(bytes(sentence.slice(0, 20)));
      await first.suspend();
      const { sizeBytes } = await rig.uploads.committed(key);
      const { uploads, blobs, dispose } = await rig.reopened();
      try {
        equal((await uploads.committed(key)).sizeBytes >= sizeBytes, true);
        const second = await uploads.open(key, sizeBytes);
        await second.append(bytes(sentence.slice(sizeBytes)));
        await second.finish();
        equal(await text(blobs.read(key.digest)), sentence);
      } finally {
        await dispose?.();
      }
    });

    check("an upload may resume earlier, and the bytes kept beyond are dropped", async ({ uploads, blobs }) => {
      const first = await uploads.open(key, 0);
      await first.append(bytes(`${sentence.slice(0, 10)}WRONG`));
      await first.suspend();
      const second = await uploads.open(key, 10);
      equal(second.sizeBytes, 10);
      await second.append(bytes(sentence.slice(10)));
      await second.finish();
      equal(await text(blobs.read(key.digest)), sentence);
    });

    check("a gap is refused", async ({ uploads }) => {
      await rejects(uploads.open(key, 1), isCode("invalid"));
      await rejects(uploads.open(key, -1), isCode("invalid"));
    });

    check("opening a key again takes the upload over", async ({ uploads, blobs }) => {
      const first = await uploads.open(key, 0);
      await first.append(bytes(sentence.slice(0, 10)));
      const second = await uploads.open(key, 0);
      await rejects(first.append(bytes("late")), isCode("stale"));
      await rejects(first.finish(), isCode("stale"));
      await first.suspend();
      await second.append(bytes(sentence));
      await second.finish();
      equal(await text(blobs.read(key.digest)), sentence);
    });

    check(
      "one uuid with two digests is two uploads, and so are two uuids with one digest",
      async ({ uploads, blobs }) => {
        const other = { uuid: key.uuid, digest: sha256Digest(bytes("other")) };
        const [one, two, three] = await Promise.all([
          uploads.open(key, 0),
          uploads.open(other, 0),
          uploads.open({ ...key, uuid: "another" }, 0),
        ]);
        await one.append(bytes(sentence.slice(0, 5)));
        await two.append(bytes("other"));
        await three.append(bytes(sentence));
        await three.finish();
        await two.finish();
        await one.append(bytes(sentence.slice(5)));
        await one.finish();
        equal(await text(blobs.read(key.digest)), sentence);
        equal(await text(blobs.read(other.digest)), "other");
      },
    );

    for (const [title, wrong] of [
      ["other bytes", sentence.toUpperCase()],
      ["too few bytes", sentence.slice(1)],
    ] as const)
      check(`B1: ${title} are refused at the end, and nothing is kept`, async ({ uploads, blobs }) => {
        const upload = await uploads.open(key, 0);
        await upload.append(bytes(wrong));
        await rejects(upload.finish(), isCode("invalid"));
        deepEqual(await blobs.missing([key.digest]), [key.digest]);
        deepEqual(await uploads.committed(key), { sizeBytes: 0, complete: false });
      });

    check("B1: too many bytes are refused as they arrive", async ({ uploads, blobs }) => {
      const upload = await uploads.open(key, 0);
      await rejects(upload.append(bytes(`${sentence}!`)), isCode("invalid"));
      deepEqual(await blobs.missing([key.digest]), [key.digest]);
      deepEqual(await uploads.committed(key), { sizeBytes: 0, complete: false });
    });

    check("zstd is appended as frames and counted in plain bytes", async ({ uploads, blobs }) => {
      const upload = await uploads.open(key, 0, { form: "zstd" });
      for (const part of [sentence.slice(0, 13), "", sentence.slice(13)])
        await upload.append(zstdCompressSync(bytes(part)));
      await upload.finish();
      equal(await text(blobs.read(key.digest)), sentence);
    });

    check("a broken zstd upload resumes with a new frame", async ({ uploads, blobs }) => {
      const first = await uploads.open(key, 0, { form: "zstd" });
      await first.append(zstdCompressSync(bytes(sentence.slice(0, 20))));
      await first.append(zstdCompressSync(bytes(sentence.slice(20))).subarray(0, 12)); // then the connection broke
      await first.suspend();
      const { sizeBytes } = await uploads.committed(key);
      ok(sizeBytes >= 20 && sizeBytes < sentence.length);
      const second = await uploads.open(key, sizeBytes, { form: "zstd" });
      await second.append(zstdCompressSync(bytes(sentence.slice(sizeBytes))));
      await second.finish();
      equal(await text(blobs.read(key.digest)), sentence);
    });

    for (const [title, wrong] of [
      ["what is no zstd", bytes("plainly not a frame at all")],
      ["a frame that is cut off", zstdCompressSync(bytes(sentence)).subarray(0, 20)],
      ["something after the last frame", Buffer.concat([zstdCompressSync(bytes(sentence)), bytes("x")])],
      ["a frame with more bytes than it should", zstdCompressSync(Buffer.alloc(10_000_000))],
    ] as const)
      check(`B1: ${title} is refused`, async ({ uploads, blobs }) => {
        const upload = await uploads.open(key, 0, { form: "zstd" });
        await rejects(
          upload.append(wrong).then(() => upload.finish()),
          isCode("invalid"),
        );
        deepEqual(await blobs.missing([key.digest]), [key.digest]);
      });

    check("many megabytes in many pieces", async ({ uploads, blobs }) => {
      const whole = randomBytes(3 * 1024 * 1024 + 17);
      const large = { uuid: "large", digest: sha256Digest(whole) };
      const upload = await uploads.open(large, 0);
      for (let at = 0; at < whole.length; at += 65_521) await upload.append(whole.subarray(at, at + 65_521));
      await upload.finish();
      const parts: Uint8Array[] = [];
      for await (const part of blobs.read(large.digest)) parts.push(Uint8Array.from(part));
      equal(whole.equals(Buffer.concat(parts)), true);
    });

    check("a key without a valid digest is refused", async ({ uploads }) => {
      for (const digest of ["", "abc/3", `../${"0".repeat(64)}/1`]) {
        await rejects(uploads.open({ uuid: "u", digest }, 0), isCode("invalid"), digest);
        await rejects(uploads.committed({ uuid: "u", digest }), isCode("invalid"), digest);
      }
    });

    check("a uuid may be any text", async ({ uploads }) => {
      for (const uuid of ["../../etc/passwd", "a/b", "", "x".repeat(2_000), "ü\0"]) {
        const upload = await uploads.open({ ...key, uuid }, 0);
        await upload.append(bytes(sentence.slice(0, 3)));
        await upload.suspend();
        equal((await uploads.committed({ ...key, uuid })).sizeBytes, 3, uuid);
      }
    });
  });
}
