/**
 * Detects members that do not answer. Each interval one member is pinged; if it does not answer in time, some others
 * are asked to ping it, and it is tried over TCP as well; if no answer came by the end of the interval (longer while
 * our own health is bad), it is suspected.
 */
import type { Address } from "#mesh/address.ts";
import type { Core } from "./core.ts";
import { encodeMessage, type IndirectPing, type Ping, type Source } from "#mesh/wire/messages.ts";
import type { Member } from "./roster.ts";
import type { MemberStates } from "./member-states.ts";
import type { Sender } from "./sender.ts";
import type { Cancel } from "./timers.ts";

const streamPingFrom = 3;
const nackFrom = 4;

type Probe = {
  readonly seqNo: number;
  readonly member: Member;
  readonly startedAtMs: number;
  readonly endsAtMs: number;
  nacksWanted: number;
  nacks: number;
  streamAnswered: boolean;
  stop: Cancel;
};

/** A ping that we send for another member. */
type Relayed = { readonly seqNo: number; readonly to: Address; stop: Cancel };

export class Prober {
  readonly #core: Core;
  readonly #states: MemberStates;
  readonly #sender: Sender;
  readonly #relayed = new Map<number, Relayed>();
  readonly #streams = new Map<number, Probe>();
  #probe: Probe | undefined;
  #seqNo: number;

  constructor(core: Core, states: MemberStates, sender: Sender) {
    this.#core = core;
    this.#states = states;
    this.#sender = sender;
    this.#seqNo = core.random.below(0x1000_0000); // so that a restarted node does not take an old answer for a new one
  }

  start(): void {
    const { timers, random, times, nowMs } = this.#core;
    timers.set(nowMs() + random.below(times.probeIntervalMs), () => this.#begin());
  }

  #begin(): void {
    const { roster, self, timers, times, nowMs, health, counts } = this.#core;
    const member = roster.nextToProbe(
      (other) => other !== self && (other.state === "alive" || other.state === "suspect"),
      () => roster.retire(nowMs() - times.gossipToDeadMs, nowMs() - times.departedKeptMs),
    );
    if (!member) {
      timers.set(nowMs() + times.probeIntervalMs, () => this.#begin());
      return;
    }
    counts.probes += 1;
    const startedAtMs = nowMs();
    const probe: Probe = {
      seqNo: this.#nextSeqNo(),
      member,
      startedAtMs,
      endsAtMs: startedAtMs + health.scaled(times.probeIntervalMs),
      nacksWanted: 0,
      nacks: 0,
      streamAnswered: false,
      stop: () => {},
    };
    this.#probe = probe;
    const ping = encodeMessage(this.#ping(probe));
    // A suspect gets the suspicion with the ping, so that it can refute it at once.
    const { incarnation, name } = member;
    const accusation = encodeMessage({ kind: "suspect", incarnation, node: name, from: this.#core.name });
    this.#sender.send(member.address, member.state === "alive" ? [ping] : [ping, accusation]);
    probe.stop = timers.set(startedAtMs + times.probeTimeoutMs, () => this.#askOthers(probe));
  }

  #ping({ seqNo, member }: Pick<Probe, "seqNo" | "member">): Ping {
    return { kind: "ping", seqNo, node: member.name, source: this.#source };
  }

  get #source(): Source {
    return { address: this.#core.self.address, node: this.#core.name };
  }

  #askOthers(probe: Probe): void {
    const { roster, times, self, timers, effect, envelope, nextId, nowMs } = this.#core;
    const { member, seqNo } = probe;
    const helpers = roster.some(
      times.indirectChecks,
      (other) => other !== self && other !== member && other.state === "alive",
    );
    for (const helper of helpers) {
      const wantsNack = (helper.versions?.[1] ?? 0) >= nackFrom;
      if (wantsNack) probe.nacksWanted += 1;
      const request: IndirectPing = {
        kind: "indirect-ping",
        seqNo,
        target: member.address,
        node: member.name,
        wantsNack,
        source: this.#source,
      };
      this.#sender.send(helper.address, [encodeMessage(request)]);
    }
    if ((member.versions?.[1] ?? 0) >= streamPingFrom) {
      const id = nextId();
      this.#streams.set(id, probe);
      const bytes = envelope.stream(encodeMessage(this.#ping(probe)));
      effect({
        kind: "dial",
        id,
        to: member.address,
        bytes,
        wantsAnswer: true,
        withinMs: Math.max(1, probe.endsAtMs - nowMs()),
      });
    }
    probe.stop = timers.set(probe.endsAtMs, () => this.#end(probe));
  }

  #end(probe: Probe): void {
    const { counts, health, name } = this.#core;
    for (const [id, other] of this.#streams) if (other === probe) this.#streams.delete(id);
    if (probe.streamAnswered) {
      counts.probesByStream += 1;
      return this.#finish(probe, true);
    }
    counts.probesFailed += 1;
    // Helpers that did not answer at all suggest that the problem is on our side.
    health.add(probe.nacksWanted > 0 ? Math.max(0, probe.nacksWanted - probe.nacks) : 1);
    this.#finish(probe, false);
    const { incarnation, name: node } = probe.member;
    this.#states.suspect({ kind: "suspect", incarnation, node, from: name });
  }

  #finish(probe: Probe, answered: boolean): void {
    const { timers, times, nowMs, health } = this.#core;
    probe.stop();
    if (answered) {
      health.add(-1);
      probe.member.answeredAtMs = nowMs();
    }
    if (this.#probe !== probe) return;
    this.#probe = undefined;
    timers.set(Math.max(nowMs(), probe.startedAtMs + times.probeIntervalMs), () => this.#begin());
  }

  acked(seqNo: number): void {
    const probe = this.#probe;
    if (probe?.seqNo === seqNo) return this.#finish(probe, true);
    const relayed = this.#relayed.get(seqNo);
    if (!relayed) return;
    this.#relayed.delete(seqNo);
    relayed.stop();
    this.#sender.send(relayed.to, [encodeMessage({ kind: "ack", seqNo: relayed.seqNo })]);
  }

  nacked(seqNo: number): void {
    if (this.#probe?.seqNo === seqNo) this.#probe.nacks += 1;
  }

  streamAnswered(id: number, seqNo: number): void {
    const probe = this.#streams.get(id);
    this.#streams.delete(id);
    if (probe?.seqNo === seqNo) probe.streamAnswered = true;
  }

  streamFailed(id: number): void {
    this.#streams.delete(id);
  }

  pinged(ping: Ping, from: Address): void {
    if (ping.node !== "" && ping.node !== this.#core.name) return;
    const to = ping.source.address ?? from;
    this.#sender.send(to, [encodeMessage({ kind: "ack", seqNo: ping.seqNo })]);
  }

  /** Another member cannot reach a third and asks us to try. */
  askedToPing(request: IndirectPing, from: Address): void {
    const { timers, times, nowMs, limits } = this.#core;
    if (this.#relayed.size >= limits.relayedMax) return;
    const to = request.source.address ?? from;
    const seqNo = this.#nextSeqNo();
    const stop = timers.set(nowMs() + times.probeTimeoutMs, () => {
      this.#relayed.delete(seqNo);
      if (request.wantsNack) this.#sender.send(to, [encodeMessage({ kind: "nack", seqNo: request.seqNo })]);
    });
    this.#relayed.set(seqNo, { seqNo: request.seqNo, to, stop });
    const ping: Ping = { kind: "ping", seqNo, node: request.node, source: this.#source };
    this.#sender.send(request.target, [encodeMessage(ping)]);
  }

  #nextSeqNo(): number {
    this.#seqNo = (this.#seqNo + 1) >>> 0;
    return this.#seqNo;
  }
}
