// Flow control as properties, checked by a peer that does its own accounting: S1 and S2 of sender.ts, R3 of
// receiver.ts.
import { equal, ok } from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { clientPreface, flag, frameType, readUint31, readUint32 } from "#h2/frames/frame.ts";
import { ConstantHeaders } from "#h2/hpack/hpack-encoder.ts";
import { data, Rig, rst, settings, windowUpdate } from "#h2/testing/rig.ts";
import type { Stream } from "./stream.ts";

const okHeaders = new ConstantHeaders([[":status", "200"]]);
const okTrailers = new ConstantHeaders([["x", "1"]]);
const ids = [1, 3, 5, 7];

/** Calls back for every frame in the bytes. */
function eachFrame(bytes: Buffer, see: (type: number, flags: number, id: number, payload: Buffer) => void): void {
  let at = bytes.subarray(0, clientPreface.length).equals(clientPreface) ? clientPreface.length : 0;
  while (at < bytes.length) {
    const end = at + 9 + bytes.readUIntBE(at, 3);
    see(bytes[at + 3] ?? 0, bytes[at + 4] ?? 0, readUint31(bytes, at + 5), bytes.subarray(at + 9, end));
    at = end;
  }
}

/** The peer's view of what we send: the windows that it granted, and the bytes as they came. */
class WindowAccounts {
  connection = 65_535;
  initial = 65_535;
  frameMax = 16_384;
  readonly windows = new Map<number, number>(ids.map((id) => [id, 65_535]));
  readonly got = new Map<number, number>(ids.map((id) => [id, 0]));
  readonly ended = new Set<number>();

  see(bytes: Buffer): void {
    eachFrame(bytes, (type, flags, id, payload) => {
      if (type === frameType.headers && (flags & flag.endStream) !== 0) this.ended.add(id);
      if (type !== frameType.data) return;
      ok(!this.ended.has(id), "S2: nothing behind the end");
      ok(payload.length <= this.frameMax, "S1: no larger frame than the peer takes");
      this.connection -= payload.length;
      const window = (this.windows.get(id) ?? 0) - payload.length;
      this.windows.set(id, window);
      if (payload.length > 0) ok(this.connection >= 0 && window >= 0, "S1: no more than the windows");
      const from = this.got.get(id) ?? 0;
      for (let i = 0; i < payload.length; i += 997) equal(payload[i], (from + i) % 251, "S2: in order");
      this.got.set(id, from + payload.length);
      if ((flags & flag.endStream) !== 0) this.ended.add(id);
    });
  }

  changeInitial(size: number): void {
    for (const id of ids) this.windows.set(id, (this.windows.get(id) ?? 0) + size - this.initial);
    this.initial = size;
  }
}

const pattern = Buffer.from(Array.from({ length: 251 * 400 }, (_, at) => at % 251));

const sendStep = fc.oneof(
  fc.record({
    kind: fc.constant("write" as const),
    id: fc.constantFrom(...ids),
    bytes: fc.nat(60_000),
    headroom: fc.boolean(),
  }),
  fc.record({
    kind: fc.constant("stream" as const),
    id: fc.constantFrom(...ids),
    bytes: fc.integer({ min: 1, max: 50_000 }),
  }),
  fc.record({ kind: fc.constant("connection" as const), bytes: fc.integer({ min: 1, max: 80_000 }) }),
  fc.record({ kind: fc.constant("initial" as const), bytes: fc.nat(100_000) }),
  fc.record({ kind: fc.constant("frame" as const), bytes: fc.integer({ min: 16_384, max: 100_000 }) }),
  fc.record({ kind: fc.constant("slow" as const) }),
);

test("S1, S2: windows are respected and all bytes arrive in order, whatever is written and granted", () => {
  fc.assert(
    fc.property(fc.array(sendStep, { maxLength: 60 }), fc.boolean(), (steps, byTrailers) => {
      const rig = new Rig({ limits: { outputBytesHigh: 40_000, windowUpdates: { burst: 1e6, perSecond: 0 } } });
      const books = new WindowAccounts();
      const written = new Map<number, number>(ids.map((id) => [id, 0]));
      for (const id of ids) rig.give(rig.headersEnd(id));
      for (const id of ids) rig.streams.get(id)?.sendHeaders(okHeaders);
      for (const step of steps) {
        if (step.kind === "write") {
          const at = written.get(step.id) ?? 0;
          const bytes = Buffer.alloc(9 + step.bytes);
          pattern.copy(bytes, 9, at % 251, (at % 251) + step.bytes);
          rig.streams.get(step.id)?.write(bytes.subarray(9), { headroom: step.headroom });
          written.set(step.id, at + step.bytes);
        } else if (step.kind === "stream") {
          books.windows.set(step.id, (books.windows.get(step.id) ?? 0) + step.bytes);
          rig.connection.receive(windowUpdate(step.id, step.bytes), rig.nowMs);
        } else if (step.kind === "connection") {
          books.connection += step.bytes;
          rig.connection.receive(windowUpdate(0, step.bytes), rig.nowMs);
        } else if (step.kind === "initial") {
          // Data in flight was sent under the old setting, so account for it first.
          for (const bytes of rig.sentBytes()) books.see(bytes);
          books.changeInitial(step.bytes);
          rig.connection.receive(settings([[4, step.bytes]]), rig.nowMs);
        } else if (step.kind === "frame") {
          for (const bytes of rig.sentBytes()) books.see(bytes);
          books.frameMax = step.bytes;
          rig.connection.receive(settings([[5, step.bytes]]), rig.nowMs);
        } else for (const bytes of rig.sentBytes()) books.see(bytes);
        if (rig.connection.closed) return; // too many SETTINGS, which another test covers
      }
      for (const id of ids) {
        const stream = rig.streams.get(id);
        if (byTrailers) stream?.sendTrailers(okTrailers);
        else stream?.write(Buffer.alloc(0), { end: true });
      }
      for (const bytes of rig.sentBytes()) books.see(bytes);
      books.connection += 10_000_000;
      for (const id of ids) books.windows.set(id, (books.windows.get(id) ?? 0) + 10_000_000);
      rig.connection.receive(Buffer.concat([0, ...ids].map((id) => windowUpdate(id, 10_000_000))), rig.nowMs);
      for (const bytes of rig.sentBytes()) books.see(bytes);
      for (const id of ids) equal(books.got.get(id), written.get(id));
      equal(books.ended.size, ids.length);
      equal(rig.connection.streamCount, 0);
    }),
    { numRuns: 300 },
  );
});

const receiveStep = fc.oneof(
  fc.record({
    kind: fc.constant("data" as const),
    id: fc.constantFrom(...ids),
    bytes: fc.integer({ min: 1, max: 16_000 }),
    padded: fc.boolean(),
  }),
  fc.record({
    kind: fc.constant("consume" as const),
    id: fc.constantFrom(...ids),
    share: fc.double({ min: 0, max: 1, noNaN: true }),
  }),
  fc.record({ kind: fc.constant("reset" as const), id: fc.constantFrom(...ids) }),
  fc.record({ kind: fc.constant("cancel" as const), id: fc.constantFrom(...ids) }),
  fc.record({ kind: fc.constant("time" as const), ms: fc.nat(200) }),
);

test("R3: every byte is returned to the connection's window exactly once, however its stream ends", () => {
  fc.assert(
    fc.property(fc.array(receiveStep, { maxLength: 80 }), (steps) => {
      const limits = {
        streamWindowBytes: 70_000,
        streamWindowBytesMax: 140_000,
        connectionWindowBytes: 100_000,
        connectionWindowBytesMax: 200_000,
      };
      const owed = new Map<Stream, number>();
      const rig = new Rig({
        limits,
        onData: (stream, bytes) => void owed.set(stream, (owed.get(stream) ?? 0) + bytes.length),
      });
      let window = 100_000;
      const streamWindows = new Map(ids.map((id) => [id, 70_000]));
      const look = (): void => {
        for (const bytes of rig.sentBytes())
          eachFrame(bytes, (type, _flags, id, payload) => {
            if (type !== frameType.windowUpdate) return;
            const increment = readUint32(payload, 0);
            if (id === 0) window += increment;
            else streamWindows.set(id, (streamWindows.get(id) ?? 0) + increment);
          });
      };
      for (const id of ids) rig.connection.receive(rig.headers(id), rig.nowMs);
      for (const step of steps) {
        look();
        if (step.kind === "data") {
          const length = step.bytes + (step.padded ? 101 : 0);
          if (length > window || length > (streamWindows.get(step.id) ?? 0)) continue; // the peer respects the windows
          window -= length;
          streamWindows.set(step.id, (streamWindows.get(step.id) ?? 0) - length);
          const payload = Buffer.alloc(length);
          if (step.padded) payload[0] = 100;
          const closed = rig.streams.get(step.id)?.closed === true && !rig.heard.includes(`cancelled ${step.id}`);
          if (closed) window += length; // after its own reset a peer sends nothing
          else rig.connection.receive(data(step.id, payload, step.padded ? flag.padded : 0), rig.nowMs);
        } else if (step.kind === "consume") {
          const stream = rig.streams.get(step.id);
          const bytes = stream === undefined ? 0 : Math.floor((owed.get(stream) ?? 0) * step.share);
          if (stream === undefined || stream.closed) continue;
          stream.consume(bytes);
          owed.set(stream, (owed.get(stream) ?? 0) - bytes);
        } else if (step.kind === "reset") {
          if (rig.streams.get(step.id)?.closed === false) rig.connection.receive(rst(step.id), rig.nowMs);
        } else if (step.kind === "cancel") {
          if (rig.streams.get(step.id)?.closed === false) rig.heard.push(`cancelled ${step.id}`);
          rig.streams.get(step.id)?.reset();
        } else rig.nowMs += step.ms;
        equal(rig.connection.closed, false, rig.heard.at(-1) ?? "");
      }
      for (const stream of rig.streams.values()) stream.reset();
      look();
      ok(window > 50_000 && window <= 200_000, `${window} bytes of window when all streams are gone`);
    }),
    { numRuns: 300 },
  );
});
