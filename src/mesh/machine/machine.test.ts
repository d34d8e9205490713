import { deepEqual, equal, match, ok, throws } from "node:assert/strict";
import { describe, test } from "node:test";
import { isFault } from "#base/fault.ts";
import { must } from "#base/assert.ts";
import { addressOf, Rig } from "#mesh/testing/rig.ts";
import { Fields } from "#mesh/wire/fields.ts";
import { decodeMessage, encodePushPull, encodeUser, type PushPull } from "#mesh/wire/messages.ts";
import { StreamReader } from "#mesh/wire/stream-reader.ts";
import { limitsDefault } from "./limits.ts";
import { encodeIntent, readFields, serfCode } from "#mesh/serf/serf-messages.ts";
import { encodeUserMessage } from "#mesh/wire/user-message.ts";

/** A machine that knows `count` others, called a, b, c, ... */
function company(count: number, options: ConstructorParameters<typeof Rig>[0] = {}): Rig {
  const rig = new Rig(options);
  for (const name of "abcdefghijklmnopqrstuvwxyz".slice(0, count)) rig.hear(name, rig.alive(name));
  rig.lines.length = 0;
  return rig;
}

/** Lets time pass while only the named members answer. */
function passWith(rig: Rig, ms: number, answering: string): void {
  for (let passed = 0; passed < ms; passed += 50) {
    const before = rig.lastPing;
    rig.pass(50);
    const { node, seqNo } = rig.lastPing;
    if (rig.lastPing !== before && answering.includes(node)) rig.hear(node, { kind: "ack", seqNo });
  }
}

describe("probing", () => {
  test("a member that answers is never suspected", () => {
    const rig = company(3);
    passWith(rig, 60_000, "abc");
    deepEqual(rig.said(/suspect|please/), []);
    equal(rig.machine.counts.probesFailed, 0);
  });

  test("without an answer: helpers are asked, TCP is tried, then the member is suspected, and in the end dead", () => {
    const rig = company(4);
    passWith(rig, 30_000, "abc");
    const lines = rig.lines.filter((line) => / ping d$|please ping d|dial d|d is (suspect|dead)|fail d/.test(line));
    match(must(lines[0], "a line"), / to d: ping d$/);
    const [first = ""] = lines;
    const startMs = Number(first.split(" ")[0]);
    const at = (pattern: RegExp): number =>
      Number(
        must(
          lines.find((line) => pattern.test(line)),
          String(pattern),
        ).split(" ")[0],
      );
    equal(at(/please ping d/) - startMs, 500);
    equal(at(/dial d/) - startMs, 500);
    equal(lines.filter((line) => Number(line.split(" ")[0]) === startMs + 500 && /please/.test(line)).length, 3);
    ok(at(/d is suspect/) - startMs >= 1_000);
    // It is not confirmed although enough members could: it takes the longest time, 6 x 4 s.
    equal(at(/fail d/) - at(/d is suspect/), 24_000);
    equal(rig.state("d"), "dead");
  });

  test("an answer through a helper, or over TCP only, is an answer", () => {
    const rig = company(2);
    passWith(rig, 1_500, "a");
    const waitForProbeOfB = (): void => {
      for (let i = 0; i < 200 && !rig.lines.some((line) => /dial b/.test(line)); i += 1) passWith(rig, 50, "a");
    };
    waitForProbeOfB();
    const { seqNo } = rig.lastPing;
    const dial = rig.effects.findLast((effect) => effect.kind === "dial");
    ok(dial?.kind === "dial");
    rig.do((machine, nowMs) => machine.answered(nowMs, dial.id, { kind: "ack", seqNo }));
    passWith(rig, 1_000, "a");
    equal(rig.state("b"), "alive");
    equal(rig.machine.counts.probesByStream, 1);
  });

  test("pings a third member for another: passes the answer on, or reports that there was none", () => {
    const rig = company(2);
    const ask = (): void =>
      rig.hear("a", {
        kind: "indirect-ping",
        seqNo: 77,
        target: addressOf("b"),
        node: "b",
        wantsNack: true,
        source: { address: addressOf("a"), node: "a" },
      });
    ask();
    match(rig.said(/ping b/).join(), /to b: ping b/);
    rig.hear("b", { kind: "ack", seqNo: rig.lastPing.seqNo });
    match(rig.said(/ack/).join(), /to a: ack 77/);
    ask();
    rig.pass(600);
    match(rig.said(/nack/).join(), /to a: nack 77/);
  });

  test("answers a ping addressed to it, at the address in the ping, and no other", () => {
    const rig = company(1);
    rig.hear("a", { kind: "ping", seqNo: 5, node: "me", source: { address: addressOf("z"), node: "z" } });
    rig.hear("a", { kind: "ping", seqNo: 6, node: "", source: {} });
    rig.hear("a", { kind: "ping", seqNo: 7, node: "other", source: {} });
    deepEqual(
      rig.said(/ack/).map((line) => line.slice(2)),
      ["to z: ack 5", "to a: ack 6"],
    );
  });
});

describe("suspicion and refutation", () => {
  test("M1: accused itself, it announces that it is alive under a higher incarnation", () => {
    const rig = company(2);
    rig.hear("a", rig.says("suspect", "a", "me", 1));
    rig.pass(300);
    match(rig.said(/me is alive/).join(), /me is alive #2/);
    rig.hear("b", rig.says("dead", "b", "me", 40));
    rig.pass(300);
    match(rig.said(/me is alive/).join(), /me is alive #41/);
    equal(rig.machine.healthScore, 2, "accused twice: it trusts its own observations less");
  });

  test("accused of what it has refuted, it answers the accuser, if that is a member", () => {
    const rig = company(1);
    rig.hear("a", rig.says("suspect", "a", "me", 9));
    rig.pass(5_000);
    rig.lines.length = 0;
    rig.hear("a", rig.says("suspect", "a", "me", 9));
    deepEqual(rig.said(/me is alive/).length, 1);
    rig.hear("z", rig.says("suspect", "z", "me", 9));
    deepEqual(rig.said(/me is alive/), []);
  });

  test("the highest possible incarnation is not refuted with a lower one", () => {
    const rig = company(1);
    rig.hear("a", rig.says("suspect", "a", "me", 0xffff_ffff));
    rig.pass(1_000);
    deepEqual(rig.said(/me is alive/), []);
  });

  test("the suspect is notified directly", () => {
    const rig = company(5);
    rig.hear("a", rig.says("suspect", "a", "b"));
    match(rig.said(/b is suspect/).join(), /to b: b is suspect #1 says me/);
  });

  test("each confirmation by another member shortens it, down to the minimum", () => {
    const silent = { probeIntervalMs: 1_000, pushPullIntervalMs: 1e9, reconnectIntervalMs: 1e9 };
    const endOf = (confirmations: readonly string[]): number => {
      const rig = company(8, { times: { ...silent, probeTimeoutMs: 100_000 } });
      rig.hear("a", rig.says("suspect", "a", "h"));
      for (const from of confirmations) rig.hear("a", rig.says("suspect", from, "h"));
      rig.pass(40_000);
      return Number(
        must(
          rig.lines.find((line) => / fail h/.test(line)),
          "a failure",
        ).split(" ")[0],
      );
    };
    equal(endOf([]), 24_000);
    equal(endOf(["a", "a"]), 24_000, "the first accuser does not confirm itself");
    const one = endOf(["b"]);
    ok(one > 4_000 && one < 24_000, `one confirmation: ${one}`);
    equal(endOf(["b", "b"]), one, "nor does the same member twice");
    equal(endOf(["b", "c"]), 4_000);
    equal(endOf(["b", "c", "d", "e"]), 4_000);
  });

  test("a suspicion ends when the suspect announces that it is alive, but not with an old message", () => {
    const rig = company(4);
    rig.hear("a", rig.says("suspect", "a", "b", 1));
    equal(rig.state("b"), "suspect");
    rig.hear("a", rig.alive("b", 1));
    equal(rig.state("b"), "suspect");
    rig.hear("a", rig.alive("b", 2));
    equal(rig.state("b"), "alive");
    rig.hear("a", rig.says("suspect", "a", "b", 1));
    equal(rig.state("b"), "alive");
    equal(rig.machine.counts.suspicionsFalse, 1);
  });

  test("M2: a member that answers us is not declared dead, although its refutation was lost", () => {
    const rig = company(5);
    rig.hear("a", rig.says("suspect", "a", "e"));
    passWith(rig, 120_000, "abcde");
    deepEqual(rig.said(/fail e/), []);
    equal(rig.state("e"), "suspect");
    passWith(rig, 30_000, "abcd");
    equal(rig.state("e"), "dead");
  });

  test("a member dead in another's state is only suspected in ours; one that left has left", () => {
    const rig = company(3);
    const members = (["dead", "left"] as const).map((state, i) => ({
      ...rig.alive("", 1),
      name: "ab"[i] ?? "",
      address: addressOf("ab"[i] ?? ""),
      state,
    }));
    rig.do((machine, nowMs) =>
      machine.answerStream(nowMs, { kind: "push-pull", isJoin: false, members, userState: new Uint8Array(0) }),
    );
    deepEqual([rig.state("a"), rig.state("b"), rig.state("c")], ["suspect", "left", "alive"]);
  });
});

describe("Lifeguard: how far a node trusts itself", () => {
  test("probes that fail without answers from helpers make it slower to suspect, answers faster again", () => {
    const rig = company(4);
    passWith(rig, 4_000, "");
    const worst = rig.machine.healthScore;
    ok(worst > 0, "no member answers: the problem may be ours");
    passWith(rig, 60_000, "");
    ok(rig.machine.healthScore <= 7);
    const better = company(4);
    passWith(better, 3_000, "");
    passWith(better, 60_000, "abcd");
    equal(better.machine.healthScore, 0);
  });

  test("helpers that report no answer either do not lower our health", () => {
    const rig = company(4);
    for (let passed = 0; passed < 3_000; passed += 50) {
      rig.pass(50);
      const asked = rig.said(/please ping/);
      const { seqNo } = rig.lastPing;
      for (const line of asked) rig.hear(/to (\w):/.exec(line)?.[1] ?? "", { kind: "nack", seqNo });
    }
    ok(rig.machine.counts.probesFailed > 0);
    equal(rig.machine.healthScore, 0);
  });

  test("a process that did not run suspects no member for the time it missed", () => {
    const rig = company(3);
    passWith(rig, 2_000, "abc");
    rig.hear("a", rig.says("suspect", "a", "b"));
    rig.nowMs += 600_000; // stopped
    rig.do((machine, nowMs) => machine.advance(nowMs));
    deepEqual(rig.said(/fail|dead/), []);
    equal(rig.machine.counts.stalls, 1);
    equal(rig.state("b"), "suspect");
    passWith(rig, 60_000, "ac");
    equal(rig.state("b"), "dead");
  });
});

describe("names and addresses", () => {
  test("a name that is alive elsewhere is a conflict; one that left, or was dead for a while, may come back", () => {
    const rig = company(2);
    const elsewhere = { host: "10.9.9.9", port: 1 };
    rig.hear("a", rig.alive("b", 5, {}, elsewhere));
    deepEqual(rig.said(/conflict/).length, 1);
    rig.hear("a", rig.says("dead", "a", "b", 5));
    rig.hear("a", rig.alive("b", 6, {}, elsewhere));
    equal(rig.state("b"), "dead", "not yet: it might be the same member, partitioned");
    rig.hear("a", rig.says("dead", "a", "a", 1));
    rig.hear("b", rig.alive("a", 1, {}, elsewhere));
    equal(rig.state("a"), "alive", "a member that left may come back at once");
  });

  test("a change of a member's metadata is reported as an update", () => {
    const rig = company(1);
    rig.hear("a", rig.alive("a", 2, { load: "3/4" }));
    deepEqual(rig.said(/update/), ["0 update a"]);
    deepEqual({ ...rig.machine.members(0).find(({ name }) => name === "a")?.tags }, { load: "3/4" });
  });

  test("our own message is ignored; that of an earlier process is answered with a higher number", () => {
    const rig = company(1);
    const address = { host: "10.0.0.99", port: 7_946 };
    rig.hear("a", rig.alive("me", 1, { role: "test" }, address));
    rig.pass(300);
    deepEqual(rig.said(/me is alive/), []);
    rig.hear("a", rig.alive("me", 7, { role: "before" }, address));
    rig.pass(300);
    match(rig.said(/me is alive/).join(), /me is alive #8/);
  });

  test("the number of members is limited", () => {
    const rig = company(3, { limits: { membersMax: 3 } });
    equal(rig.machine.aliveCount, 3);
    equal(rig.machine.counts.membersRefused, 1);
    rig.hear("a", rig.says("dead", "a", "a"));
    rig.pass(1);
    rig.hear("z", rig.alive("z"));
    equal(rig.state("z"), "alive", "dead members make way");
  });
});

describe("news", () => {
  test("M3: is sent a limited number of times", () => {
    const rig = new Rig({ times: { probeIntervalMs: 1e9 } });
    for (const name of "abcde") rig.hear(name, rig.alive(name));
    rig.pass(30_000);
    const told = rig.said(/to .: a is alive/);
    equal(told.length, 4, "4 x the logarithm of the number of members");
  });

  test("is added to packets for members, and not to those for strangers", () => {
    const rig = new Rig({ times: { probeIntervalMs: 1e9, gossipIntervalMs: 1e9 } });
    for (const name of "ab") rig.hear(name, rig.alive(name));
    rig.lines.length = 0;
    rig.hear("z", { kind: "ping", seqNo: 1, node: "me", source: {} });
    deepEqual(rig.said(/to z/), ["0 to z: ack 1"]);
    rig.hear("a", { kind: "ping", seqNo: 2, node: "me", source: {} });
    ok(rig.said(/to a/).length > 1);
  });

  test("a newer message about a member replaces the older", () => {
    const rig = new Rig({ times: { probeIntervalMs: 1e9 } });
    rig.hear("a", rig.alive("a"), rig.alive("b"));
    rig.hear("a", rig.alive("a", 2), rig.alive("a", 3));
    rig.pass(5_000);
    const told = rig.said(/a is alive/);
    ok(told.length > 0 && told.every((line) => line.includes("#3")), told.join("\n"));
  });

  test("changed tags are announced once per interval, the last value; too many are refused", () => {
    const rig = company(3, { times: { probeIntervalMs: 1e9 } });
    rig.pass(5_000);
    rig.lines.length = 0;
    for (let i = 0; i < 10; i += 1) rig.do((machine, nowMs) => machine.setTags(nowMs, { load: String(i) }));
    rig.pass(5_000);
    const told = new Set(rig.said(/me is alive/).map((line) => line.replace(/.*#/, "")));
    deepEqual([...told], ["2"]);
    deepEqual({ ...rig.machine.members(rig.nowMs).find(({ isSelf }) => isSelf)?.tags }, { load: "9" });
    throws(() => rig.do((machine, nowMs) => machine.setTags(nowMs, { much: "x".repeat(600) })), isFault);
  });
});

describe("beside serf", () => {
  const intent = (kind: "join" | "leave", time: number, node: string) => encodeUser(encodeIntent({ kind, time, node }));
  const hearRaw = (rig: Rig, bytes: Uint8Array): void =>
    rig.do((machine, nowMs) => machine.packet(nowMs, addressOf("a"), rig.envelope.packet([bytes], { withCrc: false })));

  test("leaving: first the intent, then the leave message, then a pause; alone it is gone at once", () => {
    const rig = company(2);
    rig.do((machine, nowMs) => machine.leave(nowMs));
    rig.pass(20_000);
    const order = rig
      .said(/serf leave|me is dead|left/)
      .map((line) => line.replace(/.*(serf leave|me is dead|left).*/, "$1"));
    equal(order[0], "serf leave");
    equal(order.at(-1), "left");
    ok(order.indexOf("me is dead") > order.indexOf("serf leave"));
    rig.hear("a", { kind: "ack", seqNo: rig.lastPing.seqNo });
    rig.pass(60_000);
    deepEqual(rig.said(/ping/), [], "after leaving it probes no member");
    const alone = new Rig();
    alone.do((machine, nowMs) => machine.leave(nowMs));
    deepEqual(alone.said(/left/), ["0 left"]);
  });

  test("leave messages go to live members only: recently dead ones do not get them and do not refute them", () => {
    const rig = company(3, { times: { probeIntervalMs: 1e9 } });
    rig.pass(5_000);
    for (const dead of ["b", "c"]) rig.hear("a", { kind: "dead", incarnation: 1, node: dead, from: "a" });
    rig.do((machine, nowMs) => machine.leave(nowMs));
    hearRaw(rig, intent("leave", 70, "me"));
    rig.lines.length = 0;
    rig.pass(20_000);
    const said = rig.said(/serf leave|me is dead/);
    equal(said.length, 12, "both messages as often as any other, and those passed on");
    deepEqual(
      said.filter((line) => !line.includes(" to a: ")),
      [],
    );
    deepEqual(rig.said(/serf join/), []);
  });

  test("an intent is passed on once, an old one never; clocks follow what was received", () => {
    const rig = company(2, { times: { probeIntervalMs: 1e9 } });
    rig.pass(5_000);
    rig.lines.length = 0;
    hearRaw(rig, intent("join", 50, "b"));
    hearRaw(rig, intent("join", 50, "b"));
    rig.pass(5_000);
    equal(rig.said(/serf join/).length, 4);
    hearRaw(rig, intent("join", 49, "b"));
    rig.pass(5_000);
    deepEqual(rig.said(/serf join/), []);
    const reader = new StreamReader(rig.envelope, limitsDefault);
    const empty: PushPull = { kind: "push-pull", isJoin: false, members: [], userState: new Uint8Array(0) };
    const answer = rig.do((machine, nowMs) => machine.answerStream(nowMs, empty));
    const state = reader.push(must(answer, "an answer"));
    ok(state?.kind === "push-pull");
    match(Buffer.from(state.userState).toString("latin1"), /LTime\x33/, "logical time 51");
  });

  test("another member's message that we leave is refuted", () => {
    const rig = company(2);
    hearRaw(rig, intent("leave", 70, "me"));
    rig.pass(500);
    ok(rig.said(/serf join/).length > 0);
  });

  test("a user message of ours is delivered, and not taken for an intent", () => {
    const rig = company(1, { times: { probeIntervalMs: 1e9 } });
    rig.pass(5_000);
    rig.lines.length = 0;
    hearRaw(rig, encodeUser(encodeUserMessage("me", "a", Uint8Array.of(1, 2, 3))));
    rig.pass(2_000);
    deepEqual(rig.said(/./), ["5000 user message from a"]);
  });

  test("a user message of ours is old to serf: time 0, about the receiver itself", () => {
    const rig = company(1);
    rig.do((machine, nowMs) => machine.sendUser(nowMs, "a", Uint8Array.of(1), false));
    const sent = rig.effects.findLast((effect) => effect.kind === "send");
    ok(sent?.kind === "send");
    const message = rig.envelope
      .openPacket(sent.bytes)
      .map(decodeMessage)
      .find(({ kind }) => kind === "user");
    ok(message?.kind === "user");
    const fields = new Fields(readFields(message.bytes));
    deepEqual([message.bytes[0], fields.lamport("LTime"), fields.text("Node")], [serfCode.join, 0, "a"]);
  });

  test("an absurd logical time moves no clock", () => {
    const rig = company(1);
    const bytes = intent("join", 2 ** 50, "a");
    hearRaw(rig, bytes);
    equal(rig.machine.counts.messagesRefused, 1);
  });

  test("a state with incompatible versions is not merged", () => {
    const rig = company(1);
    const foreign = { ...rig.alive("", 1), name: "z", state: "alive" as const, address: addressOf("z") };
    const members = [{ ...foreign, versions: [9, 9, 9, 9, 9, 9] as const }];
    const bytes = encodePushPull({ isJoin: true, members, userState: new Uint8Array(0) });
    const message = must(new StreamReader(rig.envelope, limitsDefault).push(rig.envelope.stream(bytes)), "a message");
    rig.do((machine, nowMs) => machine.answerStream(nowMs, message));
    equal(rig.state("z"), undefined);
  });
});
