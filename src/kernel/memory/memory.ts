/**
 * How much memory work may use, for one shard or for all shards of a node together. A tenant may hold as much as is
 * left for all others: one tenant alone may fill half, two tenants a third each, and so on. So the next tenant always
 * finds free memory, and no setting has to say how many tenants there are.
 */

/** What one tenant holds in all shards that share the memory, and how many of these shards know the tenant. */
export type Account = { bytes: number; shards: number };

/** Results and plans of accepted work may use this many times the limit for new work. */
const hardShare = 1.5;
/** One job may use at most this part of the limit for new work: the rest is for other jobs, and for its own results. */
const jobShare = 0.25;

export class Memory {
  /** Above this no new work is accepted. */
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

  /**
   * Whether the tenant may hold this many bytes more. `kind`: "new" work, or "due", which follows from accepted work.
   */
  fits(tenant: string, bytes: number, kind: "new" | "due"): boolean {
    const max = kind === "new" ? this.bytesMax : this.bytesMax * hardShare;
    return this.heldBy(tenant) + bytes <= max - this.bytes - bytes;
  }

  /** The same for things that belong to no tenant, such as executors. */
  fitsAll(bytes: number): boolean {
    return this.bytes + bytes <= this.bytesMax * hardShare;
  }
}
