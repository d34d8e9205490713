/**
 * Exchanges of full states over streams: to join, and now and then with a random member to repair what gossip lost; and
 * with failed members, which may be back, or we may have been the partitioned side.
 */
import { Fault, isFault } from "#base/fault.ts";
import { addressText, type Address } from "#mesh/address.ts";
import { every, type Core } from "./core.ts";
import { encodePushPull, type PushPull, type PushedMember, type StreamMessage } from "#mesh/wire/messages.ts";
import { pushPullDelayMs } from "./profile.ts";
import type { Member } from "./roster.ts";
import type { MemberStates } from "./member-states.ts";
import type { SerfNeighbour } from "#mesh/serf/serf-neighbour.ts";

export class Syncer {
  readonly #core: Core;
  readonly #states: MemberStates;
  readonly #serf: SerfNeighbour;
  readonly #running = new Map<number, { readonly isJoin: boolean; readonly isAsked: boolean }>();

  constructor(core: Core, states: MemberStates, serf: SerfNeighbour) {
    this.#core = core;
    this.#states = states;
    this.#serf = serf;
  }

  start(): void {
    const { random, times, roster } = this.#core;
    const delayMs = (): number => pushPullDelayMs(times, roster.size);
    every(this.#core, random.below(times.pushPullIntervalMs) + 1, delayMs, () => this.#withAnyone());
    const { reconnectIntervalMs } = times;
    every(
      this.#core,
      random.below(reconnectIntervalMs) + 1,
      () => reconnectIntervalMs,
      () => this.#withFailed(),
    );
  }

  /** The outcome comes as the effect `joined` with the returned number. */
  join(to: Address): number {
    return this.#exchange(to, { isJoin: true, isAsked: true });
  }

  #withAnyone(): void {
    const { roster, self } = this.#core;
    for (const { address } of roster.some(1, (member) => member !== self && member.state === "alive"))
      this.#exchange(address, { isJoin: false, isAsked: false });
  }

  /** Rarely if few of many failed, because all members do the same. */
  #withFailed(): void {
    const { roster, random } = this.#core;
    const failed = [...roster.all, ...roster.departed].filter(({ state }) => state === "dead");
    const alive = roster.all.filter(({ state }) => state === "alive").length;
    if (failed.length === 0 || !random.chance(failed.length / Math.max(1, alive))) return;
    this.#exchange(random.pick(failed).address, { isJoin: false, isAsked: false });
  }

  #exchange(to: Address, how: { readonly isJoin: boolean; readonly isAsked: boolean }): number {
    const { nextId, effect, envelope, times, counts } = this.#core;
    const id = nextId();
    this.#running.set(id, how);
    counts.pushPulls += 1;
    const bytes = envelope.stream(this.state(how.isJoin));
    effect({ kind: "dial", id, to, bytes, wantsAnswer: true, withinMs: times.streamTimeoutMs });
    return id;
  }

  state(isJoin: boolean): Uint8Array {
    const members = this.#core.roster.all.map(pushed);
    return encodePushPull({ isJoin, members, userState: this.#serf.state() });
  }

  /** The answer to our exchange; false if it was not one of ours. */
  answered(id: number, message: StreamMessage): boolean {
    if (!this.#running.has(id)) return false;
    if (message.kind === "push-pull") {
      try {
        this.merge(message);
        this.#end(id, undefined);
      } catch (error) {
        if (!isFault(error)) throw error;
        this.#end(id, error.message);
      }
    } else this.#end(id, message.kind === "error" ? `the other side reports: ${message.text}` : "an unexpected answer");
    return true;
  }

  failed(id: number, why: string): boolean {
    if (!this.#running.has(id)) return false;
    this.#end(id, why);
    return true;
  }

  #end(id: number, why: string | undefined): void {
    const { counts, effect } = this.#core;
    const how = this.#running.get(id);
    this.#running.delete(id);
    if (why !== undefined) counts.pushPullsFailed += 1;
    else if (how?.isJoin) this.#serf.announce("join");
    if (how?.isAsked) effect({ kind: "joined", id, why });
  }

  merge({ members, userState }: PushPull): void {
    this.#checkVersions(members);
    this.#states.merge(members);
    if (userState.length > 0) this.#serf.merge(userState);
  }

  /** Refuses members that do not share a protocol version with us. */
  #checkVersions(members: readonly PushedMember[]): void {
    const ours = this.#core.self.versions;
    for (const { name, address, state, versions } of members) {
      if (state !== "alive" || !versions || !ours) continue;
      const [pmin, pmax, pcur, dmin, dmax, dcur] = versions;
      const fits =
        ours[2] >= pmin &&
        ours[2] <= pmax &&
        pcur >= ours[0] &&
        pcur <= ours[1] &&
        ours[5] >= dmin &&
        ours[5] <= dmax &&
        dcur >= ours[3] &&
        dcur <= ours[4];
      if (!fits)
        throw new Fault("invalid", "merge a mesh", {
          name,
          address: addressText(address),
          versions: versions.join(),
          why: "its protocol versions are not compatible",
        });
    }
  }
}

const pushed = ({ name, address, meta, incarnation, state, versions }: Member): PushedMember => ({
  name,
  address,
  meta,
  incarnation,
  state,
  versions,
});
