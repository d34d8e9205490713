import { deepEqual, equal, ok, throws } from "node:assert/strict";
import { describe, test } from "node:test";
import { must } from "#base/assert.ts";
import { isFault } from "#base/fault.ts";
import { Envelope } from "./envelope.ts";
import { goldenKey, goldenPacket } from "#mesh/testing/golden-packets.ts";
import { Keyring } from "./keyring.ts";
import { limitsDefault } from "#mesh/machine/limits.ts";
import { decodeMessage, encodeMessage, encodePushPull, encodeUser } from "./messages.ts";
import { decodeSerfState, encodeIntent } from "#mesh/serf/serf-messages.ts";
import { StreamReader } from "./stream-reader.ts";
import { decodeTags, encodeTags } from "#mesh/tags.ts";

const envelopeWith = (keys: readonly Uint8Array[], compresses = false, label = ""): Envelope =>
  new Envelope({
    label,
    keyring: new Keyring(keys),
    compresses,
    sealVersion: 1,
    randomBytes: (count) => new Uint8Array(count).fill(7),
    limits: limitsDefault,
  });
const clear = envelopeWith([]);
const sealed = envelopeWith([goldenKey]);

const messagesIn = (name: string, envelope = clear) => envelope.openPacket(goldenPacket(name)).map(decodeMessage);

const serf = { host: "127.0.0.2", port: 17_946 };

function streamIn(name: string, envelope = clear) {
  const reader = new StreamReader(envelope, limitsDefault);
  const message = must(reader.push(goldenPacket(name)), "a message at the last byte");
  ok(message.kind === "push-pull");
  return message;
}

describe("messages of a serf agent are understood, and ours are the same bytes", () => {
  test("a ping", () => {
    const [ping, ...rest] = messagesIn("ping");
    deepEqual(ping, { kind: "ping", seqNo: 1, node: "mill", source: { address: serf, node: "one" } });
    deepEqual(rest, []);
    ok(ping?.kind === "ping");
    deepEqual(clear.packet([encodeMessage(ping)], { withCrc: false }), goldenPacket("ping"));
  });

  test("an answer with serf's coordinates, which are ignored", () => {
    deepEqual(messagesIn("ack"), [{ kind: "ack", seqNo: 18_978_187 }]);
  });

  test("a serf agent's answer with a leave message", () => {
    const [ack, dead] = messagesIn("ack-and-dead");
    equal(ack?.kind, "ack");
    deepEqual(dead, { kind: "dead", incarnation: 1, node: "mill", from: "mill" });
  });

  test("messages about two members and an intent, in a compound with a checksum", () => {
    const [mill, one, intent, ...rest] = messagesIn("news");
    ok(mill?.kind === "alive" && one?.kind === "alive" && intent?.kind === "user");
    deepEqual(rest, []);
    deepEqual(one.address, serf);
    deepEqual(one.versions, [1, 5, 2, 2, 5, 5]);
    deepEqual({ ...decodeTags(one.meta) }, { role: "lab" });
    deepEqual({ ...decodeTags(mill.meta) }, { load: "0/4", role: "millrace" });
    const again = [
      encodeMessage({ ...mill, meta: encodeTags({ role: "millrace", load: "0/4" }) }),
      encodeMessage(one),
      encodeUser(encodeIntent({ kind: "join", time: 1, node: "one" })),
    ];
    deepEqual(clear.packet(again, { withCrc: true }), goldenPacket("news"));
  });

  test("an intent to leave", () => {
    const intent = encodeUser(encodeIntent({ kind: "leave", time: 3, node: "mill" }));
    deepEqual(clear.packet([intent], { withCrc: true }), goldenPacket("leave-intent"));
  });

  test("a full state", () => {
    const message = streamIn("push-pull-stream");
    equal(message.isJoin, true);
    deepEqual(
      message.members.map(({ name, address, state, incarnation }) => ({ name, address, state, incarnation })),
      [{ name: "one", address: serf, state: "alive", incarnation: 1 }],
    );
    const state = decodeSerfState(message.userState);
    deepEqual([state.time, state.eventTime, state.queryTime, state.left], [1, 1, 1, []]);
    deepEqual([...state.statusTimes], [["one", 0]]);
    deepEqual(clear.stream(encodePushPull(message)), goldenPacket("push-pull-stream"));
  });

  test("compressed messages; we compress to the same bytes", () => {
    equal(messagesIn("compressed-ack")[0]?.kind, "ack");
    const inside = clear.openPacket(goldenPacket("compressed-ack"));
    deepEqual(envelopeWith([], true).packet(inside, { withCrc: false }), goldenPacket("compressed-ack"));
    const message = streamIn("compressed-push-pull-stream");
    deepEqual(message.members, streamIn("push-pull-stream").members);
    deepEqual(envelopeWith([], true).stream(encodePushPull(message)), goldenPacket("compressed-push-pull-stream"));
  });

  test("sealed messages; without the key, or with a flipped bit, they are refused", () => {
    const packet = goldenPacket("sealed");
    ok(messagesIn("sealed", sealed).length > 0);
    throws(() => clear.openPacket(packet).map(decodeMessage), isFault);
    throws(() => envelopeWith([new Uint8Array(16)]).openPacket(packet), isFault);
    for (let bit = 0; bit < packet.length * 8; bit += 1) {
      const turned = packet.slice();
      turned[bit >> 3] = (turned[bit >> 3] ?? 0) ^ (1 << (bit & 7));
      throws(() => sealed.openPacket(turned), isFault);
    }
  });

  test("a sealed stream; one in clear is refused if there are keys", () => {
    deepEqual(streamIn("sealed-push-pull-stream", sealed).members, streamIn("push-pull-stream").members);
    throws(() => streamIn("push-pull-stream", sealed), isFault);
    throws(() => streamIn("sealed-push-pull-stream"), isFault);
  });

  test("a stream's message is recognised at its last byte, however it was cut", () => {
    for (const name of ["push-pull-stream", "compressed-push-pull-stream", "sealed-push-pull-stream"]) {
      const bytes = goldenPacket(name);
      const reader = new StreamReader(name.startsWith("sealed") ? sealed : clear, limitsDefault);
      for (let at = 0; at < bytes.length - 1; at += 1) equal(reader.push(bytes.subarray(at, at + 1)), undefined);
      equal(reader.push(bytes.subarray(-1))?.kind, "push-pull");
    }
  });
});
