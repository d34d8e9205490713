import { deepEqual, equal, ok, rejects } from "node:assert/strict";
import { readdirSync, readFileSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { crc32 } from "node:zlib";
import fc from "fast-check";
import { isFault } from "#base/fault.ts";
import { diskRig } from "#blobs/disk/testing/disk.ts";
import type { StreamKey, Streams } from "#blobs/streams.ts";
import { StreamSums, sumBytes } from "./stream-sums.ts";

const key: StreamKey = { tenant: "mill", task: "t0-1", token: 1, name: "output" };

async function read(streams: Streams, offset: number, bytes: number): Promise<string> {
  const enough = new AbortController();
  let text = "";
  for await (const part of streams.read(key, offset, enough.signal)) {
    text += Buffer.from(part).toString();
    if (text.length >= bytes) enough.abort();
  }
  return text;
}

test("every byte is in one piece, whatever was written again", () => {
  const appends = fc.array(fc.tuple(fc.nat(1_000), fc.integer({ min: 1, max: 100 })), { maxLength: 40 });
  fc.assert(
    fc.property(appends, fc.nat(1_000), (all, from) => {
      const bytes = Buffer.alloc(2_000);
      const sums = new StreamSums();
      const file: Buffer[] = [];
      let end = 0;
      for (const [i, [at, length]] of all.entries()) {
        const begin = Math.min(at, end);
        bytes.fill(i + 1, begin, begin + length);
        end = begin + length;
        file.push(sums.record(begin, bytes.subarray(begin, end)));
      }
      for (const one of [sums, StreamSums.decode(Buffer.concat(file))]) {
        equal(one.sizeBytes, end);
        let covered = Math.min(from, end);
        for (const { from: begin, to, sum } of one.piecesOf(covered, end)) {
          ok(begin <= covered && to > covered);
          if (sum !== undefined) equal(crc32(bytes.subarray(begin, to)), sum);
          covered = to;
        }
        equal(covered, Math.max(end, Math.min(from, end)));
      }
    }),
  );
});

test("a record that was changed is left out, and what it was for is read unchecked", () => {
  const sums = new StreamSums();
  const file = Buffer.concat([sums.record(0, Buffer.from("grain")), sums.record(5, Buffer.from("flour"))]);
  file[3] = (file[3] ?? 0) ^ 1;
  deepEqual(
    [...StreamSums.decode(file.subarray(0, 2 * sumBytes)).piecesOf(0, 10)].map(({ sum }) => sum !== undefined),
    [false, true],
  );
});

/** The stream's files, after a restart. */
async function withStream() {
  const rig = await diskRig();
  await rig.store.streams.append(key, 0, Buffer.from("grain "));
  await rig.store.streams.append(key, 6, Buffer.from("flour "));
  await rig.store.close();
  const folder = join(rig.root, "streams");
  const [path = ""] = readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((one) => one.isFile() && !one.name.endsWith(".sums"))
    .map((one) => join(one.parentPath, one.name));
  return { rig, path };
}

const damages: Readonly<Record<string, (path: string) => void>> = {
  flipped(path) {
    const bytes = readFileSync(path);
    bytes[8] = (bytes[8] ?? 0) ^ 1;
    writeFileSync(path, bytes);
  },
  truncated: (path) => truncateSync(path, 8),
  removed: (path) => rmSync(path),
};
for (const [name, damage] of Object.entries(damages))
  test(`a stream whose file was ${name} gives no wrong byte, cannot be sealed, and says why`, async () => {
    const { rig, path } = await withStream();
    damage(path);
    await rig.reopen();
    const { streams } = rig.store;
    equal((await streams.state(key))?.sizeBytes, 12);
    await rejects(
      () => read(streams, 0, 12),
      (error) => isFault(error),
    );
    if (name !== "removed") equal(await read(streams, 0, 6), "grain ");
    await rejects(streams.seal(key), (error) => isFault(error));
    await streams.remove(key);
    deepEqual(
      readdirSync(join(rig.root, "streams"), { recursive: true, withFileTypes: true }).filter((one) => one.isFile()),
      [],
    );
    await rig.dispose();
  });
