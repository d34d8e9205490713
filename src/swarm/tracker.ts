/**
 * The tracker of one content among the machines of one node: plans the trees once, and then answers the few questions
 * of machines whose parent is gone, wrong or slow. It knows the trees and who is complete, not who has which unit.
 * All of it is soft: after a restart of the node the machines that ask tell it again.
 *
 * TR1 A machine is never made its own ancestor.
 * TR2 The origin feeds no more children at once than its places: others wait and ask again.
 * TR4 A machine that is slow takes little of its parents: its place there is free for one of its own children. Those
 *     that lose a parent get such places first, so that no machine has to feed more than its share of the others.
 * TR5 Where a complete machine has a place, the origin is not asked: its uplink is what machines without a choice need.
 * TR6 A parent is given only if what it takes of the stripe comes from the origin, or from a complete machine, through
 *     machines that are there: those whose parents are lost wait for new ones, and not for each other.
 * TR7 The origin has a free place as soon as it has sent what a machine asked for, also while that waits for the rest.
 * TR3 A machine is banned when two others found wrong bytes of it; one accuser alone can ban no one, and accusers of
 *     many count no more.
 */
import type { Random } from "#base/random.ts";
import { planTrees } from "./plan.ts";
import type { Why } from "./fetcher.ts";

export type Member = {
  readonly rack: string;
  /** Children at the pace of a whole share, by its upload rate; as many as stripes for an ordinary machine. */
  readonly slots: number;
};

export type TrackerEvent =
  /** All that are known at the beginning, at once. */
  | { readonly kind: "plan"; readonly members: ReadonlyMap<number, Member> }
  /** A machine that came later, or came back. */
  | { readonly kind: "join"; readonly id: number; readonly member: Member }
  | {
      readonly kind: "ask";
      readonly from: number;
      readonly stripe: number;
      readonly why: Why;
      readonly about: number | undefined;
    }
  | { readonly kind: "complete"; readonly id: number }
  /** The origin has nothing more to send to this machine of this stripe. */
  | { readonly kind: "fed"; readonly id: number; readonly stripe: number }
  /** It is there again, and goes on where it was. */
  | { readonly kind: "here"; readonly id: number }
  | { readonly kind: "left"; readonly id: number };

export type TrackerEffect =
  | { readonly kind: "parents"; readonly to: number; readonly parents: readonly (number | undefined)[] }
  | {
      readonly kind: "given";
      readonly to: number;
      readonly stripe: number;
      readonly peer: number | undefined;
      readonly why: Why;
    }
  | { readonly kind: "banned"; readonly id: number };

type Known = Member & {
  used: number;
  isHere: boolean;
  isComplete: boolean;
  isBanned: boolean;
  /** Children that found it slow. */
  slowBy: number;
  /** It takes so little of its parents that it does not count among their children (TR4). */
  isLight: boolean;
  accusers: Set<number> | undefined;
  accused: number;
  readonly parents: Int32Array;
  /** Stripes that the origin was to send, and has (TR7). */
  fed: Set<number> | undefined;
  /** Who brings it a part of a stripe besides its parents. */
  helpers: number[] | undefined;
};

/** A place for a machine, in the tree of a stripe. */
type Wants = {
  readonly child: number;
  readonly stripe: number;
  readonly not: number | undefined;
  /** Children beyond its share that the parent may have. */
  readonly spare: number;
};

export const originId = 0;
const accusersMin = 2;
const accusedMax = 3;
const slowMin = 2;
const triesMax = 24;
/** Children beyond its share that a machine may be given by repairs. */
const spareSlots = 2;
const noParent = -1;
const originRank = 1.5;

export class Tracker {
  readonly #stripes: number;
  readonly #random: Random;
  readonly #known = new Map<number, Known>();
  /** Members that may have a place, drawn from at random; cleaned while drawing. */
  readonly #open: number[] = [];
  /** Those with a place within their share; drawn from in the same way. */
  readonly #unused: number[] = [];
  readonly #originSlots: number;

  /** `originSlots` counts flows, over all stripes. */
  constructor(stripes: number, originSlots: number, random: Random) {
    this.#stripes = stripes;
    this.#random = random;
    this.#originSlots = originSlots;
    const origin = this.#add(originId, { rack: "", slots: originSlots });
    origin.isComplete = true;
  }

  get size(): number {
    return this.#known.size - 1;
  }

  isBanned(id: number): boolean {
    return this.#known.get(id)?.isBanned ?? false;
  }

  /** How many flows each machine has to machines of other racks. */
  across(): ReadonlyMap<number, number> {
    const flows = new Map<number, number>();
    for (const { rack, parents, helpers = [] } of this.#known.values())
      for (const parent of [...parents, ...helpers])
        if (parent > originId && this.#get(parent).rack !== rack) flows.set(parent, (flows.get(parent) ?? 0) + 1);
    return flows;
  }

  step(event: TrackerEvent, effects: TrackerEffect[]): void {
    switch (event.kind) {
      case "plan":
        this.#plan(event.members, effects);
        break;
      case "join":
        this.#join(event.id, event.member, effects);
        break;
      case "ask":
        this.#answer(event, effects);
        break;
      case "complete": {
        const known = this.#known.get(event.id);
        if (!known) break;
        known.isComplete = true;
        this.#freeAll(known);
        this.#offer(event.id);
        break;
      }
      case "fed": {
        const known = this.#known.get(event.id);
        if (known?.parents[event.stripe] !== originId || known.isLight || known.fed?.has(event.stripe)) break;
        (known.fed ??= new Set()).add(event.stripe);
        this.#leave(originId);
        break;
      }
      case "left": {
        const known = this.#known.get(event.id);
        if (!known || event.id === originId) break;
        known.isHere = false;
        this.#freeAll(known);
        break;
      }
      case "here": {
        const known = this.#known.get(event.id);
        if (!known || known.isHere) break;
        known.isHere = true;
        this.#offer(event.id);
      }
    }
  }

  #plan(members: ReadonlyMap<number, Member>, effects: TrackerEffect[]): void {
    for (const [id, member] of members) this.#add(id, member);
    const origin = this.#get(originId);
    planTrees(
      {
        stripes: this.#stripes,
        origin: originId,
        // Some places stay free for repairs.
        originSlots: Math.max(1, Math.floor((this.#originSlots * 0.9) / this.#stripes)),
        members: [...members].map(([id, member]) => ({ id, ...member })),
      },
      (child, stripe, parent) => {
        this.#get(child).parents[stripe] = parent;
        (parent === originId ? origin : this.#get(parent)).used += 1;
      },
    );
    for (const id of members.keys()) effects.push({ kind: "parents", to: id, parents: this.#parentsOf(id) });
    for (const id of [originId, ...members.keys()]) {
      this.#open.push(id);
      if (this.#hasPlace(id, 0)) this.#unused.push(id);
    }
  }

  #join(id: number, member: Member, effects: TrackerEffect[]): void {
    if (id === originId) return;
    const known = this.#known.get(id) ?? this.#add(id, member);
    known.isHere = true;
    this.#freeAll(known);
    for (let stripe = 0; stripe < this.#stripes; stripe += 1) {
      if (known.isComplete || known.isBanned) continue;
      this.#link(id, known, stripe, this.#find(id, known, stripe, undefined));
    }
    this.#offer(id);
    effects.push({ kind: "parents", to: id, parents: this.#parentsOf(id) });
  }

  #answer(event: Extract<TrackerEvent, { kind: "ask" }>, effects: TrackerEffect[]): void {
    const { from, stripe, why, about } = event;
    const known = this.#known.get(from);
    if (!known || !(stripe >= 0 && stripe < this.#stripes)) return;
    if (about !== undefined) this.#heed(from, known, why, about, effects);
    if (why === "help") {
      const peer = known.isBanned ? undefined : this.#helper(from, known, stripe, about);
      if (peer !== undefined) {
        this.#get(peer).used += 1;
        (known.helpers ??= []).push(peer);
      }
      effects.push({ kind: "given", to: from, stripe, peer, why });
      return;
    }
    this.#free(known, stripe);
    const peer = known.isBanned ? undefined : this.#find(from, known, stripe, about);
    this.#link(from, known, stripe, peer);
    effects.push({ kind: "given", to: from, stripe, peer, why });
  }

  /** What a question says about the parent that it is about. */
  #heed(from: number, accuser: Known, why: Why, about: number, effects: TrackerEffect[]): void {
    const parent = this.#known.get(about);
    if (!parent || about === originId || about === from) return;
    if (why === "slow" && (parent.slowBy += 1) === slowMin) this.#lighten(parent);
    if (why !== "bad" || parent.isBanned || parent.accusers?.has(from)) return;
    if ((accuser.accused += 1) > accusedMax) return;
    parent.accusers ??= new Set();
    parent.accusers.add(from);
    if (parent.accusers.size < accusersMin) return;
    parent.isBanned = true;
    this.#freeAll(parent);
    effects.push({ kind: "banned", id: about });
  }

  /** Whose place is free: the parent's parent first, which has what the parent had. */
  #find(id: number, known: Known, stripe: number, not: number | undefined): number | undefined {
    const above = not === undefined ? undefined : this.#known.get(not)?.parents[stripe];
    for (const [spare, among] of [[0, this.#unused] as const, [spareSlots, this.#open] as const]) {
      const wants = { child: id, stripe, not, spare };
      if (above !== undefined && above !== noParent && this.#canFeed(above, wants)) return above;
      const drawn = this.#draw(among, known, wants);
      if (drawn !== undefined) return drawn;
    }
    return this.#canFeed(originId, { child: id, stripe, not, spare: 0 }) ? originId : undefined;
  }

  #draw(among: number[], known: Known, wants: Wants): number | undefined {
    let best: number | undefined;
    for (let tries = 0; tries < triesMax && among.length > 0; tries += 1) {
      const at = this.#random.below(among.length);
      const candidate = among[at] ?? originId;
      if (!this.#hasPlace(candidate, wants.spare)) {
        among[at] = among.at(-1) ?? originId;
        among.pop();
        continue;
      }
      if (!this.#canFeed(candidate, wants)) continue;
      if (best === undefined || this.#rank(candidate, known) > this.#rank(best, known)) best = candidate;
      if (this.#rank(best, known) >= 3) break;
    }
    return best;
  }

  /** TR4 */
  #lighten(slow: Known): void {
    for (let stripe = 0; stripe < this.#stripes; stripe += 1) {
      const parent = slow.parents[stripe] ?? noParent;
      if (parent !== noParent && slow.fed?.has(stripe) !== true) this.#leave(parent);
    }
    slow.isLight = true;
  }

  /** Complete ones are ahead of everyone, then the origin (TR5); those of the same rack are near. */
  #rank(id: number, { rack }: Known): number {
    if (id === originId) return originRank;
    const candidate = this.#get(id);
    return (candidate.isComplete ? 2 : 0) + (candidate.rack === rack ? 1 : 0);
  }

  /** Someone who surely has the last part: an ancestor in the tree, a complete member, or the origin. */
  #helper(id: number, known: Known, stripe: number, about: number | undefined): number | undefined {
    let above = about === undefined ? undefined : this.#known.get(about)?.parents[stripe];
    for (let hops = 0; hops < 8 && above !== undefined && above !== noParent; hops += 1) {
      if (above === originId) break;
      if (above !== about && this.#canFeed(above, { child: id, stripe, not: about, spare: spareSlots })) return above;
      above = this.#known.get(above)?.parents[stripe];
    }
    const found = this.#find(id, known, stripe, about);
    return found !== undefined && this.#get(found).isComplete ? found : undefined;
  }

  #canFeed(id: number, { child, stripe, not, spare }: Wants): boolean {
    return id !== child && id !== not && this.#hasPlace(id, spare) && this.#isFed(id, child, stripe);
  }

  #hasPlace(id: number, spare: number): boolean {
    const known = this.#known.get(id);
    if (!known || !known.isHere || known.isBanned || known.slowBy >= slowMin || known.slots === 0) return false;
    return known.used < known.slots + (id === originId ? 0 : spare);
  }

  /** Whether `id` takes this stripe from one that has it (TR6) and not from `child` (TR1), with others between. */
  #isFed(id: number, child: number, stripe: number): boolean {
    let at: number | undefined = id;
    for (let hops = 0; hops < 64; hops += 1) {
      if (at === originId) return true;
      if (at === child || at === undefined || at === noParent) return false;
      const known: Known | undefined = this.#known.get(at);
      if (!known?.isHere || known.isBanned) return false;
      if (known.isComplete) return true;
      at = known.parents[stripe];
    }
    return false;
  }

  #link(id: number, known: Known, stripe: number, parent: number | undefined): void {
    known.parents[stripe] = parent ?? noParent;
    if (parent !== undefined && parent !== id && !known.isLight) this.#get(parent).used += 1;
  }

  #freeAll(known: Known): void {
    for (let stripe = 0; stripe < this.#stripes; stripe += 1) this.#free(known, stripe);
    for (const helper of known.helpers ?? []) this.#leave(helper);
    known.helpers = undefined;
  }

  #free(known: Known, stripe: number): void {
    const parent = known.parents[stripe] ?? noParent;
    if (parent === noParent) return;
    known.parents[stripe] = noParent;
    const isGivenBack = known.fed?.delete(stripe) === true;
    if (!known.isLight && !isGivenBack) this.#leave(parent);
  }

  #leave(parent: number): void {
    const fed = this.#get(parent);
    fed.used -= 1;
    if (fed.used === fed.slots - 1) this.#offer(parent);
  }

  #offer(id: number): void {
    this.#open.push(id);
    if (this.#hasPlace(id, 0)) this.#unused.push(id);
  }

  #parentsOf(id: number): readonly (number | undefined)[] {
    return Array.from(this.#get(id).parents, (parent) => (parent === noParent ? undefined : parent));
  }

  #add(id: number, { rack, slots }: Member): Known {
    const known: Known = {
      rack,
      slots,
      used: 0,
      isHere: true,
      isComplete: false,
      isBanned: false,
      slowBy: 0,
      isLight: false,
      accusers: undefined,
      accused: 0,
      fed: undefined,
      helpers: undefined,
      parents: new Int32Array(this.#stripes).fill(noParent),
    };
    this.#known.set(id, known);
    return known;
  }

  #get(id: number): Known {
    const known = this.#known.get(id);
    if (!known) throw new RangeError(`no member ${id}`);
    return known;
  }
}
