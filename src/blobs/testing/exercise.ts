/** What every BlobStore must do, as tests: call `exerciseBlobs` from the test file of an implementation. */
import { deepEqual, equal, ok, rejects } from "node:assert/strict";
import { mkdtempDisposable, readFile, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, test } from "node:test";
import { zstdCompressSync, zstdDecompressSync } from "node:zlib";
import { digestFunctions, type Digest } from "#base/digest.ts";
import { isFault } from "#base/fault.ts";
import { digestOf } from "#blobs/hashing.ts";
import { keepFile } from "#blobs/keep-file.ts";
import { sha256Digest } from "#blobs/sha256.ts";
import type { BlobStore } from "#blobs/store.ts";

export type MakeBlobs = () => Promise<{ readonly blobs: BlobStore; readonly dispose?: () => Promise<void> }>;

export function exerciseBlobs(name: string, make: MakeBlobs): void {
  const check = (title: string, body: (blobs: BlobStore) => Promise<void>): void => {
    test(title, async () => {
      const { blobs, dispose } = await make();
      try {
        await body(blobs);
      } finally {
        await dispose?.();
      }
    });
  };

  describe(`${name} passes the suite of blob stores`, () => {
    check("a written blob is read back, whole and in ranges", async (blobs) => {
      const digest = await put(blobs, "to the mill");
      equal(await text(blobs.read(digest)), "to the mill");
      equal(await text(blobs.read(digest, { offset: 3 })), "the mill");
      equal(await text(blobs.read(digest, { offset: 3, length: 3 })), "the");
      equal(await text(blobs.read(digest, { offset: 11 })), "");
      await rejects(text(blobs.read(digest, { offset: 12 })), (e) => isFault(e, "invalid"));
    });

    check("a blob may be empty", async (blobs) => {
      const digest = await put(blobs, "");
      deepEqual(await blobs.missing([digest]), []);
      equal(await text(blobs.read(digest)), "");
    });

    check("a stream is written as it comes", async (blobs) => {
      const digest = sha256Digest(bytes("one two"));
      await blobs.write(digest, stream("one", " ", "two"));
      equal(await text(blobs.read(digest)), "one two");
    });

    check("both spellings of a SHA-256 digest name the same blob", async (blobs) => {
      const digest = await put(blobs, "same");
      equal(await text(blobs.read(`sha256:${digest}`)), "same");
      deepEqual(await blobs.missing([`sha256:${digest}`]), []);
    });

    check("B1: bytes that have another digest are refused and leave nothing behind", async (blobs) => {
      const digest = sha256Digest(bytes("truth"));
      await rejects(blobs.write(digest, bytes("false")), (e) => isFault(e, "invalid"));
      await rejects(blobs.write(digest, stream("tru")), (e) => isFault(e, "invalid"));
      await rejects(blobs.write(digest, stream("truth", " and more")), (e) => isFault(e, "invalid"));
      deepEqual(await blobs.missing([digest]), [digest]);
    });

    check("B1: a reader that changes its bytes does not change the blob", async (blobs) => {
      const digest = await put(blobs, "clean");
      for await (const part of blobs.read(digest)) part.fill(0);
      equal(await text(blobs.read(digest)), "clean");
    });

    check("B3: missing is exact, and reading a missing blob is not-found", async (blobs) => {
      const here = await put(blobs, "here");
      const gone = sha256Digest(bytes("gone"));
      deepEqual(await blobs.missing([gone, here, gone]), [gone, gone]);
      deepEqual(await blobs.missing([]), []);
      await rejects(text(blobs.read(gone)), (e) => isFault(e, "not-found"));
    });

    check("writing a blob that is there changes nothing", async (blobs) => {
      const digest = await put(blobs, "twice");
      await put(blobs, "twice");
      equal(await text(blobs.read(digest)), "twice");
    });

    check("many writers of one blob at once all succeed", async (blobs) => {
      const digests = await Promise.all(Array.from({ length: 20 }, () => put(blobs, "crowd")));
      equal(await text(blobs.read(digests[0] ?? "")), "crowd");
    });

    check("a finished file is adopted, or stays where it is; with other bytes it is refused", async (blobs) => {
      await using folder = await mkdtempDisposable(join(tmpdir(), "millrace-adopt-"));
      for (const sizeBytes of [10, 300_000]) {
        const [path, whole] = [join(folder.path, "finished"), Buffer.alloc(sizeBytes, "flour ")];
        await writeFile(path, whole);
        const digest = sha256Digest(whole);
        const other = sha256Digest(bytes(`another of ${sizeBytes}`));
        const wrong = `${other.split("/")[0]}/${sizeBytes}`;
        const answer = await blobs.adopt?.(wrong, path).catch((e: unknown) => isFault(e, "invalid") && "refused");
        ok(answer === undefined || answer === false || answer === "refused");
        deepEqual(await blobs.missing([wrong]), [wrong]);
        ok((await readFile(path)).equals(whole), "what was refused can be looked at");
        await keepFile(blobs, digest, path);
        ok((await collect(blobs.read(digest))).equals(whole));
        await writeFile(path, whole);
        await keepFile(blobs, digest, path);
        ok((await collect(blobs.read(digest))).equals(whole), "a second one changes nothing");
      }
    });

    check("a blob may be lent as a file of this machine", async (blobs) => {
      const whole = Buffer.alloc(300_000, "bread ");
      const digest = sha256Digest(whole);
      equal(await blobs.path?.(digest).catch(() => undefined), undefined, "not one that is missing");
      await blobs.write(digest, whole);
      const [one, two] = [await blobs.path?.(digest), await blobs.path?.(digest)];
      await two?.release();
      await two?.release();
      if (one) ok((await readFile(one.path)).equals(whole));
      await one?.release();
      ok((await collect(blobs.read(digest))).equals(whole));
    });

    check("a pin keeps all blobs or none, and names the missing ones", async (blobs) => {
      const here = await put(blobs, "here");
      const gone = sha256Digest(bytes("gone"));
      deepEqual(await blobs.pin([here], 1_000), { digests: [here], pinnedForMs: 1_000 });
      deepEqual(await blobs.pin([here, gone], 1_000), { missing: [gone] });
      deepEqual(await blobs.pin([], 5), { digests: [], pinnedForMs: 5 });
    });

    check("a text that is not a digest is refused", async (blobs) => {
      for (const wrong of ["", "abc/3", `${"0".repeat(64)}`, `../${"0".repeat(64)}/1`]) {
        await rejects(blobs.missing([wrong]), (e) => isFault(e, "invalid"), wrong);
        await rejects(blobs.write(wrong, bytes("x")), (e) => isFault(e, "invalid"), wrong);
        await rejects(text(blobs.read(wrong)), (e) => isFault(e, "invalid"), wrong);
      }
    });

    check("bytes can be written and read as zstd, from any offset", async (blobs) => {
      const whole = Buffer.alloc(2_500_000, "to the mill and back again ");
      for (const sizeBytes of [0, 1, 5_000, 2_500_000]) {
        const plain = whole.subarray(0, sizeBytes);
        const digest = sha256Digest(plain);
        const half = Math.floor(sizeBytes / 2);
        const frames = [zstdCompressSync(plain.subarray(0, half)), zstdCompressSync(plain.subarray(half))];
        await blobs.write(digest, Buffer.concat(frames), "zstd");
        ok((await collect(blobs.read(digest))).equals(plain));
        for (const offset of new Set([0, half, sizeBytes])) {
          const packed = await collect(blobs.read(digest, { offset }, "zstd"));
          const got = packed.length === 0 ? packed : zstdDecompressSync(packed);
          ok(got.equals(plain.subarray(offset)), `${sizeBytes} bytes from ${offset}`);
        }
      }
    });

    check("B1: zstd of other bytes, cut off or followed by garbage is refused", async (blobs) => {
      const frame = zstdCompressSync(bytes("truth"));
      const digest = sha256Digest(bytes("truth"));
      const wrong = [
        zstdCompressSync(bytes("false")),
        frame.subarray(0, frame.length - 1),
        Buffer.concat([frame, bytes("x")]),
        zstdCompressSync(Buffer.alloc(10_000_000)),
      ];
      for (const one of wrong) await rejects(blobs.write(digest, one, "zstd"), (e) => isFault(e, "invalid"));
      deepEqual(await blobs.missing([digest]), [digest]);
    });

    check("the digest function is part of the name", async (blobs) => {
      const digests = digestFunctions.map((fn) => digestOf(bytes("one thing"), fn));
      for (const [i, digest] of digests.entries()) {
        deepEqual(await blobs.missing(digests), digests.slice(i));
        await blobs.write(digest, bytes("one thing"));
        equal(await text(blobs.read(digest)), "one thing");
      }
      const [, blake3 = ""] = digests;
      await rejects(text(blobs.read(blake3.replace("blake3:", ""))), (e) => isFault(e, "not-found"));
      await rejects(blobs.write(blake3.replace("blake3:", ""), bytes("one thing")), (e) => isFault(e, "invalid"));
    });

    check("answers without waiting equal those with waiting", async ({ prompt, ...blobs }) => {
      if (!prompt) return;
      const here = await put(blobs, "here");
      const hash = Buffer.concat([Buffer.alloc(3), Buffer.from(here.slice(0, 64), "hex")]);
      equal(prompt.has("sha256", hash, 3, 4), true);
      equal(prompt.has("sha256", hash, 3, 5), false);
      equal(prompt.has("blake3", hash, 3, 4), false);
      equal(prompt.has("sha256", hash, 2, 4), false);
      const found = new Uint8Array(3);
      const hashes = Uint8Array.from([...hash.subarray(3), ...hash.subarray(3), ...Buffer.alloc(32, 7)]);
      prompt.hasMany?.("sha256", { hashes, sizes: Float64Array.of(4, 5, 4), count: 3 }, found);
      if (prompt.hasMany) deepEqual([...found], [1, 0, 0]);
      const sizes = [here.slice(0, 64), "0".repeat(64)].map((one) => prompt.sizeOf?.("sha256", one));
      if (prompt.sizeOf) deepEqual([...sizes, prompt.sizeOf("blake3", here.slice(0, 64))], [4, undefined, undefined]);
      const seen = prompt.bytes(here);
      if (seen) equal(Buffer.from(seen).toString(), "here");
      equal(prompt.bytes(sha256Digest(bytes("gone"))), undefined);
    });

    check("a lent file has exactly the blob's bytes", async (blobs) => {
      const big = new Uint8Array(300_000).map((_, i) => (i * 37) % 253);
      const digest = sha256Digest(big);
      equal(await blobs.file?.(digest), undefined);
      await blobs.write(digest, big);
      const lent = await blobs.file?.(digest);
      if (!lent) return;
      const got = Buffer.alloc(big.length + 1);
      equal((await lent.file.readv([got], 0)).bytesRead, big.length);
      ok(got.subarray(0, big.length).equals(big));
      await lent.release();
    });

    check("a megabyte is read back in parts", async (blobs) => {
      const big = new Uint8Array(1024 * 1024).map((_, i) => (i * 31) % 251);
      const digest = sha256Digest(big);
      await blobs.write(digest, big);
      const parts: Uint8Array[] = [];
      for await (const part of blobs.read(digest)) parts.push(Uint8Array.from(part));
      ok(Buffer.concat(parts).equals(big));
    });
  });
}

export const bytes = (value: string): Uint8Array => new TextEncoder().encode(value);

export async function put(blobs: BlobStore, value: string): Promise<Digest> {
  const digest = sha256Digest(bytes(value));
  await blobs.write(digest, bytes(value));
  return digest;
}

export async function collect(parts: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const all: Uint8Array[] = [];
  for await (const part of parts) all.push(Uint8Array.from(part));
  return Buffer.concat(all);
}

export async function text(parts: AsyncIterable<Uint8Array>): Promise<string> {
  const all: Uint8Array[] = [];
  for await (const part of parts) all.push(Uint8Array.from(part));
  return Buffer.concat(all).toString("utf8");
}

async function* stream(...parts: readonly string[]): AsyncGenerator<Uint8Array> {
  for (const part of parts) yield bytes(part);
}
