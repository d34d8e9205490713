/**
 * Hostile input: packets and streams that are nearly valid, mutated from real ones in ways that keep some of the
 * structure. Whatever arrives, the machine survives, its tables stay bounded, and it still answers.
 */
import { equal, ok } from "node:assert/strict";
import { describe, test } from "node:test";
import { isFault } from "#base/fault.ts";
import { Random } from "#base/random.ts";
import { Envelope } from "#mesh/wire/envelope.ts";
import { goldenKey, goldenNames, goldenPacket } from "#mesh/testing/golden-packets.ts";
import { Keyring } from "#mesh/wire/keyring.ts";
import { limitsDefault } from "./limits.ts";
import { encodeMessage, encodePushPull, encodeUser, encodeUserStream, messageCode } from "#mesh/wire/messages.ts";
import { pack, type Packable } from "#mesh/wire/msgpack-writer.ts";
import { encodeIntent } from "#mesh/serf/serf-messages.ts";
import { StreamReader } from "#mesh/wire/stream-reader.ts";
import { addressOf, Rig } from "#mesh/testing/rig.ts";

const firstSeed = Number(process.env["FUZZ_SEED"] ?? 1);
const rounds = Number(process.env["FUZZ_ROUNDS"] ?? 3_000);

const names = [
  "Node",
  "Addr",
  "Port",
  "Meta",
  "Vsn",
  "Incarnation",
  "From",
  "SeqNo",
  "Target",
  "Payload",
  "SourceAddr",
];
const more = ["SourcePort", "SourceNode", "Nack", "Algo", "Buf", "Nodes", "UserStateLen", "UserMsgLen", "Join", "Name"];
const serfs = [
  "State",
  "Error",
  "LTime",
  "StatusLTimes",
  "LeftMembers",
  "Events",
  "EventLTime",
  "QueryLTime",
  "Filters",
];
const fieldNames = [...names, ...more, ...serfs, "Flags", "ID", "Key", "Millrace", "MillraceFrom", "__proto__"];
const words = ["", "me", "a", "b", "x".repeat(300), "\u0000", "_serf_install-key", "_serf_list-keys"];

/** A value that may occur in a message: of the right type, or of another. */
function value(random: Random, depth = 0): Packable {
  const kinds = depth > 3 ? 6 : 9;
  switch (random.below(kinds)) {
    case 0:
      return random.pick([0, 1, 2, 127, 128, 255, 65_535, 65_536, 4_294_967_295, 2 ** 40, 2 ** 53 - 1]);
    case 1:
      return random.pick(words);
    case 2:
      return random.pick([null, true, false]);
    case 3:
      return Uint8Array.from({ length: random.pick([0, 1, 4, 6, 16, 40, 600]) }, () => random.below(256));
    case 4:
      return encodeMessage({ kind: "suspect", incarnation: random.below(9), node: "me", from: "a" });
    case 5:
      return Uint8Array.of(127, 0, 0, 1);
    case 6:
      return Array.from({ length: random.below(5) }, () => value(random, depth + 1));
    default:
      return map(random, depth + 1);
  }
}

function map(random: Random, depth = 0): { readonly [field: string]: Packable } {
  const chosen = Array.from({ length: random.below(12) }, () => random.pick(fieldNames));
  return Object.fromEntries(chosen.map((name) => [name, value(random, depth)]));
}

/** A message with a random kind and random fields. */
const invented = (random: Random): Uint8Array =>
  Uint8Array.from([random.pick([...Object.values(messageCode), random.below(256)]), ...pack(map(random))]);

const inventedUser = (random: Random): Uint8Array =>
  encodeUser(Uint8Array.from([random.below(11), ...pack(map(random))]));

function changed(bytes: Uint8Array, random: Random): Uint8Array {
  const out = [...bytes];
  for (let changes = random.below(4); changes >= 0 && out.length > 0; changes -= 1) {
    const at = random.below(out.length);
    switch (random.below(6)) {
      case 0:
        out[at] = random.below(256);
        break;
      case 1:
        out[at] = (out[at] ?? 0) ^ (1 << random.below(8));
        break;
      case 2:
        out.splice(at, random.below(9));
        break;
      case 3:
        out.splice(at, 0, ...pack(value(random)));
        break;
      case 4:
        out.length = at;
        break;
      default:
        out[at] = random.pick([0xdd, 0xdf, 0xdb, 0xc6, 0xff, 0x00, 0x7f, 0xcf]);
    }
  }
  return Uint8Array.from(out);
}

/** Anything that a stranger may send in one packet. */
function packet(random: Random, rig: Rig): Uint8Array {
  const parts = Array.from({ length: 1 + random.below(4) }, () =>
    random.pick([
      () => invented(random),
      () => inventedUser(random),
      () => encodeMessage(rig.alive(random.pick(["a", "b", "me", "c"]), random.below(5), { x: "y" })),
      () => encodeMessage(rig.says(random.pick(["suspect", "dead"]), "b", random.pick(["a", "me"]), random.below(6))),
      () => encodeUser(encodeIntent({ kind: "leave", time: random.below(99), node: random.pick(["a", "me"]) })),
    ])(),
  );
  const whole = random.chance(0.3)
    ? goldenPacket(random.pick(goldenNames))
    : rig.envelope.packet(parts, { withCrc: random.chance(0.3) });
  return random.chance(0.7) ? changed(whole, random) : whole;
}

function streamBytes(random: Random, rig: Rig): Uint8Array {
  const members = Array.from({ length: random.below(4) }, (_, i) => ({
    ...rig.alive("", i),
    name: random.pick(["a", "me", "q"]),
    address: addressOf("a"),
    state: random.pick(["alive", "suspect", "dead", "left"] as const),
  }));
  const userState = random.chance(0.5) ? Uint8Array.from([2, ...pack(map(random))]) : new Uint8Array(0);
  const whole = random.pick([
    () => encodePushPull({ isJoin: random.chance(0.5), members, userState }),
    () => encodeUserStream(inventedUser(random).subarray(1)),
    () => invented(random),
    () => goldenPacket(random.pick(goldenNames.filter((name) => name.endsWith("stream")))),
  ])();
  return random.chance(0.7) ? changed(whole, random) : whole;
}

function stillAnswers(rig: Rig): void {
  rig.lines.length = 0;
  rig.hear("a", { kind: "ping", seqNo: 4_242, node: "me", source: {} });
  equal(rig.said(/ack 4242/).length, 1, "it still answers");
}

describe("hostile input", () => {
  for (const seed of [firstSeed, firstSeed + 1])
    test(`FUZZ_SEED=${seed}: ${rounds} packets`, () => {
      const random = new Random(`packets:${seed}`);
      const rig = new Rig({ limits: { membersMax: 50 } });
      rig.hear("a", rig.alive("a"));
      for (let round = 0; round < rounds; round += 1) {
        const bytes = packet(random, rig);
        rig.do((machine, nowMs) => machine.packet(nowMs, addressOf(random.pick(["a", "b", "z"])), bytes));
        if (random.chance(0.1)) rig.pass(random.below(3_000));
        rig.effects.length = rig.lines.length = 0;
      }
      ok(rig.machine.members(rig.nowMs).length <= 50 + limitsDefault.departedMax);
      ok(rig.machine.counts.messagesRefused > 0 && rig.machine.counts.packetsRefused > 0);
      stillAnswers(rig);
    });

  for (const seed of [firstSeed, firstSeed + 1])
    test(`FUZZ_SEED=${seed}: ${rounds} streams, cut at random positions`, () => {
      const random = new Random(`streams:${seed}`);
      const rig = new Rig({ limits: { membersMax: 50 } });
      let understood = 0;
      for (let round = 0; round < rounds; round += 1) {
        const bytes = streamBytes(random, rig);
        const reader = new StreamReader(rig.envelope, limitsDefault);
        const cut = random.below(bytes.length + 1);
        try {
          const message = reader.push(bytes.subarray(0, cut)) ?? reader.push(bytes.subarray(cut));
          if (!message) continue;
          understood += 1;
          rig.do((machine, nowMs) => machine.answerStream(nowMs, message));
        } catch (error) {
          ok(isFault(error), `a Fault and nothing else: ${error instanceof Error ? error.stack : String(error)}`);
        }
        rig.effects.length = rig.lines.length = 0;
      }
      ok(understood > 50, `only ${understood} were understood: the mutations are too wild to find anything`);
      stillAnswers(rig);
    });

  test(`FUZZ_SEED=${firstSeed}: mutated sealed packets are all refused`, () => {
    const random = new Random(`sealed:${firstSeed}`);
    const keyring = new Keyring([goldenKey]);
    const randomBytes = (count: number): Uint8Array => new Uint8Array(count);
    const ports = {
      label: "",
      keyring,
      compresses: false,
      sealVersion: 1 as const,
      randomBytes,
      limits: limitsDefault,
    };
    const envelope = new Envelope(ports);
    const real = goldenPacket("sealed");
    for (let round = 0; round < rounds; round += 1) {
      const bytes = changed(real, random);
      if (Buffer.compare(bytes, real) === 0) continue;
      try {
        envelope.openPacket(bytes);
        ok(false, "it was opened");
      } catch (error) {
        ok(isFault(error), String(error));
      }
    }
  });

  test("a length of four billion does not make us wait for that much", () => {
    const rig = new Rig();
    const claims = [
      Uint8Array.of(messageCode.encrypt, 0xff, 0xff, 0xff, 0xff),
      Uint8Array.of(messageCode.compress, 0x82, 0xa3, 0x42, 0x75, 0x66, 0xdb, 0xff, 0xff, 0xff, 0xff),
      Uint8Array.of(messageCode.pushPull, 0xdf, 0xff, 0xff, 0xff, 0xff),
      Uint8Array.from([messageCode.pushPull, ...pack({ Nodes: 4_000_000_000, UserStateLen: 0, Join: true })]),
      Uint8Array.from([messageCode.user, ...pack({ UserMsgLen: 4_000_000_000 })]),
    ];
    for (const bytes of claims) {
      const reader = new StreamReader(rig.envelope, limitsDefault);
      let fault: unknown;
      try {
        reader.push(bytes);
      } catch (error) {
        fault = error;
      }
      ok(isFault(fault), `refused at once: ${Buffer.from(bytes).toString("hex")}`);
    }
  });
});
