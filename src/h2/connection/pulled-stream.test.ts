import { deepEqual, equal, rejects } from "node:assert/strict";
import { describe, test } from "node:test";
import { isFault } from "#base/fault.ts";
import { PulledStream } from "./pulled-stream.ts";
import { data, dataEnd, request, Rig, rst, settings, windowUpdate } from "#h2/testing/rig.ts";

function pulled(): { rig: Rig; body: PulledStream } {
  const rig = new Rig({ limits: { streamWindowBytes: 65_536, windowGrowthMs: 0 } });
  rig.give(rig.headers(1));
  const stream = rig.streams.get(1);
  if (!stream) throw new Error("no stream");
  return { rig, body: new PulledStream(stream) };
}

describe("a pulled stream", () => {
  test("returns data in order, then ends, with trailers", async () => {
    const { rig, body } = pulled();
    rig.give(data(1, "ab"), data(1, "cd"));
    const got: string[] = [];
    for await (const chunk of body) {
      got.push(chunk.toString());
      if (got.length === 2) queueMicrotask(() => void rig.give(rig.headersEnd(1, [["x", "1"]])));
    }
    deepEqual(got, ["ab", "cd"]);
    equal(body.trailers?.get("x"), "1");
  });

  test("consumes a chunk when the next one is requested, and not before", async () => {
    const { rig, body } = pulled();
    const half = Buffer.alloc(16_384);
    rig.give(data(1, half), data(1, half), dataEnd(1, half));
    const reader = body[Symbol.asyncIterator]();
    await reader.next();
    equal(body.stream.unconsumed, 3 * 16_384);
    await reader.next();
    equal(body.stream.unconsumed, 2 * 16_384);
  });

  test("a write waits until the stream accepts more, and then continues", async () => {
    const { rig, body } = pulled();
    rig.give(settings([[4, 0]]));
    body.stream.sendHeaders([[":status", "200"]]);
    let written = false;
    const writing = body.write(Buffer.alloc(300_000)).then(() => (written = true));
    await Promise.resolve();
    equal(written, false);
    rig.give(windowUpdate(1, 300_000), windowUpdate(0, 300_000));
    await writing;
  });

  test("a reset is a fault for every pending read, write or wait", async () => {
    const { rig, body } = pulled();
    rig.give(settings([[4, 0]]));
    body.stream.sendHeaders([[":status", "200"]]);
    const writing = body.write(Buffer.alloc(300_000));
    const reading = body[Symbol.asyncIterator]().next();
    rig.give(rst(1));
    await rejects(writing, (error) => isFault(error, "unavailable"));
    await rejects(reading, (error) => isFault(error, "unavailable"));
    equal(body.signal.aborted, true);
  });

  test("a client's response comes after its 1xx", async () => {
    const rig = new Rig({ role: "client" });
    const body = new PulledStream(rig.connection.request(request, rig.streamHandler, true));
    rig.give(rig.headers(1, [[":status", "103"]]), rig.headersEnd(1, [[":status", "204"]]));
    equal((await body.response).status, 204);
    for await (const _ of body) throw new Error("there is no data");
  });
});
