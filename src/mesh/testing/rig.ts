/**
 * One machine with a manual clock, driven and read as text. For tests: sent messages are opened and described in text,
 * received ones are written as text.
 */
import { Random } from "#base/random.ts";
import { addressText, type Address } from "#mesh/address.ts";
import type { Effect } from "#mesh/machine/core.ts";
import { Envelope } from "#mesh/wire/envelope.ts";
import { Keyring } from "#mesh/wire/keyring.ts";
import { limitsDefault, type MeshLimits } from "#mesh/machine/limits.ts";
import { Machine, ourVersions } from "#mesh/machine/machine.ts";
import {
  decodeMessage,
  encodeMessage,
  type Accusation,
  type Alive,
  type PacketMessage,
  type User,
} from "#mesh/wire/messages.ts";
import { profiles, type MeshTimes } from "#mesh/machine/profile.ts";
import { serfCode } from "#mesh/serf/serf-messages.ts";
import { encodeTags, type Tags } from "#mesh/tags.ts";

export const addressOf = (name: string): Address => ({ host: `10.0.0.${name.charCodeAt(0) - 96}`, port: 7_946 });

export type RigOptions = { readonly times?: Partial<MeshTimes>; readonly limits?: Partial<MeshLimits> };

export class Rig {
  readonly machine: Machine;
  readonly envelope: Envelope;
  /** Every effect as text, with its time. */
  readonly lines: string[] = [];
  readonly effects: Effect[] = [];
  /** The last ping that it sent. */
  lastPing = { node: "", seqNo: -1 };
  nowMs = 0;

  constructor({ times, limits }: RigOptions = {}) {
    const keyring = new Keyring();
    const all = { ...limitsDefault, ...limits };
    this.envelope = new Envelope({
      label: "",
      keyring,
      compresses: false,
      sealVersion: 1,
      randomBytes: (count) => new Uint8Array(count),
      limits: all,
    });
    this.machine = new Machine({
      name: "me",
      address: { host: "10.0.0.99", port: 7_946 },
      tags: { role: "test" },
      times: { ...profiles.lan, ...times },
      limits: all,
      envelope: this.envelope,
      keyring,
      random: new Random("rig"),
      nowMs: 0,
    });
  }

  /** Lets time pass, timer by timer. */
  pass(ms: number): void {
    const untilMs = this.nowMs + ms;
    while (this.machine.nextAtMs <= untilMs) {
      this.nowMs = Math.max(this.nowMs, this.machine.nextAtMs);
      this.machine.advance(this.nowMs);
      this.#read();
    }
    this.nowMs = untilMs;
    this.machine.advance(this.nowMs);
    this.#read();
  }

  hear(from: string, ...messages: readonly Exclude<PacketMessage, User>[]): void {
    const packet = this.envelope.packet(messages.map(encodeMessage), { withCrc: false });
    this.machine.packet(this.nowMs, addressOf(from), packet);
    this.#read();
  }

  alive(name: string, incarnation = 1, tags: Tags = {}, address = addressOf(name)): Alive {
    return { kind: "alive", incarnation, node: name, address, meta: encodeTags(tags), versions: ourVersions };
  }

  says(kind: Accusation["kind"], from: string, node: string, incarnation = 1): Accusation {
    return { kind, incarnation, node, from };
  }

  /** Runs a step of the machine and records its effects. */
  do<T>(act: (machine: Machine, nowMs: number) => T): T {
    const outcome = act(this.machine, this.nowMs);
    this.#read();
    return outcome;
  }

  /** The lines since the last call that match. */
  said(pattern: RegExp): readonly string[] {
    const found = this.lines.filter((line) => pattern.test(line));
    this.lines.length = 0;
    return found;
  }

  state(name: string): string | undefined {
    return this.machine.stateOf(name);
  }

  #read(): void {
    for (const effect of this.machine.drain()) {
      this.effects.push(effect);
      for (const line of this.#words(effect)) this.lines.push(`${Math.round(this.nowMs)} ${line}`);
    }
  }

  #words(effect: Effect): readonly string[] {
    switch (effect.kind) {
      case "send":
        return this.envelope.openPacket(effect.bytes).map((bytes) => {
          const message = decodeMessage(bytes);
          if (message.kind === "ping") this.lastPing = message;
          return `to ${nameOf(effect.to)}: ${wordsOf(message)}`;
        });
      case "dial":
        return [`dial ${nameOf(effect.to)}`];
      case "tell":
        if (effect.event.kind === "user") return [`user message from ${effect.event.from}`];
        if (effect.event.kind === "conflict") return [`conflict over ${effect.event.name}`];
        return [`${effect.event.kind} ${effect.event.member.name}`];
      case "joined":
      case "sent":
        return [`${effect.kind}${effect.why === undefined ? "" : `: ${effect.why}`}`];
      case "left":
        return ["left"];
      default:
        return effect satisfies never;
    }
  }
}

const nameOf = (address: Address): string => {
  const last = Number(address.host.split(".").at(-1));
  return address.host.startsWith("10.0.0.") && last < 27 ? String.fromCharCode(96 + last) : addressText(address);
};

function wordsOf(message: PacketMessage): string {
  switch (message.kind) {
    case "alive":
      return `${message.node} is alive #${message.incarnation}`;
    case "suspect":
    case "dead":
      return `${message.node} is ${message.kind} #${message.incarnation} says ${message.from}`;
    case "ping":
      return `ping ${message.node}`;
    case "indirect-ping":
      return `please ping ${message.node}`;
    case "user":
      return `serf ${Object.keys(serfCode)[message.bytes[0] ?? 99] ?? "?"}`;
    default:
      return `${message.kind} ${message.seqNo}`;
  }
}
