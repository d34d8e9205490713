/**
 * The node's part: a tracker for each release that its machines fetch, and tickets for those that are to talk to each
 * other. Soft: after a restart machines keep their parents, and those that ask join again.
 *
 * SD1 Trackers are kept apart by tenant; a tenant has a bounded number of them.
 * SD2 A machine never hears of one in another region: what goes from region to region goes through nodes.
 */
import type { Clock } from "#base/clock.ts";
import { Fault } from "#base/fault.ts";
import type { Random } from "#base/random.ts";
import { originId, Tracker, type TrackerEffect, type TrackerEvent } from "#swarm/tracker.ts";
import type { Why } from "#swarm/fetcher.ts";
import { shapeOf } from "#swarm/units.ts";
import { priorities, type Caps, type Priority } from "#swarm/uploads.ts";
import type { FleetCaps } from "./caps.ts";
import type { SwarmAnswer, SwarmQuestion } from "./agent-swarm.ts";
import { Ring } from "./neighbours.ts";
import { lendRacks, type Spreading } from "./lending.ts";
import { epochMs, secretOf, ticketOf, type Ticket } from "./tickets.ts";

type Known = { readonly machine: string; address: string; rack: string };

type Meet = Extract<SwarmQuestion, { kind: "meet" }>;

type Swarm = {
  readonly tracker: Tracker;
  readonly stripes: number;
  /** The most urgent that was asked of the node. */
  priority: Priority;
  readonly ids: Map<string, number>;
  readonly members: (Known | undefined)[];
  /** Those that came before the plan; undefined once it is made. */
  gathering: Map<number, (parents: readonly (number | undefined)[]) => void> | undefined;
  usedMs: number;
  messages: number;
};

export type SwarmDeskPorts = {
  readonly clock: Clock;
  readonly random: Random;
  /** Base64, the same on all nodes. */
  readonly clusterKey: () => Promise<string>;
  readonly caps: (tenant: string) => Promise<FleetCaps>;
  /** Where a machine is; undefined: it is not known here. */
  readonly regionOf: (tenant: string, machine: string) => string | undefined;
  /** How many nodes there are in this node's region: each lends its part of a link. */
  readonly nodes: () => number;
};

type Lent = { readonly atMs: number; readonly byMachine: ReadonlyMap<string, number> };

type Meeting = { readonly ring: Ring; readonly known: Map<string, Known & { seenMs: number }> };

/** Machines hear of a goal at the same moment; those that join within this are planned for together. */
const gatherMs = 400;
const swarmsMax = 50;
const machinesMax = 20_000;
const idleMs = 30 * 60_000;
/** Machines meet every ten minutes or so; those that do not are no one's neighbours any more. */
const metMs = 45 * 60_000;
/** How many children of a whole share the node feeds at once. */
const originShares = 2;
const originName = "";
/** Every report asks what it may send. */
const lentForMs = 1_000;

export class SwarmDesk {
  readonly #ports: SwarmDeskPorts;
  readonly #swarms = new Map<string, Swarm>();
  readonly #meetings = new Map<string, Meeting>();
  readonly #lent = new Map<string, Lent>();
  #clusterKey = "";

  constructor(ports: SwarmDeskPorts) {
    this.#ports = ports;
  }

  async answer(tenant: string, machine: string, question: SwarmQuestion): Promise<SwarmAnswer> {
    this.#clusterKey ||= await this.#ports.clusterKey();
    const parents =
      question.kind === "meet"
        ? this.#neighbours(tenant, machine, question)
        : await this.#parents(tenant, machine, question);
    const epoch = Math.floor(this.#ports.clock.wallMs() / epochMs);
    const secret = secretOf(this.#clusterKey, tenant, machine, epoch);
    const caps = await this.capsOf(tenant, machine);
    if (question.kind === "meet") return { secret, origin: originName, isBanned: false, parents, caps };
    const swarm = this.#swarms.get(this.#keyOf(tenant, machine, question.content));
    const isBanned = swarm?.tracker.isBanned(swarm.ids.get(machine) ?? originId) ?? false;
    return { secret, origin: originName, isBanned, parents, caps };
  }

  /** What a machine may send to others now: its own limits, and its part of what its rack may send. */
  async capsOf(tenant: string, machine: string): Promise<Caps> {
    const { host, rack, wan, rackLink } = await this.#ports.caps(tenant);
    if (rackLink === Infinity) return { host, rack, wan };
    const nowMs = this.#ports.clock.monotonicMs();
    let lent = this.#lent.get(tenant);
    if (!lent || nowMs - lent.atMs > lentForMs) {
      lent = {
        atMs: nowMs,
        byMachine: lendRacks(rackLink / Math.max(1, this.#ports.nodes()), this.#spreading(tenant)),
      };
      this.#lent.set(tenant, lent);
    }
    return { host, rack: Math.min(rack, lent.byMachine.get(machine) ?? Infinity), wan };
  }

  /** The node has sent a machine what it asked for of a stripe. */
  fed(tenant: string, machine: string, content: string, stripe: number): void {
    const swarm = this.#swarms.get(this.#keyOf(tenant, machine, content));
    const id = swarm?.ids.get(machine);
    if (swarm && id !== undefined) this.#step(swarm, { kind: "fed", id, stripe });
  }

  /** The machine's stream has ended, or has come back: no other waits for one that is away. */
  isHere(tenant: string, machine: string, isHere: boolean): void {
    for (const [key, swarm] of this.#swarms) {
      const id = swarm.ids.get(machine);
      if (id !== undefined && tenantIn(key) === tenant && !swarm.gathering)
        this.#step(swarm, { kind: isHere ? "here" : "left", id });
    }
  }

  /** How urgent a release is, as machines say when they ask this node for its units. */
  heard(tenant: string, region: string | undefined, content: string, priority: Priority): void {
    const swarm = this.#swarms.get(keyOf(tenant, region, content));
    if (swarm && priority < swarm.priority) swarm.priority = priority;
  }

  #spreading(tenant: string): readonly Spreading[] {
    return [...this.#swarms]
      .filter(([key]) => tenantIn(key) === tenant)
      .map(([, { tracker, members, priority }]) => {
        const across = tracker.across();
        return {
          priority,
          members: members.flatMap((known, id) =>
            known ? [{ machine: known.machine, rack: known.rack, across: across.get(id) ?? 0 }] : [],
          ),
        };
      });
  }

  #keyOf(tenant: string, machine: string, content: string): string {
    return keyOf(tenant, this.#ports.regionOf(tenant, machine), content);
  }

  /** For metrics and people. */
  get open(): number {
    return this.#swarms.size;
  }

  #neighbours(tenant: string, machine: string, { address, rack }: Meet): readonly Ticket[] {
    const nowMs = this.#ports.clock.monotonicMs();
    const meeting: Meeting = this.#meetings.get(tenant) ?? { ring: new Ring(), known: new Map() };
    this.#meetings.set(tenant, meeting);
    const { ring, known } = meeting;
    // The oldest first: each that meets moves to the end.
    known.delete(machine);
    for (const [name, { seenMs }] of known) {
      if (nowMs - seenMs <= metMs && known.size < machinesMax) break;
      known.delete(name);
      ring.remove(name);
    }
    ring.add(machine);
    known.set(machine, { machine, address, rack, seenMs: nowMs });
    return ring.neighboursOf(machine).flatMap((name) => {
      const to = known.get(name);
      return to ? [this.#ticketTo(tenant, { machine, rack }, to)] : [];
    });
  }

  async #parents(
    tenant: string,
    machine: string,
    question: Exclude<SwarmQuestion, Meet>,
  ): Promise<readonly (Ticket | null)[]> {
    const key = this.#keyOf(tenant, machine, question.content);
    const known = this.#swarms.get(key);
    if (question.kind === "join") {
      const swarm = known ?? this.#open(tenant, key, question.units);
      const parents = await this.#join(swarm, machine, question);
      return parents.map((id) => this.#ticket(tenant, machine, swarm, id));
    }
    const from = known?.ids.get(machine);
    if (!known || from === undefined) throw new Fault("not-found", "find swarm", { content: question.content });
    known.usedMs = this.#ports.clock.monotonicMs();
    const effects = this.#step(known, eventOf(known, from, question));
    const given = effects.find((effect) => effect.kind === "given");
    return given ? [this.#ticket(tenant, machine, known, given.peer)] : [];
  }

  async #join(
    swarm: Swarm,
    machine: string,
    { address, rack }: Extract<SwarmQuestion, { kind: "join" }>,
  ): Promise<readonly (number | undefined)[]> {
    swarm.usedMs = this.#ports.clock.monotonicMs();
    const id = swarm.ids.get(machine) ?? swarm.members.length;
    if (id >= machinesMax) throw new Fault("exhausted", "join swarm", { machinesMax });
    swarm.ids.set(machine, id);
    swarm.members[id] = { machine, address, rack };
    const { gathering } = swarm;
    if (gathering) return await new Promise((resolve) => gathering.set(id, resolve));
    const member = { rack, slots: swarm.stripes };
    const [joined] = this.#step(swarm, { kind: "join", id, member }).filter(({ kind }) => kind === "parents");
    return joined?.kind === "parents" ? joined.parents : [];
  }

  #open(tenant: string, key: string, units: number): Swarm {
    this.#forget(tenant);
    const { stripes } = shapeOf(units);
    const swarm: Swarm = {
      tracker: new Tracker(stripes, originShares * stripes, this.#ports.random.fork(key)),
      stripes,
      priority: priorities.ahead,
      ids: new Map(),
      // The origin has the first number.
      members: [undefined],
      gathering: new Map(),
      usedMs: this.#ports.clock.monotonicMs(),
      messages: 0,
    };
    this.#swarms.set(key, swarm);
    this.#ports.clock.after(gatherMs, () => this.#plan(swarm));
    return swarm;
  }

  #plan(swarm: Swarm): void {
    const waiting = swarm.gathering;
    if (!waiting) return;
    swarm.gathering = undefined;
    const members = new Map(
      [...waiting.keys()].map((id) => [id, { rack: swarm.members[id]?.rack ?? "", slots: swarm.stripes }]),
    );
    for (const effect of this.#step(swarm, { kind: "plan", members }))
      if (effect.kind === "parents") waiting.get(effect.to)?.(effect.parents);
  }

  #step(swarm: Swarm, event: TrackerEvent): readonly TrackerEffect[] {
    const effects: TrackerEffect[] = [];
    swarm.messages += 1;
    swarm.tracker.step(event, effects);
    return effects;
  }

  #ticket(tenant: string, from: string, { members }: Swarm, id: number | undefined): Ticket | null {
    if (id === undefined) return null;
    if (id === originId) return { peer: originName, address: "", identity: "", key: "", distance: "region" };
    const to = members[id];
    if (!to) return null;
    const mine = members.find((each) => each?.machine === from);
    return this.#ticketTo(tenant, { machine: from, rack: mine?.rack }, to);
  }

  #ticketTo(tenant: string, from: { readonly machine: string; readonly rack: string | undefined }, to: Known): Ticket {
    const epoch = Math.floor(this.#ports.clock.wallMs() / epochMs);
    const secret = secretOf(this.#clusterKey, tenant, to.machine, epoch);
    const distance = from.rack === to.rack ? "rack" : "region";
    return ticketOf(secret, from.machine, { peer: to.machine, address: to.address, distance });
  }

  /** The least recently used ones of a tenant make room (SD1). */
  #forget(tenant: string): void {
    const nowMs = this.#ports.clock.monotonicMs();
    const mine = [...this.#swarms].filter(([key]) => tenantIn(key) === tenant);
    for (const [key, { usedMs }] of mine) if (nowMs - usedMs > idleMs) this.#swarms.delete(key);
    if (mine.length < swarmsMax) return;
    const [oldest] = mine.toSorted(([, a], [, b]) => a.usedMs - b.usedMs);
    if (oldest) this.#swarms.delete(oldest[0]);
  }
}

const keyOf = (tenant: string, region: string | undefined, content: string): string =>
  JSON.stringify([tenant, content, region ?? ""]);
const tenantIn = (key: string): string | undefined => (JSON.parse(key) as string[])[0];

/** A field that is left out is left out. */
export const questionOf = (
  body:
    | Exclude<SwarmQuestion, { kind: "ask" }>
    | { kind: "ask"; content: string; stripe: number; why: Why; about?: string | undefined },
): SwarmQuestion => {
  if (body.kind !== "ask") return body;
  const { kind, content, stripe, why, about } = body;
  return { kind, content, stripe, why, ...(about !== undefined && { about }) };
};

function eventOf(swarm: Swarm, from: number, question: Exclude<SwarmQuestion, { kind: "join" } | Meet>): TrackerEvent {
  if (question.kind === "complete") return { kind: "complete", id: from };
  const { stripe, why, about } = question;
  const id = about === originName ? originId : about === undefined ? undefined : swarm.ids.get(about);
  return { kind: "ask", from, stripe, why, about: id };
}
