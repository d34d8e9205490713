import { deepEqual, equal, match, ok, throws } from "node:assert/strict";
import { describe, test } from "node:test";
import fc from "fast-check";
import { isFault } from "#base/fault.ts";
import { Connection } from "./connection.ts";
import { flag, frameType } from "#h2/frames/frame.ts";
import { ConstantHeaders, type HeaderPairs } from "#h2/hpack/hpack-encoder.ts";
import {
  data,
  dataEnd,
  frame,
  goaway,
  ping,
  request,
  Rig,
  rst,
  settings,
  settingsAck,
  windowUpdate,
} from "#h2/testing/rig.ts";
import type { Stream } from "./stream.ts";

const okHeaders = new ConstantHeaders([[":status", "200"]]);
const okTrailers = new ConstantHeaders([["grpc-status", "0"]]);
const must = (stream: Stream | undefined): Stream =>
  stream ??
  ((): never => {
    throw new Error("no such stream");
  })();

/** A server with one request open on each of these streams. */
function opened(ids: readonly number[], options: ConstructorParameters<typeof Rig>[0] = {}): Rig {
  const rig = new Rig(options);
  for (const id of ids) rig.give(rig.headersEnd(id));
  return rig;
}

describe("sending", () => {
  test("a unary answer is three frames, and from the second one on only a few bytes around its body", () => {
    const rig = opened([1, 3]);
    must(rig.streams.get(1)).sendUnary(okHeaders, Buffer.from("hello"), okTrailers);
    deepEqual(rig.sent(), ["HEADERS 1 :status=200", "DATA 1 5", "HEADERS 1 grpc-status=0 end"]);
    must(rig.streams.get(3)).sendUnary(okHeaders, Buffer.from("hello"), okTrailers);
    equal(rig.sentBytes()[0]?.length, 9 + 1 + 9 + 5 + 9 + 1);
    equal(rig.connection.streamCount, 0);
  });

  test("a constant block is cached as a copy, not as a view of the output", () => {
    const rig = opened([1, 3, 5, 7]);
    for (const id of [1, 3, 5, 7]) {
      must(rig.streams.get(id)).sendUnary(okHeaders, Buffer.alloc(2_000, id), okTrailers);
      deepEqual(rig.sent(), [`HEADERS ${id} :status=200`, `DATA ${id} 2000`, `HEADERS ${id} grpc-status=0 end`]);
    }
  });

  test("the caller may reuse the memory of a unary body at once, also when the body has to wait", () => {
    const rig = new Rig();
    rig.give(settings([[4, 0]]), rig.headersEnd(1));
    const scratch = Buffer.from("mine");
    must(rig.streams.get(1)).sendUnary(okHeaders, scratch, okTrailers);
    scratch.write("gone");
    rig.sent();
    rig.connection.receive(windowUpdate(1, 4), rig.nowMs);
    ok(rig.sentBytes()[0]?.includes("mine"));
  });

  test("a unary answer without a body has no DATA frame", () => {
    const rig = opened([1]);
    must(rig.streams.get(1)).sendUnary(okHeaders, Buffer.alloc(0), okTrailers);
    deepEqual(rig.sent(), ["HEADERS 1 :status=200", "HEADERS 1 grpc-status=0 end"]);
  });

  test("a body may be written directly into the output", () => {
    const rig = opened([1]);
    const stream = must(rig.streams.get(1));
    const at = stream.beginUnary(okHeaders, 3);
    stream.outputBuffer.write("abc", at, "latin1");
    stream.endUnary(okTrailers);
    ok(rig.sentBytes()[0]?.includes("abc"));
  });

  test("a writer that fails in the middle of a unary answer sends zeroes, not bytes of other peers", () => {
    const rig = opened([1, 3]);
    must(rig.streams.get(1)).sendUnary(okHeaders, Buffer.from("a secret of somebody else's"), okTrailers);
    rig.sent();
    const stream = must(rig.streams.get(3));
    stream.beginUnary(okHeaders, 100);
    stream.reset(2);
    const bytes = rig.sentBytes()[0] ?? Buffer.alloc(0);
    ok(bytes.includes(Buffer.alloc(100)));
    ok(!bytes.includes("secret"));
  });

  test("invalid fields are refused before anything is encoded", () => {
    const rig = opened([1]);
    const stream = must(rig.streams.get(1));
    const bad: HeaderPairs = [
      ["Capital", "1"],
      ["x", "a\r\nb"],
      ["connection", "close"],
      ["x", "\u0416"],
      ["x y", ""],
    ];
    for (const pair of bad)
      throws(
        () => stream.sendHeaders([[":status", "200"], ["x-first", "1"], pair]),
        (error) => isFault(error, "invalid"),
      );
    stream.sendHeaders(
      [
        [":status", "200"],
        ["x-first", "1"],
      ],
      true,
    );
    deepEqual(rig.sent(), ["HEADERS 1 :status=200 x-first=1 end"]);
  });

  test("S1: sends no more than the stream's window, and continues with the next update", () => {
    const rig = new Rig();
    rig.give(settings([[4, 10]]), rig.headersEnd(1));
    const stream = must(rig.streams.get(1));
    stream.sendHeaders(okHeaders);
    stream.write(Buffer.alloc(25));
    stream.sendTrailers(okTrailers);
    deepEqual(rig.sent(), ["HEADERS 1 :status=200", "DATA 1 10"]);
    deepEqual(rig.give(windowUpdate(1, 1)), ["DATA 1 1"]);
    deepEqual(rig.give(settings([[4, 5]])), ["SETTINGS ack"], "the window is negative now");
    deepEqual(rig.give(windowUpdate(1, 5)), []);
    deepEqual(rig.give(windowUpdate(1, 1)), ["DATA 1 1"]);
    deepEqual(rig.give(settings([[4, 100]])), ["SETTINGS ack", "DATA 1 13", "HEADERS 1 grpc-status=0 end"]);
  });

  test("S1: sends no more than the connection's window; frames that need none are still sent", () => {
    const rig = new Rig();
    rig.give(settings([[4, 1_000_000]]), rig.headersEnd(1), rig.headersEnd(3), rig.headersEnd(5));
    const [one, three, five] = [1, 3, 5].map((id) => must(rig.streams.get(id)));
    one?.sendHeaders(okHeaders);
    one?.write(Buffer.alloc(100_000), { end: true });
    rig.sent();
    three?.sendHeaders(okHeaders);
    three?.write(Buffer.alloc(1));
    three?.sendTrailers(okTrailers);
    five?.sendHeaders(okHeaders);
    five?.write(Buffer.alloc(0), { end: true });
    deepEqual(rig.sent(), ["HEADERS 3 :status=200", "HEADERS 5 :status=200", "DATA 5 0 end"]);
    const more = rig.give(windowUpdate(0, 1_000_000));
    deepEqual(more.slice(-2), ["DATA 1 16384", "DATA 1 1697 end"]);
    ok(more.includes("HEADERS 3 grpc-status=0 end"));
  });

  test("S1: frames are no larger than the peer accepts", () => {
    const rig = new Rig();
    rig.give(
      settings([
        [4, 1_000_000],
        [5, 20_000],
      ]),
      windowUpdate(0, 1_000_000),
      rig.headersEnd(1),
    );
    const stream = must(rig.streams.get(1));
    stream.sendHeaders(okHeaders);
    stream.write(Buffer.alloc(50_000), { end: true });
    deepEqual(rig.sent(), ["HEADERS 1 :status=200", "DATA 1 20000", "DATA 1 20000", "DATA 1 10000 end"]);
  });

  test("S3: a bulk transfer and a small answer take turns", () => {
    const rig = new Rig();
    rig.give(
      settings([[4, 10_000_000]]),
      windowUpdate(0, 10_000_000),
      rig.headersEnd(1),
      rig.headersEnd(3),
      rig.headersEnd(5),
    );
    const [bulk, other, small] = [1, 3, 5].map((id) => must(rig.streams.get(id)));
    for (const stream of [bulk, other]) {
      stream?.sendHeaders(okHeaders);
      stream?.write(Buffer.alloc(2_000_000), { end: true });
    }
    small?.sendUnary(okHeaders, Buffer.alloc(100), okTrailers);
    const order = rig.sent();
    const at = order.indexOf("DATA 5 100");
    const before = order.slice(0, at).filter((line) => line.startsWith("DATA")).length;
    ok(before <= 256 / 16 + 3, `the small answer came behind ${before} frames of 244`);
    const interleaved = order.filter((line) => line.startsWith("DATA")).slice(20, 40);
    equal(interleaved.filter((line) => line.startsWith("DATA 1 ")).length, 10);
  });

  test("S4: data that the socket does not accept stays in its stream, and the writer is asked to wait", () => {
    const rig = new Rig({ limits: { outputBytesHigh: 50_000, streamSendBytesHigh: 60_000 } });
    rig.give(settings([[4, 10_000_000]]), windowUpdate(0, 10_000_000), rig.headersEnd(1));
    rig.sent();
    const stream = must(rig.streams.get(1));
    stream.sendHeaders(okHeaders);
    equal(stream.write(Buffer.alloc(100_000)), true);
    ok(rig.connection.outputBytes < 70_000);
    equal(stream.write(Buffer.alloc(100_000)), false);
    const batch = rig.connection.takeOutput();
    ok(batch);
    rig.connection.outputDone(batch, rig.nowMs);
    deepEqual(rig.heard.slice(1), []);
    rig.sent();
    deepEqual(rig.heard.slice(1), ["writable 1"]);
    equal(stream.unsentBytes, 0);
  });

  test("bytes that were handed over are released when they have been sent, once, also when the stream is reset", () => {
    const rig = new Rig();
    rig.give(settings([[4, 5_000]]), rig.headersEnd(1));
    const stream = must(rig.streams.get(1));
    const released: string[] = [];
    stream.sendHeaders(okHeaders);
    stream.write(Buffer.alloc(4_000), { release: () => released.push("first") });
    stream.write(Buffer.alloc(4_000), { release: () => released.push("second") });
    equal(released.join(" "), "");
    rig.sent();
    equal(released.join(" "), "first");
    rig.give(rst(1));
    equal(released.join(" "), "first second");
    stream.write(Buffer.alloc(1), { release: () => released.push("third") });
    equal(released.join(" "), "first second third");
  });

  test("with headroom the frame's header is put before the bytes, and adjacent pieces are sent as one", () => {
    const rig = opened([1]);
    const stream = must(rig.streams.get(1));
    stream.sendHeaders(okHeaders);
    const memory = Buffer.alloc(3 * (9 + 10_000));
    for (let at = 9; at < memory.length; at += 10_009)
      stream.write(memory.subarray(at, at + 10_000), { headroom: true });
    const batch = rig.connection.takeOutput();
    deepEqual(
      batch?.chunks.map((chunk) => chunk.length),
      [9 + 1, 3 * 10_009],
    );
    equal(batch?.chunks[1]?.buffer, memory.buffer);
    deepEqual(memory.subarray(0, 9).toString("hex"), "002710000000000001");
  });

  test("a header list longer than a frame continues in CONTINUATION", () => {
    const rig = opened([1]);
    const long: HeaderPairs = [
      [":status", "200"],
      ...Array.from({ length: 30 }, (_, at) => [`x-${at}`, "~".repeat(1_000)] as const),
    ];
    must(rig.streams.get(1)).sendHeaders(long, true);
    const bytes = rig.sentBytes()[0] ?? Buffer.alloc(0);
    equal(bytes[3], frameType.headers);
    equal(bytes[4], flag.endStream);
    const second = 9 + 16_384;
    equal(bytes[second + 3], frameType.continuation);
    equal(bytes[second + 4], flag.endHeaders);
  });

  test("a closed stream ignores everything, and a wrong order of calls is an error", () => {
    const rig = opened([1, 3]);
    const stream = must(rig.streams.get(1));
    stream.reset();
    rig.sent();
    stream.sendHeaders(okHeaders);
    equal(stream.write(Buffer.alloc(10)), true);
    stream.sendTrailers(okTrailers);
    stream.consume(5);
    stream.reset();
    deepEqual(rig.sent(), []);
    throws(() => must(rig.streams.get(3)).write(Buffer.alloc(1)), /between headers and end/);
  });
});

describe("receiving", () => {
  const body = Buffer.alloc(16_384);

  test("the windows open by what was consumed, not by what was received", () => {
    const rig = new Rig({ limits: { streamWindowBytes: 65_536, connectionWindowBytes: 65_536, windowGrowthMs: 0 } });
    deepEqual(rig.give(rig.headers(1), data(1, body), data(1, body), data(1, body)), []);
    const stream = must(rig.streams.get(1));
    stream.consume(16_384);
    deepEqual(rig.sent(), []);
    stream.consume(16_384);
    deepEqual(rig.sent(), ["WINDOW_UPDATE 0 32768", "WINDOW_UPDATE 1 32768"]);
  });

  test("a window that is used up quickly doubles, up to its limit", () => {
    const rig = new Rig({
      limits: { streamWindowBytes: 65_536, streamWindowBytesMax: 131_072, connectionWindowBytes: 1e6 },
    });
    rig.give(rig.headers(1));
    const stream = must(rig.streams.get(1));
    const increments = Array.from({ length: 8 }, () => {
      rig.give(data(1, body), data(1, body));
      stream.consume(32_768);
      return rig.sent().filter((line) => line.startsWith("WINDOW_UPDATE 1"));
    }).flat();
    deepEqual(increments, ["WINDOW_UPDATE 1 98304", ...Array.from({ length: 3 }, () => "WINDOW_UPDATE 1 65536")]);
  });

  test("exactly the announced window is allowed, to the byte", () => {
    const rig = new Rig({ limits: { streamWindowBytes: 65_536, windowGrowthMs: 0 } });
    rig.give(rig.headers(1), data(1, body), data(1, body));
    must(rig.streams.get(1)).consume(32_768);
    deepEqual(rig.sent(), ["WINDOW_UPDATE 1 32768"]);
    deepEqual(rig.give(data(1, body), data(1, body), data(1, body), data(1, body)), []);
    deepEqual(rig.give(data(1, "x")), ["RST_STREAM 1 flowControlError"]);
  });

  test("R3: bytes that a stream leaves unconsumed are returned to the connection when it ends, however it ends", () => {
    const rig = new Rig({ limits: { connectionWindowBytes: 65_536, windowGrowthMs: 0 } });
    rig.give(rig.headers(1), data(1, body), data(1, body));
    deepEqual(rig.give(rst(1)), ["WINDOW_UPDATE 0 32768"]);
    rig.give(rig.headers(3), data(3, body), dataEnd(3, body));
    must(rig.streams.get(3)).sendHeaders(okHeaders, true);
    deepEqual(rig.sent(), ["WINDOW_UPDATE 0 32768", "HEADERS 3 :status=200 end"].toReversed());
    deepEqual(
      rig.give(data(1, body), data(1, body)).filter((line) => line.startsWith("WINDOW")),
      ["WINDOW_UPDATE 0 32768"],
    );
  });

  test("R3: padding has no other consumer, so it is consumed at once", () => {
    const rig = new Rig({ limits: { streamWindowBytes: 65_535, connectionWindowBytes: 65_535 } });
    rig.give(rig.headers(1));
    const padding = Buffer.concat([Buffer.from([255]), Buffer.alloc(255)]);
    for (let sent = 0; sent < 1_000_000; sent += 256) rig.give(frame(frameType.data, flag.padded, 1, padding));
    equal(rig.connection.closed, false);
    equal(must(rig.streams.get(1)).unconsumed, 0);
  });

  test("consuming more than was received is a bug of the caller", () => {
    const rig = opened([1]);
    throws(() => must(rig.streams.get(1)).consume(1), /no more is consumed than was received/);
  });

  test("C3: a handler that throws loses its own stream only", () => {
    const rig = new Rig({
      onData: () => {
        throw new Error("oh");
      },
    });
    deepEqual(rig.give(rig.headers(1), data(1, "x"), rig.headersEnd(3)), ["RST_STREAM 1 internalError"]);
    deepEqual(rig.heard, [
      "request 1 POST /",
      "data 1 1",
      "reset 1 internalError",
      "failed oh",
      "request 3 POST / end",
    ]);
  });

  test("a stream that the peer cancels is reset once; a lost one knows that it is lost", () => {
    const rig = opened([1, 3]);
    rig.give(rst(1), rst(1));
    rig.connection.socketClosed("gone");
    deepEqual(rig.heard.slice(2), ["reset 1 cancel", "reset 3 cancel", "closed by peer noError: gone"]);
    equal(must(rig.streams.get(3)).lost, true);
    equal(must(rig.streams.get(1)).lost, false);
  });
});

describe("draining", () => {
  test("a server announces it first, then says which streams it accepted, then ends when those have ended", () => {
    const rig = opened([1]);
    rig.connection.drain();
    deepEqual(rig.sent(), ["GOAWAY 2147483647 noError", "PING 0000000000000002"]);
    rig.give(rig.headersEnd(3));
    deepEqual(rig.give(ping(flag.ack, Buffer.from("0000000000000002", "hex"))), ["GOAWAY 3 noError"]);
    rig.give(rig.headersEnd(5, [...request, ["x-table", "1"]]));
    for (const id of [1, 3]) must(rig.streams.get(id)).sendHeaders(okHeaders, true);
    deepEqual(rig.heard, ["request 1 POST / end", "request 3 POST / end", "closed by us noError: drained"]);
  });

  test("a server whose streams end early still waits for streams that are on their way", () => {
    const rig = opened([1]);
    rig.connection.drain();
    must(rig.streams.get(1)).sendHeaders(okHeaders, true);
    rig.sent();
    equal(rig.connection.closed, false);
    rig.give(rig.headersEnd(3));
    rig.give(ping(flag.ack, Buffer.from("0000000000000002", "hex")));
    must(rig.streams.get(3)).sendHeaders(okHeaders, true);
    equal(rig.heard.at(-1), "closed by us noError: drained");
  });

  test("without an answer to the PING it continues after a second, and ends after drainMs", () => {
    const rig = opened([1], { limits: { drainMs: 5_000 } });
    rig.connection.drain();
    rig.sent();
    deepEqual(rig.after(1_000), ["GOAWAY 1 noError"]);
    deepEqual(rig.after(4_000), ["GOAWAY 1 noError"]);
    deepEqual(rig.heard.slice(1), ["reset 1 cancel", "closed by us noError: draining took too long"]);
  });
});

describe("a client", () => {
  const response: HeaderPairs = [[":status", "200"]];
  const get: HeaderPairs = request.map(([name, value]) => [name, name === ":method" ? "GET" : value] as const);
  const client = (limits = {}): Rig => new Rig({ role: "client", limits });

  test("sends a request, is answered, and both ends are done", () => {
    const rig = client();
    const stream = rig.connection.request(request, rig.streamHandler);
    stream.write(Buffer.from("abc"), { end: true });
    match(rig.sent().join("\n"), /^HEADERS 1 :method=POST .*\nDATA 1 3 end$/);
    rig.give(rig.headers(1, response), data(1, "xy"), rig.headersEnd(1, [["grpc-status", "0"]]));
    deepEqual(rig.heard, ["response 1 200", "data 1 2", "trailers 1 grpc-status=0"]);
    equal(rig.connection.streamCount, 0);
  });

  test("waits when the peer allows no more streams", () => {
    const rig = client();
    rig.give(settings([[3, 1]]));
    rig.connection.request(get, rig.streamHandler, true);
    const second = rig.connection.request(request, rig.streamHandler);
    second.write(Buffer.from("abc"));
    second.sendTrailers([["x", "1"]]);
    equal(second.id, 0);
    equal(rig.sent().length, 1);
    const sent = rig.give(rig.headersEnd(1, response));
    deepEqual(sent.slice(1), ["DATA 3 3", "HEADERS 3 x=1 end"]);
  });

  test("before the server's SETTINGS a hundred streams are opened, then as many as it allows", () => {
    const rig = new Rig({ role: "client", greeted: false });
    for (let i = 0; i < 150; i += 1) rig.connection.request(get, rig.streamHandler, true);
    equal(rig.connection.streamCount, 100);
    rig.give(settings());
    equal(rig.connection.streamCount, 150);
  });

  test("a request that cannot be sent opens no stream", () => {
    const rig = client();
    throws(
      () => rig.connection.request([...get, ["Bad", "1"]], rig.streamHandler, true),
      (error) => isFault(error, "invalid"),
    );
    rig.connection.request(get, rig.streamHandler, true);
    equal(rig.connection.streamCount, 1);
    match(rig.sent().join(), /^HEADERS 1 /);
  });

  test("more waiting requests than allowed throw a fault", () => {
    const rig = client({ streamsWaitingMax: 1 });
    rig.give(settings([[3, 0]]));
    rig.connection.request(get, rig.streamHandler, true);
    throws(
      () => rig.connection.request(get, rig.streamHandler, true),
      (error) => isFault(error, "exhausted"),
    );
  });

  test("a waiting request can be cancelled, and sends nothing", () => {
    const rig = client();
    rig.give(settings([[3, 0]]));
    rig.connection.request(get, rig.streamHandler, true).reset();
    deepEqual(rig.give(settings([[3, 10]])), ["SETTINGS ack"]);
  });

  test("receives 1xx before the response", () => {
    const rig = client();
    rig.connection.request(get, rig.streamHandler, true);
    rig.give(rig.headers(1, [[":status", "103"]]), rig.headersEnd(1, response));
    deepEqual(rig.heard, ["response 1 103", "response 1 200 end"]);
  });

  test("GOAWAY: unprocessed streams may be tried elsewhere, the others end normally", () => {
    const rig = client();
    for (let i = 0; i < 3; i += 1) rig.connection.request(get, rig.streamHandler, true);
    rig.give(goaway(3));
    throws(
      () => rig.connection.request(get, rig.streamHandler, true),
      (error) => isFault(error, "unavailable"),
    );
    rig.give(rig.headersEnd(1, response), rig.headersEnd(3, response));
    deepEqual(rig.heard, [
      "goaway 3 noError",
      "reset 5 refusedStream",
      "response 1 200 end",
      "response 3 200 end",
      "closed by peer noError: GOAWAY",
    ]);
  });

  const wrong: Readonly<Record<string, (rig: Rig) => readonly Buffer[]>> = {
    "DATA before the response": () => [data(1, "x")],
    "a response without :status": (rig) => [rig.headers(1, [["a", "b"]])],
    "a :status that is no number": (rig) => [rig.headers(1, [[":status", "ok"]])],
    "101, which HTTP/2 does not have": (rig) => [rig.headers(1, [[":status", "101"]])],
    "a request's pseudo-field": (rig) => [
      rig.headers(1, [
        [":status", "200"],
        [":path", "/"],
      ]),
    ],
    "a 1xx that ends the stream": (rig) => [rig.headersEnd(1, [[":status", "100"]])],
    "trailers that do not end": (rig) => [rig.headers(1, response), rig.headers(1, [["a", "b"]])],
    "less than content-length": (rig) => [rig.headers(1, [...response, ["content-length", "5"]]), dataEnd(1, "abc")],
  };
  for (const [name, frames] of Object.entries(wrong))
    test(`${name}: the stream is reset`, () => {
      const rig = client();
      rig.connection.request(get, rig.streamHandler, true);
      rig.sent();
      deepEqual(rig.give(...frames(rig)), ["RST_STREAM 1 protocolError"]);
      equal(rig.heard.at(-1), "reset 1 protocolError");
    });

  const fatal: Readonly<Record<string, (rig: Rig) => Buffer>> = {
    "a pushed stream": (rig) => rig.headers(2, response),
    PUSH_PROMISE: () => frame(frameType.pushPromise, flag.endHeaders, 1, Buffer.from("0000000282", "hex")),
    "HEADERS on a stream that was never opened": (rig) => rig.headers(7, response),
    "ENABLE_PUSH from a server": () => settings([[2, 1]]),
  };
  for (const [name, attack] of Object.entries(fatal))
    test(`${name}: the connection is over`, () => {
      const rig = client();
      rig.connection.request(get, rig.streamHandler, true);
      rig.sent();
      deepEqual(rig.give(attack(rig)), ["GOAWAY 0 protocolError"]);
    });

  test("a response to HEAD, 204 and 304 has no content, whatever its content-length says", () => {
    const rig = client();
    const head: HeaderPairs = request.map(([name, value]) => [name, name === ":method" ? "HEAD" : value] as const);
    rig.connection.request(head, rig.streamHandler, true);
    rig.connection.request(get, rig.streamHandler, true);
    rig.give(
      rig.headersEnd(1, [
        [":status", "200"],
        ["content-length", "99"],
      ]),
    );
    rig.give(
      rig.headersEnd(3, [
        [":status", "304"],
        ["content-length", "99"],
      ]),
    );
    deepEqual(rig.heard, ["response 1 200 end", "response 3 304 end"]);
  });

  test("RST_STREAM without error after a complete response is not a failure", () => {
    const rig = client();
    rig.connection.request(request, rig.streamHandler);
    rig.give(rig.headersEnd(1, response), rst(1, 0));
    deepEqual(rig.heard, ["response 1 200 end"]);
    equal(rig.connection.streamCount, 0);
  });
});

test("our client and server understand each other, whatever is sent and however it is split", () => {
  const message = fc.record({ up: fc.nat(70_000), down: fc.nat(70_000), cut: fc.integer({ min: 1, max: 40_000 }) });
  fc.assert(
    fc.property(fc.array(message, { minLength: 1, maxLength: 6 }), (messages) => {
      const done: string[] = [];
      const server = new Connection({
        role: "server",
        nowMs: 0,
        handler: {
          onRequest: (stream, headers) => {
            const down = Number(headers.get("x-down"));
            let got = 0;
            return {
              onData(_stream, bytes, ended) {
                got += bytes.length;
                stream.consume(bytes.length);
                if (ended)
                  stream.sendUnary(
                    [
                      [":status", "200"],
                      ["x-got", String(got)],
                    ],
                    Buffer.alloc(down),
                    [["x", "1"]],
                  );
              },
              onReset() {},
            };
          },
        },
      });
      const client = new Connection({ role: "client", nowMs: 0, handler: {} });
      for (const { up, down } of messages) {
        let [got, uploaded] = [0, ""];
        const handler = {
          onHeaders: (_stream: Stream, headers: { get(name: string): string | undefined }) =>
            void (uploaded = headers.get("x-got") ?? ""),
          onData: (stream: Stream, bytes: Buffer) => {
            got += bytes.length;
            stream.consume(bytes.length);
          },
          onTrailers: () => void done.push(`${uploaded} ${got}`),
          onReset: () => void done.push("reset"),
        };
        client.request([...request, ["x-down", String(down)]], handler).write(Buffer.alloc(up), { end: true });
      }
      const cut = messages[0]?.cut ?? 1;
      for (let moved = true; moved;) {
        moved = false;
        for (const [from, to] of [
          [client, server],
          [server, client],
        ] as const) {
          const batch = from.takeOutput();
          if (batch === undefined) continue;
          moved = true;
          const bytes = Buffer.concat(batch.chunks);
          for (let at = 0; at < bytes.length; at += cut) to.receive(bytes.subarray(at, at + cut), 0);
          from.outputDone(batch, 0);
        }
      }
      deepEqual(done.toSorted(), messages.map(({ up, down }) => `${up} ${down}`).toSorted());
      deepEqual([client.streamCount, server.streamCount], [0, 0]);
    }),
    { numRuns: 60 },
  );
});

test("a bug in our code ends the connection, and says so", () => {
  const rig = opened([1]);
  const stream = must(rig.streams.get(1));
  stream.sendHeaders(okHeaders);
  stream.write(Buffer.alloc(10), {
    release: () => {
      throw new Error("oh");
    },
  });
  match(rig.sent().join(), /GOAWAY 1 internalError/);
  match(String(rig.connection.closedWhy?.error), /oh/);
});

test("until it acknowledges our SETTINGS a peer may use the default window", () => {
  const rig = new Rig({ greeted: false, limits: { streamWindowBytes: 1_000 } });
  rig.sent();
  rig.connection.receive(Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), 0);
  rig.give(settings(), rig.headers(1), data(1, Buffer.alloc(5_000)));
  deepEqual(rig.heard, ["request 1 POST /", "data 1 5000"]);
  rig.give(settingsAck, rig.headers(3));
  deepEqual(rig.give(data(3, Buffer.alloc(1_001))), ["RST_STREAM 3 flowControlError"]);
});
