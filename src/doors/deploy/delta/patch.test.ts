import { deepEqual, equal, ok, rejects } from "node:assert/strict";
import { describe, test } from "node:test";
import { zstdCompressSync } from "node:zlib";
import { isFault } from "#base/fault.ts";
import { Random } from "#base/random.ts";
import { addDiff, type AddDiff } from "./add-diff.ts";
import { applyPatch, compressed, encodePatch, type Bytes } from "./patch.ts";

const random = new Random("patch");
const noise = (length: number): Buffer => Buffer.from(Uint8Array.from({ length }, () => random.below(256)));
const inMemory = (bytes: Uint8Array): Bytes =>
  async function* ({ offset, length }) {
    for (let at = offset; at < offset + length; at += 1_000)
      yield bytes.subarray(at, Math.min(at + 1_000, offset + length));
  };

async function applied(patch: Uint8Array, old: Uint8Array, sizeBytes: number): Promise<Buffer> {
  const parts: Buffer[] = [];
  const read = async (at: number, into: Uint8Array): Promise<void> => {
    if (at + into.length > old.length) throw new RangeError("beyond the old bytes");
    into.set(old.subarray(at, at + into.length));
  };
  const sizes = { patchBytes: patch.length, sizeBytes };
  for await (const part of applyPatch(inMemory(patch), sizes, read)) parts.push(Buffer.from(part));
  return Buffer.concat(parts);
}

const old = noise(300_000);
/** As a linker does it: what is inserted moves everything behind it, and addresses everywhere change a little. */
function relinked(): Buffer {
  const bytes = Buffer.concat([old.subarray(0, 100_000), noise(500), old.subarray(100_000)]);
  for (let at = 64; at < bytes.length; at += 997) bytes[at] = ((bytes[at] ?? 0) + 5) & 255;
  return bytes;
}

describe("a patch", () => {
  const cases: readonly (readonly [string, Uint8Array, Uint8Array, number])[] = [
    ["of a relinked program", old, relinked(), 0.05],
    ["of equal bytes", old, old, 0.001],
    ["of bytes that lost their beginning", old, old.subarray(12_345), 0.001],
    ["of halves that changed places", old, Buffer.concat([old.subarray(150_000), old.subarray(0, 150_000)]), 0.001],
    ["of bytes that repeat", Buffer.alloc(100_000, "ab"), Buffer.alloc(200_001, "ab"), 0.01],
    ["of unrelated bytes", old, noise(100_000), 1.01],
    ["against nothing", Buffer.alloc(0), noise(5_000), 1.05],
    ["of fewer bytes than a window", old, Buffer.from("short"), 100],
    ["of nothing", old, Buffer.alloc(0), 1],
  ];
  for (const [name, before, after, most] of cases)
    test(`${name} gives the new bytes`, async () => {
      const patch = encodePatch(addDiff(before, after));
      ok((await applied(patch, before, after.length)).equals(after));
      if (after.length > 0) ok(patch.length <= most * after.length, `${patch.length} bytes for ${after.length}`);
    });

  test("of random changes gives the new bytes", async () => {
    for (let round = 0; round < 200; round += 1) {
      const before = noise(random.below(3_000));
      const parts = Array.from({ length: random.below(8) }, () => {
        const from = random.below(before.length + 1);
        return random.below(3) === 0 ? noise(random.below(100)) : before.subarray(from, from + random.below(800));
      });
      const after = Buffer.concat(parts);
      const made = await applied(encodePatch(addDiff(before, after)), before, after.length);
      ok(made.equals(after), `round ${round}`);
    }
  });
});

describe("a patch that is not right", () => {
  const fresh = relinked();
  const patch = encodePatch(addDiff(old, fresh));
  const refused = async (bytes: Uint8Array, sizeBytes = fresh.length): Promise<void> =>
    await rejects(applied(bytes, old, sizeBytes), (error) => isFault(error, "corrupt"));

  for (const length of [0, 7, 8, 20, patch.length - 300])
    test(`PA1: cut to ${length} bytes is refused`, async () => await refused(patch.subarray(0, length)));

  test("PA1: whose parts are longer than the whole is refused", async () => {
    const wrong = Buffer.from(patch);
    wrong.writeUInt32LE(0xff_ff_ff_ff, 4);
    await refused(wrong);
  });

  test("PA1: of bytes that are no compressed stream is refused", async () => {
    const wrong = Buffer.from(patch);
    wrong.fill(0xff, 8, 40);
    await refused(wrong);
  });

  test("PA1: any flipped byte gives an error or as many bytes as were asked for, never more", async () => {
    for (let at = 0; at < patch.length; at += 101) {
      const wrong = Buffer.from(patch);
      wrong[at] = (wrong[at] ?? 0) ^ 0x55;
      const made = await applied(wrong, old, fresh.length).catch(() => undefined);
      ok(made === undefined || made.length === fresh.length);
    }
  });

  const hostile: readonly (readonly [string, AddDiff])[] = [
    [
      "that gives more than was asked for",
      { ops: [{ from: 0, add: 200, literal: 0 }], add: Buffer.alloc(200), literal: Buffer.alloc(0) },
    ],
    ["that gives less", { ops: [{ from: 0, add: 50, literal: 0 }], add: Buffer.alloc(50), literal: Buffer.alloc(0) }],
    [
      "whose ranges are without a byte",
      { ops: Array(1_000).fill({ from: 0, add: 0, literal: 0 }), add: Buffer.alloc(0), literal: Buffer.alloc(0) },
    ],
    [
      "whose literals are missing",
      { ops: [{ from: 0, add: 0, literal: 100 }], add: Buffer.alloc(0), literal: Buffer.alloc(1) },
    ],
    [
      "whose differences are missing",
      { ops: [{ from: 0, add: 100, literal: 0 }], add: Buffer.alloc(99), literal: Buffer.alloc(0) },
    ],
    [
      "that begins before the old bytes",
      { ops: [{ from: -5, add: 100, literal: 0 }], add: Buffer.alloc(100), literal: Buffer.alloc(0) },
    ],
  ];
  for (const [name, diff] of hostile)
    test(`PA1: ${name} is refused`, async () => await refused(encodePatch(diff), 100));

  test("PA2: a stream of a huge window is refused, and a bomb is read no further than it is asked for", async () => {
    const numbers = compressed(Uint8Array.from([0, 0, 10]));
    const packed = (literal: Uint8Array): Buffer => {
      const head = Buffer.alloc(8);
      head.writeUInt32LE(numbers.length, 0);
      const none = compressed(Buffer.alloc(0));
      head.writeUInt32LE(none.length, 4);
      return Buffer.concat([head, numbers, none, literal]);
    };
    const bomb = Buffer.alloc(100 * 1024 * 1024);
    const before = process.memoryUsage().rss;
    deepEqual(await applied(packed(compressed(bomb, 1)), old, 10), Buffer.alloc(10));
    ok(process.memoryUsage().rss - before < 64 * 1024 * 1024);
    const wide = zstdCompressSync(bomb, { params: { 101: 27, 100: 1 }, pledgedSrcSize: bomb.length });
    await refused(packed(wide), 10);
  });
});

test("a patch of a relinked program is nearly all differences of nothing", () => {
  const { ops, literal } = addDiff(old, relinked());
  ok(ops.length < 50, `${ops.length} ranges`);
  equal(literal.length < 2_000, true);
});
