/**
 * How much memory work may take, for one shard or for all shards of a node together. A tenant may hold as much as is
 * left for everybody else: one tenant alone half of it, two a third each, and so on. So there is always room for the
 * next tenant, however many fill theirs, and no setting has to say how many there are.
 */

/** What one tenant holds, in all shards that share the memory, and how many of them know it. */
export type Account = { bytes: number; shards: number };

/** Results and plans of work that was taken in may go so far beyond what new work may fill. */
const hardShare = 1.5;
/** One job has at most this part of what new work may fill: what is left is for others, and for its results. */
const jobShare = 0.25;

export class Memory {
  /** Beyond this no new work is taken in. */
  readonly bytesMax: number;
  bytes = 0;
  readonly #accounts = new Map<string, Account>();

  constructor(bytesMax: number) {
    this.bytesMax = bytesMax;
  }

  get jobBytesMax(): number {
    return Math.floor(this.bytesMax * jobShare);
  }

  get isFull(): boolean {
    return this.bytes >= this.bytesMax;
  }

  /** One more shard knows the tenant. */
  open(tenant: string): Account {
    let account = this.#accounts.get(tenant);
    if (!account) this.#accounts.set(tenant, (account = { bytes: 0, shards: 0 }));
    account.shards += 1;
    return account;
  }

  close(tenant: string): void {
    const account = this.#accounts.get(tenant);
    if (!account) return;
    account.shards -= 1;
    if (account.shards === 0) this.#accounts.delete(tenant);
  }

  get tenants(): number {
    return this.#accounts.size;
  }

  heldBy(tenant: string): number {
    return this.#accounts.get(tenant)?.bytes ?? 0;
  }

  /** Whether the tenant may hold so much more. `kind`: something new, or what follows from work that was taken in. */
  hasRoom(tenant: string, bytes: number, kind: "new" | "due"): boolean {
    const max = kind === "new" ? this.bytesMax : this.bytesMax * hardShare;
    return this.heldBy(tenant) + bytes <= max - this.bytes - bytes;
  }

  /** The same for what is no tenant's, such as an executor. */
  hasRoomForAll(bytes: number): boolean {
    return this.bytes + bytes <= this.bytesMax * hardShare;
  }
}
