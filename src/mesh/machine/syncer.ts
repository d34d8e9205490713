/**
 * Whole states, exchanged over streams: to join, and now and then with any member, so that what gossip lost is made
 * good; and with members that failed, for they may be back, or we may have been the ones that were cut off.
 */
import { Fault, isFault } from "#base/fault.ts";
import { addressText, type Address } from "#mesh/address.ts";
import { every, type Core } from "./core.ts";
import { encodePushPull, type PushPull, type PushedMember, type StreamMessage } from "#mesh/wire/messages.ts";
import { pushPullDelayMs } from "./profile.ts";
import type { Member } from "./roster.ts";
import type { Rumours } from "./rumours.ts";
import type { SerfNeighbour } from "#mesh/serf/serf-neighbour.ts";

export class Syncer {
  readonly #core: Core;
  readonly #rumours: Rumours;
  readonly #serf: SerfNeighbour;
  readonly #running = new Map<number, { readonly isJoin: boolean; readonly isAsked: boolean }>();

  constructor(core: Core, rumours: Rumours, serf: SerfNeighbour) {
    this.#core = core;
    this.#rumours = rumours;
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

  /** Its outcome is told as the effect `joined` with the number returned here. */
  join(to: Address): number {
    return this.#exchange(to, { isJoin: true, isAsked: true });
  }

  #withAnyone(): void {
    const { roster, self } = this.#core;
    for (const { address } of roster.some(1, (member) => member !== self && member.state === "alive"))
      this.#exchange(address, { isJoin: false, isAsked: false });
  }

  /** Rarely when few of many failed: everybody does the same. */
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

  /** What the other side of our exchange answered; false when it was none of ours. */
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
    } else this.#end(id, message.kind === "error" ? `the other side says: ${message.text}` : "an unexpected answer");
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
    this.#rumours.merge(members);
    if (userState.length > 0) this.#serf.merge(userState);
  }

  /** Nobody is taken in who could not understand us, or we them. */
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
          why: "it speaks a version that does not fit",
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
