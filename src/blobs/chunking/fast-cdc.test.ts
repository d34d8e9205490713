import { deepEqual, equal, ok } from "node:assert/strict";
import { createHash } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { Random } from "#base/random.ts";
import { chunksOf, FastCdc, fastCdcParams } from "./fast-cdc.ts";

/** The vectors that the protocol publishes, and the picture that they were made from, are not in this repository. */
const corpora = process.env["MILLRACE_CORPORA"] ?? "";
const vectors = join(corpora, "fastcdc2020_test_vectors.txt");
const picture = join(corpora, "SekienAkashita.jpg");
const skip =
  corpora !== "" && existsSync(vectors) && existsSync(picture)
    ? false
    : `needs corpora: MILLRACE_CORPORA must name a folder with ${"fastcdc2020_test_vectors.txt"} and its picture`;

test("cuts where the published vectors say", { skip }, async () => {
  const bytes = readFileSync(picture);
  const bySeed = new Map<number, string[]>();
  let seed = 0;
  for (const line of readFileSync(vectors, "utf8").split("\n")) {
    const named = /^# Seed: (\d+)/.exec(line);
    if (named) seed = Number(named[1]);
    const fields = line.split("\t");
    if (fields.length >= 3) bySeed.set(seed, [...(bySeed.get(seed) ?? []), fields.slice(0, 3).join(" ")]);
  }
  ok(bySeed.size >= 2);
  for (const [one, wanted] of bySeed) {
    const cdc = new FastCdc({ minBytes: 4_096, avgBytes: 16_384, maxBytes: 65_535, seed: one });
    const got: string[] = [];
    let offset = 0;
    for await (const chunk of chunksOf(inParts(bytes, 10_007), cdc)) {
      got.push(`${offset} ${chunk.length} ${createHash("sha256").update(chunk).digest("hex")}`);
      offset += chunk.length;
    }
    deepEqual(got, wanted);
  }
});

async function* inParts(bytes: Uint8Array, partBytes: number): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += partBytes) yield bytes.subarray(at, at + partBytes);
}

const noise = (length: number): Buffer => {
  const random = new Random("noise");
  return Buffer.from(Uint8Array.from({ length }, () => random.below(256)));
};

async function lengths(bytes: Uint8Array, partBytes: number, cdc: FastCdc): Promise<readonly number[]> {
  const found: number[] = [];
  const parts: Buffer[] = [];
  for await (const chunk of chunksOf(inParts(bytes, partBytes), cdc)) {
    found.push(chunk.length);
    parts.push(Buffer.from(chunk));
  }
  ok(Buffer.concat(parts).equals(bytes), "the chunks are the bytes");
  return found;
}

test("cuts at the same places whatever the sizes of the pieces, within the limits", async () => {
  const cdc = new FastCdc(fastCdcParams(1_024));
  const bytes = noise(200_000);
  const wanted = await lengths(bytes, bytes.length, cdc);
  for (const partBytes of [1_000, 4_096, 8_192, 65_536]) deepEqual(await lengths(bytes, partBytes, cdc), wanted);
  ok(wanted.slice(0, -1).every((length) => length >= 256 && length <= 4_096));
  ok(Math.abs(200_000 / wanted.length - 1_100) < 300, `${wanted.length} chunks`);
});

test("an insertion moves only the cuts near it", async () => {
  const cdc = new FastCdc(fastCdcParams(1_024));
  const bytes = noise(200_000);
  const changed = Buffer.concat([bytes.subarray(0, 50_000), Buffer.from("inserted"), bytes.subarray(50_000)]);
  const before = new Set(await hashes(bytes, cdc));
  const after = await hashes(changed, cdc);
  const fresh = after.filter((hash) => !before.has(hash));
  ok(fresh.length <= 4, `${fresh.length} of ${after.length} chunks are new`);
});

async function hashes(bytes: Uint8Array, cdc: FastCdc): Promise<readonly string[]> {
  const found: string[] = [];
  for await (const chunk of chunksOf(inParts(bytes, 4_096), cdc))
    found.push(createHash("sha256").update(chunk).digest("hex"));
  return found;
}

test("input shorter than the shortest chunk is one chunk, and empty input is none", async () => {
  const cdc = new FastCdc(fastCdcParams(1_024));
  deepEqual(await lengths(noise(256), 100, cdc), [256]);
  deepEqual(await lengths(noise(0), 100, cdc), []);
  equal((await lengths(Buffer.alloc(10_000), 999, cdc)).at(0), 4_096, "constant bytes are cut at the longest length");
});
