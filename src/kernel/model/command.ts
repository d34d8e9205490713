/**
 * Every command that a shard accepts. The host adds the time to each command (`nowMs`, kernel time, never set by a
 * caller); durations from outside are always times-to-live, never instants. Every command may be repeated: with the
 * same token and payload it gets its first answer again.
 */
import type { Digest } from "#base/digest.ts";
import type { Checkpoint, Evidence, FailReason, LockSpec, Notice, NoticeOutcome, Plan, Result } from "./model.ts";
import type { Reuse } from "./model.ts";
import type { Signal, StageSpec, Step, Tag } from "./model.ts";

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
   * Starts no job: joins the live job with this merge key, or is refused. Such a submission has no stages, so that an
   * older node, which does not know this flag, refuses it too.
   */
  readonly joinOnly?: boolean;
  /** Who waits for the job. When all subscribers have left, the job is cancelled after `leaveGraceMs`. */
  readonly subscriber?: string;
  readonly leaveGraceMs?: number;
  /** -100 to 100; higher runs first, within the tenant. */
  readonly priority: number;
  readonly spec: string;
  readonly stages: readonly StageSpec[];
  readonly deadlineMs: number;
  /** How long stages that run after any end have when the job is cancelled; left out, as the shard's limits say. */
  readonly cancelGraceMs?: number;
  readonly lock?: LockSpec;
  readonly reuse?: readonly Reuse[];
  readonly reuseEvidence?: Evidence;
  /** The trace that the job is recorded in, as W3C Trace Context writes it. */
  readonly trace?: string;
  /** What the job is found by: sorted by name, each name once. */
  readonly tags?: readonly Tag[];
  /**
   * Takes the next number of the tenant's and door's series of this name. A series lives in the shard that the
   * submission goes to: submissions of one series must have the same shard key. A repeated or merged submission takes
   * no number.
   */
  readonly series?: string;
  /** History has a row of the job from its submission on, and keeps the submission for a re-run. */
  readonly tracked?: boolean;
  /** Who is told when the job has ended, once. */
  readonly notify?: readonly Notice[];
  /** Set by the host: what the journal knows of the request key when memory no longer has it. */
  readonly keyFound?: { readonly job: number; readonly payloadHash: string };
  /** Set by the host: long texts of this command are in the store, and the references to them were made by the host. */
  readonly textsKept?: boolean;
};

/**
 * The tenant whose work a command may name; left out, any tenant's. Set from the authenticated caller, never taken from
 * a request: another tenant's job or task is refused like one that does not exist.
 */
export type OfTenant = { readonly tenant?: string };

/** The fields of every command about a claim: its executor, its task, and the token that proves the claim. */
export type Tokened = OfTenant & { readonly executor: string; readonly task: number; readonly token: number };

export type Command =
  | Submit
  | (OfTenant & { readonly kind: "leave"; readonly job: number; readonly subscriber: string })
  /**
   * Stops the job. Stages that run after any end (`after: "end"`) and are not planned yet still get their turn, within
   * a grace.
   */
  | (OfTenant & {
      readonly kind: "cancel";
      readonly job: number;
      readonly reason: string;
      /** Without that grace: also for a job that is being cancelled already. */
      readonly hard?: boolean;
      /** Only this stage. */
      readonly stage?: number;
      readonly graceMs?: number;
    })
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
      /** Affinity hints that the executor prefers, best first. */
      readonly prefer: readonly string[];
      readonly count: number;
      /**
       * Starts the granted claims at once, saving a command: all of them, or ("pure") only those without outside
       * effects.
       */
      readonly start: boolean | "pure";
      /** Identifies this request: a repeat gets the same claims again while they are live. */
      readonly nonce: string;
      /** The executor serves only this tenant; left out, every tenant. */
      readonly tenant?: string;
    }
  | (Tokened & { readonly kind: "start" })
  | {
      readonly kind: "renew";
      readonly executor: string;
      readonly claims: readonly {
        readonly task: number;
        readonly token: number;
        /** Acknowledges the signals up to this number: they are not sent again. */
        readonly heard?: number;
      }[];
    }
  | (Tokened & { readonly kind: "report"; readonly steps: readonly Step[] })
  | (Tokened & { readonly kind: "commit"; readonly result: Result; readonly evidence: Evidence })
  | (Tokened & {
      readonly kind: "record-plan";
      readonly plan: Plan;
      /** Set by the host, as in `submit`. */
      readonly textsKept?: boolean;
    })
  | (Tokened & {
      readonly kind: "fail";
      readonly reason: FailReason;
      readonly message: string;
      /** What the attempt leaves nevertheless. It has nothing to publish. */
      readonly result?: Result;
      /** Set by the host, as in `commit`. */
      readonly evidence?: Evidence;
    })
  /** Replaces the task's last checkpoint. Answered when it is durable. */
  | (Tokened & { readonly kind: "checkpoint"; readonly checkpoint: Checkpoint; readonly evidence: Evidence })
  /** Gives the task back, at no cost to its attempts. Work with outside effects that was started needs a checkpoint. */
  | (Tokened & { readonly kind: "release"; readonly checkpoint?: Checkpoint; readonly evidence?: Evidence })
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
      /** Live claims at once, over all shards; 0 for no limit. */
      readonly runningMax: number;
      /** Tasks that may be queued at once in one shard; 0 for the default limit. */
      readonly queuedMax: number;
      /** The shard that lends out the tenant's quota of running tasks. */
      readonly home: number;
    }
  /** To the tenant's home shard: lend slots to another shard for a while. Repeated before the slice ends. */
  | {
      readonly kind: "lend-quota";
      readonly tenant: string;
      readonly borrower: number;
      readonly want: number;
      /**
       * Claims that the borrower holds under earlier slices: it keeps at least these, however few slots it asks for.
       */
      readonly running: number;
      readonly forMs: number;
      /** The slice that the borrower uses now and from now on: slots lent under earlier slices are free again. */
      readonly holds?: number | undefined;
    }
  /** To the borrower: the slice that it was lent. */
  | { readonly kind: "take-quota"; readonly tenant: string; readonly slots: number; readonly forMs: number }
  /** The result of this generation of the task has been published. */
  | { readonly kind: "published"; readonly task: number; readonly generation: number }
  /** The manifest that is due under this number is in the store, and pinned. */
  | {
      readonly kind: "record-manifest";
      readonly no: number;
      readonly digest: Digest;
      readonly evidence: Evidence;
    }
  /** The end of this job has been told to the one that its notice with this index names, or cannot be. */
  | { readonly kind: "notified"; readonly job: number; readonly notice: number; readonly outcome: NoticeOutcome }
  /** The jobs' history has been written: remove them from memory. */
  | { readonly kind: "forget"; readonly jobs: readonly number[] }
  | { readonly kind: "take-over"; readonly epoch: number; readonly node: string }
  /**
   * Lets time pass: expiry, deadlines, back-off, waits, speculation. Does a bounded amount of work and says if more is
   * due.
   */
  | { readonly kind: "tick" };

export type CommandKind = Command["kind"];
export type CommandOf<K extends CommandKind> = Extract<Command, { kind: K }>;
