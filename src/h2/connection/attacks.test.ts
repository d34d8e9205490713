// What a hostile peer can try, one test each: the connection ends with the right code after a bounded number of frames,
// and the memory held for the peer stays bounded throughout (C2).
import { deepEqual, equal, match, ok } from "node:assert/strict";
import { describe, test } from "node:test";
import { clientPreface, flag, frameType } from "#h2/frames/frame.ts";
import { h2LimitsDefault } from "./limits.ts";
import {
  data,
  dataEnd,
  frame,
  ping,
  priority,
  request,
  Rig,
  rst,
  settings,
  settingsAck,
  windowUpdate,
  type RigOptions,
} from "#h2/testing/rig.ts";
import { heldBytes } from "#h2/testing/peer.ts";

const okHeaders = [[":status", "200"]] as const;

/**
 * Sends the same frames again and again until the connection ends; returns how often, and the last frames sent back.
 */
function flood(rig: Rig, frames: (turn: number) => readonly Uint8Array[], turnsMax = 100_000) {
  let words: readonly string[] = [];
  let turns = 0;
  while (!rig.connection.closed && turns < turnsMax) {
    words = rig.give(...frames(turns));
    turns += 1;
  }
  return { turns, last: words.at(-1), heard: rig.heard.at(-1) };
}

const oddId = (turn: number): number => turn * 2 + 1;

describe("floods", () => {
  test("rapid reset: streams opened and reset", () => {
    const rig = new Rig();
    const { turns, last } = flood(rig, (turn) => [rig.headers(oddId(turn)), rst(oddId(turn))]);
    equal(last, `GOAWAY ${oddId(turns - 1)} enhanceYourCalm`);
    equal(turns, h2LimitsDefault.peerResets.burst + 1);
    equal(rig.connection.streamCount, 0);
  });

  test("a client that cancels now and then is not an attacker", () => {
    const rig = new Rig();
    for (let turn = 0; turn < 5_000; turn += 1) {
      rig.nowMs += 20;
      rig.give(rig.headers(oddId(turn)), rst(oddId(turn)));
    }
    equal(rig.connection.closed, false);
  });

  const provoked: Readonly<Record<string, (rig: Rig, id: number) => readonly Uint8Array[]>> = {
    "malformed requests": (rig, id) => [rig.headers(id, [["no-pseudo", "1"]])],
    "window updates of 0": (rig, id) => [rig.headers(id), windowUpdate(id, 0)],
    "windows that overflow": (rig, id) => [rig.headers(id), windowUpdate(id, 0x7fffffff)],
    "streams that depend on themselves": (rig, id) => [rig.headers(id), priority(id, id)],
    "DATA behind the end": (rig, id) => [rig.headersEnd(id), data(id, "x")],
    "content-length that is wrong": (rig, id) => [
      rig.headers(id, [...request, ["content-length", "1"]]),
      data(id, "xx"),
    ],
  };
  for (const [name, attack] of Object.entries(provoked))
    test(`rapid reset, provoked: ${name}`, () => {
      const rig = new Rig();
      const { turns, last } = flood(rig, (turn) => attack(rig, oddId(turn)));
      match(String(last), /^GOAWAY \d+ enhanceYourCalm$/);
      equal(turns, h2LimitsDefault.provokedResets.burst + 1);
    });

  test("too many streams: refused, and a client that does not stop is disconnected", () => {
    const rig = new Rig({ limits: { streamsMax: 10 } });
    const { turns, last } = flood(rig, (turn) => [rig.headers(oddId(turn))]);
    equal(last, `GOAWAY ${oddId(turns - 1)} enhanceYourCalm`);
    equal(turns, 10 + h2LimitsDefault.provokedResets.burst + 1);
  });

  const simple: Readonly<Record<string, readonly [keyof typeof h2LimitsDefault, readonly Uint8Array[]]>> = {
    SETTINGS: ["settingsFrames", [settings([[4, 1]])]],
    PING: ["pings", [ping()]],
    PRIORITY: ["priorityFrames", [priority(99)]],
    "WINDOW_UPDATE by one byte": ["windowUpdates", [windowUpdate(0, 1)]],
    "frames of unknown types": ["priorityFrames", [frame(0xbe, 0, 0)]],
  };
  for (const [name, [limit, frames]] of Object.entries(simple))
    test(name, () => {
      const { turns, last } = flood(new Rig(), () => frames);
      equal(last, "GOAWAY 0 enhanceYourCalm");
      const { burst } = h2LimitsDefault[limit] as { burst: number };
      ok(turns <= burst + 1 && turns >= burst, `${turns} turns`);
    });

  test("DATA without bytes and without end", () => {
    const rig = new Rig();
    rig.give(rig.headers(1));
    const { turns, last } = flood(rig, () => [data(1, "")]);
    equal(last, "GOAWAY 1 enhanceYourCalm");
    equal(turns, h2LimitsDefault.emptyFrames.burst + 1);
  });

  test("a peer that is receiving data may send pings", () => {
    const rig = new Rig({ onRequest: (stream) => stream.sendHeaders(okHeaders, true) });
    for (let turn = 0; turn < 2_000; turn += 1) rig.give(rig.headersEnd(oddId(turn)), ping());
    equal(rig.connection.closed, false);
  });

  test("acknowledgements that are never read: reading pauses, then the connection ends, with memory bounded", () => {
    const rig = new Rig({ limits: { pings: { burst: 1e9, perSecond: 0 } } });
    let paused = 0;
    let turns = 0;
    for (; !rig.connection.closed && turns < 1e6; turns += 1) {
      rig.connection.receive(ping(), rig.nowMs); // and the output is never taken
      if (rig.connection.wantsReadPause && paused === 0) paused = rig.connection.outputBytes;
    }
    ok(paused <= h2LimitsDefault.controlBytesHigh + 100, `${paused} bytes when reading should pause`);
    ok(rig.connection.outputBytes <= h2LimitsDefault.controlBytesMax + 200);
    equal(rig.heard.at(-1), "closed by us enhanceYourCalm: the peer does not read what it asks for");
  });
});

describe("header bombs", () => {
  test("CONTINUATION without end: by the number of frames", () => {
    const rig = new Rig();
    rig.give(rig.headers(1, request, 0));
    const { turns, last } = flood(rig, () => [frame(frameType.continuation, 0, 1, Buffer.from("00"))]);
    equal(last, "GOAWAY 0 enhanceYourCalm");
    equal(turns, h2LimitsDefault.continuationsMax + 1);
  });

  test("CONTINUATION without end: by their bytes", () => {
    const rig = new Rig({ limits: { continuationsMax: 1_000 } });
    rig.give(rig.headers(1, request, 0));
    const { turns, last } = flood(rig, () => [frame(frameType.continuation, 0, 1, Buffer.alloc(16_384, 0x82))]);
    equal(last, "GOAWAY 0 enhanceYourCalm");
    ok(turns <= 5);
  });

  test("headers that are merely too large cost only their stream", () => {
    const rig = new Rig();
    const big = Buffer.concat([Buffer.from("4001617fa11e", "hex"), Buffer.alloc(4_000, "x")]);
    const block = Buffer.concat([rig.block(request), big, Buffer.alloc(30, 0xbe)]);
    deepEqual(rig.give(frame(frameType.headers, flag.endHeaders, 1, block)), ["RST_STREAM 1 enhanceYourCalm"]);
  });

  test("an HPACK bomb: a few bytes that decode to megabytes", () => {
    const rig = new Rig();
    const big = Buffer.concat([Buffer.from("4001617fa11e", "hex"), Buffer.alloc(4_000, "x")]);
    const bomb = Buffer.concat([rig.block(request), big, Buffer.alloc(10_000, 0xbe)]);
    const before = process.memoryUsage().heapUsed;
    deepEqual(rig.give(frame(frameType.headers, flag.endHeaders, 1, bomb)), ["GOAWAY 0 enhanceYourCalm"]);
    ok(process.memoryUsage().heapUsed - before < 5_000_000);
    ok(!rig.heard.some((line) => line.startsWith("request")), "no handler is called");
  });

  test("more fields than allowed", () => {
    const rig = new Rig();
    const many = Array.from({ length: 300 }, () => ["a", "b"] as const);
    deepEqual(rig.give(rig.headers(1, [...request, ...many])), ["RST_STREAM 1 enhanceYourCalm"]);
  });

  test("a table size above what was allowed", () => {
    const rig = new Rig();
    deepEqual(rig.give(frame(frameType.headers, flag.endHeaders, 1, Buffer.from("3fe2ff03", "hex"))), [
      "GOAWAY 0 compressionError",
    ]);
  });
});

describe("window games", () => {
  /** A server that sends a megabyte for every request. */
  const generous: RigOptions = {
    onRequest: (stream) => {
      stream.sendHeaders(okHeaders);
      stream.write(Buffer.alloc(1_000_000), { end: true });
    },
  };

  test("a slow reader: without a window nothing is sent, and in time the stream is reset", () => {
    const rig = new Rig({ ...generous, limits: { keepaliveMs: 1e9 } });
    rig.give(settings([[4, 0]]), rig.headersEnd(1));
    rig.after(1_000);
    deepEqual(rig.after(h2LimitsDefault.sendStallMs - 1), []);
    deepEqual(rig.after(1), ["RST_STREAM 1 enhanceYourCalm"]);
    equal(rig.heard.at(-1), "reset 1 enhanceYourCalm");
    equal(rig.connection.streamCount, 0);
  });

  test("a closed connection window stalls all streams, and they are reset", () => {
    const rig = new Rig({ ...generous, limits: { keepaliveMs: 1e9 } });
    rig.give(settings([[4, 0x7fffffff]]), rig.headersEnd(1), rig.headersEnd(3));
    rig.after(1_000);
    deepEqual(rig.after(h2LimitsDefault.sendStallMs), ["RST_STREAM 1 enhanceYourCalm", "RST_STREAM 3 enhanceYourCalm"]);
  });

  test("a peer that does not read at all: the output is bounded, and in time the connection ends", () => {
    const rig = new Rig(generous);
    rig.give(settings([[4, 0x7fffffff]]), windowUpdate(0, 0x7fff0000 - 65_535));
    for (let turn = 0; turn < 200; turn += 1) rig.connection.receive(rig.headersEnd(oddId(turn)), rig.nowMs);
    ok(rig.connection.outputBytes < h2LimitsDefault.outputBytesHigh + 64_000, `${rig.connection.outputBytes} bytes`);
    rig.nowMs += h2LimitsDefault.writeStallMs;
    rig.connection.tick(rig.nowMs);
    equal(rig.heard.at(-1), "closed by us enhanceYourCalm: the peer does not read");
  });

  test("windows opened byte by byte: every byte is a frame, until the limit is reached", () => {
    const rig = new Rig({ ...generous, limits: { windowUpdates: { burst: 500, perSecond: 10 } } });
    rig.give(settings([[4, 0]]), rig.headersEnd(1));
    const { turns, last } = flood(rig, () => [windowUpdate(1, 1)]);
    equal(last, "GOAWAY 1 enhanceYourCalm");
    ok(turns < 520, `${turns} turns`);
  });

  test("DATA that is never consumed stops at the windows: a stream's, then the connection's", () => {
    const rig = new Rig({ limits: { streamWindowBytes: 65_536, connectionWindowBytes: 131_072 } });
    let received = 0;
    for (let id = 1; !rig.connection.closed; id += 2) {
      rig.give(rig.headers(id));
      for (let i = 0; i < 4 && !rig.connection.closed; i += 1) {
        rig.give(data(id, Buffer.alloc(16_384)));
        received += 16_384;
      }
    }
    equal(received, 131_072 + 16_384);
    match(rig.heard.at(-1) ?? "", /flowControlError/);
  });

  test("a setting that changes all windows is applied once per frame, however often the frame repeats it", () => {
    const rig = new Rig();
    for (let turn = 0; turn < 256; turn += 1) rig.give(rig.headers(oddId(turn)));
    const many = settings(Array.from({ length: 2_730 }, (_, at) => [4, at] as const));
    const before = process.cpuUsage(); // on a busy machine time passes without it
    for (let i = 0; i < 20; i += 1) rig.give(many);
    ok(process.cpuUsage(before).user < 1_000_000);
  });
});

describe("slow and silent peers", () => {
  test("no preface", () => {
    const rig = new Rig({ greeted: false });
    rig.sent();
    deepEqual(rig.after(h2LimitsDefault.prefaceMs - 1), []);
    deepEqual(rig.after(1), ["GOAWAY 0 protocolError"]);
  });

  test("a preface byte by byte", () => {
    const rig = new Rig({ greeted: false });
    rig.sent();
    for (const byte of clientPreface.subarray(0, 20)) {
      rig.give(Buffer.from([byte]));
      rig.after(600);
    }
    match(rig.heard.at(-1) ?? "", /no preface and SETTINGS in time/);
  });

  test("SETTINGS that are never acknowledged", () => {
    const rig = new Rig({ greeted: false });
    rig.give(clientPreface, settings());
    deepEqual(rig.after(h2LimitsDefault.settingsAckMs), ["GOAWAY 0 settingsTimeout"]);
  });

  const slow: Readonly<Record<string, (rig: Rig) => Buffer>> = {
    "a header block whose CONTINUATION does not come": (rig) => rig.headers(1, request, 0),
    "a HEADERS frame that stops in the middle": (rig) => rig.headers(1).subarray(0, 12),
    "half a frame header": (rig) => rig.headers(1).subarray(0, 4),
  };
  for (const [name, begin] of Object.entries(slow))
    test(`slow loris: ${name}`, () => {
      const rig = new Rig();
      rig.give(begin(rig));
      deepEqual(rig.after(h2LimitsDefault.frameMs - 1), []);
      deepEqual(rig.after(1), ["GOAWAY 0 enhanceYourCalm"]);
    });

  test("slow loris: one byte at a time does not extend the time limit", () => {
    const rig = new Rig();
    const bytes = rig.headers(1, [...request, ["x", "y".repeat(200)]]);
    for (const byte of bytes) {
      rig.give(Buffer.from([byte]));
      rig.after(1_000);
    }
    match(rig.heard.at(-1) ?? "", /took too long/);
  });

  test("half-open: nothing arrives, a PING is sent, and no answer comes", () => {
    const rig = new Rig();
    rig.give(rig.headersEnd(1));
    deepEqual(rig.after(h2LimitsDefault.keepaliveMs), ["PING 0000000000000001"]);
    deepEqual(rig.after(h2LimitsDefault.keepaliveAckMs), ["GOAWAY 1 noError"]);
    deepEqual(rig.heard.slice(1), ["reset 1 cancel", "closed by us noError: the peer no longer answers"]);
  });

  test("a peer that answers is kept, as long as it has a stream", () => {
    const rig = new Rig();
    rig.give(rig.headersEnd(1));
    for (let i = 0; i < 30; i += 1) {
      deepEqual(rig.after(h2LimitsDefault.keepaliveMs), ["PING 0000000000000001"]);
      rig.give(ping(flag.ack, Buffer.from("0000000000000001", "hex")));
    }
    equal(rig.connection.closed, false);
  });

  test("idle: a connection without streams for long is closed", () => {
    const rig = new Rig({ limits: { keepaliveMs: 1e9 } });
    rig.give(rig.headersEnd(1), rst(1));
    deepEqual(rig.after(h2LimitsDefault.idleMs), ["GOAWAY 1 noError"]);
    match(rig.heard.at(-1) ?? "", /idle/);
  });
});

test("the memory held for a connection is the same after ten thousand attacks as after ten", () => {
  const attack = (): void => {
    const rig = new Rig();
    flood(rig, (turn) => [rig.headers(oddId(turn)), data(oddId(turn), "x"), dataEnd(oddId(turn)), settingsAck], 5);
    rig.give(rig.headers(99), frame(frameType.headers, flag.endHeaders, 101, Buffer.from("ff", "hex")));
  };
  for (let i = 0; i < 1_000; i += 1) attack();
  const before = heldBytes();
  for (let i = 0; i < 10_000; i += 1) attack();
  const grown = heldBytes() - before;
  ok(grown < 3_000_000, `${grown} bytes more`);
});
