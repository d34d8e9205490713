/**
 * Limits who may hold a connection, for all ports of a node together.
 *
 * A connection starts in the lobby, before its first call. It becomes a stranger with a call that needs no credentials,
 * such as a health check, and leaves the lobby when a caller is accepted on it: by its credentials, or as the anonymous
 * caller where the configuration allows one.
 *
 * PL1. A new connection is always accepted: when all slots are taken, the connection that has been in the lobby longest
 * is closed. Some slots are never given to accepted callers, so that the lobby cannot shrink to nothing.
 * PL2. A connection in the lobby lives for seconds, whatever bytes it sends; with calls, for as long as calls come.
 * PL3. Accepted callers share their slots: when those are taken, the caller with the most loses one, an idle one first.
 * Operators may exceed the limit.
 */
import type { Clock } from "#base/clock.ts";
import { Lobby, networkOf } from "#base/calls/lobby.ts";
import type { Principal } from "#access/principal.ts";

export type SlotLimits = {
  /** Connections of all kinds together. */
  readonly max: number;
  /** Of these, never given to accepted callers other than operators. */
  readonly lobbyMin: number;
  /** In the lobby at once from one address (IPv6: from one /64 network). */
  readonly perAddressMax: number;
  /** From the first byte of the handshake to the first call. */
  readonly firstCallMs: number;
  /** A connection without an accepted caller is closed when it has been idle for this long. */
  readonly strangerIdleMs: number;
};

export const slotLimitsDefault: SlotLimits = {
  max: 10_000,
  lobbyMin: 500,
  perAddressMax: 256,
  firstCallMs: 10_000,
  strangerIdleMs: 60_000,
};

export const slotStates = ["silent", "stranger", "anonymous", "known"] as const;
export type SlotState = (typeof slotStates)[number];

/** Why the node closed a connection by itself. */
export const closeReasons = ["no-call", "idle", "address-full", "full", "share"] as const;
export type CloseReason = (typeof closeReasons)[number];

/** What a slot needs from the connection that holds it. */
export type SlotHolder = {
  /** "now": its memory and its descriptor are needed. "politely": its peer may be told first. */
  close(how: "now" | "politely", reason: CloseReason): void;
  /** How many calls are running on it. */
  calls(): number;
};

export type SlotPorts = {
  readonly clock: Clock;
  readonly closed?: (reason: CloseReason) => void;
};

export class ConnectionSlots {
  readonly limits: SlotLimits;
  readonly clock: Clock;
  readonly #closed: (reason: CloseReason) => void;
  readonly #lobby = new Lobby<ConnectionSlot>();
  /** Accepted callers, by the owner that they count for. */
  readonly #byOwner = new Map<string, Set<ConnectionSlot>>();
  #accepted = 0;

  constructor(limits: SlotLimits, { clock, closed = () => {} }: SlotPorts) {
    this.limits = limits;
    this.clock = clock;
    this.#closed = closed;
  }

  /** How many connections are in each state, for metrics. */
  count(): Record<SlotState, number> {
    const counted: Record<SlotState, number> = { silent: 0, stranger: 0, anonymous: 0, known: 0 };
    for (const { state } of this.#lobby.guests) counted[state] += 1;
    for (const slots of this.#byOwner.values()) for (const { state } of slots) counted[state] += 1;
    return counted;
  }

  /** A connection has come from this address. It holds the slot until it calls `free`. */
  take(address: string, holder: SlotHolder): ConnectionSlot {
    const slot = new ConnectionSlot(this, address, holder);
    const { max, perAddressMax } = this.limits;
    const evicted = this.#lobby.enter(slot, address, { max: max - this.#accepted, perNetworkMax: perAddressMax });
    if (evicted) this.close(evicted.guest, "now", evicted.reason === "full" ? "full" : "address-full");
    return slot;
  }

  /** For ConnectionSlot. */
  close(slot: ConnectionSlot, how: "now" | "politely", reason: CloseReason): void {
    this.free(slot);
    this.#closed(reason);
    slot.holder.close(how, reason);
  }

  /** For ConnectionSlot: a call came whose caller is not accepted. */
  called(slot: ConnectionSlot): void {
    this.#lobby.touch(slot);
  }

  /** For ConnectionSlot: it counts for this owner from now on. */
  accept(slot: ConnectionSlot, owner: string, isOperator: boolean): void {
    this.#remove(slot);
    slot.owner = owner;
    const theirs = this.#byOwner.get(owner);
    if (theirs) theirs.add(slot);
    else this.#byOwner.set(owner, new Set([slot]));
    this.#accepted += 1;
    if (this.#accepted > this.limits.max - this.limits.lobbyMin && !isOperator) this.#shed();
  }

  free(slot: ConnectionSlot): void {
    slot.isFreed = true;
    slot.stop();
    this.#remove(slot);
  }

  #remove(slot: ConnectionSlot): void {
    if (this.#lobby.leave(slot) || slot.owner === undefined) return;
    const theirs = this.#byOwner.get(slot.owner);
    if (!theirs?.delete(slot)) return;
    this.#accepted -= 1;
    if (theirs.size === 0) this.#byOwner.delete(slot.owner);
  }

  /** The owner with the most connections loses an idle one; without an idle one, the newest. */
  #shed(): void {
    let most: Set<ConnectionSlot> | undefined;
    for (const [owner, slots] of this.#byOwner) if (owner !== operators && slots.size > (most?.size ?? 0)) most = slots;
    if (!most) return;
    let newest: ConnectionSlot | undefined;
    for (const slot of most) {
      if (slot.holder.calls() === 0) return this.close(slot, "politely", "share");
      newest = slot;
    }
    if (newest) this.close(newest, "politely", "share");
  }
}

const operators = "operators";

/** Concurrent calls of a connection without an accepted caller: a health check is one. */
const strangerCallsMax = 16;

/** The slot of one connection. */
export class ConnectionSlot {
  readonly holder: SlotHolder;
  readonly #slots: ConnectionSlots;
  readonly #address: string;
  #stopTimer: () => void = () => {};
  #callsLooked = 0;
  #calls = 0;
  #acceptedAs: Principal | undefined;
  state: SlotState = "silent";
  /** The owner that it counts for, once a caller was accepted on it. */
  owner: string | undefined;
  isFreed = false;

  constructor(slots: ConnectionSlots, address: string, holder: SlotHolder) {
    this.#slots = slots;
    this.#address = address;
    this.holder = holder;
    this.#look(slots.limits.firstCallMs, "no-call");
  }

  /** A call has come, with all its headers. */
  called(): void {
    this.#calls += 1;
    if (this.owner !== undefined || this.isFreed) return;
    this.#slots.called(this);
    if (this.state === "stranger") return;
    this.state = "stranger";
    this.#look(this.#slots.limits.strangerIdleMs, "idle");
  }

  /** A caller was accepted. Does nothing if it is the caller of the previous call. */
  accepted(principal: Principal): void {
    if (this.#acceptedAs === principal || this.isFreed) return;
    this.#acceptedAs = principal;
    const isAnonymous = principal.proof === "anonymous";
    if (this.state === "known" && isAnonymous) return; // its identity is proven
    const isOperator = principal.roles.has("operator") && !isAnonymous;
    this.state = isAnonymous ? "anonymous" : "known";
    this.stop();
    const owner = isOperator
      ? operators
      : isAnonymous
        ? `address ${networkOf(this.#address)}`
        : `tenant ${principal.tenant}`;
    if (owner !== this.owner) this.#slots.accept(this, owner, isOperator);
  }

  /** Whether a caller that is not accepted has too many concurrent calls. */
  get hasTooManyCalls(): boolean {
    return this.owner === undefined && this.holder.calls() > strangerCallsMax;
  }

  /** The connection has ended. */
  free(): void {
    this.#slots.free(this);
  }

  stop(): void {
    this.#stopTimer();
  }

  /** From now on check periodically whether a call has come since, or is running. */
  #look(everyMs: number, reason: CloseReason): void {
    this.stop();
    this.#callsLooked = this.#calls;
    this.#stopTimer = this.#slots.clock.after(everyMs, () => {
      if (this.#calls !== this.#callsLooked || this.holder.calls() > 0) this.#look(everyMs, reason);
      else this.#slots.close(this, "politely", reason);
    });
  }
}
