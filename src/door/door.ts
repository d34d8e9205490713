/**
 * A door is a value: everything that the program knows about one kind of work. `src/app/doors.ts` lists all doors, and
 * the node, the command line, the configuration, the HTTP API, metrics and the reference loop over that list.
 *
 * It has two halves. What this type declares is known without a node: the command line and the documentation read it,
 * so a door's file imports little. `open` makes the other half, on a node, and imports what that needs when it is
 * called.
 *
 * D1 A route that an open door serves is declared in `endpoints`, and a runner or planner is of a kind in `kinds`: a
 *    node with a door that breaks this does not start.
 */
import type { z } from "zod";
import type { Caller } from "#access/caller.ts";
import type { Action } from "#access/policy.ts";
import type { ClaimOf } from "#access/principal.ts";
import type { MetricsRegistry } from "#edge/metrics/registry.ts";
import type { GrpcServer } from "#grpc/server.ts";
import type { Endpoint } from "#http/endpoint.ts";
import type { Route } from "#http/route.ts";
import type { Identify } from "#http/serve.ts";
import type { Digest } from "#base/digest.ts";
import type { Result } from "#kernel/model/model.ts";
import type { FeedItem } from "#kernel/read/feed.ts";
import type { JobView } from "#kernel/read/query.ts";
import type { Order } from "#shard/client/client.ts";
import type { DoorKinds } from "#shard/door-kinds.ts";
import type { ShardObserver } from "#shard/host/observer.ts";
import type { Publisher } from "#shard/outbox/outbox.ts";
import type { PrintedByDoor } from "#worker/follow/printed.ts";
import type { Planners, Resume, Runners } from "#worker/runner.ts";
import type { FoundRun } from "#worker/sandbox/sandbox.ts";
import type { Command } from "./command.ts";
import type { DoorPorts, PlaceElsewhere } from "./ports.ts";

/** `S` is what its section of the configuration becomes. */
export type Door<S = unknown> = {
  /** Names the door in the list, and its section of the configuration. */
  readonly name: string;
  /** One sentence, for people. */
  readonly about: string;
  /** Left out: there is nothing to configure. */
  readonly section?: Section<S> | undefined;
  /** Files and folders of its section that what runs in the sandbox must not see; left out: none. */
  readonly hides?: ((settings: S) => readonly string[]) | undefined;
  /**
   * The names that its jobs carry, mostly one; the kinds of task and plan that such jobs may have; who may submit them;
   * the labels that only nodes offer.
   */
  readonly kinds: readonly DoorKinds[];
  readonly commands: readonly Command[];
  /** Every endpoint of its routes, for the OpenAPI document and the reference. */
  readonly endpoints: readonly Endpoint[];
  /** How a document becomes a job; left out: its jobs are made by its own calls only. */
  readonly documents?: JobDocuments | undefined;
  /** How its jobs are shown and explained; left out: as all jobs are. */
  readonly shows?: ShownJobs | undefined;
  /** The path that explains one of its jobs, or the named part of it; the answer has lines, `told`. */
  readonly whyPath?: ((jobId: string, parts: readonly string[]) => string) | undefined;
  /** The trace in a spec that was written before submissions had one of their own. */
  readonly traceIn?: ((spec: string) => string | undefined) | undefined;
  /**
   * Whether results of its jobs are kept for `history.results` after their end; or which blobs of a result are. Left
   * out: they are a cache.
   */
  readonly keepsResults?: boolean | ((result: Pick<Result, "payload" | "digests">) => readonly Digest[]) | undefined;
  /** The processor time that a result speaks of; called for each result, so cheap. Left out: usage knows none. */
  readonly cpuMs?: ((payload: string) => number | undefined) | undefined;
  /** Formats of webhooks that send events of its jobs, by name: the door's own, or `door:more`. */
  readonly webhooks?: Readonly<Record<string, WebhookFormat>> | undefined;
  /** Its pages of the console. */
  readonly pages: readonly ConsolePage[];
  /** What the console's page of each of its jobs shows besides; left out: nothing. */
  readonly jobPart?: ConsolePart | undefined;
  readonly open: (ports: DoorPorts, settings: S) => Promise<OpenDoor>;
  /** What a worker on a machine that is no node does for it; left out: nothing. */
  readonly elsewhere?: ((place: PlaceElsewhere) => Promise<DoorElsewhere>) | undefined;
};

export type WebhookFormat = {
  /**
   * In the words of the dialect or of who gets it. Pure; nothing: the item is passed over. `result` is what the item's
   * task has committed, as the door wrote it; left out: it is not known any more.
   */
  readonly render: (item: FeedItem, result?: string) => readonly WebhookEvent[];
  /** Whether it needs the result of this item's task. */
  readonly asksFor?: (item: FeedItem) => boolean;
  /** How the secret goes along with each call; left out: it signs the body, and stays here. */
  readonly headers?: (secret: string) => Readonly<Record<string, string>>;
  /** Whether an answer with this status means that another attempt gets the same one. */
  readonly isFinal?: (status: number) => boolean;
};

/** `path`: where it is sent below the webhook's address. */
export type WebhookEvent = { readonly event: string; readonly body: object; readonly path?: string };

/** Answers a question of an executor elsewhere about a task of the door that it holds. JSON in, JSON out. */
export type TaskAnswer = (claim: ClaimOf, body: unknown) => Promise<unknown>;

export type DoorElsewhere = { readonly labels: readonly string[]; readonly runners: Runners };

/** A part of the configuration, under the door's name. Given nothing (`{}`), it has to be valid. */
export type Section<S> = { readonly about: string; readonly schema: z.ZodType<S> };

/** What is said beside a job's document. */
export type Wishes = {
  readonly tenant: string;
  readonly name?: string | undefined;
  readonly priority?: number | undefined;
  /** Binds the request to at most one job. */
  readonly key?: string | undefined;
  /** Joins a live job with the same one. */
  readonly merge?: string | undefined;
  /** What it is found by. */
  readonly tags?: Readonly<Record<string, string>> | undefined;
  /** Takes the next number of this series: all of its jobs must get the same shard key. */
  readonly series?: string | undefined;
  /** Whether the caller may do what the node itself can; left out: the document says what it needs, and is judged. */
  readonly isOperator?: boolean | undefined;
  /** Spreads jobs over shards where nothing ties them to others: a repeated request has the same. Left out: chosen. */
  readonly unique?: string | undefined;
};

export type JobDocuments = {
  readonly schema: z.ZodType;
  /** `document` is as the schema gave it back. Throws Fault "invalid" for what makes no sense. */
  readonly plan: (document: unknown, wishes: Wishes) => Order;
  /** A command line as a document; `array`: how many tasks run it, each with an index of its own. */
  readonly fromCommand?: ((command: readonly string[], array?: number) => unknown) | undefined;
};

export type ShownJobs = {
  /** Lines below what `millrace job show` says of every job. */
  readonly show?: ((jobId: string, view: JobView) => readonly string[]) | undefined;
  /** Lines below what `millrace job why` says of every job. */
  readonly why?: ((jobId: string, view: JobView) => readonly string[]) | undefined;
  /** A result in a few words, behind the line that says that its task is done. */
  readonly result?: ((payload: string) => string | undefined) | undefined;
};

/** A page of the console: an entry of its menu, and the module that draws it. */
export type ConsolePage = {
  /** Below /console/, in plain letters; the page is shown for every address that begins with it. */
  readonly path: string;
  readonly title: string;
  /** Exports `Page`, a component that is given the rest of the address. A path below src/console, or a whole one. */
  readonly module: string;
};

/** A module that exports `Part`, a component that is given the job. Named as the module of a page is. */
export type ConsolePart = { readonly module: string };

/** Metrics at /metrics; names begin with millrace_, but for those that operators of the field know by another. */
export type Metrics = Pick<MetricsRegistry, "counter" | "gauge" | "histogram" | "beforeText">;

/** A door on a running node. What is left out, it has none of. */
export type OpenDoor = {
  /** What workers of this node offer, besides: work of the door asks for it. */
  readonly labels?: readonly string[];
  /** What the node tells others of itself, besides. */
  readonly facts?: Readonly<Record<string, string | number>>;
  readonly runners?: Runners;
  readonly planners?: Planners;
  /** Tasks that an earlier life of this node began, and what runs of them in the sandbox still. */
  readonly resumes?: readonly Resume[];
  readonly found?: readonly FoundRun[];
  /** By the name that the door's jobs carry. */
  readonly publishers?: Readonly<Record<string, Publisher>>;
  /** Where what its tasks printed is when they have ended, by the name that the door's jobs carry. */
  readonly printed?: Readonly<Record<string, PrintedByDoor>>;
  /** What this node answers to other nodes, by method: `DoorPorts.peers.call` asks for it. */
  readonly calls?: PeerCalls;
  /**
   * Adds gRPC services; returns the policy action of each method, by path. The caller is undefined only in methods that
   * need no credentials, when it could not be authenticated.
   */
  readonly services?: (server: GrpcServer<Caller | undefined>) => ReadonlyMap<string, Action>;
  readonly routes?: readonly Route[];
  /** Protocols of other tools over HTTP, which no table of routes can hold. Undefined for what is not the door's. */
  readonly http?: (request: Request, identify: Identify) => Promise<Response> | undefined;
  /** Follows the shards that this node owns. */
  readonly observer?: ShardObserver;
  /** What executors elsewhere may ask about tasks of this door that they hold, by question ("ci.prepare"). */
  readonly answers?: Readonly<Record<string, TaskAnswer>>;
  /** Called once, before the first request. */
  readonly metrics?: (metrics: Metrics) => void;
  close?(): Promise<void>;
};

export type PeerCalls = Readonly<Record<string, (body: unknown, signal: AbortSignal) => Promise<unknown>>>;

/** A door as the list holds it: its own types are checked where this is called. */
export const defineDoor = <S>(door: Door<S>): Door => door as unknown as Door;
