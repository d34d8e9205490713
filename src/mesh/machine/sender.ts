/** Sends packets, each filled up with gossip, and sends gossip even when there is nothing else to send. */
import type { Address } from "#mesh/address.ts";
import type { Core } from "./core.ts";
import { compoundOverheadBytes } from "#mesh/wire/envelope.ts";
import { packetSendBytesMax } from "./limits.ts";
import { retransmitsMax } from "./profile.ts";
import type { Member } from "./roster.ts";

const crcBytes = 5;
const compoundHeaderBytes = 2;
const compoundPartsMax = 255;

/** From this version on a packet may carry a checksum. */
const crcFrom = 5;

export class Sender {
  readonly #core: Core;

  constructor(core: Core) {
    this.#core = core;
  }

  /** The largest message that fits a packet. */
  get messageBytesMax(): number {
    return (
      packetSendBytesMax - this.#core.envelope.overheadBytes - crcBytes - compoundHeaderBytes - compoundOverheadBytes
    );
  }

  /** Gossip is added only for members, and only in forms that they understand. */
  send(to: Address, messages: readonly Uint8Array[]): void {
    const member = this.#core.roster.at(to);
    if (!member) return this.#put(to, messages, undefined);
    const used = messages.reduce((sum, { length }) => sum + length + compoundOverheadBytes, compoundHeaderBytes);
    const all = [...messages, ...this.#news(this.#spaceBytes - used, compoundPartsMax - messages.length)];
    this.#put(to, all, member);
  }

  gossip(): void {
    const { roster, times, self, passedOn, news, nowMs, isLeaving } = this.#core;
    if (news.size === 0 && passedOn.size === 0) return;
    // Dead members get gossip too, so that they can refute it. Leave messages go to live members only: they are sent
    // only a few times.
    const toldAfterMs = isLeaving() ? Number.POSITIVE_INFINITY : nowMs() - times.gossipToDeadMs;
    const hears = (member: Member): boolean =>
      member !== self &&
      (member.state === "alive" ||
        member.state === "suspect" ||
        (member.state === "dead" && member.changedAtMs > toldAfterMs));
    for (const member of roster.some(times.gossipNodes, hears)) {
      const messages = this.#news(this.#spaceBytes - compoundHeaderBytes, compoundPartsMax);
      if (messages.length === 0) return;
      this.#put(member.address, messages, member);
    }
  }

  get #spaceBytes(): number {
    return packetSendBytesMax - this.#core.envelope.overheadBytes - crcBytes;
  }

  #news(spaceBytes: number, itemsMax: number): readonly Uint8Array[] {
    const { news, passedOn, times, roster } = this.#core;
    const sendsMax = retransmitsMax(times, roster.size);
    const first = news.take(spaceBytes, compoundOverheadBytes, sendsMax, itemsMax);
    const used = first.reduce((sum, { length }) => sum + length + compoundOverheadBytes, 0);
    const rest = passedOn.take(spaceBytes - used, compoundOverheadBytes, sendsMax, itemsMax - first.length);
    return [...first, ...rest];
  }

  #put(to: Address, messages: readonly Uint8Array[], member: Member | undefined): void {
    const withCrc = (member?.versions?.[1] ?? 0) >= crcFrom;
    this.#core.effect({ kind: "send", to, bytes: this.#core.envelope.packet(messages, { withCrc }) });
  }
}
