import { equal, notEqual } from "node:assert/strict";
import { test } from "node:test";
import { giveBody, takeBody } from "./body-pool.ts";

test("returned memory is reused, by one user at a time", () => {
  const first = takeBody(300_000);
  equal(first.length, 300_000);
  giveBody(first);
  const again = takeBody(400_000);
  equal(again.buffer, first.buffer);
  equal(again.length, 400_000);
  const other = takeBody(400_000);
  notEqual(other.buffer, again.buffer);
});

test("huge buffers, and buffers from elsewhere, are not kept", () => {
  for (const bytes of [takeBody(10_000_000), Buffer.alloc(100_000), Buffer.alloc(131_073)]) {
    giveBody(bytes);
    notEqual(takeBody(bytes.length).buffer, bytes.buffer, `${bytes.length}`);
  }
});

test("the pool's size is limited", () => {
  const many = Array.from({ length: 40 }, () => takeBody(1_000_000));
  many.forEach(giveBody);
  const kept = new Set(many.map(({ buffer }) => buffer));
  const reused = Array.from({ length: 40 }, () => takeBody(1_000_000)).filter(({ buffer }) => kept.has(buffer));
  equal(reused.length <= 16 && reused.length > 0, true);
});
