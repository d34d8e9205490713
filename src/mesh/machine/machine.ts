/**
 * The protocol machine: packets, stream messages and time go in, effects come out. It has no socket, no clock and no
 * random source of its own, so that the same code runs on the network and in the simulator.
 *
 * Time counts only while this process runs. If it did not run for longer than the protocol's intervals (a stopped
 * process, a sleeping laptop), answers are still unread, and no member is suspected for those.
 */
import { assert } from "#base/assert.ts";
import { isFault } from "#base/fault.ts";
import type { Random } from "#base/random.ts";
import type { Address } from "#mesh/address.ts";
import { Broadcasts } from "./broadcasts.ts";
import { every, noCounts, type Core, type Effect, type MeshCounts, type MemberView } from "./core.ts";
import type { Envelope } from "#mesh/wire/envelope.ts";
import { LeaveSequence, type Phase } from "./leave-sequence.ts";
import { Health } from "./health.ts";
import type { Keyring } from "#mesh/wire/keyring.ts";
import type { MeshLimits } from "./limits.ts";
import {
  decodeMessage,
  encodeMessage,
  encodeUser,
  encodeUserStream,
  type MemberState,
  type StreamMessage,
  type Versions,
} from "#mesh/wire/messages.ts";
import { Prober } from "./prober.ts";
import type { MeshTimes } from "./profile.ts";
import { Roster, type Member } from "./roster.ts";
import { MemberStates } from "./member-states.ts";
import { Sender } from "./sender.ts";
import { SerfNeighbour } from "#mesh/serf/serf-neighbour.ts";
import { answersTo } from "#mesh/serf/serf-queries.ts";
import { Syncer } from "./syncer.ts";
import { decodeTags, encodeTags, type Tags } from "#mesh/tags.ts";
import { Timers } from "./timers.ts";
import { encodeUserMessage } from "#mesh/wire/user-message.ts";

/** Memberlist's protocol 1 to 5, speaking 2 like its defaults; serf's 2 to 5, speaking 4. */
export const ourVersions: Versions = [1, 5, 2, 2, 5, 4];

export type MachineOptions = {
  readonly name: string;
  readonly address: Address;
  readonly tags: Tags;
  readonly times: MeshTimes;
  readonly limits: MeshLimits;
  readonly envelope: Envelope;
  readonly random: Random;
  readonly nowMs: number;
  /** The envelope's keyring: a serf agent's `keys` command may change it. */
  readonly keyring: Keyring;
};

/** If the process did not run for longer than this, its time stood still. */
const stallMs = 1_500;

export class Machine {
  readonly #core: Core;
  readonly #states: MemberStates;
  readonly #sender: Sender;
  readonly #prober: Prober;
  readonly #serf: SerfNeighbour;
  readonly #syncer: Syncer;
  readonly #userStreams = new Set<number>();
  #effects: Effect[] = [];
  #phase: Phase = "up";
  #nowMs: number;
  #stalledMs = 0;
  #ids = 0;
  #metaWanted: Uint8Array | undefined;
  #metaSaidAtMs: number;

  constructor(options: MachineOptions) {
    this.#nowMs = this.#metaSaidAtMs = options.nowMs;
    this.#core = this.#makeCore(options);
    const core = this.#core;
    this.#sender = new Sender(core);
    this.#states = new MemberStates(core, this.#sender);
    this.#prober = new Prober(core, this.#states, this.#sender);
    this.#serf = new SerfNeighbour(core, (query) => {
      for (const { to, message } of answersTo(query, core.name, options.keyring))
        this.#sender.send(to, [encodeUser(message)]);
    });
    this.#syncer = new Syncer(core, this.#states, this.#serf);
    core.roster.add(core.self);
    this.#prober.start();
    this.#syncer.start();
    const { times, random, roster } = core;
    every(
      core,
      random.below(times.gossipIntervalMs),
      // A node without other members need not wake up five times a second.
      () => (roster.size > 1 ? times.gossipIntervalMs : Math.max(times.gossipIntervalMs, times.probeIntervalMs)),
      () => this.#gossip(),
    );
  }

  #makeCore({ name, address, tags, times, limits, envelope, random, nowMs }: MachineOptions): Core {
    const roster = new Roster(limits, random.fork("roster"));
    return {
      name,
      times,
      limits,
      envelope,
      random: random.fork("protocol"),
      roster,
      timers: new Timers(),
      health: new Health(times.healthMax),
      news: new Broadcasts(limits.membersMax),
      passedOn: new Broadcasts(limits.passedOnMax),
      counts: noCounts(),
      self: {
        name,
        address,
        meta: encodeTags(tags),
        incarnation: 1,
        state: "alive",
        changedAtMs: nowMs,
        versions: ourVersions,
      },
      isLeaving: () => this.#phase !== "up",
      hasLeft: () => this.#phase === "left",
      nowMs: () => this.#nowMs,
      effect: (effect) => void this.#effects.push(effect),
      tell: (kind, member) => void this.#effects.push({ kind: "tell", event: { kind, member: this.#view(member) } }),
      nextId: () => (this.#ids += 1),
    };
  }

  /** The effects since the last call. */
  drain(): readonly Effect[] {
    const effects = this.#effects;
    this.#effects = [];
    return effects;
  }

  /** When `advance` must be called at the latest. */
  get nextAtMs(): number {
    return this.#core.timers.nextAtMs() + this.#stalledMs;
  }

  advance(nowMs: number): void {
    const { timers, counts } = this.#core;
    const lateMs = nowMs - Math.max(this.nextAtMs, this.#nowMs + this.#stalledMs);
    if (lateMs > stallMs) {
      counts.stalls += 1;
      this.#stalledMs += lateMs;
    }
    const untilMs = Math.max(this.#nowMs, nowMs - this.#stalledMs);
    for (let due = timers.take(untilMs); due; due = timers.take(untilMs)) {
      this.#nowMs = Math.max(this.#nowMs, due.atMs);
      due.run();
    }
    this.#nowMs = untilMs;
  }

  packet(nowMs: number, from: Address, bytes: Uint8Array): void {
    this.advance(nowMs);
    const { counts, envelope } = this.#core;
    const messages = this.#unlessFault(() => envelope.openPacket(bytes));
    if (!messages) {
      counts.packetsRefused += 1;
      return;
    }
    for (const message of messages)
      if (this.#unlessFault(() => (this.#message(from, message), true)) === undefined) counts.messagesRefused += 1;
  }

  #message(from: Address, bytes: Uint8Array): void {
    const message = decodeMessage(bytes);
    switch (message.kind) {
      case "ping":
        return this.#prober.pinged(message, from);
      case "indirect-ping":
        return this.#prober.askedToPing(message, from);
      case "ack":
        return this.#prober.acked(message.seqNo);
      case "nack":
        return this.#prober.nacked(message.seqNo);
      case "alive":
        return this.#states.alive(message);
      case "suspect":
      case "dead":
        return this.#states.accused(message, from);
      case "user":
        return this.#serf.heard(message.bytes);
      default:
        return message satisfies never;
    }
  }

  /** Handles a stream that another member opened; the returned bytes are written back before it is closed. */
  answerStream(nowMs: number, message: StreamMessage): Uint8Array | undefined {
    this.advance(nowMs);
    const { counts, envelope, name } = this.#core;
    switch (message.kind) {
      case "ping":
        if (message.node !== "" && message.node !== name) return undefined;
        return envelope.stream(encodeMessage({ kind: "ack", seqNo: message.seqNo }));
      case "push-pull": {
        const answer = envelope.stream(this.#syncer.state(message.isJoin));
        if (this.#unlessFault(() => (this.#syncer.merge(message), true)) === undefined) counts.messagesRefused += 1;
        return answer;
      }
      case "user":
        if (this.#unlessFault(() => (this.#serf.heard(message.bytes), true)) === undefined) counts.messagesRefused += 1;
        return undefined;
      case "ack":
      case "error":
        counts.messagesRefused += 1;
        return undefined;
      default:
        return message satisfies never;
    }
  }

  /** Handles the answer on a stream of ours; undefined if none was expected and the bytes are written. */
  answered(nowMs: number, id: number, message: StreamMessage | undefined): void {
    this.advance(nowMs);
    if (this.#userStreams.delete(id)) return this.#core.effect({ kind: "sent", id, why: undefined });
    if (message === undefined) return;
    if (this.#syncer.answered(id, message)) return;
    if (message.kind === "ack") this.#prober.streamAnswered(id, message.seqNo);
    else this.#prober.streamFailed(id);
  }

  failed(nowMs: number, id: number, why: string): void {
    this.advance(nowMs);
    if (this.#userStreams.delete(id)) return this.#core.effect({ kind: "sent", id, why });
    if (!this.#syncer.failed(id, why)) this.#prober.streamFailed(id);
  }

  /** The outcome comes as the effect `joined` with this number. */
  join(nowMs: number, to: Address): number {
    this.advance(nowMs);
    return this.#syncer.join(to);
  }

  /** Sets this node's tags; the last value within an interval counts. Throws "exhausted" if they are too large. */
  setTags(nowMs: number, tags: Tags): void {
    this.advance(nowMs);
    const meta = encodeTags(tags);
    const isSaid = Buffer.compare(meta, this.#core.self.meta) === 0;
    this.#metaWanted = isSaid ? undefined : meta;
  }

  /** A small message goes in a packet, which may be lost; a large or `sure` one over a stream. */
  sendUser(nowMs: number, to: string, bytes: Uint8Array, sure: boolean): number | undefined {
    this.advance(nowMs);
    const { roster, name, envelope, effect, nextId, times } = this.#core;
    const member = roster.get(to);
    if (!member || member.state === "dead" || member.state === "left") return undefined;
    const message = encodeUserMessage(to, name, bytes);
    const id = nextId();
    if (!sure && message.length + 1 <= this.#sender.messageBytesMax) {
      this.#sender.send(member.address, [encodeUser(message)]);
      effect({ kind: "sent", id, why: undefined });
      return id;
    }
    this.#userStreams.add(id);
    const framedBytes = envelope.stream(encodeUserStream(message));
    effect({
      kind: "dial",
      id,
      to: member.address,
      bytes: framedBytes,
      wantsAnswer: false,
      withinMs: times.streamTimeoutMs,
    });
    return id;
  }

  /** The effect `left` comes when the messages have had time to spread. */
  leave(nowMs: number): void {
    this.advance(nowMs);
    if (this.#phase === "up") new LeaveSequence(this.#core, this.#serf, (phase) => void (this.#phase = phase)).begin();
  }

  #gossip(): void {
    const { times, self } = this.#core;
    if (this.#metaWanted && this.#phase !== "left" && this.#nowMs - this.#metaSaidAtMs >= times.metaIntervalMs) {
      self.meta = this.#metaWanted;
      this.#metaWanted = undefined;
      this.#metaSaidAtMs = this.#nowMs;
      this.#states.announce();
    }
    this.#sender.gossip();
  }

  /** All known members, including those that failed or left a while ago. */
  members(nowMs: number): readonly MemberView[] {
    this.advance(nowMs);
    const { roster } = this.#core;
    return [...roster.all, ...roster.departed].map((member) => this.#view(member));
  }

  /** Faster than searching `members`. */
  stateOf(name: string): MemberState | undefined {
    return this.#core.roster.find(name)?.state;
  }

  get aliveCount(): number {
    return this.#core.roster.all.reduce((count, { state }) => count + (state === "alive" ? 1 : 0), 0);
  }

  get counts(): Readonly<MeshCounts> {
    return this.#core.counts;
  }

  get healthScore(): number {
    return this.#core.health.score;
  }

  get phase(): Phase {
    return this.#phase;
  }

  get name(): string {
    return this.#core.name;
  }

  #view(member: Member): MemberView {
    const { name, address, state, incarnation, meta, versions, changedAtMs } = member;
    return {
      name,
      address,
      state,
      incarnation,
      versions,
      tags: decodeTags(meta),
      sinceMs: Math.max(0, Math.round(this.#nowMs - changedAtMs)),
      isSelf: member === this.#core.self,
    };
  }

  #unlessFault<T>(run: () => T): T | undefined {
    try {
      return run();
    } catch (error) {
      assert(isFault(error), `input from others can only be refused: ${String(error)}`);
      return undefined;
    }
  }
}
