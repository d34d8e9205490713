/**
 * What is believed of whom. News of a member counts by its incarnation, a number that only the member itself raises: at
 * the same one "dead" goes before "suspect" before "alive", and a member that hears ill of itself raises it and says
 * that it is alive.
 *
 * M1 Only a member itself raises its incarnation. M2 Nobody is declared dead who was not suspected for the whole
 * time that `suspicion.ts` says, or who answered us meanwhile. M3 What is news is passed on, what is known is not.
 */
import { sameAddress, type Address } from "#mesh/address.ts";
import type { Core } from "./core.ts";
import { encodeMessage, type Accusation, type Alive, type PushedMember, type Versions } from "#mesh/wire/messages.ts";
import { isGone, type Member } from "./roster.ts";
import type { Sender } from "./sender.ts";
import { Suspicion, suspicionSpan } from "./suspicion.ts";
import type { Cancel } from "./timers.ts";

const incarnationMax = 0xffff_ffff;
const challenges = 4;

export class Rumours {
  readonly #core: Core;
  readonly #sender: Sender;
  readonly #suspicions = new Map<string, { readonly suspicion: Suspicion; stop: Cancel }>();

  constructor(core: Core, sender: Sender) {
    this.#core = core;
    this.#sender = sender;
  }

  alive(news: Alive): void {
    const core = this.#core;
    if (core.hasLeft() && news.node === core.name) return;
    if (news.versions && !isSensible(news.versions)) return this.#refuse();
    const known = core.roster.get(news.node);
    if (!known) return this.#newcomer(news);
    const moved = !sameAddress(known.address, news.address);
    if (moved && !this.#mayMove(known, news)) return;
    if (known === core.self) return this.#aboutSelf(news);
    if (news.incarnation <= known.incarnation && !moved) return;
    this.#take(known, news);
  }

  #newcomer(news: Alive): void {
    const core = this.#core;
    const member: Member = {
      name: news.node,
      address: news.address,
      meta: news.meta,
      incarnation: news.incarnation,
      state: "dead",
      changedAtMs: core.nowMs(),
      versions: news.versions,
    };
    if (core.roster.add(member)) this.#take(member, news);
    else {
      core.roster.retire(core.nowMs(), 0);
      if (core.roster.add(member)) this.#take(member, news);
      else this.#refuse();
    }
  }

  #take(member: Member, news: Alive): void {
    const core = this.#core;
    const suspected = this.#endSuspicion(member.name);
    if (suspected) core.counts.suspicionsFalse += 1;
    const wasGone = isGone(member);
    const saysMore = Buffer.compare(member.meta, news.meta) !== 0 || !sameAddress(member.address, news.address);
    member.incarnation = news.incarnation;
    member.meta = news.meta;
    if (!sameAddress(member.address, news.address)) core.roster.move(member, news.address);
    if (news.versions) member.versions = news.versions;
    if (member.state !== "alive") {
      member.state = "alive";
      member.changedAtMs = core.nowMs();
    }
    this.#passOn(member.name, encodeMessage(news));
    if (wasGone) core.tell("join", member);
    else if (saysMore) core.tell("update", member);
  }

  /** A name comes back from another address only after it left, or was dead for a while; else two claim the name. */
  #mayMove(known: Member, news: Alive): boolean {
    const core = this.#core;
    const deadForMs = core.nowMs() - known.changedAtMs;
    if (known.state === "left" || (known.state === "dead" && deadForMs > core.times.deadReclaimMs)) return true;
    core.effect({
      kind: "tell",
      event: { kind: "conflict", name: known.name, ours: known.address, theirs: news.address },
    });
    return false;
  }

  /** Others tell us what we said, or what we said before a restart: then they must hear what is true now. */
  #aboutSelf(news: Alive): void {
    const { self } = this.#core;
    if (news.incarnation < self.incarnation) return;
    const isTrue =
      news.incarnation === self.incarnation &&
      Buffer.compare(news.meta, self.meta) === 0 &&
      sameVersions(news.versions, self.versions);
    if (!isTrue) this.#refute(news.incarnation);
  }

  suspect(news: Accusation): void {
    const core = this.#core;
    const member = core.roster.get(news.node);
    if (!member || news.incarnation < member.incarnation) return;
    const held = this.#suspicions.get(news.node);
    if (held) {
      if (!held.suspicion.confirm(news.from)) return;
      this.#passOn(member.name, encodeMessage(news));
      this.#setEnd(member, held);
      return;
    }
    if (member.state !== "alive") return;
    if (member === core.self) {
      if (!core.hasLeft()) this.#refute(news.incarnation);
      return;
    }
    this.#passOn(member.name, encodeMessage(news));
    core.counts.suspicions += 1;
    member.incarnation = news.incarnation;
    member.state = "suspect";
    member.changedAtMs = core.nowMs();
    const span = suspicionSpan(core.times, core.roster.size);
    const begun = { suspicion: new Suspicion(news.from, span, core.nowMs()), stop: () => {} };
    this.#suspicions.set(member.name, begun);
    this.#setEnd(member, begun);
    this.#challenge(member, begun.suspicion, challenges);
  }

  /**
   * Tells the suspect to its face, a few times: it refutes at once, or says again what it said when we did not hear it.
   * So a false suspicion ends by two packets between two members, and not only by the luck of gossip.
   */
  #challenge(member: Member, suspicion: Suspicion, times: number): void {
    const { name, timers, nowMs } = this.#core;
    if (times === 0 || this.#suspicions.get(member.name)?.suspicion !== suspicion) return;
    const { incarnation, name: node } = member;
    const accusation = encodeMessage({ kind: "suspect", incarnation, node, from: name });
    this.#sender.send(member.address, [accusation]);
    const againMs = suspicion.span.minMs / challenges;
    timers.set(nowMs() + againMs, () => this.#challenge(member, suspicion, times - 1));
  }

  #setEnd(member: Member, held: { readonly suspicion: Suspicion; stop: Cancel }): void {
    const core = this.#core;
    held.stop();
    held.stop = core.timers.set(Math.max(core.nowMs(), this.#endOf(member, held.suspicion)), () => {
      if (this.#suspicions.get(member.name) !== held) return;
      if (this.#endOf(member, held.suspicion) > core.nowMs()) this.#setEnd(member, held);
      else this.dead({ kind: "dead", incarnation: member.incarnation, node: member.name, from: core.name });
    });
  }

  /**
   * One that answered us since then is not dead, even when its refutation was lost on the way to us: it is given until
   * it must have been probed again.
   */
  #endOf({ answeredAtMs = Number.NEGATIVE_INFINITY }: Member, suspicion: Suspicion): number {
    const { endsAtMs, startedAtMs, span } = suspicion;
    if (answeredAtMs <= startedAtMs) return endsAtMs;
    const { roster, times } = this.#core;
    const probedWithinMs = 2 * roster.size * times.probeIntervalMs;
    return Math.max(endsAtMs, answeredAtMs + Math.min(span.maxMs, Math.max(2 * span.minMs, probedWithinMs)));
  }

  /** Somebody's word on a member's fate. One about us that we have refuted: whoever spreads it has not heard. */
  accused(news: Accusation, from: Address): void {
    const { name, self, hasLeft, roster } = this.#core;
    if (news.node !== name || news.incarnation >= self.incarnation || hasLeft()) return this[news.kind](news);
    // Only to members: strangers get no answer that is larger than what they sent.
    const member = roster.at(from);
    if (member) this.#sender.send(from, [encodeMessage(aliveOf(self))]);
  }

  dead(news: Accusation): void {
    const core = this.#core;
    const member = core.roster.get(news.node);
    if (!member || news.incarnation < member.incarnation) return;
    if (member === core.self && !core.hasLeft()) return this.#refute(news.incarnation);
    this.#endSuspicion(member.name);
    if (isGone(member)) return;
    this.#passOn(member.name, encodeMessage(news));
    member.incarnation = news.incarnation;
    member.state = news.node === news.from ? "left" : "dead";
    member.changedAtMs = core.nowMs();
    if (member.state === "dead") core.counts.deaths += 1;
    core.tell(member.state === "left" ? "leave" : "fail", member);
  }

  /** Another's whole state. Whom it holds for dead we only suspect: it may be the one that is cut off. */
  merge(members: readonly PushedMember[]): void {
    const from = this.#core.name;
    for (const { name: node, state, incarnation, address, meta, versions } of members) {
      if (state === "alive") this.alive({ kind: "alive", incarnation, node, address, meta, versions });
      else if (state === "left") this.dead({ kind: "dead", incarnation, node, from: node });
      else this.suspect({ kind: "suspect", incarnation, node, from });
    }
  }

  /** Says about ourselves what is true now, under a new incarnation that goes before all that was said. */
  announce(accusedIncarnation = 0): void {
    const core = this.#core;
    const { self } = core;
    if (Math.max(self.incarnation, accusedIncarnation) >= incarnationMax) return; // no number is left to go before it
    self.incarnation = Math.max(self.incarnation, accusedIncarnation) + 1;
    this.#passOn(core.name, encodeMessage(aliveOf(self)));
  }

  #refute(accusedIncarnation: number): void {
    const core = this.#core;
    core.counts.refutations += 1;
    core.health.add(1);
    this.announce(accusedIncarnation);
  }

  #passOn(about: string, bytes: Uint8Array): void {
    this.#core.news.add({ about, bytes });
  }

  #endSuspicion(name: string): boolean {
    const held = this.#suspicions.get(name);
    held?.stop();
    return this.#suspicions.delete(name);
  }

  #refuse(): void {
    this.#core.counts.membersRefused += 1;
  }
}

export const aliveOf = ({ incarnation, name, address, meta, versions }: Member): Alive => ({
  kind: "alive",
  incarnation,
  node: name,
  address,
  meta,
  versions,
});

const isSensible = ([pmin, pmax]: Versions): boolean => pmin > 0 && pmax > 0 && pmin <= pmax;

const sameVersions = (a: Versions | undefined, b: Versions | undefined): boolean =>
  a !== undefined && b !== undefined && a.every((version, i) => version === b[i]);
