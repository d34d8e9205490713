import { deepEqual, equal, ok, throws } from "node:assert/strict";
import { describe, test } from "node:test";
import fc from "fast-check";
import { isFault } from "#base/fault.ts";
import { Envelope, type EnvelopePorts } from "./envelope.ts";
import { Keyring } from "./keyring.ts";
import { limitsDefault } from "#mesh/machine/limits.ts";
import { compress, decompress } from "./lzw.ts";
import { encodeMessage, encodePushPull, encodeUser, encodeUserStream, type PacketMessage } from "./messages.ts";
import { MsgpackReader, textOf, type Packed } from "./msgpack-reader.ts";
import { pack, type Packable } from "./msgpack-writer.ts";
import { StreamReader } from "./stream-reader.ts";

const key = (fill: number, size = 16): Uint8Array => new Uint8Array(size).fill(fill);

const envelope = (more: Partial<EnvelopePorts> = {}): Envelope => {
  let count = 0;
  return new Envelope({
    label: "",
    keyring: new Keyring(),
    compresses: true,
    sealVersion: 1,
    randomBytes: (size) => new Uint8Array(size).fill((count += 1)),
    limits: limitsDefault,
    ...more,
  });
};

const bytes = (max: number) => fc.uint8Array({ maxLength: max });
const anyEnvelope = fc.record({
  label: fc.constantFrom("", "a", "mill.race/blue", "x".repeat(255)),
  keyring: fc.constantFrom(
    new Keyring(),
    new Keyring([key(1)]),
    new Keyring([key(2, 24), key(1)]),
    new Keyring([key(3, 32)]),
  ),
  compresses: fc.boolean(),
  sealVersion: fc.constantFrom(0 as const, 1 as const),
});

describe("envelopes", () => {
  test("every combination of label, seal, checksum and compression can be opened again", () => {
    fc.assert(
      fc.property(
        anyEnvelope,
        fc.array(bytes(300), { minLength: 1, maxLength: 8 }),
        fc.boolean(),
        (how, parts, withCrc) => {
          const one = envelope(how);
          const messages = parts.map(encodeUser);
          deepEqual(one.openPacket(one.packet(messages, { withCrc })), messages);
        },
      ),
    );
  });

  test("streams too, and the message is recognised at the last byte", () => {
    fc.assert(
      fc.property(anyEnvelope, bytes(2_000), fc.integer({ min: 1, max: 500 }), (how, content, step) => {
        const one = envelope(how);
        const sent = one.stream(encodeUserStream(content));
        const reader = new StreamReader(one, limitsDefault);
        let got;
        for (let at = 0; at < sent.length; at += step) {
          equal(got, undefined);
          got = reader.push(sent.subarray(at, at + step));
        }
        deepEqual(got, { kind: "user", bytes: content });
      }),
    );
  });

  test("another mesh's label is refused, in packets and streams, sealed or not", () => {
    for (const keyring of [new Keyring(), new Keyring([key(1)])]) {
      const [blue, red, none] = ["blue", "red", ""].map((label) => envelope({ label, keyring }));
      ok(blue && red && none);
      const packet = blue.packet([encodeUser(key(0))], { withCrc: false });
      for (const other of [red, none]) {
        throws(() => other.openPacket(packet), isFault);
        throws(() => new StreamReader(other, limitsDefault).push(blue.stream(encodeUserStream(key(0)))), isFault);
        throws(() => blue.openPacket(other.packet([encodeUser(key(0))], { withCrc: false })), isFault);
      }
    }
  });

  test("the label is authenticated: it cannot be exchanged for another", () => {
    const keyring = new Keyring([key(1)]);
    const packet = envelope({ label: "blue", keyring }).packet([encodeUser(key(0))], { withCrc: false });
    const relabelled = packet.slice();
    relabelled.set(new TextEncoder().encode("teal"), 2);
    throws(() => envelope({ label: "teal", keyring }).openPacket(relabelled), isFault);
  });

  test("a wrong checksum is noticed", () => {
    const one = envelope({ compresses: false });
    const packet = one.packet([encodeUser(key(5))], { withCrc: true });
    packet[9] = (packet[9] ?? 0) ^ 1;
    throws(() => one.openPacket(packet), isFault);
  });

  test("keys are rotated without interruption: install everywhere, use everywhere, remove everywhere", () => {
    const [old, fresh] = [key(1), key(2, 32)];
    const [a, b] = [new Keyring([old]), new Keyring([old])];
    const [atA, atB] = [envelope({ keyring: a }), envelope({ keyring: b })];
    const bothWays = (): void => {
      for (const [from, to] of [
        [atA, atB],
        [atB, atA],
      ] as const)
        equal(to.openPacket(from.packet([encodeUser(key(9))], { withCrc: true })).length, 1);
    };
    const steps = [
      () => a.install(fresh),
      () => b.install(fresh),
      () => a.use(fresh),
      () => b.use(fresh),
      () => a.remove(old),
      () => b.remove(old),
    ];
    for (const step of steps) {
      step();
      bothWays();
    }
    throws(() =>
      atA.openPacket(envelope({ keyring: new Keyring([old]) }).packet([encodeUser(old)], { withCrc: false })),
    );
    throws(() => a.remove(fresh), isFault);
    throws(() => a.use(old), isFault);
    throws(() => a.install(new Uint8Array(5)), isFault);
  });

  test("a decompression bomb is refused before it is unpacked", () => {
    const one = envelope();
    const bomb = one.packet([encodeUser(new Uint8Array(limitsDefault.packetInflatedBytesMax + 1))], { withCrc: false });
    ok(bomb.length < 2_000);
    throws(
      () => one.openPacket(bomb),
      (error) => isFault(error, "exhausted"),
    );
  });

  test("nested compounds are limited", () => {
    const one = envelope();
    let packet = encodeUser(key(1));
    for (let depth = 0; depth < 6; depth += 1) packet = one.packet([packet, packet], { withCrc: false });
    throws(() => one.openPacket(packet), isFault);
  });
});

describe("LZW", () => {
  test("compressed bytes are restored, and never more than announced", () => {
    const texty = fc.array(fc.constantFrom(1, 2, 3), { maxLength: 20_000 }).map((list) => Uint8Array.from(list));
    fc.assert(
      fc.property(fc.oneof(bytes(3_000), texty), (content) => {
        deepEqual(decompress(compress(content), content.length), content);
        if (content.length > 0) throws(() => decompress(compress(content), content.length - 1), isFault);
      }),
    );
  });

  test("the table fills up and is cleared", () => {
    let state = 1;
    const noise = Uint8Array.from({ length: 60_000 }, () => (state = (state * 48_271) % 2_147_483_647) & 0xff);
    deepEqual(decompress(compress(noise), noise.length), noise);
  });

  test("any bytes are a text or a Fault", () => {
    fc.assert(
      fc.property(bytes(400), (noise) => {
        try {
          decompress(noise, 10_000);
        } catch (error) {
          ok(isFault(error), String(error));
        }
      }),
    );
  });
});

describe("MessagePack", () => {
  const leaf = fc.oneof(fc.constant(null), fc.boolean(), fc.nat(), fc.maxSafeNat(), bytes(70), fc.string());
  const packable = fc.letrec<{ any: Packable }>((tie) => ({
    any: fc.oneof(
      { depthSize: "small" },
      leaf,
      fc.array(tie("any"), { maxLength: 20 }),
      fc.dictionary(fc.string({ maxLength: 12 }), tie("any"), { maxKeys: 20 }),
    ),
  })).any;

  test("what is written is read back", () => {
    fc.assert(
      fc.property(packable, (value) => {
        const reader = new MsgpackReader(pack(value));
        deepEqual(reader.value(), asRead(value));
        equal(reader.at, pack(value).length);
      }),
    );
  });

  test("the newer forms of texts, bytes and numbers are read too", () => {
    const read = (...content: readonly number[]): Packed => new MsgpackReader(Uint8Array.from(content)).value();
    equal(textOf(read(0xd9, 2, 0x68, 0x69) as Uint8Array), "hi");
    deepEqual(read(0xc4, 1, 9), Uint8Array.of(9));
    equal(read(0xd0, 0xff), -1);
    equal(read(0xe0), -32);
    equal(read(0xd3, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xfe), -2);
    equal(read(0xcf, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff), 2n ** 64n - 1n);
    equal(read(0xcb, 0x3f, 0xf8, 0, 0, 0, 0, 0, 0), 1.5);
    deepEqual(read(0xd4, 5, 7), Uint8Array.of(7));
  });

  function asRead(value: Packable): Packed {
    if (value === null || typeof value === "boolean" || typeof value === "number") return value;
    if (typeof value === "string") return new TextEncoder().encode(value);
    if (value instanceof Uint8Array) return value;
    if (Array.isArray(value)) return (value as readonly Packable[]).map(asRead);
    return new Map(Object.entries(value).map(([name, field]) => [name, asRead(field ?? null)]));
  }
});

test("IPv6 addresses are encoded and decoded", () => {
  const ping: PacketMessage = {
    kind: "indirect-ping",
    seqNo: 4_294_967_295,
    node: "ünïcode",
    target: { host: "2001:db8::1:0:0:7", port: 65_535 },
    wantsNack: true,
    source: { address: { host: "::1", port: 1 } },
  };
  const one = envelope();
  deepEqual(one.openPacket(one.packet([encodeMessage(ping)], { withCrc: false })).length, 1);
  const members = [1, 2].map((n) => ({
    name: `n${n}`,
    address: { host: n === 1 ? "fe80::1" : "10.0.0.1", port: 1 },
    meta: new Uint8Array(512),
    incarnation: n,
    state: "left" as const,
    versions: undefined,
  }));
  const reader = new StreamReader(one, limitsDefault);
  const got = reader.push(one.stream(encodePushPull({ isJoin: false, members, userState: new Uint8Array(0) })));
  deepEqual(got, { kind: "push-pull", isJoin: false, members, userState: new Uint8Array(0) });
});
