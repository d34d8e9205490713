import { equal } from "node:assert/strict";
import { test } from "node:test";
import { digestSizeBytes, isDigest } from "./digest.ts";

const hex = "0123456789abcdef".repeat(4);

test("a digest is a function (SHA-256 when left out), 64 small hex digits, and a size", () => {
  for (const right of [`${hex}/0`, `${hex}/42`, `sha256:${hex}/1`, `blake3:${hex}/9007199254740991`])
    equal(isDigest(right), true, right);
  const wrong = [
    "",
    hex,
    `${hex}/`,
    `${hex}/01`,
    `${hex}/-1`,
    `${hex}/1.5`,
    `${hex}/12345678901234567`,
    `${hex.slice(1)}/1`,
    `${hex}0/1`,
    `${hex.toUpperCase()}/1`,
    `md5:${hex}/1`,
    `${hex}/1 `,
    ` ${hex}/1`,
    `${hex}/1\n`,
  ];
  for (const text of wrong) equal(isDigest(text), false, JSON.stringify(text));
});

test("its size is what it says", () => {
  equal(digestSizeBytes(`${hex}/42`), 42);
  equal(digestSizeBytes(`blake3:${hex}/0`), 0);
  equal(Number.isNaN(digestSizeBytes("nonsense")), true);
});
