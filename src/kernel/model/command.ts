/**
 * Everything that may be asked of a shard. Time comes in with each command (`nowMs`, kernel time, set by the host
 * and never by a caller); durations from outside are always times-to-live, never instants.
 * Every command may be repeated: with the same token and payload it gets its first answer again.
 */
import type { Evidence, FailReason, LockSpec, Plan, Result, Reuse, Signal, StageSpec, Step } from "./model.ts";

export type Submit = {
  readonly kind: "submit";
  readonly tenant: string;
  readonly door: string;
  readonly name: string;
  /** Binds the request to at most one job (K1). */
  readonly requestKey?: string;
  /** Tells whether a repeated request key carries the same request. */
  readonly payloadHash: string;
  /** Live jobs of the same tenant and door with the same merge key are one job. */
  readonly mergeKey?: string;
  /**
   * Begins nothing: joins the live job with its merge key, or is refused. Such a submission has no stages, so that
   * whoever does not know this wish, an older node for one, has nothing to begin either and refuses it.
   */
  readonly joinOnly?: boolean;
  /** Who waits for the job. When all who joined have left, it is cancelled after `leaveGraceMs`. */
  readonly subscriber?: string;
  readonly leaveGraceMs?: number;
  /** -100 to 100; higher runs first, within the tenant. */
  readonly priority: number;
  readonly spec: string;
  readonly stages: readonly StageSpec[];
  readonly deadlineMs: number;
  readonly lock?: LockSpec;
  readonly reuse?: readonly Reuse[];
  readonly reuseEvidence?: Evidence;
  /** Set by the host: what the journal knows of the request key when memory has already let go of it. */
  readonly keyFound?: { readonly job: number; readonly payloadHash: string };
  /** Set by the host: long texts in it are kept in the store, and the references to them are the host's own. */
  readonly textsKept?: boolean;
};

/**
 * The tenant whose work a command may name; left out, any tenant's. Set from who calls, never believed from a request:
 * another tenant's job or task is then refused as one that does not exist.
 */
export type OfTenant = { readonly tenant?: string };

/** What every command about a claim says: whose it is, for what, and the token that proves it. */
export type Tokened = OfTenant & { readonly executor: string; readonly task: number; readonly token: number };

export type Command =
  | Submit
  | (OfTenant & { readonly kind: "leave"; readonly job: number; readonly subscriber: string })
  | (OfTenant & { readonly kind: "cancel"; readonly job: number; readonly reason: string })
  | (OfTenant & {
      readonly kind: "signal";
      readonly job: number;
      readonly stage: number;
      readonly signal: Signal;
      /** Set by the host, as in `submit`. */
      readonly textsKept?: boolean;
    })
  | {
      readonly kind: "reserve";
      readonly executor: string;
      /** Labels that the executor offers. */
      readonly offers: readonly string[];
      /** Affinity hints that it would like best, best first. */
      readonly prefer: readonly string[];
      readonly count: number;
      /** Takes what it is given as started, saving a command: all of it, or what has no effects outside. */
      readonly start: boolean | "pure";
      /** Names this request: repeated, it gets the same claims again while they live. */
      readonly nonce: string;
      /** Serves only this tenant; left out, all. */
      readonly tenant?: string;
    }
  | (Tokened & { readonly kind: "start" })
  | {
      readonly kind: "renew";
      readonly executor: string;
      readonly claims: readonly { readonly task: number; readonly token: number }[];
    }
  | (Tokened & { readonly kind: "report"; readonly steps: readonly Step[] })
  | (Tokened & { readonly kind: "commit"; readonly result: Result; readonly evidence: Evidence })
  | (Tokened & {
      readonly kind: "record-plan";
      readonly plan: Plan;
      /** Set by the host, as in `submit`. */
      readonly textsKept?: boolean;
    })
  | (Tokened & { readonly kind: "fail"; readonly reason: FailReason; readonly message: string })
  | (Tokened & { readonly kind: "release" })
  | (OfTenant & {
      readonly kind: "invalidate";
      readonly task: number;
      readonly generation: number;
      readonly reason: string;
    })
  | { readonly kind: "drain"; readonly executor: string; readonly reason: string }
  | { readonly kind: "resume"; readonly executor: string }
  | {
      readonly kind: "set-tenant";
      readonly tenant: string;
      readonly weight: number;
      /** Claims at once, over all shards; 0 for no limit. */
      readonly runningMax: number;
      /** Tasks waiting at once in one shard; 0 for the limit that tenants have without a setting. */
      readonly queuedMax: number;
      /** The shard that lends out the tenant's running quota. */
      readonly home: number;
    }
  /** To the tenant's home shard: lend slots to another shard for a while. Asked again before the slice ends. */
  | {
      readonly kind: "lend-quota";
      readonly tenant: string;
      readonly borrower: number;
      readonly want: number;
      /** Claims that the borrower holds under earlier slices: these it keeps whatever is asked. */
      readonly running: number;
      readonly forMs: number;
      /** The slice that the borrower goes by now, for good: what it was lent before that is free again. */
      readonly holds?: number | undefined;
    }
  /** To the borrower: the slice it was lent. */
  | { readonly kind: "take-quota"; readonly tenant: string; readonly slots: number; readonly forMs: number }
  /** What the result of this generation of the task wants to be known outside is known. */
  | { readonly kind: "published"; readonly task: number; readonly generation: number }
  /** The jobs' history has been written: let go of them. */
  | { readonly kind: "forget"; readonly jobs: readonly number[] }
  | { readonly kind: "take-over"; readonly epoch: number; readonly node: string }
  /** Lets time pass: expiry, deadlines, back-off, waits, speculation. Does a bounded amount and says if more is due. */
  | { readonly kind: "tick" };

export type CommandKind = Command["kind"];
export type CommandOf<K extends CommandKind> = Extract<Command, { kind: K }>;
