/**
 * One region of a simulated broadcast: an origin that the wide network fills, a tracker, and machines. Tracker,
 * fetchers and pacing are those of the product (#swarm); here are only time, links, crashes and lies.
 *
 * Modelled: uplinks and downlinks as queues of whole units, latency, detection of dead peers. Not modelled: the rest of
 * the network (every rack has the bandwidth it needs), slow start, loss, disks, the cost of encryption.
 */
import { assert } from "#base/assert.ts";
import { Random } from "#base/random.ts";
import { Fetcher, type FetchEffect, type FetchEvent, type Why } from "#swarm/fetcher.ts";
import { originId, Tracker, type Member, type TrackerEffect, type TrackerEvent } from "#swarm/tracker.ts";
import { Have, shapeOf, type Shape } from "#swarm/units.ts";
import { priorities, Uploads, type UploadEffect, type UploadEvent, type UploadFlow } from "#swarm/uploads.ts";
import { Wheel, type Timed } from "./wheel.ts";

export type RegionPlan = {
  readonly seed: string;
  readonly machines: number;
  readonly rackSize: number;
  readonly sizeBytes: number;
  readonly unitBytes: number;
  /** Bytes per second, of a machine, each way. */
  readonly rate: number;
  readonly originRate: number;
  readonly wanRate: number;
  /** When nothing comes over the wide network. */
  readonly cut?: { readonly fromMs: number; readonly toMs: number } | undefined;
  readonly slowShare: number;
  readonly slowTimes: number;
  readonly crashShare: number;
  readonly downMs: number;
  readonly detectMs: number;
  readonly liarShare: number;
  readonly untilMs: number;
};

type MachineKind = "healthy" | "slow" | "crashes" | "liar";

export type RegionResult = {
  /** Milliseconds until complete; Infinity: not within the time. */
  readonly doneMs: readonly number[];
  readonly kinds: readonly MachineKind[];
  readonly trackerMessages: number;
  readonly originBytes: number;
  readonly repeatedUnits: number;
  readonly wrongUnits: number;
  readonly banned: number;
  readonly events: number;
  readonly asks: Readonly<Record<Why, number>>;
};

type Event = Timed &
  (
    | {
        readonly kind: "unit";
        readonly to: number;
        readonly flow: UploadFlow<number>;
        readonly unit: number;
        readonly life: number;
        readonly fromLife: number;
        isReceived: boolean;
      }
    | { readonly kind: "wake"; readonly on: number }
    | { readonly kind: "tick"; readonly on: number }
    | { readonly kind: "down" | "up"; readonly on: number }
    | { readonly kind: "wan"; readonly unit: number }
    | { readonly kind: "toPeer"; readonly to: number; readonly event: UploadEvent<number> }
    | { readonly kind: "toTracker"; readonly event: TrackerEvent }
    | { readonly kind: "toMachine"; readonly to: number; readonly event: FetchEvent<number>; readonly life: number }
  );

type Machine = {
  readonly have: Have;
  fetcher: Fetcher<number>;
  uploads: Uploads<number>;
  readonly kind: MachineKind;
  readonly up: number;
  readonly down: number;
  upFreeMs: number;
  downFreeMs: number;
  isDown: boolean;
  life: number;
};

const content = "content";
const tickMs = 1_000;
const hopMs = 0.5;
const trackerMs = 5;

export class Region {
  readonly #plan: RegionPlan;
  readonly #shape: Shape;
  readonly #wheel = new Wheel<Event>();
  readonly #random: Random;
  readonly #tracker: Tracker;
  readonly #machines: Machine[] = [];
  readonly #doneMs: number[];
  readonly #asks: Record<Why, number> = { gone: 0, bad: 0, slow: 0, help: 0, none: 0 };
  #left: number;
  #trackerMessages = 0;
  #originUnits = 0;
  #repeated = 0;
  #wrong = 0;
  #banned = 0;
  #events = 0;

  constructor(plan: RegionPlan) {
    this.#plan = plan;
    this.#shape = shapeOf(Math.ceil(plan.sizeBytes / plan.unitBytes));
    this.#random = new Random(plan.seed);
    const { stripes } = this.#shape;
    const originSlots = Math.max(stripes, Math.floor((plan.originRate / plan.rate) * stripes));
    this.#tracker = new Tracker(stripes, originSlots, this.#random.fork("tracker"));
    for (let id = 0; id <= plan.machines; id += 1) this.#machines.push(this.#machine(id));
    this.#doneMs = Array.from({ length: plan.machines + 1 }, () => Infinity);
    // A liar that was banned is fed by no one.
    this.#left = this.#machines.filter(({ kind }, id) => kind !== "liar" && id !== originId).length;
  }

  run(): RegionResult {
    this.#begin();
    this.#wheel.run(
      this.#plan.untilMs,
      (event) => {
        this.#events += 1;
        this.#fire(event);
      },
      () => this.#left === 0,
    );
    return {
      doneMs: this.#doneMs.slice(1),
      kinds: this.#machines.slice(1).map(({ kind }) => kind),
      trackerMessages: this.#trackerMessages,
      originBytes: this.#originUnits * this.#plan.unitBytes,
      repeatedUnits: this.#repeated,
      wrongUnits: this.#wrong,
      banned: this.#banned,
      events: this.#events,
      asks: this.#asks,
    };
  }

  #machine(id: number): Machine {
    const { rate, originRate, slowShare, slowTimes, crashShare, liarShare } = this.#plan;
    const draw = this.#random.fraction();
    const kind: MachineKind =
      id === originId || draw >= slowShare + crashShare + liarShare
        ? "healthy"
        : draw < slowShare
          ? "slow"
          : draw < slowShare + crashShare
            ? "crashes"
            : "liar";
    const up = id === originId ? originRate : kind === "slow" ? rate / slowTimes : rate;
    const have = new Have(this.#shape);
    return {
      have,
      fetcher: new Fetcher<number>(have),
      uploads: this.#uploadsOf(have, id === originId ? originRate : rate),
      kind,
      up,
      down: up,
      upFreeMs: 0,
      downFreeMs: 0,
      isDown: false,
      life: 0,
    };
  }

  #uploadsOf(have: Have, rate: number): Uploads<number> {
    const uploads = new Uploads<number>({ host: rate, rack: Infinity, wan: Infinity }, this.#wheel.nowMs);
    uploads.step({ kind: "serve", content, have, unitBytes: this.#plan.unitBytes }, this.#wheel.nowMs, []);
    return uploads;
  }

  #begin(): void {
    const { machines, rackSize, wanRate, unitBytes, cut, downMs, untilMs } = this.#plan;
    let atMs = 0;
    for (let unit = 0; unit < this.#shape.units; unit += 1) {
      atMs += (unitBytes / wanRate) * 1_000;
      if (cut && atMs >= cut.fromMs && atMs < cut.toMs) atMs = cut.toMs;
      this.#wheel.at(atMs, { kind: "wan", unit });
    }
    const members = new Map<number, Member>();
    for (let id = 1; id <= machines; id += 1) {
      members.set(id, { rack: `r${Math.floor((id - 1) / rackSize)}`, slots: this.#shape.stripes });
      this.#wheel.at(this.#random.fraction() * tickMs, { kind: "tick", on: id });
      if (this.#machines[id]?.kind !== "crashes") continue;
      const downAtMs = this.#random.fraction() * ((this.#plan.sizeBytes / this.#plan.rate) * 900);
      this.#wheel.at(downAtMs, { kind: "down", on: id });
      if (downAtMs + downMs < untilMs) this.#wheel.at(downAtMs + downMs, { kind: "up", on: id });
    }
    this.#trackerMessages += machines; // each announces itself
    this.#toTracker({ kind: "plan", members });
  }

  #fire(event: Event): void {
    const nowMs = this.#wheel.nowMs;
    switch (event.kind) {
      case "unit":
        return event.isReceived ? this.#arrive(event) : this.#cross(event);
      case "wake":
        return this.#upload(event.on, { kind: "wake" });
      case "tick": {
        const machine = this.#get(event.on);
        if (this.#doneMs[event.on] === Infinity) this.#wheel.at(nowMs + tickMs, event);
        if (!machine.isDown) this.#fetch(event.on, { kind: "tick" });
        return;
      }
      case "down":
        return this.#down(event.on);
      case "up":
        return this.#up(event.on);
      case "wan":
        this.#get(originId).have.add(event.unit);
        return this.#upload(originId, { kind: "arrived", content, unit: event.unit });
      case "toPeer":
        if (!this.#get(event.to).isDown) this.#upload(event.to, event.event);
        return;
      case "toTracker":
        return this.#toTracker(event.event);
      case "toMachine": {
        const machine = this.#get(event.to);
        if (!machine.isDown && machine.life === event.life) this.#fetch(event.to, event.event);
      }
    }
  }

  #arrive(event: Extract<Event, { kind: "unit" }>): void {
    const { to, flow: sent, unit } = event;
    const from = this.#senderOf(sent);
    const sender = this.#get(from);
    if (sender.life === event.fromLife && !sender.isDown) this.#upload(from, { kind: "drained", flow: sent });
    if (from === originId && sent.next >= sent.end && sent.onTheWay === 0)
      this.#toTracker({ kind: "fed", id: to, stripe: sent.stripe });
    const machine = this.#get(to);
    if (machine.isDown || machine.life !== event.life) return;
    const flow = machine.fetcher.flows.find(({ id, peer }) => id === sent.id && peer === from);
    if (!flow || machine.have.has(unit)) this.#repeated += 1;
    if (!flow) return;
    if (sender.kind === "liar") {
      this.#wrong += 1;
      return this.#fetch(to, { kind: "bad", flow });
    }
    assert(sender.have.has(unit), "a unit was sent by a machine that does not have it");
    this.#fetch(to, { kind: "unit", flow, unit });
    this.#upload(to, { kind: "arrived", content, unit });
  }

  readonly #senders = new WeakMap<UploadFlow<number>, number>();
  #senderOf(flow: UploadFlow<number>): number {
    return this.#senders.get(flow) ?? originId;
  }

  #down(id: number): void {
    const machine = this.#get(id);
    if (this.#doneMs[id] !== Infinity) return;
    machine.isDown = true;
    machine.life += 1;
    const atMs = this.#wheel.nowMs + this.#plan.detectMs;
    // The peers at both ends find out, and so does the tracker, whose stream to it broke.
    for (const [other, each] of this.#machines.entries()) {
      if (each.fetcher.flows.some(({ peer }) => peer === id))
        this.#wheel.at(atMs, { kind: "toMachine", to: other, event: { kind: "gone", peer: id }, life: each.life });
    }
    for (const { peer } of machine.fetcher.flows)
      this.#wheel.at(atMs, { kind: "toPeer", to: peer, event: { kind: "left", peer: id } });
    this.#wheel.at(atMs, { kind: "toTracker", event: { kind: "left", id } });
  }

  #up(id: number): void {
    const machine = this.#get(id);
    if (!machine.isDown) return;
    machine.isDown = false;
    machine.life += 1;
    machine.fetcher = new Fetcher<number>(machine.have);
    machine.uploads = this.#uploadsOf(machine.have, this.#plan.rate);
    const rack = `r${Math.floor((id - 1) / this.#plan.rackSize)}`;
    this.#trackerMessages += 1;
    this.#wheel.at(this.#wheel.nowMs + trackerMs, {
      kind: "toTracker",
      event: { kind: "join", id, member: { rack, slots: this.#shape.stripes } },
    });
  }

  #upload(on: number, event: UploadEvent<number>): void {
    const effects: UploadEffect<number>[] = [];
    const nowMs = this.#wheel.nowMs;
    const machine = this.#get(on);
    machine.uploads.step(event, nowMs, effects);
    for (const effect of effects) {
      if (effect.kind === "wake") this.#wheel.at(effect.atMs, { kind: "wake", on });
      else if (effect.kind === "send") this.#send(on, machine, effect.flow, effect.unit);
      else {
        const child = this.#get(effect.peer);
        const flow = child.fetcher.flows.find(({ id, peer }) => id === effect.id && peer === on);
        if (flow)
          this.#wheel.at(nowMs + hopMs, {
            kind: "toMachine",
            to: effect.peer,
            event:
              effect.kind === "refused"
                ? { kind: "refused", flow }
                : { kind: "answered", flow, isWaiting: effect.isWaiting, count: effect.count },
            life: child.life,
          });
      }
    }
  }

  #send(from: number, sender: Machine, flow: UploadFlow<number>, unit: number): void {
    const { unitBytes } = this.#plan;
    if (from === originId) this.#originUnits += 1;
    else this.#senders.set(flow, from);
    const receiver = this.#get(flow.peer);
    sender.upFreeMs = Math.max(this.#wheel.nowMs, sender.upFreeMs) + (unitBytes / sender.up) * 1_000;
    this.#wheel.at(sender.upFreeMs + hopMs, {
      kind: "unit",
      to: flow.peer,
      flow,
      unit,
      life: receiver.life,
      fromLife: sender.life,
      isReceived: false,
    });
  }

  /** What has crossed the sender's uplink crosses the receiver's downlink next, in the order of its arrival there. */
  #cross(event: Extract<Event, { kind: "unit" }>): void {
    const receiver = this.#get(event.to);
    const takesMs = (this.#plan.unitBytes / receiver.down) * 1_000;
    receiver.downFreeMs = Math.max(this.#wheel.nowMs, receiver.downFreeMs + takesMs);
    event.isReceived = true;
    if (receiver.downFreeMs <= this.#wheel.nowMs) this.#arrive(event);
    else this.#wheel.at(receiver.downFreeMs, event);
  }

  #fetch(on: number, event: FetchEvent<number>): void {
    const effects: FetchEffect<number>[] = [];
    const nowMs = this.#wheel.nowMs;
    this.#get(on).fetcher.step(event, nowMs, effects);
    for (const effect of effects) this.#carryOut(on, effect, nowMs);
  }

  #carryOut(on: number, effect: FetchEffect<number>, nowMs: number): void {
    switch (effect.kind) {
      case "subscribe": {
        const { id, peer, stripe, next: from, end: to } = effect.flow;
        const asked = { kind: "subscribe", peer: on, id, content, stripe, from, to } as const;
        this.#wheel.at(nowMs + hopMs, {
          kind: "toPeer",
          to: peer,
          event: { ...asked, priority: priorities.release, distance: "rack" },
        });
        // A peer that is down does not answer; that is found out like a peer that went down.
        if (this.#get(peer).isDown)
          this.#wheel.at(nowMs + this.#plan.detectMs, {
            kind: "toMachine",
            to: on,
            event: { kind: "gone", peer },
            life: this.#get(on).life,
          });
        return;
      }
      case "shorten": {
        const { id, peer, end: to } = effect.flow;
        this.#wheel.at(nowMs + hopMs, { kind: "toPeer", to: peer, event: { kind: "shorten", peer: on, id, to } });
        return;
      }
      case "query": {
        const { id, peer } = effect.flow;
        this.#wheel.at(nowMs + hopMs, { kind: "toPeer", to: peer, event: { kind: "query", peer: on, id } });
        return;
      }
      case "drop":
        this.#wheel.at(nowMs + hopMs, { kind: "toPeer", to: effect.peer, event: { kind: "left", peer: on } });
        return;
      case "ask":
        this.#trackerMessages += 1;
        this.#asks[effect.why] += 1;
        this.#wheel.at(nowMs + trackerMs, { kind: "toTracker", event: { ...effect, from: on } });
        return;
      case "complete":
        assert(this.#get(on).have.isComplete, "a machine said that it is complete, and is not");
        this.#trackerMessages += 1;
        this.#doneMs[on] = nowMs;
        if (this.#get(on).kind !== "liar") this.#left -= 1;
        this.#wheel.at(nowMs + trackerMs, { kind: "toTracker", event: { kind: "complete", id: on } });
    }
  }

  #toTracker(event: TrackerEvent): void {
    const effects: TrackerEffect[] = [];
    this.#tracker.step(event, effects);
    for (const effect of effects) {
      if (effect.kind === "banned") {
        this.#banned += 1;
        assert(this.#get(effect.id).kind === "liar", "an honest machine was banned");
        continue;
      }
      this.#trackerMessages += 1;
      const told: FetchEvent<number> =
        effect.kind === "parents" ? { kind: "planned", parents: effect.parents } : { ...effect, kind: "given" };
      const { to } = effect;
      this.#wheel.at(this.#wheel.nowMs + trackerMs, { kind: "toMachine", to, event: told, life: this.#get(to).life });
    }
  }

  #get(id: number): Machine {
    const machine = this.#machines[id];
    assert(machine, "no such machine");
    return machine;
  }
}
