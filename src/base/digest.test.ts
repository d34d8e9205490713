import { deepEqual, equal } from "node:assert/strict";
import { test } from "node:test";
import { digestFunctions, digestSizeBytes, digestText, hashBytes, isDigest, parseDigest } from "./digest.ts";

const hex = "0123456789abcdef".repeat(4);

test("a digest is a function (SHA-256 when left out), lower-case hex digits, and a size", () => {
  for (const right of [`${hex}/0`, `${hex}/42`, `sha256:${hex}/1`, `blake3:${hex}/9007199254740991`])
    equal(isDigest(right), true, right);
  const wrong = [
    "",
    hex,
    `${hex}/`,
    `${hex}/01`,
    `${hex}/00`,
    `${hex}/-1`,
    `${hex}/1.5`,
    `${hex}/12345678901234567`,
    `${hex.slice(1)}/1`,
    `${hex}0/1`,
    `${hex.toUpperCase()}/1`,
    `md5:${hex}/1`,
    `sha1:${hex}/1`,
    `sha512:${hex}/1`,
    `${hex}${hex}/1`,
    `${hex}/1 `,
    ` ${hex}/1`,
    `${hex}/1\n`,
  ];
  for (const text of wrong) {
    equal(isDigest(text), false, JSON.stringify(text));
    equal(parseDigest(text), undefined, JSON.stringify(text));
  }
});

test("every function has its own length, and parsing and formatting are inverse", () => {
  for (const fn of digestFunctions) {
    const hash = "0123456789abcdef".repeat(8).slice(0, 2 * hashBytes[fn]);
    const text = digestText(fn, hash, 7);
    equal(isDigest(text), true, text);
    deepEqual(parseDigest(text), { fn, hash, sizeBytes: 7 });
  }
  deepEqual(parseDigest(`sha256:${hex}/1`), { fn: "sha256", hash: hex, sizeBytes: 1 });
});

test("its size is the one in the text", () => {
  equal(digestSizeBytes(`${hex}/42`), 42);
  equal(digestSizeBytes(`${hex}/0`), 0);
  equal(digestSizeBytes(`blake3:${hex}/0`), 0);
  equal(Number.isNaN(digestSizeBytes("nonsense")), true);
});
