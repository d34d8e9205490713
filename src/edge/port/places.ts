/**
 * Who may hold a connection, of all the ports of a node together.
 *
 * A connection starts in the lobby, as one that has made no call yet. It becomes a stranger with a call that needs no
 * credentials, such as a health check, and leaves the lobby when a caller is accepted on it: by its credentials, or as
 * the anonymous caller where the configuration allows one.
 *
 * PL1. A new connection is always let in: when there is no room, the one that has been in the lobby longest is closed.
 *      Some places are never given to accepted callers, so that the lobby cannot shrink to nothing.
 * PL2. A connection in the lobby lives for seconds, whatever bytes it sends; with a call, for as long as calls come.
 * PL3. Accepted callers share their places: when those are taken, whoever holds the most loses one, an idle one first.
 *      Operators are let in beyond that.
 */
import type { Clock } from "#base/clock.ts";
import { Lobby, networkOf } from "#base/lobby.ts";
import type { Principal } from "#access/principal.ts";

export type PlaceLimits = {
  /** Connections of all kinds together. */
  readonly max: number;
  /** Of these, never given to accepted callers other than operators. */
  readonly lobbyMin: number;
  /** In the lobby at once from one address (IPv6: from one /64 network). */
  readonly perAddressMax: number;
  /** From the first byte of the handshake to the first call. */
  readonly firstCallMs: number;
  /** A connection whose caller was never accepted is closed when it has been idle for so long. */
  readonly strangerIdleMs: number;
};

export const placeLimitsDefault: PlaceLimits = {
  max: 10_000,
  lobbyMin: 500,
  perAddressMax: 256,
  firstCallMs: 10_000,
  strangerIdleMs: 60_000,
};

export const placeStates = ["silent", "stranger", "anonymous", "known"] as const;
export type PlaceState = (typeof placeStates)[number];

/** Why the node closed a connection by itself. */
export const closeReasons = ["no-call", "idle", "address-full", "full", "share"] as const;
export type CloseReason = (typeof closeReasons)[number];

/** What the place asks of the connection that holds it. */
export type PlaceHolder = {
  /** "now": its memory and its descriptor are needed. "politely": its peer may be told first. */
  close(how: "now" | "politely", reason: CloseReason): void;
  /** How many calls are running on it. */
  calls(): number;
};

export type PlacePorts = {
  readonly clock: Clock;
  readonly closed?: (reason: CloseReason) => void;
};

export class Places {
  readonly limits: PlaceLimits;
  readonly clock: Clock;
  readonly #closed: (reason: CloseReason) => void;
  readonly #lobby = new Lobby<Place>();
  /** Accepted callers, by who they count as. */
  readonly #byOwner = new Map<string, Set<Place>>();
  #accepted = 0;

  constructor(limits: PlaceLimits, { clock, closed = () => {} }: PlacePorts) {
    this.limits = limits;
    this.clock = clock;
    this.#closed = closed;
  }

  /** How many connections are in each state, for metrics. */
  count(): Record<PlaceState, number> {
    const counted: Record<PlaceState, number> = { silent: 0, stranger: 0, anonymous: 0, known: 0 };
    for (const { state } of this.#lobby.guests) counted[state] += 1;
    for (const places of this.#byOwner.values()) for (const { state } of places) counted[state] += 1;
    return counted;
  }

  /** A connection has come from this address. It holds the place until it calls `free`. */
  take(address: string, holder: PlaceHolder): Place {
    const place = new Place(this, address, holder);
    const { max, perAddressMax } = this.limits;
    const evicted = this.#lobby.enter(place, address, { max: max - this.#accepted, perNetworkMax: perAddressMax });
    if (evicted) this.close(evicted.guest, "now", evicted.reason === "full" ? "full" : "address-full");
    return place;
  }

  /** For Place. */
  close(place: Place, how: "now" | "politely", reason: CloseReason): void {
    this.free(place);
    this.#closed(reason);
    place.holder.close(how, reason);
  }

  /** For Place: a call came whose caller is not accepted. */
  called(place: Place): void {
    this.#lobby.touch(place);
  }

  /** For Place: it counts as this owner's from now on. */
  accept(place: Place, owner: string, isOperator: boolean): void {
    this.#remove(place);
    place.owner = owner;
    const theirs = this.#byOwner.get(owner);
    if (theirs) theirs.add(place);
    else this.#byOwner.set(owner, new Set([place]));
    this.#accepted += 1;
    if (this.#accepted > this.limits.max - this.limits.lobbyMin && !isOperator) this.#shed();
  }

  free(place: Place): void {
    place.isFreed = true;
    place.stop();
    this.#remove(place);
  }

  #remove(place: Place): void {
    if (this.#lobby.leave(place) || place.owner === undefined) return;
    const theirs = this.#byOwner.get(place.owner);
    if (!theirs?.delete(place)) return;
    this.#accepted -= 1;
    if (theirs.size === 0) this.#byOwner.delete(place.owner);
  }

  /** Whoever holds the most loses an idle connection; without an idle one, the newest. */
  #shed(): void {
    let most: Set<Place> | undefined;
    for (const [owner, places] of this.#byOwner)
      if (owner !== operators && places.size > (most?.size ?? 0)) most = places;
    if (!most) return;
    let newest: Place | undefined;
    for (const place of most) {
      if (place.holder.calls() === 0) return this.close(place, "politely", "share");
      newest = place;
    }
    if (newest) this.close(newest, "politely", "share");
  }
}

const operators = "operators";

/** Calls that a connection without an accepted caller may have open at once: a health check is one. */
const strangerCallsMax = 16;

/** One connection's. */
export class Place {
  readonly holder: PlaceHolder;
  readonly #places: Places;
  readonly #address: string;
  #stopTimer: () => void = () => {};
  #callsLooked = 0;
  #calls = 0;
  #acceptedAs: Principal | undefined;
  state: PlaceState = "silent";
  /** Who it counts as, once a caller was accepted on it. */
  owner: string | undefined;
  isFreed = false;

  constructor(places: Places, address: string, holder: PlaceHolder) {
    this.#places = places;
    this.#address = address;
    this.holder = holder;
    this.#look(places.limits.firstCallMs, "no-call");
  }

  /** A call has come, with all its headers. */
  called(): void {
    this.#calls += 1;
    if (this.owner !== undefined || this.isFreed) return;
    this.#places.called(this);
    if (this.state === "stranger") return;
    this.state = "stranger";
    this.#look(this.#places.limits.strangerIdleMs, "idle");
  }

  /** A caller was accepted. Nothing is done when it is the one of the call before. */
  accepted(principal: Principal): void {
    if (this.#acceptedAs === principal || this.isFreed) return;
    this.#acceptedAs = principal;
    const isAnonymous = principal.proof === "anonymous";
    if (this.state === "known" && isAnonymous) return; // who it was is proven
    const isOperator = principal.roles.has("operator") && !isAnonymous;
    this.state = isAnonymous ? "anonymous" : "known";
    this.stop();
    const owner = isOperator
      ? operators
      : isAnonymous
        ? `address ${networkOf(this.#address)}`
        : `tenant ${principal.tenant}`;
    if (owner !== this.owner) this.#places.accept(this, owner, isOperator);
  }

  /** Whether a caller that is not accepted has more calls open than it may. */
  get hasTooManyCalls(): boolean {
    return this.owner === undefined && this.holder.calls() > strangerCallsMax;
  }

  /** The connection has ended. */
  free(): void {
    this.#places.free(this);
  }

  stop(): void {
    this.#stopTimer();
  }

  /** From now on it is looked every so often whether a call has come since, or is running. */
  #look(everyMs: number, reason: CloseReason): void {
    this.stop();
    this.#callsLooked = this.#calls;
    this.#stopTimer = this.#places.clock.after(everyMs, () => {
      if (this.#calls !== this.#callsLooked || this.holder.calls() > 0) this.#look(everyMs, reason);
      else this.#places.close(this, "politely", reason);
    });
  }
}
