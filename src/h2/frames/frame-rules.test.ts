// One test for every rule of RFC 9113 that a peer can break, by the RFC's sections. The expected value is the whole
// answer: the frame with its code. "GOAWAY" means that the connection is over, "RST_STREAM" that only the stream is.
import { deepEqual, equal } from "node:assert/strict";
import { describe, test } from "node:test";
import { clientPreface, flag, frameType } from "./frame.ts";
import type { HeaderPairs } from "#h2/hpack/hpack-encoder.ts";
import type { H2Limits } from "#h2/connection/limits.ts";
import {
  data,
  dataEnd,
  frame,
  goaway,
  ping,
  priority,
  request,
  Rig,
  rst,
  settings,
  settingsAck,
  windowUpdate,
} from "#h2/testing/rig.ts";

const bytes = (hex: string): Buffer => Buffer.from(hex.replaceAll(" ", ""), "hex");
const { endHeaders, endStream, padded } = flag;
const prioritized = flag.priority;

/** A rule: what the peer does, and what it gets for it. */
type Rule = readonly [name: string, act: (rig: Rig) => readonly string[], answer: readonly string[]];

function hold(rules: readonly Rule[]): void {
  for (const [name, act, answer] of rules)
    test(name, () => {
      deepEqual(act(new Rig()), answer);
    });
}

const over = (code: string, lastId = 0): readonly string[] => [`GOAWAY ${lastId} ${code}`];
const only = (code: string, id = 1): readonly string[] => [`RST_STREAM ${id} ${code}`];

describe("section 3.4: the preface", () => {
  const start = (...parts: readonly Uint8Array[]): readonly string[] => {
    const rig = new Rig({ greeted: false });
    rig.sent();
    return rig.give(...parts);
  };
  test("must be the preface", () => deepEqual(start(bytes("474554202f")), over("protocolError")));
  test("is wrong at its last byte", () => {
    deepEqual(start(Buffer.concat([clientPreface.subarray(0, 23), Buffer.from("x")])), over("protocolError"));
  });
  test("may arrive byte by byte", () => {
    deepEqual(start(...Array.from(clientPreface, (byte) => Buffer.from([byte])), settings()), ["SETTINGS ack"]);
  });
  test("is followed by SETTINGS", () => deepEqual(start(clientPreface, ping()), over("protocolError")));
  test("not by an acknowledgement", () => deepEqual(start(clientPreface, settingsAck), over("protocolError")));
  test("nor by DATA", () => deepEqual(start(clientPreface, data(1, "x")), over("protocolError")));
  test("a server's first frame is SETTINGS, before anything was read", () => {
    equal(new Rig({ greeted: false }).sent()[0]?.split(" ")[0], "SETTINGS");
  });
  test("a client begins with the preface and SETTINGS, and switches push off", () => {
    const sent = new Rig({ role: "client", greeted: false }).sentBytes()[0] ?? Buffer.alloc(0);
    equal(sent.subarray(0, 24).toString("latin1"), clientPreface.toString("latin1"));
    equal(sent[24 + 3], frameType.settings);
    equal(sent.includes(bytes("0002 0000 0000")), true);
  });
});

describe("section 4: frames", () => {
  hold([
    [
      "4.1 unknown types are ignored",
      (rig) => rig.give(frame(0xbe, 0xff, 1, Buffer.alloc(20)), ping()),
      [`PING ack ${"07".repeat(8)}`],
    ],
    ["4.1 undefined flags are ignored", (rig) => rig.give(ping(0xfe & ~flag.ack)), [`PING ack ${"07".repeat(8)}`]],
    [
      "4.1 the reserved bit is ignored",
      (rig) => rig.give(frame(frameType.ping, 0, 0x80000000, Buffer.alloc(8))),
      [`PING ack ${"00".repeat(8)}`],
    ],
    [
      "4.2 a frame larger than we allow",
      (rig) => rig.give(rig.headers(1), data(1, Buffer.alloc(16_385))),
      over("frameSizeError", 1),
    ],
    ["4.2 is refused before it has arrived", (rig) => rig.give(bytes("ff0000 01 04 00000001")), over("frameSizeError")],
    [
      "4.2 one of the largest allowed size is fine",
      (rig) => rig.give(rig.headers(1), data(1, Buffer.alloc(16_384))),
      [],
    ],
    [
      "4.3 a header block that cannot be decoded",
      (rig) => rig.give(frame(frameType.headers, endHeaders, 1, bytes("ff"))),
      over("compressionError"),
    ],
    [
      "4.3 a block interrupted by PRIORITY",
      (rig) => rig.give(rig.headers(1, request, 0), priority(1)),
      over("protocolError"),
    ],
    [
      "4.3 a block interrupted by DATA",
      (rig) => rig.give(rig.headers(1, request, 0), data(1, "x")),
      over("protocolError"),
    ],
    [
      "4.3 a block interrupted by another stream's HEADERS",
      (rig) => rig.give(rig.headers(1, request, 0), rig.headers(3)),
      over("protocolError"),
    ],
    [
      "4.3 a block interrupted by an unknown frame",
      (rig) => rig.give(rig.headers(1, request, 0), frame(0xbe, 0, 0)),
      over("protocolError"),
    ],
  ]);

  test("every way of splitting a conversation into reads means the same", () => {
    const whole = (): { rig: Rig; stream: Buffer } => {
      const rig = new Rig({
        onRequest: (stream, _headers, ended) => ended && stream.sendHeaders([[":status", "204"]], true),
      });
      const stream = Buffer.concat([
        rig.headers(1),
        data(1, "hello"),
        frame(frameType.data, padded, 1, bytes("03 6869 000000")),
        frame(frameType.data, padded | endStream, 1, bytes("02 0000")),
        rig.headersEnd(3),
        ping(),
        rig.headers(5),
        data(5, ""),
        dataEnd(5),
      ]);
      return { rig, stream };
    };
    const expected = whole();
    const answer = expected.rig.give(expected.stream);
    const joined = (heard: readonly string[]): readonly string[] => heard.filter((line) => !line.startsWith("data"));
    for (const step of [1, 2, 3, 7, 10, 13]) {
      const { rig, stream } = whole();
      const pieces = Array.from({ length: Math.ceil(stream.length / step) }, (_, at) =>
        stream.subarray(at * step, (at + 1) * step),
      );
      deepEqual(rig.give(...pieces), answer);
      deepEqual(joined(rig.heard), joined(expected.rig.heard));
      equal(rig.heard.filter((line) => line.endsWith(" end")).length, 3);
    }
  });
});

describe("section 5.1: stream states", () => {
  hold([
    ["idle: DATA", (rig) => rig.give(data(1, "x")), over("protocolError")],
    ["idle: RST_STREAM", (rig) => rig.give(rst(1)), over("protocolError")],
    ["idle: WINDOW_UPDATE", (rig) => rig.give(windowUpdate(1, 1)), over("protocolError")],
    ["idle: CONTINUATION", (rig) => rig.give(frame(frameType.continuation, endHeaders, 1)), over("protocolError")],
    ["idle: PRIORITY is fine", (rig) => rig.give(priority(1)), []],
    ["half-closed (remote): DATA", (rig) => rig.give(rig.headersEnd(1), data(1, "x")), only("streamClosed")],
    [
      "half-closed (remote): HEADERS",
      (rig) => rig.give(rig.headersEnd(1), rig.headersEnd(1, [["a", "b"]])),
      only("streamClosed"),
    ],
    [
      "half-closed (remote): CONTINUATION",
      (rig) => rig.give(rig.headersEnd(1), frame(frameType.continuation, endHeaders, 1)),
      over("protocolError", 1),
    ],
    [
      "half-closed (remote): WINDOW_UPDATE, PRIORITY and RST_STREAM are fine",
      (rig) => rig.give(rig.headersEnd(1), windowUpdate(1, 1), priority(1), rst(1)),
      [],
    ],
    ["closed by their RST_STREAM: DATA", (rig) => rig.give(rig.headers(1), rst(1), data(1, "x")), only("streamClosed")],
    [
      "closed by their RST_STREAM: HEADERS",
      (rig) => rig.give(rig.headers(1), rst(1), rig.headers(1)),
      over("streamClosed", 1),
    ],
    [
      "closed: WINDOW_UPDATE, PRIORITY and RST_STREAM are let pass",
      (rig) => rig.give(rig.headers(1), rst(1), windowUpdate(1, 1), priority(1), rst(1)),
      [],
    ],
    ["5.1.1 an even id from a client", (rig) => rig.give(rig.headers(2)), over("protocolError")],
    [
      "5.1.1 an id below one that was used",
      (rig) => rig.give(rig.headers(5), rig.headers(3)),
      over("protocolError", 5),
    ],
    [
      "5.1.2 more streams than allowed",
      (rig) => {
        const ids = Array.from({ length: 257 }, (_, at) => at * 2 + 1);
        return rig.give(...ids.map((id) => rig.headers(id)));
      },
      only("refusedStream", 513),
    ],
    [
      "5.3.1 HEADERS that depend on themselves",
      (rig) => {
        const block = Buffer.concat([bytes("00000001 0f"), rig.block(request)]);
        return rig.give(frame(frameType.headers, endHeaders | prioritized, 1, block));
      },
      only("protocolError"),
    ],
    ["5.3.1 PRIORITY that depends on itself", (rig) => rig.give(rig.headers(1), priority(1, 1)), only("protocolError")],
    [
      "5.3.1 the same on an idle stream, which cannot be reset",
      (rig) => rig.give(priority(3, 3)),
      over("protocolError"),
    ],
  ]);

  const answered = {
    onRequest: (stream: { sendHeaders(h: HeaderPairs, end: boolean): void }) =>
      stream.sendHeaders([[":status", "200"]], true),
  };

  test("closed by both ends: DATA resets it, HEADERS end the connection", () => {
    const first = new Rig(answered);
    first.give(first.headersEnd(1));
    deepEqual(first.give(data(1, "x")), only("streamClosed"));
    const second = new Rig(answered);
    second.give(second.headersEnd(1));
    deepEqual(second.give(second.headersEnd(1)), over("streamClosed", 1));
  });

  test("reset by us: frames that were on their way are ignored, and their headers are decoded (R1)", () => {
    const rig = new Rig();
    rig.give(rig.headers(1));
    rig.streams.get(1)?.reset();
    deepEqual(rig.sent(), only("cancel"));
    deepEqual(rig.give(data(1, "late"), rig.headersEnd(1, [["x-late", "1"]])), []);
    rig.give(rig.headersEnd(3, [...request, ["x-late", "1"]]));
    deepEqual(rig.heard, ["request 1 POST /", "request 3 POST / end"]);
  });

  describe("a complete answer to an incomplete request", () => {
    const early = (limits: Partial<H2Limits> = {}, fields = request): Rig => {
      const rig = new Rig({ ...answered, limits });
      deepEqual(rig.give(rig.headers(1, fields)), ["HEADERS 1 :status=200 end"]);
      equal(rig.connection.streamCount, 0);
      return rig;
    };
    const stopped = ["RST_STREAM 1 noError"];

    test("the rest, if it comes soon, is accepted without telling the handler", () => {
      const rig = early();
      deepEqual(rig.give(data(1, "more"), dataEnd(1)), []);
      deepEqual(rig.after(5_000), []);
      deepEqual(rig.heard, ["request 1 POST /"]);
      const trailed = early();
      deepEqual(trailed.give(trailed.headersEnd(1, [["x", "1"]])), []);
    });
    test("after its end the stream is closed", () => {
      const rig = early();
      deepEqual(rig.give(dataEnd(1), data(1, "more")), only("streamClosed"));
    });
    test("RST_STREAM without error stops a client that goes on for too long or with too much", () => {
      deepEqual(early().after(2_000), stopped);
      const rig = early({ lateRequestBytesMax: 10 });
      deepEqual(rig.give(data(1, "0123456789")), []);
      deepEqual(rig.give(data(1, "x")), stopped);
      deepEqual(rig.give(data(1, "and more"), dataEnd(1)), []);
    });
    test("at once if too many are late, or the connection is going away", () => {
      const rig = early({ lateRequestsMax: 1 });
      deepEqual(rig.give(rig.headers(3)), ["HEADERS 3 :status=200 end", "RST_STREAM 3 noError"]);
      rig.connection.drain();
      deepEqual(rig.sent().slice(0, 1), stopped);
    });
    test("the rules apply to the rest too", () => {
      const long = (): Rig => early({}, [...request, ["content-length", "3"]]);
      deepEqual(long().give(data(1, "1234")), only("protocolError"));
      deepEqual(long().give(dataEnd(1, "12")), only("protocolError"));
      deepEqual(long().give(dataEnd(1, "123")), []);
      for (const wrong of [early(), long()])
        deepEqual(wrong.give(wrong.headers(1, [["x", "1"]])), only("protocolError"));
      const pseudo = early();
      deepEqual(pseudo.give(pseudo.headersEnd(1, [[":path", "/"]])), only("protocolError"));
      deepEqual(early().give(windowUpdate(1, 0)), only("protocolError"));
      deepEqual(early().give(windowUpdate(1, 2 ** 31 - 1)), only("flowControlError"));
      deepEqual(early().give(rst(1), data(1, "x")), only("streamClosed"));
      const reset = early();
      deepEqual(reset.give(rst(1), reset.headers(1)), over("streamClosed", 1));
    });
  });
});

describe("section 6: each frame", () => {
  hold([
    ["6.1 DATA on stream 0", (rig) => rig.give(data(0, "x")), over("protocolError")],
    [
      "6.1 padding as long as the frame",
      (rig) => rig.give(rig.headers(1), frame(frameType.data, padded, 1, bytes("02 00"))),
      over("protocolError", 1),
    ],
    [
      "6.1 padding without a length",
      (rig) => rig.give(rig.headers(1), frame(frameType.data, padded, 1)),
      over("frameSizeError", 1),
    ],
    [
      "6.1 nothing but padding is fine",
      (rig) => rig.give(rig.headers(1), frame(frameType.data, padded, 1, bytes("02 0000"))),
      [],
    ],
    ["6.2 HEADERS on stream 0", (rig) => rig.give(rig.headers(0)), over("protocolError")],
    [
      "6.2 padding longer than the frame",
      (rig) => rig.give(frame(frameType.headers, endHeaders | padded, 1, bytes("09 82"))),
      over("protocolError"),
    ],
    [
      "6.2 padding without a length",
      (rig) => rig.give(frame(frameType.headers, endHeaders | padded, 1)),
      over("frameSizeError"),
    ],
    [
      "6.2 too short for its priority",
      (rig) => rig.give(frame(frameType.headers, endHeaders | prioritized, 1, bytes("00000000"))),
      over("frameSizeError"),
    ],
    ["6.3 PRIORITY on stream 0", (rig) => rig.give(priority(0)), over("protocolError")],
    [
      "6.3 PRIORITY of another length",
      (rig) => rig.give(rig.headers(1), frame(frameType.priority, 0, 1, bytes("00000000"))),
      only("frameSizeError"),
    ],
    [
      "6.3 the same on an idle stream",
      (rig) => rig.give(frame(frameType.priority, 0, 1, bytes("00000000"))),
      over("frameSizeError"),
    ],
    ["6.4 RST_STREAM on stream 0", (rig) => rig.give(rst(0)), over("protocolError")],
    [
      "6.4 RST_STREAM of another length",
      (rig) => rig.give(rig.headers(1), frame(frameType.rstStream, 0, 1, bytes("000000"))),
      over("frameSizeError", 1),
    ],
    ["6.5 SETTINGS on a stream", (rig) => rig.give(frame(frameType.settings, 0, 1)), over("protocolError")],
    [
      "6.5 SETTINGS of a length that is no multiple of 6",
      (rig) => rig.give(frame(frameType.settings, 0, 0, bytes("000300"))),
      over("frameSizeError"),
    ],
    [
      "6.5 an acknowledgement with a payload",
      (rig) => rig.give(frame(frameType.settings, flag.ack, 0, bytes("000300000001"))),
      over("frameSizeError"),
    ],
    ["6.5.2 ENABLE_PUSH that is neither 0 nor 1", (rig) => rig.give(settings([[2, 2]])), over("protocolError")],
    ["6.5.2 a window above 2^31-1", (rig) => rig.give(settings([[4, 0x80000000]])), over("flowControlError")],
    ["6.5.2 a frame size below 2^14", (rig) => rig.give(settings([[5, 16_383]])), over("protocolError")],
    ["6.5.2 a frame size above 2^24-1", (rig) => rig.give(settings([[5, 16_777_216]])), over("protocolError")],
    ["6.5.2 unknown settings are ignored", (rig) => rig.give(settings([[0xff, 1]])), ["SETTINGS ack"]],
    [
      "6.5.3 every SETTINGS frame is acknowledged",
      (rig) => rig.give(settings(), settings([[4, 1]])),
      ["SETTINGS ack", "SETTINGS ack"],
    ],
    [
      "6.6 PUSH_PROMISE from a client",
      (rig) => rig.give(rig.headers(1), frame(frameType.pushPromise, endHeaders, 1, bytes("00000002 82"))),
      over("protocolError", 1),
    ],
    ["6.7 PING on a stream", (rig) => rig.give(frame(frameType.ping, 0, 1, Buffer.alloc(8))), over("protocolError")],
    ["6.7 PING of another length", (rig) => rig.give(ping(0, Buffer.alloc(7))), over("frameSizeError")],
    [
      "6.7 PING is answered with its own bytes",
      (rig) => rig.give(ping(0, bytes("0102030405060708"))),
      ["PING ack 0102030405060708"],
    ],
    ["6.7 an answer to a PING is not answered", (rig) => rig.give(ping(flag.ack)), []],
    [
      "6.8 GOAWAY on a stream",
      (rig) => rig.give(frame(frameType.goaway, 0, 1, Buffer.alloc(8))),
      over("protocolError"),
    ],
    ["6.8 GOAWAY too short", (rig) => rig.give(frame(frameType.goaway, 0, 0, Buffer.alloc(7))), over("frameSizeError")],
    [
      "6.8 GOAWAY with an unknown code is only noted",
      (rig) => rig.give(goaway(0, 0xff), ping()),
      [`PING ack ${"07".repeat(8)}`],
    ],
    [
      "6.9 WINDOW_UPDATE of another length",
      (rig) => rig.give(frame(frameType.windowUpdate, 0, 0, bytes("000001"))),
      over("frameSizeError"),
    ],
    ["6.9 an increment of 0 for the connection", (rig) => rig.give(windowUpdate(0, 0)), over("protocolError")],
    [
      "6.9 an increment of 0 for a stream",
      (rig) => rig.give(rig.headers(1), windowUpdate(1, 0)),
      only("protocolError"),
    ],
    [
      "6.9.1 the connection's window above 2^31-1",
      (rig) => rig.give(windowUpdate(0, 0x7fffffff)),
      over("flowControlError"),
    ],
    [
      "6.9.1 a stream's window above 2^31-1",
      (rig) => rig.give(rig.headers(1), windowUpdate(1, 0x7fffffff)),
      only("flowControlError"),
    ],
    [
      "6.9.2 a setting that makes a stream's window too large",
      (rig) => rig.give(rig.headers(1), windowUpdate(1, 0x7fff0000), settings([[4, 0x7fffffff]])),
      over("flowControlError", 1),
    ],
    [
      "6.10 CONTINUATION behind a complete block",
      (rig) => rig.give(rig.headers(1), frame(frameType.continuation, endHeaders, 1)),
      over("protocolError", 1),
    ],
    [
      "6.10 CONTINUATION on stream 0",
      (rig) => rig.give(rig.headers(1, request, 0), frame(frameType.continuation, endHeaders, 0)),
      over("protocolError"),
    ],
    [
      "6.10 CONTINUATION on another stream",
      (rig) => rig.give(rig.headers(1, request, 0), frame(frameType.continuation, endHeaders, 3)),
      over("protocolError"),
    ],
    [
      "6.10 CONTINUATION behind DATA",
      (rig) => rig.give(rig.headers(1), data(1, "x"), frame(frameType.continuation, endHeaders, 1)),
      over("protocolError", 1),
    ],
    ["7 RST_STREAM with an unknown code is a reset", (rig) => rig.give(rig.headers(1), rst(1, 0xff)), []],
  ]);

  test("6.10 a block in many pieces is one block, without padding and priority", () => {
    const rig = new Rig();
    const block = rig.block(request);
    const first = Buffer.concat([bytes("04 00000000 0f"), block.subarray(0, 3), Buffer.alloc(4)]);
    rig.give(
      frame(frameType.headers, padded | prioritized | endStream, 1, first),
      frame(frameType.continuation, 0, 1, block.subarray(3, 5)),
      frame(frameType.continuation, 0, 1),
      frame(frameType.continuation, endHeaders, 1, block.subarray(5)),
    );
    deepEqual(rig.heard, ["request 1 POST / end"]);
  });

  test("6.9 more than the stream's window resets it, more than the connection's ends the connection", () => {
    const small = new Rig({ limits: { streamWindowBytes: 65_535, connectionWindowBytes: 200_000 } });
    const full = data(1, Buffer.alloc(16_384));
    small.give(small.headers(1), full, full, full);
    deepEqual(small.give(full), only("flowControlError"));
    const tight = new Rig({ limits: { streamWindowBytes: 200_000, connectionWindowBytes: 65_535 } });
    tight.give(tight.headers(1), full, full, full);
    deepEqual(tight.give(full), over("flowControlError", 1));
  });
});

describe("section 8: messages", () => {
  const head = (...more: HeaderPairs): HeaderPairs => [...request, ...more];
  const without = (name: string): HeaderPairs => request.filter(([other]) => other !== name);
  const malformed: Readonly<Record<string, HeaderPairs>> = {
    "8.2 a capital in a name": head(["X-Capital", "1"]),
    "8.2.1 a space in a name": head(["x y", "1"]),
    "8.2.1 a colon in a name": head(["x:y", "1"]),
    "8.2.1 a line break in a value": head(["x", "1\r\ny: 2"]),
    "8.2.1 a space before a value": head(["x", " 1"]),
    "8.2.2 connection": head(["connection", "keep-alive"]),
    "8.2.2 proxy-connection": head(["proxy-connection", "keep-alive"]),
    "8.2.2 keep-alive": head(["keep-alive", "1"]),
    "8.2.2 transfer-encoding": head(["transfer-encoding", "chunked"]),
    "8.2.2 upgrade": head(["upgrade", "h2c"]),
    "8.2.2 te that is not trailers": head(["te", "trailers, deflate"]),
    "8.3 an unknown pseudo-field": [...request, [":unknown", "1"]],
    "8.3 a pseudo-field of responses": [...request, [":status", "200"]],
    "8.3 a pseudo-field behind a field": [...without(":path"), ["x", "1"], [":path", "/"]],
    "8.3 :protocol, which was never offered": [...request, [":protocol", "websocket"]],
    "8.3.1 no :method": without(":method"),
    "8.3.1 no :scheme": without(":scheme"),
    "8.3.1 no :path": without(":path"),
    "8.3.1 two :method": [...request, [":method", "GET"]],
    "8.3.1 two :scheme": [...request, [":scheme", "http"]],
    "8.3.1 two :path": [...request, [":path", "/"]],
    "8.3.1 two :authority": [...request, [":authority", "example.org"]],
    "8.3.1 an empty :path": [...without(":path"), [":path", ""]],
    "8.3.1 a :path that does not begin with a slash": [...without(":path"), [":path", "x"]],
    "8.3.1 user information in :authority": [...without(":authority"), [":authority", "me@example.org"]],
    "8.3.1 a host that differs": head(["host", "example.com"]),
    "8.5 CONNECT with a :path": [
      [":method", "CONNECT"],
      [":authority", "a:1"],
      [":path", "/"],
    ],
    "8.5 CONNECT without an :authority": [[":method", "CONNECT"]],
    "8.1.1 a content-length that is no number": head(["content-length", "+5"]),
    "8.1.1 two that differ": head(["content-length", "5"], ["content-length", "6"]),
  };
  for (const [name, pairs] of Object.entries(malformed))
    test(`${name}: malformed`, () => {
      const rig = new Rig();
      deepEqual(rig.give(rig.headers(1, pairs)), only("protocolError"));
      deepEqual(rig.heard, []);
      deepEqual(rig.give(rig.headers(3)), [], "and the next request is served");
      deepEqual(rig.heard, ["request 3 POST /"]);
    });

  hold([
    [
      "8.1 a second HEADERS frame that does not end the stream",
      (rig) => rig.give(rig.headers(1), rig.headers(1, [["a", "b"]])),
      only("protocolError"),
    ],
    [
      "8.1 a pseudo-field in trailers",
      (rig) => rig.give(rig.headers(1), rig.headersEnd(1, [[":path", "/"]])),
      only("protocolError"),
    ],
    [
      "8.1.1 more than content-length",
      (rig) => rig.give(rig.headers(1, head(["content-length", "3"])), data(1, "four")),
      only("protocolError"),
    ],
    [
      "8.1.1 less than content-length",
      (rig) => rig.give(rig.headers(1, head(["content-length", "3"])), dataEnd(1, "2!")),
      only("protocolError"),
    ],
    [
      "8.1.1 less than content-length, over several frames",
      (rig) => rig.give(rig.headers(1, head(["content-length", "3"])), data(1, "a"), dataEnd(1, "b")),
      only("protocolError"),
    ],
    [
      "8.1.1 less than content-length, ended by trailers",
      (rig) => rig.give(rig.headers(1, head(["content-length", "3"])), data(1, "a"), rig.headersEnd(1, [["a", "b"]])),
      only("protocolError"),
    ],
    [
      "8.1.1 a content-length and no content at all",
      (rig) => rig.give(rig.headersEnd(1, head(["content-length", "3"]))),
      only("protocolError"),
    ],
    [
      "8.1.1 exactly content-length is fine",
      (rig) => rig.give(rig.headers(1, head(["content-length", "3"])), data(1, "a"), dataEnd(1, "bc")),
      [],
    ],
  ]);

  test("valid: te trailers, OPTIONS *, CONNECT, a matching host, content-length 0 without content", () => {
    const rig = new Rig();
    const options: HeaderPairs = [
      [":method", "OPTIONS"],
      [":scheme", "http"],
      [":path", "*"],
    ];
    const connect: HeaderPairs = [
      [":method", "CONNECT"],
      [":authority", "example.org:443"],
    ];
    deepEqual(
      rig.give(
        rig.headersEnd(1, head(["te", "trailers"])),
        rig.headersEnd(3, options),
        rig.headersEnd(5, connect),
        rig.headersEnd(7, head(["host", "example.org"], ["content-length", "0"])),
      ),
      [],
    );
    deepEqual(rig.heard, [
      "request 1 POST / end",
      "request 3 OPTIONS * end",
      "request 5 CONNECT  end",
      "request 7 POST / end",
    ]);
  });

  const extended: HeaderPairs = [
    [":method", "CONNECT"],
    [":protocol", "websocket"],
    [":scheme", "http"],
    [":path", "/v1/x"],
    [":authority", "example.org"],
  ];
  const replaced = (name: string, ...by: HeaderPairs): HeaderPairs => [
    ...by,
    ...extended.filter(([known]) => known !== name),
  ];
  const connects: Record<string, HeaderPairs> = {
    "GET with a :protocol": replaced(":method", [":method", "GET"]),
    "an empty :protocol": replaced(":protocol", [":protocol", ""]),
    "two :protocol": [...extended, [":protocol", "websocket"]],
    "a :protocol and no :path": replaced(":path"),
    "a :protocol and no :scheme": replaced(":scheme"),
    "a :protocol and no :authority": replaced(":authority"),
  };
  for (const [name, pairs] of Object.entries(connects))
    test(`RFC 8441 ${name}: malformed`, () => {
      const rig = new Rig({ takesProtocols: true });
      deepEqual(rig.give(rig.headers(1, pairs)), ["RST_STREAM 1 protocolError"]);
    });

  test("RFC 8441 an extended CONNECT is taken only by a server that offers it", () => {
    const rig = new Rig({ takesProtocols: true });
    deepEqual(rig.give(rig.headers(1, extended)), []);
    deepEqual(rig.heard, ["request 1 CONNECT /v1/x"]);
    const closed = new Rig();
    deepEqual(closed.give(closed.headers(1, extended)), ["RST_STREAM 1 protocolError"]);
    deepEqual(closed.heard, []);
  });

  test("8.1 data, then trailers, then nothing", () => {
    const rig = new Rig();
    rig.give(rig.headers(1), data(1, "abc"), rig.headersEnd(1, [["grpc-status", "0"]]));
    deepEqual(rig.heard, ["request 1 POST /", "data 1 3", "trailers 1 grpc-status=0"]);
  });

  test("8.2.3 the parts of a cookie are joined", () => {
    let cookie: string | undefined;
    const rig = new Rig({
      onRequest: (_stream, headers) => {
        cookie = headers.get("cookie");
      },
    });
    rig.give(rig.headers(1, head(["cookie", "a=b"], ["cookie", "c=d"])));
    equal(cookie, "a=b; c=d");
  });
});
