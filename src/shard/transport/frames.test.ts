import { deepEqual, equal, throws } from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { isFault } from "#base/fault.ts";
import { encodeFrame, FrameDecoder, type Frame } from "./frames.ts";

test("frames are read as they were written, however the bytes are split", () => {
  const body = fc.oneof(
    fc.constant(undefined),
    fc.json().map((text): unknown => JSON.parse(text)),
  );
  const frames = fc.array(fc.record({ kind: fc.constantFrom("call", "item", "ping"), id: fc.nat(), body }));
  fc.assert(
    fc.property(frames, fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 1 }), (sent, cuts) => {
      const bytes = Buffer.concat(sent.map(({ kind, id, body }) => encodeFrame(kind, id, body)));
      const decoder = new FrameDecoder();
      const got: Frame[] = [];
      for (let at = 0, i = 0; at < bytes.length; i += 1) {
        const size = cuts[i % cuts.length] ?? 1;
        got.push(...decoder.push(bytes.subarray(at, at + size)));
        at += size;
      }
      deepEqual(got, JSON.parse(JSON.stringify(sent), revive));
    }),
  );
  function revive(_: string, value: unknown): unknown {
    return value && typeof value === "object" && "kind" in value && !("body" in value)
      ? { ...value, body: undefined }
      : value;
  }
});

test("bytes of another protocol are refused at once, and from then on", () => {
  const decoder = new FrameDecoder();
  throws(
    () => [...decoder.push(Buffer.from("GET / HTTP/1.1\r\n"))],
    (e) => isFault(e, "invalid"),
  );
  throws(
    () => [...decoder.push(encodeFrame("ping", 0, undefined))],
    (e) => isFault(e, "invalid"),
  );
});

test("impossible lengths and kinds are refused before anything is buffered", () => {
  for (const bad of ["00000004", "ffffffff", "000000056300000000", "000000050000000000"])
    throws(
      () => [...new FrameDecoder().push(Buffer.from(bad, "hex"))],
      (e) => isFault(e, "invalid"),
      bad,
    );
  throws(() => [...new FrameDecoder().push(Buffer.from("0000000602" + "00000001" + "7b", "hex"))], /not JSON/);
});

test("a frame larger than the limit is refused by both sides", () => {
  throws(
    () => encodeFrame("call", 1, "x".repeat(100), 50),
    (e) => isFault(e, "exhausted"),
  );
  const frame = encodeFrame("call", 1, "x".repeat(100));
  throws(
    () => [...new FrameDecoder(50).push(frame)],
    (e) => isFault(e, "invalid"),
  );
  equal([...new FrameDecoder().push(frame)].length, 1);
});
