/**
 * How one machine gets one content: a flow from a parent for each stripe, and questions to the tracker only about
 * parents that are gone, wrong, or far too slow, and for help with the last part. Pure: the host carries out effects.
 *
 * FE1 What arrived is told here only after it was verified; a peer that sent wrong bytes is never asked again.
 * FE2 No unit that is here is asked for again, but for the few that were on their way when a flow was cut short.
 * FE3 At most one question about a stripe is open, and the pauses between them grow: no herd at the tracker.
 * FE4 Until two units of each stripe are here, on average, no parent is called slow: deep in a tree the first units
 *     wait for their turn at each machine above, and a fleet that rebuilds its trees at once never has good ones.
 */
import { positionOf, stripeLength, type Have } from "./units.ts";

export type Why = "gone" | "bad" | "slow" | "help" | "none";

export type Flow<P> = {
  readonly id: number;
  readonly peer: P;
  readonly stripe: number;
  next: number;
  end: number;
  lastMs: number;
  /** When the peer was asked whether it waits itself; negative: not since the last unit. */
  queriedMs: number;
  /** How often in a row the peer said so. */
  excuses: number;
};

export type FetchEvent<P> =
  /** The tracker's plan: a parent for each stripe; undefined where it has none yet. */
  | { readonly kind: "planned"; readonly parents: readonly (P | undefined)[] }
  | { readonly kind: "given"; readonly stripe: number; readonly peer: P | undefined; readonly why: Why }
  | { readonly kind: "unit"; readonly flow: Flow<P>; readonly unit: number }
  | { readonly kind: "bad"; readonly flow: Flow<P> }
  /** What the peer says about a flow that brings nothing: whether it waits for the unit itself, and how many it has. */
  | { readonly kind: "answered"; readonly flow: Flow<P>; readonly isWaiting: boolean; readonly count: number }
  | { readonly kind: "gone"; readonly peer: P }
  | { readonly kind: "refused"; readonly flow: Flow<P> }
  | { readonly kind: "tick" };

export type FetchEffect<P> =
  | { readonly kind: "subscribe"; readonly flow: Flow<P> }
  | { readonly kind: "shorten"; readonly flow: Flow<P> }
  | { readonly kind: "query"; readonly flow: Flow<P> }
  | { readonly kind: "ask"; readonly stripe: number; readonly why: Why; readonly about: P | undefined }
  | { readonly kind: "drop"; readonly peer: P }
  | { readonly kind: "complete" };

/** A flow is slow when it brought nothing for this many times the pace of the others. */
const slowTimes = 4;
const slowMsMin = 1_500;
/** Before the first unit there is no pace to compare with. */
const firstMsMax = 20_000;
const askPauseMsMin = 1_000;
const askPauseMsMax = 4_000;
/** How long a peer may take to say why it sends nothing. */
const answerMsMax = 2_000;
const behindShare = 0.7;
/** A peer that has been waiting itself for this many looks is left, though not blamed. */
const excusesMax = 6;
/** Help with less than this is not worth a question: positions, and the share of the stripe. */
const helpMin = 3;
const helpShareMin = 0.04;
/** Of what is left, the flow that is behind keeps this, and the helper brings the rest. */
const keptShare = 0.25;
const helpFlowsShare = 0.75;
const helpsMax = 4;
/** A machine that is far behind may ask more often. */
const helpsMaxBehind = 6;
const farBehindShare = 0.25;

type Asked = { atMs: number; pauseMs: number; isOpen: boolean };

export class Fetcher<P> {
  readonly have: Have;
  readonly #flows: Flow<P>[] = [];
  readonly #banned = new Set<P>();
  readonly #asked: (Asked | undefined)[];
  #ids = 0;
  #firstMs = -1;
  #startMs = -1;
  #lastMs = 0;
  #paceMs = Infinity;
  #received = 0;
  #helps = 0;
  #help: Asked = { atMs: -Infinity, pauseMs: 0, isOpen: false };
  #isDone = false;

  constructor(have: Have) {
    this.have = have;
    this.#asked = Array.from({ length: have.shape.stripes });
  }

  get flows(): readonly Flow<P>[] {
    return this.#flows;
  }

  step(event: FetchEvent<P>, nowMs: number, effects: FetchEffect<P>[]): void {
    if (this.#isDone) return;
    switch (event.kind) {
      case "planned":
        this.#startMs = nowMs;
        for (const [stripe, peer] of event.parents.entries())
          if (peer !== undefined) this.#open(stripe, peer, nowMs, effects);
        break;
      case "given":
        this.#given(event, nowMs, effects);
        break;
      case "unit":
        this.#unit(event, nowMs, effects);
        break;
      case "bad":
        this.#banned.add(event.flow.peer);
        effects.push({ kind: "drop", peer: event.flow.peer });
        this.#lose(event.flow.peer, "bad", nowMs, effects);
        break;
      case "gone":
        this.#lose(event.peer, "gone", nowMs, effects);
        break;
      case "answered":
        this.#answered(event, nowMs, effects);
        break;
      case "refused":
        if (this.#remove(event.flow)) this.#ask(event.flow.stripe, "none", event.flow.peer, nowMs, effects);
        break;
      case "tick":
        this.#tick(nowMs, effects);
    }
    if (this.have.isComplete && !this.#isDone) {
      this.#isDone = true;
      for (const flow of this.#flows.splice(0)) this.#cut(flow, flow.next, effects);
      effects.push({ kind: "complete" });
    }
  }

  #unit(event: Extract<FetchEvent<P>, { kind: "unit" }>, nowMs: number, effects: FetchEffect<P>[]): void {
    const { flow, unit } = event;
    if (this.#firstMs < 0) this.#firstMs = nowMs;
    this.have.add(unit);
    this.#received += 1;
    this.#lastMs = nowMs;
    flow.lastMs = nowMs;
    flow.queriedMs = -1;
    flow.excuses = 0;
    const position = positionOf(this.have.shape, unit);
    if (position >= flow.next) flow.next = position + 1;
    if (flow.next < flow.end) return;
    this.#remove(flow);
    // What an interrupted staging left in the middle of the stripe.
    if (this.#open(flow.stripe, flow.peer, nowMs, effects)) return;
    this.#seekHelp(nowMs, effects);
  }

  /** A flow for the first positions of the stripe that nothing brings yet. */
  #open(stripe: number, peer: P, nowMs: number, effects: FetchEffect<P>[]): boolean {
    if (this.#banned.has(peer)) return false;
    const end = stripeLength(this.have.shape, stripe);
    for (let from = 0; from < end;) {
      const gap = this.have.gap(stripe, from, end);
      if (!gap) return false;
      const over = this.#flows.find((flow) => flow.stripe === stripe && flow.next <= gap.from && gap.from < flow.end);
      if (over) {
        from = over.end;
        continue;
      }
      const until = this.#flows
        .filter((flow) => flow.stripe === stripe && flow.next > gap.from)
        .reduce((least, flow) => Math.min(least, flow.next), gap.to);
      this.#begin(stripe, peer, { from: gap.from, to: until }, nowMs, effects);
      return true;
    }
    return false;
  }

  #begin(
    stripe: number,
    peer: P,
    { from, to }: { readonly from: number; readonly to: number },
    nowMs: number,
    effects: FetchEffect<P>[],
  ): void {
    const flow: Flow<P> = {
      id: this.#ids++,
      peer,
      stripe,
      next: from,
      end: to,
      lastMs: nowMs,
      queriedMs: -1,
      excuses: 0,
    };
    this.#flows.push(flow);
    effects.push({ kind: "subscribe", flow });
  }

  #given(event: Extract<FetchEvent<P>, { kind: "given" }>, nowMs: number, effects: FetchEffect<P>[]): void {
    const { stripe, peer, why } = event;
    if (why === "help") {
      if (peer !== undefined) this.#helped(stripe, peer, nowMs, effects);
      // No one has a place for it yet: soon the first machines are complete, and have.
      else this.#help = { ...this.#help, pauseMs: askPauseMsMin };
      this.#help.isOpen = false;
      return;
    }
    const asked = this.#asked[stripe];
    if (asked) asked.isOpen = false;
    if (peer === undefined) return;
    const slow = why === "slow" || why === "none" ? this.#slowest(stripe, peer) : undefined;
    if (slow && this.#remove(slow)) this.#cut(slow, slow.next, effects);
    this.#open(stripe, peer, nowMs, effects);
  }

  /** The helper brings most of what the flow has left: it is complete, and the flow's peer is behind. */
  #helped(stripe: number, peer: P, nowMs: number, effects: FetchEffect<P>[]): void {
    const flow = this.#most(stripe);
    if (!flow || flow.peer === peer || this.#banned.has(peer)) return;
    const cut = Math.ceil(flow.next + 1 + (flow.end - flow.next - 1) * keptShare);
    if (cut >= flow.end) return;
    this.#helps += 1;
    this.#help.pauseMs = 0;
    const { end } = flow;
    this.#cut(flow, cut, effects);
    this.#begin(stripe, peer, { from: cut, to: end }, nowMs, effects);
  }

  #cut(flow: Flow<P>, to: number, effects: FetchEffect<P>[]): void {
    if (to >= flow.end) return;
    flow.end = to;
    effects.push({ kind: "shorten", flow });
  }

  #seekHelp(nowMs: number, effects: FetchEffect<P>[]): void {
    const { isOpen, atMs, pauseMs } = this.#help;
    if (isOpen || nowMs < atMs + pauseMs || this.#helps >= helpsMaxBehind) return;
    // While most flows still run, those that are a little behind may end with the others.
    if (this.#flows.length > helpFlowsShare * this.have.shape.stripes) return;
    const most = this.#most(undefined);
    const share = this.#helps < helpsMax ? helpShareMin : farBehindShare;
    const least = Math.max(helpMin, share * stripeLength(this.have.shape, 0));
    if (!most || most.end - most.next < least) return;
    this.#help = { atMs: nowMs, pauseMs, isOpen: true };
    effects.push({ kind: "ask", stripe: most.stripe, why: "help", about: most.peer });
  }

  #lose(peer: P, why: Why, nowMs: number, effects: FetchEffect<P>[]): void {
    for (const flow of this.#flows.filter((each) => each.peer === peer)) {
      this.#remove(flow);
      this.#ask(flow.stripe, why, peer, nowMs, effects);
    }
  }

  #ask(stripe: number, why: Why, about: P | undefined, nowMs: number, effects: FetchEffect<P>[]): void {
    const asked = this.#asked[stripe];
    if (asked?.isOpen || (asked && nowMs < asked.atMs + asked.pauseMs)) return;
    const isOld = asked === undefined || nowMs - asked.atMs > 4 * askPauseMsMax;
    const pauseMs = isOld ? askPauseMsMin : Math.min(askPauseMsMax, asked.pauseMs * 2);
    this.#asked[stripe] = { atMs: nowMs, pauseMs, isOpen: true };
    effects.push({ kind: "ask", stripe, why, about });
  }

  #tick(nowMs: number, effects: FetchEffect<P>[]): void {
    if (this.#startMs < 0) return;
    for (const asked of this.#asked) if (asked?.isOpen && nowMs - asked.atMs > askPauseMsMax) asked.isOpen = false;
    const limitMs = this.#limitMs(nowMs);
    for (const flow of this.#flows)
      if (flow.queriedMs >= 0) {
        if (nowMs - flow.queriedMs > answerMsMax) this.#ask(flow.stripe, "slow", flow.peer, nowMs, effects);
      } else if (nowMs - flow.lastMs > limitMs && this.#othersMoved(flow)) {
        flow.queriedMs = nowMs;
        effects.push({ kind: "query", flow });
      }
    if (this.#flows.length >= this.have.shape.stripes) return;
    if (this.#help.isOpen && nowMs - this.#help.atMs > askPauseMsMax) this.#help.isOpen = false;
    if (this.#isSomeStripeDone()) this.#seekHelp(nowMs, effects);
    for (let stripe = 0; stripe < this.have.shape.stripes; stripe += 1)
      if (!this.#flows.some((flow) => flow.stripe === stripe) && this.have.gap(stripe, 0))
        this.#ask(stripe, "none", undefined, nowMs, effects);
  }

  /** A peer that waits itself is not to blame: the machine below the slow one asks, not all that hang from it. */
  #answered(event: Extract<FetchEvent<P>, { kind: "answered" }>, nowMs: number, effects: FetchEffect<P>[]): void {
    const { flow, isWaiting, count } = event;
    if (!this.#flows.includes(flow) || flow.queriedMs < 0) return;
    flow.queriedMs = -1;
    flow.lastMs = nowMs;
    flow.excuses += 1;
    // One that has far fewer units than this machine is slow in everything: it waits for itself.
    const isBehind = this.have.count >= 2 * this.have.shape.stripes && count < behindShare * this.have.count;
    if (!isWaiting || isBehind) this.#ask(flow.stripe, "slow", flow.peer, nowMs, effects);
    else if (flow.excuses > excusesMax) this.#ask(flow.stripe, "none", flow.peer, nowMs, effects);
  }

  /** How long a flow may bring nothing before it counts as slow. */
  #limitMs(nowMs: number): number {
    // FE4
    if (this.#received < 2 * this.have.shape.stripes) return firstMsMax;
    const paceMs = ((nowMs - this.#firstMs) * this.have.shape.stripes) / this.#received;
    // The best so far: a machine that waits for its last stripe must not take its own waiting for the usual pace.
    this.#paceMs = Math.min(this.#paceMs, paceMs);
    return Math.max(slowMsMin, slowTimes * Math.min(paceMs, this.#paceMs));
  }

  #isSomeStripeDone(): boolean {
    for (let stripe = 0; stripe < this.have.shape.stripes; stripe += 1) if (!this.have.gap(stripe, 0)) return true;
    return false;
  }

  /** Where nothing moves at all, the parents' parents wait too: another parent would not help. */
  #othersMoved(slow: Flow<P>): boolean {
    return this.#flows.length < this.have.shape.stripes || this.#lastMs > slow.lastMs + slowMsMin;
  }

  #slowest(stripe: number, instead: P): Flow<P> | undefined {
    return this.#flows
      .filter((flow) => flow.stripe === stripe && flow.peer !== instead)
      .reduce<Flow<P> | undefined>((least, flow) => (least && least.lastMs <= flow.lastMs ? least : flow), undefined);
  }

  #most(stripe: number | undefined): Flow<P> | undefined {
    let most: Flow<P> | undefined;
    for (const flow of this.#flows)
      if ((stripe === undefined || flow.stripe === stripe) && flow.end - flow.next > (most ? most.end - most.next : 0))
        most = flow;
    return most;
  }

  #remove(flow: Flow<P>): boolean {
    const at = this.#flows.indexOf(flow);
    if (at < 0) return false;
    this.#flows.splice(at, 1);
    return true;
  }
}
