/**
 * What a machine sends to others, and when: flows take turns, unit by unit, within the machine's limits. Pacing is what
 * decides how well the uplinks of a fleet are used: a flow that runs ahead starves the branches below the others.
 *
 * UP1 A unit is sent only if this machine has it, verified.
 * UP2 A flow of a more urgent class goes first; within a class flows take turns.
 * UP3 No more than `windowUnits` of a flow are on their way: a child that does not read holds up itself alone.
 * UP4 Flows are bounded, in all and for each peer; more are refused by name.
 */
import { Bucket } from "./bucket.ts";
import { stripeOf, positionOf, stripeLength, unitAt, type Have } from "./units.ts";

/** How far away the receiver is: each distance has a limit of its own, below the limit of the host. */
export type Distance = "rack" | "region" | "world";
/** A rollback goes before a release, and a release before what is fetched ahead. */
export const priorities = { rollback: 0, release: 1, ahead: 2 } as const;
export type Priority = (typeof priorities)[keyof typeof priorities];

/** Bytes per second; Infinity: no limit. */
export type Caps = {
  /** Everything that this machine sends. */
  readonly host: number;
  /** What leaves its rack. */
  readonly rack: number;
  /** What leaves its region. */
  readonly wan: number;
};

export type UploadFlow<P> = {
  readonly peer: P;
  readonly id: number;
  readonly content: string;
  readonly stripe: number;
  readonly priority: Priority;
  readonly distance: Distance;
  next: number;
  end: number;
  onTheWay: number;
  isQueued: boolean;
};

export type UploadEvent<P> =
  | { readonly kind: "serve"; readonly content: string; readonly have: Have; readonly unitBytes: number }
  | { readonly kind: "withdraw"; readonly content: string }
  | {
      readonly kind: "subscribe";
      readonly peer: P;
      readonly id: number;
      readonly content: string;
      readonly stripe: number;
      readonly from: number;
      readonly to: number;
      readonly priority: Priority;
      readonly distance: Distance;
    }
  | { readonly kind: "shorten"; readonly peer: P; readonly id: number; readonly to: number }
  | { readonly kind: "left"; readonly peer: P }
  /** The peer wonders why a flow brings nothing. */
  | { readonly kind: "query"; readonly peer: P; readonly id: number }
  /** This machine got a unit: flows that wait for it go on. */
  | { readonly kind: "arrived"; readonly content: string; readonly unit: number }
  /** What was sent has left this machine. */
  | { readonly kind: "drained"; readonly flow: UploadFlow<P> }
  | { readonly kind: "caps"; readonly caps: Caps }
  | { readonly kind: "wake" };

export type UploadEffect<P> =
  | { readonly kind: "send"; readonly flow: UploadFlow<P>; readonly unit: number }
  | {
      readonly kind: "answer";
      readonly peer: P;
      readonly id: number;
      readonly isWaiting: boolean;
      readonly count: number;
    }
  | { readonly kind: "refused"; readonly peer: P; readonly id: number; readonly why: string }
  | { readonly kind: "wake"; readonly atMs: number };

type Served<P> = { readonly have: Have; readonly unitBytes: number; readonly waiting: Set<UploadFlow<P>>[] };

export type UploadLimits = {
  readonly flowsMax: number;
  readonly flowsPerPeerMax: number;
  readonly windowUnits: number;
};
export const uploadLimits: UploadLimits = { flowsMax: 4_096, flowsPerPeerMax: 64, windowUnits: 2 };

/** Saved up while nothing was to send; more would be a burst that fills the queues of the network. */
const burstMs = 50;

export class Uploads<P> {
  readonly #limits: UploadLimits;
  readonly #served = new Map<string, Served<P>>();
  readonly #peers = new Map<P, Map<number, UploadFlow<P>>>();
  readonly #ready: UploadFlow<P>[][] = [[], [], []];
  readonly #host: Bucket;
  readonly #rack: Bucket;
  readonly #wan: Bucket;
  #flows = 0;
  #wakeAtMs = Infinity;

  constructor(caps: Caps, nowMs: number, limits: UploadLimits = uploadLimits) {
    this.#limits = limits;
    this.#host = new Bucket(caps.host, burstMs, nowMs);
    this.#rack = new Bucket(caps.rack, burstMs, nowMs);
    this.#wan = new Bucket(caps.wan, burstMs, nowMs);
  }

  get flows(): number {
    return this.#flows;
  }

  step(event: UploadEvent<P>, nowMs: number, effects: UploadEffect<P>[]): void {
    switch (event.kind) {
      case "serve": {
        const waiting = Array.from({ length: event.have.shape.stripes }, () => new Set<UploadFlow<P>>());
        if (!this.#served.has(event.content))
          this.#served.set(event.content, { have: event.have, unitBytes: event.unitBytes, waiting });
        break;
      }
      case "withdraw":
        this.#served.delete(event.content);
        for (const flows of this.#peers.values())
          for (const flow of flows.values()) if (flow.content === event.content) this.#end(flow);
        break;
      case "subscribe":
        this.#subscribe(event, effects);
        break;
      case "shorten": {
        const flow = this.#peers.get(event.peer)?.get(event.id);
        if (flow && event.to < flow.end) flow.end = event.to;
        if (flow && flow.next >= flow.end) this.#end(flow);
        break;
      }
      case "left":
        for (const flow of this.#peers.get(event.peer)?.values() ?? []) this.#end(flow);
        break;
      case "query": {
        const flow = this.#peers.get(event.peer)?.get(event.id);
        const { peer, id } = event;
        const count = this.#served.get(flow?.content ?? "")?.have.count ?? 0;
        if (flow) effects.push({ kind: "answer", peer, id, isWaiting: this.#isWaiting(flow), count });
        else effects.push({ kind: "refused", peer, id, why: "there is no such flow" });
        break;
      }
      case "arrived":
        this.#arrived(event);
        break;
      case "drained":
        event.flow.onTheWay -= 1;
        this.#queue(event.flow);
        break;
      case "caps":
        this.#host.set(event.caps.host, nowMs);
        this.#rack.set(event.caps.rack, nowMs);
        this.#wan.set(event.caps.wan, nowMs);
        this.#wakeAtMs = Infinity;
        break;
      case "wake":
        if (nowMs >= this.#wakeAtMs) this.#wakeAtMs = Infinity;
    }
    this.#pump(nowMs, effects);
  }

  #subscribe(asked: Extract<UploadEvent<P>, { kind: "subscribe" }>, effects: UploadEffect<P>[]): void {
    const { peer, id, content, stripe, from, to, priority, distance } = asked;
    const served = this.#served.get(content);
    const flows = this.#peers.get(peer) ?? new Map<number, UploadFlow<P>>();
    const why = refusal(asked, served, this.#flows, flows, this.#limits);
    if (why !== undefined) {
      effects.push({ kind: "refused", peer, id, why });
      return;
    }
    const flow = {
      peer,
      id,
      content,
      stripe,
      priority,
      distance,
      next: from,
      end: to,
      onTheWay: 0,
      isQueued: false,
    } satisfies UploadFlow<P>;
    flows.set(id, flow);
    this.#peers.set(peer, flows);
    this.#flows += 1;
    this.#queue(flow);
  }

  #arrived({ content, unit }: { readonly content: string; readonly unit: number }): void {
    const served = this.#served.get(content);
    if (!served) return;
    const { shape } = served.have;
    const waiting = served.waiting[stripeOf(shape, unit)];
    if (!waiting || waiting.size === 0) return;
    const position = positionOf(shape, unit);
    for (const flow of waiting)
      if (flow.next === position) {
        waiting.delete(flow);
        this.#queue(flow);
      }
  }

  /** Into the turn, if it can send something; else among those that wait for a unit or for their window. */
  #queue(flow: UploadFlow<P>): void {
    if (flow.isQueued || flow.onTheWay >= this.#limits.windowUnits) return;
    if (flow.next >= flow.end) {
      if (flow.onTheWay === 0) this.#end(flow);
      return;
    }
    const served = this.#served.get(flow.content);
    if (!served) return;
    if (served.have.has(unitAt(served.have.shape, flow.stripe, flow.next))) {
      flow.isQueued = true;
      this.#ready[flow.priority]?.push(flow);
    } else served.waiting[flow.stripe]?.add(flow);
  }

  #isWaiting(flow: UploadFlow<P>): boolean {
    const have = this.#served.get(flow.content)?.have;
    return flow.onTheWay === 0 && have !== undefined && !have.has(unitAt(have.shape, flow.stripe, flow.next));
  }

  #pump(nowMs: number, effects: UploadEffect<P>[]): void {
    for (const ready of this.#ready)
      for (let looked = 0; looked < ready.length;) {
        const waitMs = this.#host.waitMs(nowMs);
        if (waitMs > 0) return this.#wake(nowMs + waitMs, effects);
        const flow = ready.shift();
        if (!flow) break;
        const farMs = this.#farWaitMs(flow, nowMs);
        if (farMs > 0) {
          // Its link is full; others may go. It keeps its turn at the end of the round.
          ready.push(flow);
          looked += 1;
          this.#wake(nowMs + farMs, effects);
          continue;
        }
        this.#send(flow, effects);
        looked = 0;
      }
  }

  #send(flow: UploadFlow<P>, effects: UploadEffect<P>[]): void {
    flow.isQueued = false;
    const served = this.#served.get(flow.content);
    if (!served || flow.next >= flow.end) return this.#queue(flow);
    const unit = unitAt(served.have.shape, flow.stripe, flow.next);
    flow.next += 1;
    flow.onTheWay += 1;
    this.#host.take(served.unitBytes);
    if (flow.distance !== "rack") this.#rack.take(served.unitBytes);
    if (flow.distance === "world") this.#wan.take(served.unitBytes);
    effects.push({ kind: "send", flow, unit });
    this.#queue(flow);
  }

  #farWaitMs({ distance }: UploadFlow<P>, nowMs: number): number {
    if (distance === "rack") return 0;
    const rackMs = this.#rack.waitMs(nowMs);
    return distance === "region" ? rackMs : Math.max(rackMs, this.#wan.waitMs(nowMs));
  }

  #wake(atMs: number, effects: UploadEffect<P>[]): void {
    if (atMs >= this.#wakeAtMs || atMs === Infinity) return;
    this.#wakeAtMs = atMs;
    effects.push({ kind: "wake", atMs });
  }

  #end(flow: UploadFlow<P>): void {
    const flows = this.#peers.get(flow.peer);
    if (!flows?.delete(flow.id)) return;
    if (flows.size === 0) this.#peers.delete(flow.peer);
    this.#flows -= 1;
    flow.end = flow.next;
    this.#served.get(flow.content)?.waiting[flow.stripe]?.delete(flow);
  }
}

function refusal<P>(
  { id, stripe, from, to, content }: Extract<UploadEvent<P>, { kind: "subscribe" }>,
  served: Served<P> | undefined,
  all: number,
  ofPeer: ReadonlyMap<number, unknown>,
  { flowsMax, flowsPerPeerMax }: UploadLimits,
): string | undefined {
  if (!served) return `${content.slice(0, 12)} is not served here`;
  const { shape } = served.have;
  if (!(stripe >= 0 && stripe < shape.stripes)) return `there is no stripe ${stripe}`;
  if (!(from >= 0 && from < to && to <= stripeLength(shape, stripe))) return `positions ${from} to ${to} are outside`;
  if (ofPeer.has(id)) return `flow ${id} is there already`;
  if (all >= flowsMax) return `${flowsMax} flows are as many as this machine serves`;
  return ofPeer.size >= flowsPerPeerMax ? `${flowsPerPeerMax} flows are as many as one peer may have` : undefined;
}
