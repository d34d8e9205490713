/**
 * Collects everything observed: the durable log as it was appended, every response as it left a machine, and what
 * executors really did. The checkers judge each of these as it happens.
 */
import type { Acquired, AppendResult, Batch } from "#journal/journal.ts";
import type { Command } from "#kernel/model/command.ts";
import type { Event } from "#kernel/model/event.ts";
import { decodeEvents } from "#shard/codec/codec.ts";
import type { Publication } from "#shard/outbox/outbox.ts";
import type { ShardRequest, ShardResponse } from "#shard/transport/protocol.ts";
import type { DatabaseObserver } from "#sim/world/database.ts";
import type { Life } from "#sim/world/machine.ts";
import { FeedRecord } from "./feed.ts";
import { apply } from "#sim/model/apply.ts";
import { type ModelClaim, ShardModel } from "#sim/model/model.ts";
import type { NetworkObserver } from "#sim/world/network.ts";
import type { Pins } from "#sim/world/pins.ts";
import type { Run, Runs } from "#sim/actors/runs.ts";
import type { World } from "#sim/world/world.ts";

/** The position of an event in the log. */
export type LogPosition = {
  readonly model: ShardModel;
  readonly by: Life;
  readonly epoch: number;
  readonly seq: number;
  /** In its batch. */
  readonly index: number;
  /** The event was decided between these two instants. */
  readonly decidedAfterMs: number;
  readonly decidedBeforeMs: number;
};

/** What was known when a request arrived: the answer must not be older. */
export type Arrival = {
  readonly atMs: number;
  readonly seq: number;
  readonly jobKnown: boolean;
  readonly tokenLive: boolean;
  /** For a renewal: which of its claims were live. */
  readonly claimsLive: ReadonlySet<number>;
  readonly generation: number | undefined;
  /** For a submission that only joins: the job that it means. */
  readonly joinable: number | undefined;
};

export type ObservedResponse = {
  readonly model: ShardModel;
  readonly by: Life;
  readonly to: Life;
  readonly request: ShardRequest;
  readonly response: ShardResponse;
  readonly arrival: Arrival;
  /** It made the code that served it throw. */
  readonly threw: boolean;
};

export type Checker = {
  readonly invariant: string;
  readonly promise: string;
  /** Before the model applies the event. A string is a complaint. */
  event?(court: Court, place: LogPosition, event: Event): string | undefined;
  /** When a response leaves a machine. */
  said?(court: Court, said: ObservedResponse): string | undefined;
  /** When an executor starts to run something. */
  ran?(court: Court, run: Run): string | undefined;
  /** When something is published, right before it is. */
  published?(court: Court, publication: Publication, by: Life): string | undefined;
  /** When everything has healed and had time to finish. */
  end?(court: Court): string | undefined;
};

export type Tally = {
  readonly faults: Map<string, number>;
  readonly commands: Map<string, number>;
  readonly rejections: Map<string, number>;
  readonly events: Map<string, number>;
  readonly responses: Map<string, number>;
};

export const newTally = (): Tally => ({
  faults: new Map(),
  commands: new Map(),
  rejections: new Map(),
  events: new Map(),
  responses: new Map(),
});

export const count = (map: Map<string, number>, name: string, by = 1): void =>
  void map.set(name, (map.get(name) ?? 0) + by);

export class Court {
  readonly world: World;
  readonly models: readonly ShardModel[];
  readonly pins: Pins;
  readonly runs: Runs;
  readonly tally: Tally;
  /** The newest epoch that the store has assigned, by shard, and when. */
  readonly epochs: { epoch: number; atMs: number }[];
  /** Renewals and starts in progress: when they reached the machine. */
  readonly renewals = new Map<ShardRequest, { readonly at: Life; readonly reachedMs: number }>();
  /** When each claim was last known to be fresh, `shard/task/token`. */
  readonly fresh = new Map<string, number>();
  /** When each claim began at the earliest, by the same name. */
  readonly begun = new Map<string, number>();
  /** The labels that each executor offers, and how often each tenant was overtaken, by shard. */
  readonly offers = new Map<string, readonly string[]>();
  readonly overtaken = new Map<string, number>();
  /** Claims that count against a tenant's quota. */
  readonly quotaClaims = new Map<string, Set<ModelClaim>>();
  readonly feed = new FeedRecord();
  /** The job of each instant of a schedule. */
  readonly instants = new Map<string, string>();
  readonly #afterEvent: (() => void)[] = [];
  storeJumpedAtMs = Number.NEGATIVE_INFINITY;

  /** After a jump of the store's clock a shard may have been given away while its owner relies on its lease. */
  get hasLeapt(): boolean {
    return this.world.nowMs - this.storeJumpedAtMs < ownerLeaseMsMax;
  }

  /** No fault was active that could excuse an interrupted answer. */
  calm = false;
  /** Nodes, network and database work; only executors, blobs and wall clocks may fail. */
  connected = false;
  /** Whether the result was published. */
  isKnown: (shard: number, task: number, generation: number) => boolean = () => false;
  readonly #checkers: readonly Checker[];
  readonly #arrivals = new Map<ShardRequest, Arrival>();
  readonly #appends = new Map<Life, Appends>();

  constructor(
    world: World,
    shards: number,
    ports: { pins: Pins; runs: Runs; tally: Tally; checkers: readonly Checker[] },
  ) {
    this.world = world;
    this.models = Array.from({ length: shards }, (_, shard) => new ShardModel(shard));
    this.epochs = this.models.map(() => ({ epoch: 0, atMs: 0 }));
    this.pins = ports.pins;
    this.runs = ports.runs;
    this.tally = ports.tally;
    this.#checkers = ports.checkers;
    this.runs.observe = (run) => {
      for (const checker of this.#checkers) this.#judge(checker, checker.ran?.(this, run));
    };
  }

  /** Runs after the model has applied the event that is being judged. */
  afterEvent(run: () => void): void {
    this.#afterEvent.push(run);
  }

  /** Checks everything that must hold at the end. */
  close(): void {
    for (const checker of this.#checkers) this.#judge(checker, checker.end?.(this));
  }

  readonly published = (publication: Publication, by: Life): void => {
    for (const checker of this.#checkers) this.#judge(checker, checker.published?.(this, publication, by));
  };

  readonly database: DatabaseObserver = {
    appending: (by, batches) => this.#appending(by, batches),
    busy: (by, more) => {
      this.#busy(by);
      this.#appendsOf(by).busy += more;
    },
    appended: (by, batches, result) => this.#appended(by, batches, result),
    acquired: (_by, shard, answer) => this.#acquired(shard, answer),
    released: () => {},
    injected: (kind) => count(this.tally.faults, kind),
  };

  readonly network: NetworkObserver = {
    reached: (at, _from, request) => {
      for (const one of oneByOne(request))
        if (one.kind === "command" && (one.command.kind === "renew" || one.command.kind === "start"))
          this.renewals.set(one, { at, reachedMs: this.world.nowMs });
    },
    arrived: (_at, _from, request) => {
      if (request.kind === "commands") count(this.tally.commands, "many at once");
      for (const one of oneByOne(request)) this.#arrivals.set(one, this.#arrival(one));
    },
    left: (by, to, request, response, threw) => {
      for (const [i, one] of oneByOne(request).entries())
        this.#left(by, to, one, response.kind === "said" ? (response.said[i] ?? response) : response, threw);
    },
    streamed: () => {},
    injected: (kind) => count(this.tally.faults, kind),
  };

  #acquired(shard: number, answer: Acquired): void {
    if (answer.kind === "acquired") this.epochs[shard] = { epoch: answer.epoch, atMs: this.world.nowMs };
  }

  /**
   * Commands decided during a journal request wait for its answer, also through pauses between two tries. So a batch
   * was decided when the node was last idle, or when it was sent.
   */
  #busy(by: Life): void {
    const appends = this.#appendsOf(by);
    // A stopped node is never idle: what waited then still waits.
    if (appends.busy === 0 && by.ranMs - appends.lastRanMs > retryMsMax) appends.sinceMs = this.world.nowMs;
    appends.lastRanMs = by.ranMs;
  }

  #appending(by: Life, batches: readonly Batch[]): void {
    const { decided, sinceMs } = this.#appendsOf(by);
    for (const { shard, epoch, seq } of batches) {
      const name = `${shard}/${epoch}/${seq}`;
      if (!decided.has(name)) decided.set(name, { afterMs: sinceMs, beforeMs: this.world.nowMs });
    }
  }

  #appendsOf(life: Life): Appends {
    let appends = this.#appends.get(life);
    if (!appends) {
      appends = { busy: 0, sinceMs: 0, lastRanMs: Number.NEGATIVE_INFINITY, decided: new Map() };
      this.#appends.set(life, appends);
    }
    return appends;
  }

  #appended(by: Life, batches: readonly Batch[], result: AppendResult): void {
    for (const [i, batch] of batches.entries()) {
      if (result.outcomes[i] !== "appended") {
        count(this.tally.faults, "append-fenced");
        continue;
      }
      const model = this.models[batch.shard];
      if (!model) continue;
      const { shard, epoch, seq } = batch;
      if (seq !== model.seq + 1) return this.world.violate("J1", `shard ${shard}: batch ${seq} follows ${model.seq}`);
      const newest = this.epochs[shard]?.epoch ?? 0;
      if (epoch !== newest)
        return this.world.violate("K8", `shard ${shard}: appended under epoch ${epoch} when ${newest} was newest`);
      const decided = this.#appendsOf(by).decided.get(`${shard}/${epoch}/${seq}`);
      const { afterMs: decidedAfterMs, beforeMs: decidedBeforeMs } = decided ?? {
        afterMs: 0,
        beforeMs: this.world.nowMs,
      };
      for (const [index, event] of decodeEvents(batch.payload).entries()) {
        const place: LogPosition = { model, by, epoch, seq, index, decidedAfterMs, decidedBeforeMs };
        count(this.tally.events, event.kind);
        this.world.say(`log ${shard}/${epoch}/${seq} ${JSON.stringify(event)}`);
        for (const checker of this.#checkers) this.#judge(checker, checker.event?.(this, place, event));
        apply(model, event);
        for (const run of this.#afterEvent.splice(0)) run();
      }
      model.seq = seq;
      model.epoch = epoch;
    }
  }

  #arrival(request: ShardRequest): Arrival {
    const model = this.models[request.shard];
    const body = (request.kind === "command" ? request.command : request.kind === "query" ? request.query : {}) as {
      readonly job?: number;
      readonly task?: number;
      readonly token?: number;
      readonly executor?: string;
      readonly tenant?: string;
    };
    if (request.kind === "command") {
      count(this.tally.commands, request.command.kind);
      if (request.command.kind === "reserve") this.offers.set(request.command.executor, request.command.offers);
    }
    const job = body.job === undefined ? undefined : model?.jobs.get(body.job);
    const task = body.task === undefined ? undefined : model?.tasks.get(body.task);
    const claim = body.token === undefined ? undefined : task?.claims.get(body.token);
    return {
      atMs: this.world.nowMs,
      seq: model?.seq ?? 0,
      jobKnown: job !== undefined && !job.forgotten && (body.tenant === undefined || body.tenant === job.tenant),
      tokenLive: claim?.live === true && claim.executor === body.executor,
      claimsLive: model && request.kind === "command" ? liveTokens(model, request.command) : none,
      generation: task?.generation,
      joinable: model && request.kind === "command" ? joinableIn(model, request.command) : undefined,
    };
  }

  #left(by: Life, to: Life, request: ShardRequest, response: ShardResponse, threw: boolean): void {
    count(this.tally.responses, response.kind);
    if (response.kind === "rejected") count(this.tally.rejections, response.rejection.kind);
    const arrival = this.#arrivals.get(request);
    this.#arrivals.delete(request);
    const model = this.models[request.shard];
    if (!arrival || !model || request.kind === "take") return;
    const said: ObservedResponse = { model, by, to, request, response, arrival, threw };
    for (const checker of this.#checkers) this.#judge(checker, checker.said?.(this, said));
    this.renewals.delete(request);
  }

  #judge(checker: Checker, complaint: string | undefined): void {
    if (complaint !== undefined) this.world.violate(checker.invariant, `${checker.promise}: ${complaint}`);
  }
}

const none: ReadonlySet<number> = new Set();

/** Several commands in one request are judged one by one; the same request is always split into the same objects. */
const taken = new WeakMap<ShardRequest, readonly ShardRequest[]>();

function oneByOne(request: ShardRequest): readonly ShardRequest[] {
  if (request.kind !== "commands") return [request];
  let parts = taken.get(request);
  if (!parts) {
    parts = request.commands.map((command) => ({ kind: "command", shard: request.shard, command }));
    taken.set(request, parts);
  }
  return parts;
}

const joinableIn = (model: ShardModel, command: Command): number | undefined =>
  command.kind === "submit" && command.joinOnly ? model.joinable(command)?.no : undefined;

function liveTokens(model: ShardModel, command: Command): ReadonlySet<number> {
  if (command.kind !== "renew" || !Array.isArray(command.claims)) return none;
  const live = command.claims.filter(({ task, token }) => model.claim(task, token)?.live);
  return new Set(live.map(({ token }) => token));
}

type Appends = { busy: number; sinceMs: number; lastRanMs: number; readonly decided: Map<string, DecisionTime> };
type DecisionTime = { readonly afterMs: number; readonly beforeMs: number };

const ownerLeaseMsMax = 60_000;

/** The longest pause of a host between two tries of an append, and a little more. */
const retryMsMax = 260;

export const claimName = (shard: number, task: number, token: number): string => `${shard}/${task}/${token}`;
