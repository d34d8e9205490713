/**
 * How much space unfinished uploads may hold: all of them, those of one tenant, those of one caller. An upload holds
 * the bytes that arrived, not the size that it announced. Pure.
 */
import { Fault } from "#base/fault.ts";

/** The owner of an upload. The texts are only compared, never shown. */
export type UploadOwner = { readonly tenant: string; readonly caller?: string | undefined };

export type UploadShares = {
  /** Shares of the store's size. Unfinished uploads never take more than `all`. */
  readonly all: number;
  readonly tenant: number;
  readonly caller: number;
  readonly countAll: number;
  readonly countTenant: number;
  readonly countCaller: number;
};

export const uploadSharesDefault: UploadShares = {
  all: 0.75,
  tenant: 0.5,
  caller: 0.4,
  countAll: 20_000,
  countTenant: 5_000,
  countCaller: 2_000,
};

export type Scope = "all" | "tenant" | "caller";

/** The limit that one more byte or upload would exceed. */
export type Excess = {
  readonly scope: Scope;
  readonly what: "bytes" | "count";
  readonly max: number;
};

type Use = { bytes: number; count: number };

const scopes = ["caller", "tenant", "all"] as const;

export class UploadLedger {
  readonly #shares: UploadShares;
  readonly #storeBytes: () => number;
  readonly #wholeBytes: number;
  readonly #uses = new Map<string, Use>();

  /** `storeBytes` is the size that the shares refer to; it may change, up to `wholeBytes`. */
  constructor(shares: UploadShares, wholeBytes: number, storeBytes: () => number = () => wholeBytes) {
    this.#shares = shares;
    this.#wholeBytes = wholeBytes;
    this.#storeBytes = storeBytes;
  }

  /** Undefined if so many more bytes, or one more upload, are within all limits. */
  excess(owner: UploadOwner, what: Excess["what"], more: number): Excess | undefined {
    for (const scope of scopes) {
      const key = keyOf(owner, scope);
      const max = this.#max(scope, what);
      if (key !== undefined && (this.#uses.get(key)?.[what] ?? 0) + more > max) return { scope, what, max };
    }
    return undefined;
  }

  /** Refuses a blob that could never be finished before its first byte. */
  excessOfWhole(owner: UploadOwner, sizeBytes: number): Excess | undefined {
    for (const scope of scopes) {
      const max = Math.floor(this.#shares[scope] * this.#wholeBytes);
      if (keyOf(owner, scope) !== undefined && sizeBytes > max) return { scope, what: "bytes", max };
    }
    return undefined;
  }

  /** Negative numbers release. */
  add(owner: UploadOwner, bytes: number, count: number): void {
    for (const scope of scopes) {
      const key = keyOf(owner, scope);
      if (key === undefined) continue;
      const use = this.#uses.get(key) ?? { bytes: 0, count: 0 };
      use.bytes += bytes;
      use.count += count;
      if (use.count > 0) this.#uses.set(key, use);
      else this.#uses.delete(key);
    }
  }

  #max(scope: Scope, what: Excess["what"]): number {
    const { all, tenant, caller, countAll, countTenant, countCaller } = this.#shares;
    if (what === "count") return { all: countAll, tenant: countTenant, caller: countCaller }[scope];
    return Math.floor({ all, tenant, caller }[scope] * this.#storeBytes());
  }
}

function keyOf({ tenant, caller }: UploadOwner, scope: Scope): string | undefined {
  if (scope === "all") return "";
  if (scope === "tenant") return tenant;
  return caller === undefined ? undefined : `${tenant}/${caller}`;
}

/** Whether two uploads count against the same limit. */
export const isWithin = (scope: Scope, one: UploadOwner | undefined, other: UploadOwner): boolean =>
  one !== undefined && keyOf(one, scope) === keyOf(other, scope);

const whose = { all: "all callers together", tenant: "one tenant", caller: "one caller" } as const;

/** Without `retryAfterMs`, trying again later does not help. */
export function beyondLimit({ scope, what, max }: Excess, retryAfterMs?: number): Fault {
  const limit = `unfinished uploads of ${whose[scope]} may hold at most ${max} ${what === "bytes" ? "bytes" : "uploads"}`;
  const advice =
    retryAfterMs === undefined
      ? "this blob is larger; blobs.uploads in the configuration sets the limit"
      : "finish those that are under way, or wait until idle ones are forgotten";
  return new Fault("exhausted", "upload", {
    limit: scope === "all" ? "uploads" : `uploads-per-${scope}`,
    max,
    retryAfterMs,
    why: `${limit}: ${advice}`,
  });
}
