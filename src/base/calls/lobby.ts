/**
 * Connections whose caller is not known yet. One more is always accepted: when the lobby is full, or has too many of
 * one network, the connection that has been in it longest is dropped. A caller that identifies itself at once gets
 * through however many silent connections there are, because they are all older by then.
 */
export class Lobby<Guest extends object> {
  readonly #networkOf = new Map<Guest, string>(); // a map keeps its insertion order: the first has waited longest
  readonly #byNetwork = new Map<string, Set<Guest>>();

  get size(): number {
    return this.#networkOf.size;
  }

  get guests(): IterableIterator<Guest> {
    return this.#networkOf.keys();
  }

  has(guest: Guest): boolean {
    return this.#networkOf.has(guest);
  }

  /** Adds the guest. Returns which one must be dropped for it, and why; the caller closes that connection. */
  enter(guest: Guest, address: string, { max, perNetworkMax }: LobbyLimits): Evicted<Guest> | undefined {
    const network = networkOf(address);
    const neighbours = this.#byNetwork.get(network);
    const [reason, waiting] =
      neighbours && neighbours.size >= perNetworkMax
        ? (["network-full", neighbours] as const)
        : (["full", this.#networkOf.size >= max ? this.#networkOf.keys() : []] as const);
    const evicted = firstOf(waiting);
    if (evicted) this.leave(evicted);
    this.#add(guest, network);
    return evicted && { guest: evicted, reason };
  }

  /** Counts the guest as the newest. */
  touch(guest: Guest): void {
    const network = this.#networkOf.get(guest);
    if (network === undefined) return;
    this.leave(guest);
    this.#add(guest, network);
  }

  /** False for a connection that is not in the lobby. */
  leave(guest: Guest): boolean {
    const network = this.#networkOf.get(guest);
    if (network === undefined) return false;
    this.#networkOf.delete(guest);
    const neighbours = this.#byNetwork.get(network);
    neighbours?.delete(guest);
    if (neighbours?.size === 0) this.#byNetwork.delete(network);
    return true;
  }

  #add(guest: Guest, network: string): void {
    this.#networkOf.set(guest, network);
    const neighbours = this.#byNetwork.get(network);
    if (neighbours) neighbours.add(guest);
    else this.#byNetwork.set(network, new Set([guest]));
  }
}

export type LobbyLimits = {
  /** For all networks together. */
  readonly max: number;
  readonly perNetworkMax: number;
};

export type Evicted<Guest> = { readonly guest: Guest; readonly reason: "full" | "network-full" };

function firstOf<T>(items: Iterable<T>): T | undefined {
  for (const item of items) return item;
  return undefined;
}

/**
 * The network within which one caller can have many addresses: an IPv4 address, or the /64 network of an IPv6 address,
 * because that is the least that a host is given.
 */
export function networkOf(address: string): string {
  const mapped = /^::ffff:(\d{1,3}(?:\.\d{1,3}){3})$/i.exec(address)?.[1];
  if (mapped !== undefined) return mapped;
  if (!address.includes(":")) return address;
  const [head = "", tail] = (address.split("%")[0] ?? "").toLowerCase().split("::");
  const groupsOf = (part: string): string[] => (part === "" ? [] : part.split(":"));
  const [before, after] = [groupsOf(head), groupsOf(tail ?? "")];
  const zeros = tail === undefined ? 0 : Math.max(0, 8 - before.length - after.length);
  const groups = [...before, ...Array.from({ length: zeros }, () => "0"), ...after];
  return `${groups
    .slice(0, 4)
    .map((group) => group.replace(/^0+(?=.)/, ""))
    .join(":")}::/64`;
}
