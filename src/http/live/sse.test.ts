import { deepEqual, equal, throws } from "node:assert/strict";
import { describe, test } from "node:test";
import { ManualClock } from "#base/testing/manual-clock.ts";
import { encodeEvent, eventBytes, readEvents } from "./sse.ts";

const text = (bytes: Uint8Array | undefined): string => new TextDecoder().decode(bytes);

describe("server-sent events", () => {
  test("are written with id and data, and read back whatever the cuts", async () => {
    const written = [
      encodeEvent({ id: "1-7", event: "task", data: { line: "a\nb" } }),
      encodeEvent({ data: "plain" }),
    ].map(text);
    deepEqual(written, ['id: 1-7\nevent: task\ndata: {"line":"a\\nb"}\n\n', 'data: "plain"\n\n']);
    const all = new TextEncoder().encode(written.join(":\n\n"));
    for (const size of [1, 2, 3, 7, 1000]) {
      const cuts = (async function* () {
        for (let at = 0; at < all.length; at += size) yield all.subarray(at, at + size);
      })();
      deepEqual(await Array.fromAsync(readEvents(cuts)), [
        { id: "1-7", event: "task", data: '{"line":"a\\nb"}' },
        { id: "1-7", event: "message", data: '"plain"' },
      ]);
    }
  });

  test("an id or a name with a line break is refused", () => {
    throws(() => encodeEvent({ id: "1\ndata: forged", data: 1 }));
    throws(() => encodeEvent({ event: "x\r\ny", data: 1 }));
  });

  test("a quiet stream sends heartbeats and loses no event; its source is closed when the reader leaves", async () => {
    const clock = new ManualClock();
    const news = Promise.withResolvers<void>();
    let closed = false;
    const source = (async function* () {
      try {
        await news.promise;
        yield { id: "1", data: 1 };
        yield { id: "2", data: 2 };
      } finally {
        closed = true;
      }
    })();
    const bytes = eventBytes(source, { clock, heartbeatMs: 100 });
    equal(text((await bytes.next()).value), ":\n\n");
    for (let beat = 0; beat < 3; beat += 1) {
      const next = bytes.next();
      await clock.advance(100);
      equal(text((await next).value), ":\n\n");
    }
    news.resolve();
    equal(text((await bytes.next()).value), "id: 1\ndata: 1\n\n");
    await bytes.return(undefined);
    equal(closed, true);
    equal(clock.pending, 0);
  });
});
