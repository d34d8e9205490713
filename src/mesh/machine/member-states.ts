/**
 * The state of each member as this node sees it. A message about a member counts by its incarnation, a number that only
 * the member itself raises: at the same incarnation "dead" beats "suspect" beats "alive", and a member that is accused
 * raises its incarnation and announces that it is alive.
 *
 * M1 Only a member itself raises its incarnation. M2 A member is declared dead only if it was suspected for the whole
 * time that `suspicion.ts` says and did not answer us meanwhile. M3 New messages are passed on, known ones are not.
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

export class MemberStates {
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

  /**
   * A name may come back from another address only after it left, or was dead for a while; otherwise two members claim
   * the name.
   */
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

  /** Others repeat our own message, or one from before a restart: then we announce the current state. */
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
   * Sends the suspicion directly to the suspect, a few times: it refutes at once, or repeats a refutation that we
   * missed. So a false suspicion ends with two packets between two members, and does not depend on gossip.
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
   * A member that answered us since then is not dead, even if its refutation was lost: it gets until it must have been
   * probed again.
   */
  #endOf({ answeredAtMs = Number.NEGATIVE_INFINITY }: Member, suspicion: Suspicion): number {
    const { endsAtMs, startedAtMs, span } = suspicion;
    if (answeredAtMs <= startedAtMs) return endsAtMs;
    const { roster, times } = this.#core;
    const probedWithinMs = 2 * roster.size * times.probeIntervalMs;
    return Math.max(endsAtMs, answeredAtMs + Math.min(span.maxMs, Math.max(2 * span.minMs, probedWithinMs)));
  }

  /**
   * A message about a member's fate. If it is about us and already refuted, its sender has not heard the refutation.
   */
  accused(news: Accusation, from: Address): void {
    const { name, self, hasLeft, roster } = this.#core;
    if (news.node !== name || news.incarnation >= self.incarnation || hasLeft()) return this[news.kind](news);
    // Only to members: strangers get no answer larger than their request.
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

  /** Another member's full state. Members that are dead there are only suspected here: the other may be partitioned. */
  merge(members: readonly PushedMember[]): void {
    const from = this.#core.name;
    for (const { name: node, state, incarnation, address, meta, versions } of members) {
      if (state === "alive") this.alive({ kind: "alive", incarnation, node, address, meta, versions });
      else if (state === "left") this.dead({ kind: "dead", incarnation, node, from: node });
      else this.suspect({ kind: "suspect", incarnation, node, from });
    }
  }

  /** Announces our current state, under an incarnation higher than all before. */
  announce(accusedIncarnation = 0): void {
    const core = this.#core;
    const { self } = core;
    if (Math.max(self.incarnation, accusedIncarnation) >= incarnationMax) return; // no higher number is left
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
