/**
 * The members of the mesh. The prober walks the list in a random order, so that every member is probed once per round;
 * a new member is inserted at a random position. Members that are gone move to `departed` after a while: their
 * incarnation is forgotten, so that they may start over, but they are still listed and tried again.
 */
import type { Random } from "#base/random.ts";
import { addressText, type Address } from "#mesh/address.ts";
import type { MeshLimits } from "./limits.ts";
import type { MemberState, Versions } from "#mesh/wire/messages.ts";

export type Member = {
  readonly name: string;
  address: Address;
  meta: Uint8Array;
  incarnation: number;
  state: MemberState;
  changedAtMs: number;
  versions: Versions | undefined;
  /** When it last answered a probe of ours. */
  answeredAtMs?: number;
};

export const isGone = ({ state }: Pick<Member, "state">): boolean => state === "dead" || state === "left";

export class Roster {
  readonly #limits: MeshLimits;
  readonly #random: Random;
  readonly #byName = new Map<string, Member>();
  readonly #byAddress = new Map<string, Member>();
  readonly #departed = new Map<string, Member>();
  #list: Member[] = [];
  #next = 0;

  constructor(limits: MeshLimits, random: Random) {
    this.#limits = limits;
    this.#random = random;
  }

  get size(): number {
    return this.#list.length;
  }

  get all(): readonly Member[] {
    return this.#list;
  }

  /** Gone for longer; a name is never both here and in the list. */
  get departed(): Iterable<Member> {
    return this.#departed.values();
  }

  get departedCount(): number {
    return this.#departed.size;
  }

  get(name: string): Member | undefined {
    return this.#byName.get(name);
  }

  /** The member at this address, if known. */
  at(address: Address): Member | undefined {
    return this.#byAddress.get(addressText(address));
  }

  move(member: Member, address: Address): void {
    this.#forgetAddress(member);
    member.address = address;
    this.#byAddress.set(addressText(address), member);
  }

  #forgetAddress(member: Member): void {
    const key = addressText(member.address);
    if (this.#byAddress.get(key) === member) this.#byAddress.delete(key);
  }

  /** Includes departed members. */
  find(name: string): Member | undefined {
    return this.#byName.get(name) ?? this.#departed.get(name);
  }

  /** False if the list is full. */
  add(member: Member): boolean {
    if (this.#list.length >= this.#limits.membersMax) return false;
    this.#departed.delete(member.name);
    this.#byName.set(member.name, member);
    this.#byAddress.set(addressText(member.address), member);
    const at = this.#random.below(this.#list.length + 1);
    this.#list.push(member);
    const last = this.#list.length - 1;
    const other = this.#list[at];
    if (other && at !== last) {
      this.#list[at] = member;
      this.#list[last] = other;
    }
    return true;
  }

  /** The next member to probe; undefined if there is none. */
  nextToProbe(isFit: (member: Member) => boolean, whenRound: () => void): Member | undefined {
    for (let looked = 0; looked <= this.#list.length; looked += 1) {
      if (this.#next >= this.#list.length) {
        whenRound();
        this.#next = 0;
        shuffle(this.#list, this.#random);
      }
      const member = this.#list[this.#next];
      this.#next += 1;
      if (member && isFit(member)) return member;
    }
    return undefined;
  }

  /** Up to `count` different members, at random. */
  some(count: number, isFit: (member: Member) => boolean): readonly Member[] {
    const fit = this.#list.filter(isFit);
    if (fit.length <= count) return fit;
    const chosen = new Set<Member>();
    while (chosen.size < count) chosen.add(this.#random.pick(fit));
    return [...chosen];
  }

  /** Moves members that have been gone long enough to `departed`, and forgets the oldest of those. */
  retire(goneBeforeMs: number, forgetBeforeMs: number): void {
    const retired = this.#list.filter((member) => isGone(member) && member.changedAtMs < goneBeforeMs);
    for (const member of retired) {
      this.#byName.delete(member.name);
      this.#forgetAddress(member);
      this.#departed.set(member.name, member);
    }
    if (retired.length > 0) this.#list = this.#list.filter((member) => this.#byName.has(member.name));
    for (const [name, member] of this.#departed)
      if (member.changedAtMs < forgetBeforeMs || this.#departed.size > this.#limits.departedMax)
        this.#departed.delete(name);
  }

  /** A failed member is reported to be gone for good: it is not tried again. */
  callLeft(name: string): void {
    const member = this.find(name);
    if (member?.state === "dead") member.state = "left";
  }
}

function shuffle<T>(items: T[], random: Random): void {
  for (let i = items.length - 1; i > 0; i -= 1) {
    const j = random.below(i + 1);
    [items[i], items[j]] = [items[j] as T, items[i] as T];
  }
}
