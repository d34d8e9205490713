/** What a node lends its doors when it opens them. */
import type { Clock } from "#base/clock.ts";
import type { Random } from "#base/random.ts";
import type { ActionIndex } from "#blobs/action-index.ts";
import type { BlobStore, Store } from "#blobs/store.ts";
import type { Streams } from "#blobs/streams.ts";
import type { Upkeep } from "#blobs/upkeep.ts";
import type { LogFields } from "#edge/log/log.ts";
import type { Records } from "#records/watch.ts";
import type { Keeps } from "#retention/keeps.ts";
import type { Sources } from "#sources/sources.ts";
import type { WorkClient } from "#shard/client/client.ts";
import type { Granted } from "#shard/client/executor.ts";
import type { Vault } from "#vault/vault.ts";
import type { AttemptWatch } from "#worker/attempt-watch.ts";
import type { LiveSource } from "#worker/printed/live-source.ts";
import type { OutputPorts } from "#worker/printed/task-output.ts";
import type { ProcessRunner } from "#worker/process.ts";
import type { Sandbox } from "#worker/sandbox/sandbox.ts";
import type { KeptFolders } from "#worker/stage/kept-folders.ts";
import type { LinkCache } from "#worker/stage/link-cache.ts";
import type { Tools } from "#worker/tool/tools.ts";

export type DoorPorts = {
  /** The node's name, which is its worker's, too. */
  readonly node: string;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: (line: string) => void;
  /** A structured line for the log about something that went wrong and harms one call at most. */
  readonly warn: (event: string, fields: LogFields) => void;
  /** Submits, looks at and stops work of the whole cluster. Answers once the node serves. */
  readonly client: WorkClient;
  readonly peers: Peers;
  /** Asks a door of this node for what it answers under this name (`OpenDoor.calls`). JSON in, JSON out. */
  readonly ask: (method: string, body: unknown) => Promise<unknown>;
  readonly stored: Stored;
  /** Repositories, their commits, and what is pushed to them. */
  readonly sources: Sources;
  /** Named documents of tenants, which all nodes share; a door's kinds begin with its name ("ci.repository"). */
  readonly records: Records;
  /** Keeps blobs until a time, under a name: pins are renewed, and the name goes when its time is over. */
  readonly keeps: Keeps;
  /** Secrets of tenants. A door that hands one to work keeps it out of specs, results and logs. */
  readonly vault: Vault;
  /** A key of the whole cluster, under a name of the door's own ("ci.seal"): the first node that needs it makes it. */
  readonly keyOf: (name: string) => Promise<Uint8Array>;
  /** Signs a token with the cluster's own keys, which others verify by discovery; never one for the cluster itself. */
  readonly issue: (wanted: WantedToken) => Promise<string>;
  readonly spool: Spooling;
  /** The node's data folder: a door keeps files of its own in a folder of its name below it. */
  readonly dataFolder: string;
  /** Reads what tasks print while they run, from whichever node runs them. */
  readonly live: LiveSource;
  /**
   * Where this node serves, as what runs on this machine can call it: `http://127.0.0.1:7411`. Undefined before it
   * serves, and where it never does.
   */
  readonly origin: () => string | undefined;
  /** Left out where this node runs no work. */
  readonly place?: WorkPlace | undefined;
  /** Labels that this node's worker offers by configuration. */
  readonly labels: readonly string[];
  /** Records calls as parts of traces; left out: none are. */
  readonly traces?: CallTraces | undefined;
  /** What pools of machines say about work that waits for these labels, as lines; none, if no pool runs it. */
  readonly pools: (waiting: {
    readonly tenant: string;
    readonly requires: readonly string[];
  }) => Promise<readonly string[]>;
  /** What is configured of the first pool that runs work with these labels. */
  readonly poolOf: (work: {
    readonly tenant: string;
    readonly requires: readonly string[];
  }) => { readonly onRunnerLoss?: "resume" | "restart" | "fail" | undefined } | undefined;
  /** Follows attempts that this node runs. */
  readonly watch: AttemptWatch;
  readonly counts: DoorCounts;
  /** Only callers on this machine are let in, so that fetching for them gives them nothing new. */
  readonly isThisMachineOnly: boolean;
  /** Aborted when the node is going away: those who wait are to ask another, or again later. */
  readonly leaving: AbortSignal;
};

/** A token that tells another system which task calls it. */
export type WantedToken = {
  readonly audience: string;
  readonly subject: string;
  readonly forMs: number;
  readonly claims: Readonly<Record<string, string>>;
};

/** Other nodes of the cluster, and calls to them under names of the door's own (`OpenDoor.calls`). */
export type Peers = {
  nodes(): readonly Peer[];
  call(address: string, method: string, body: unknown, signal: AbortSignal): Promise<unknown>;
};

/** A node with the facts that it tells of itself. */
export type Peer = {
  readonly node: string;
  readonly address: string;
  readonly alive: boolean;
  readonly facts: Readonly<Record<string, string | number>>;
};

export type Stored = {
  /** The node's own blobs: artifacts of jobs, whosever they are. */
  readonly blobs: BlobStore;
  /** Blobs of tenants. */
  readonly store: Store;
  readonly index: ActionIndex;
  /** The same two, counted at /metrics under this name. */
  counted(name: string): { readonly store: Store; readonly index: ActionIndex };
  /** Of the node's own disk; left out where there is none. */
  readonly upkeep?: Upkeep | undefined;
  /** Where what runs here can be read while it runs; left out where there is no disk. */
  readonly streams?: Streams | undefined;
};

/** A folder for uploads whose digest is not known yet; nothing in it outlives the process. */
export type Spooling = { readonly folder: string; readonly bytesMax: number };

/** Where this node runs work. */
export type WorkPlace = {
  readonly slots: number;
  /** Runs commands as the node's own user, without a sandbox. */
  readonly processes: ProcessRunner;
  /** What commands may see of this process's environment. */
  readonly env: Readonly<Record<string, string>>;
  /** A fresh folder for one attempt, gone with it. */
  readonly scratch: (name: string) => Promise<AsyncDisposable & { readonly path: string }>;
  /** Where the output of tasks can be read while they run, and stays if they left no result. Needs a disk. */
  readonly live?: OutputPorts | undefined;
  /** Of each stream that a task prints to; the middle of longer output is left out. */
  readonly printedBytesMax: number;
  /** Left out where none can be had: the log says why. */
  readonly boxed?: Boxed | undefined;
};

/** Where a worker runs work on a machine that is no node. Blobs are in the context of each run. */
export type PlaceElsewhere = Omit<WorkPlace, "boxed"> & {
  /** The worker's name, as the cluster knows it. */
  readonly name: string;
  /** The node's address, as this machine reaches it. */
  readonly server: string;
  /** A folder that stays: a door keeps files of its own in a folder of its name below it. */
  readonly dataFolder: string;
  /** Asks the node about a task that this worker holds: what a door answers there (`OpenDoor.answers`). */
  readonly ask: (task: Granted, question: string, body?: unknown) => Promise<unknown>;
};

/** What commands of tenants run in, and what is kept there for the next ones. */
export type Boxed = {
  readonly sandbox: Sandbox;
  readonly links: LinkCache;
  /** Left out where folders cannot be kept. */
  readonly kept?: KeptFolders | undefined;
  /** Tools that stay for more than one task; left out where none can stay. */
  readonly tools?: Tools | undefined;
  /** Of each of the two streams that a command prints to. */
  readonly printedBytesMax: number;
  /** Processes and threads of one command at once. */
  readonly pidsMax: number;
};

/** What doors count that the node shows for all of them. */
export type DoorCounts = {
  /** A result was looked up; `name` is what it is counted under, as in `Stored.counted`. */
  looked(name: string, tenant: string, outcome: "hit" | "miss"): void;
  /** A result was not published because its executor asked for what its task does not allow. */
  publicationRefused(door: string): void;
};

export type CallTraces = {
  /** `traceparent` is what the caller sent; undefined when the call is not recorded. */
  begin(method: string, traceparent: string | undefined): TracedCall | undefined;
};

export type TracedCall = {
  /** What the work that the call leads to belongs to. */
  readonly traceparent: string;
  end(error: string | undefined): void;
};
