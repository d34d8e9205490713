import { deepEqual, equal, rejects } from "node:assert/strict";
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import fc from "fast-check";
import { ManualClock } from "#base/testing/manual-clock.ts";
import { isFault } from "#base/fault.ts";
import { createMemoryBlobs } from "#blobs/memory/memory.ts";
import { bytes, text } from "#blobs/testing/exercise.ts";
import { exerciseStreams, type StreamsRig } from "#blobs/testing/streams.ts";
import { littleClient, LittleS3 } from "#blobs/tiers/testing/little-s3.ts";

import { clearAway } from "#testing/clear-away.ts";
import { realClock } from "#testing/real-clock.ts";
import { directorySegments, sweepDirectory } from "./directory-segments.ts";
import { memorySegments } from "./memory-segments.ts";
import { s3Segments } from "./s3-segments.ts";
import { decodeSegment, encodeSegment, streamFolder, type Segments } from "./segments.ts";
import { segmentStreams } from "./segment-streams.ts";

const root = mkdtempSync(join(tmpdir(), "millrace-segments-"));
after(() => clearAway(root));
const MiB = 1024 * 1024;
const clock = realClock;
const never = new AbortController().signal;
const key = { tenant: "mill", task: "t0-1", token: 5, name: "output" };
const newBlobs = () => createMemoryBlobs({ clock, sizeBytesMax: 16 * MiB });

/** Opened again it is another node of the same tier. */
function rigOf(segments: Segments, dispose?: () => Promise<void>): StreamsRig {
  const blobs = newBlobs();
  const streams = segmentStreams({ segments, clock, blobsOf: () => blobs });
  return { streams, blobs, reopened: async () => rigOf(segments), ...(dispose && { dispose }) };
}

exerciseStreams("segments in memory", async () => rigOf(memorySegments(64 * MiB)));
exerciseStreams("segments in a shared folder", async () =>
  rigOf(await directorySegments(mkdtempSync(join(root, "suite-")))),
);
exerciseStreams("segments in a bucket", async () => {
  const s3 = await LittleS3.start();
  const client = littleClient(s3);
  return rigOf(s3Segments({ client, prefix: "millrace/" }), async () => {
    client[Symbol.dispose]();
    await s3[Symbol.asyncDispose]();
  });
});

test("any offset of any row of segments is found, also by a node that has read none of them", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 1, maxLength: 70 }),
      fc.nat(),
      async (lengths, pick) => {
        const segments = memorySegments(MiB);
        const { streams: writer } = rigOf(segments);
        let whole = "";
        for (const [i, length] of lengths.entries()) {
          const piece = String.fromCharCode(97 + (i % 26)).repeat(length);
          await writer.append(key, whole.length, bytes(piece));
          whole += piece;
        }
        const { streams: reader } = rigOf(segments);
        equal((await reader.state(key))?.sizeBytes, whole.length);
        const from = pick % whole.length;
        await writer.seal(key);
        equal(await text(reader.read(key, from, never)), whole.slice(from));
      },
    ),
    { numRuns: 60 },
  );
});

test("an append of which no answer came is sent again, to another node: no byte twice, none lost", async () => {
  const segments = memorySegments(MiB);
  const [one, two] = [rigOf(segments).streams, rigOf(segments).streams];
  await one.append(key, 0, bytes("abc"));
  await two.append(key, 3, bytes("def")); // knows three bytes now
  await one.append(key, 3, bytes("def")); // finds the segment there
  await one.append(key, 6, bytes("ghi"));
  await two.append(key, 6, bytes("ghijkl"));
  await two.seal(key);
  equal(await text(one.read(key, 0, never)), "abcdefghijkl");
});

test("a damaged segment is never shown as output", async () => {
  const segments = memorySegments(MiB);
  await rigOf(segments).streams.append(key, 0, bytes("truth"));
  const name = `${streamFolder(key)}/0`;
  const damaged = Uint8Array.from((await segments.get(name)) ?? []);
  damaged[damaged.length - 1] = 0x21;
  await segments.replace(name, damaged);
  await rejects(text(rigOf(segments).streams.read(key, 0, never)), (e) => isFault(e, "corrupt"));
  const whole = encodeSegment({ from: 2 ** 40, bytes: bytes("x") });
  equal(decodeSegment(whole).from, 2 ** 40);
  for (let at = 0; at < whole.length; at += 1) {
    const flipped = Uint8Array.from(whole);
    flipped[at] = (flipped[at] ?? 0) ^ 1;
    await rejects(
      async () => decodeSegment(flipped),
      (e) => isFault(e, "corrupt"),
    );
  }
});

test("a stale token is refused by a node that never saw it, and by a writer within five seconds", async () => {
  const segments = memorySegments(MiB);
  const time = new ManualClock();
  const blobs = newBlobs();
  const node = () => segmentStreams({ segments, clock: time, blobsOf: () => blobs });
  const [old, young, third] = [node(), node(), node()];
  await old.append(key, 0, bytes("a"));
  await young.append({ ...key, token: 6 }, 0, bytes("b"));
  await rejects(third.append(key, 1, bytes("x")), (e) => isFault(e, "stale"));
  await time.advance(5_001);
  await rejects(old.append(key, 1, bytes("x")), (e) => isFault(e, "stale"));
});

test("removed streams leave nothing behind, and old ones of dead nodes are swept", async () => {
  const folder = mkdtempSync(join(root, "swept-"));
  const segments = await directorySegments(folder);
  const { streams } = rigOf(segments);
  await streams.append(key, 0, bytes("kept"));
  await streams.append({ ...key, task: "t0-2" }, 0, bytes("gone"));
  await streams.remove({ ...key, task: "t0-2" });
  equal(await segments.get(`${streamFolder({ ...key, task: "t0-2" })}/0`), undefined);
  equal(await sweepDirectory(folder, 60_000, Date.now()), 0);
  equal((await rigOf(segments).streams.state(key))?.sizeBytes, 4);
  equal(await sweepDirectory(folder, 60_000, Date.now() + 120_000), 2, "the stream and its task's token");
  deepEqual(await rigOf(segments).streams.state(key), undefined);
});
