import { ok } from "node:assert/strict";
import { test } from "node:test";
import { fuzz } from "./fuzz.ts";

const seed = process.env["FUZZ_SEED"] ?? String(Date.now() % 1_000_000);
test(`the machine and HPACK survive 200,000 damaged frames (replay: FUZZ_SEED=${seed})`, () => {
  const { frames, grownBytes } = fuzz({ frames: 200_000, seed });
  ok(frames >= 200_000);
  ok(grownBytes < 3_000_000, `${grownBytes} bytes more are held at the end`);
});
