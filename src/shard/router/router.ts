/**
 * Finds the owner of a shard and sends it requests, through changes of owner, until the caller's deadline.
 *
 * R1 A request is sent again, unchanged, until there is a definite answer: every command may be repeated.
 * R2 An answer from an older epoch than was seen, or older than what was seen when the request was sent, is not passed
 * on (K8): the caller's view of a shard never runs backwards.
 * R3 Every wait ends with the caller's deadline; the Fault at the end says what was tried.
 */
import { Deadline } from "#base/calls/abort.ts";
import type { Clock } from "#base/clock.ts";
import { Fault, isFault } from "#base/fault.ts";
import type { ShardId } from "#base/ids.ts";
import type { Random } from "#base/random.ts";
import type {
  ShardRequest,
  ShardResponse,
  ShardService,
  Stamp,
  WatchMessage,
  WatchRequest,
} from "#shard/transport/protocol.ts";
import { Backoff, type BackoffOptions } from "./backoff.ts";
import { OwnerMap, type OwnerSource } from "./map.ts";
import { watchThrough } from "./watch.ts";
import type { Address, Transport } from "#shard/transport/transport.ts";

export type RouterPorts = {
  /** Requests to this node's own shards do not use the network. */
  readonly self?: ShardService;
  readonly selfAddress?: Address;
  /** The journal, which alone decides who owns what, or a node that can read it. */
  readonly ownerships: OwnerSource;
  readonly transport: Pick<Transport, "request" | "watch">;
  readonly clock: Clock;
  readonly random: Random;
  readonly options?: Partial<RouterOptions>;
};

export type RouterOptions = BackoffOptions & {
  /** Default for callers that give none. */
  readonly deadlineMs: number;
  /** For one try; the time that a `reserve` may be held is added. */
  readonly tryMs: number;
  /** After this long without an answer the node may no longer be the owner: the map is read, again and again. */
  readonly doubtMs: number;
  /** The shortest time between two reads of the map. */
  readonly refreshMsMin: number;
  /** A watch without any message for this long, not even a heartbeat, starts again at the current owner. */
  readonly watchSilenceMs: number;
  /** How long a watch looks for an owner before it gives up. */
  readonly watchLostMsMax: number;
};

export const routerDefaults: RouterOptions = {
  deadlineMs: 30_000,
  tryMs: 10_000,
  doubtMs: 1_000,
  refreshMsMin: 50,
  backoffMs: 20,
  backoffMsMax: 1_000,
  watchSilenceMs: 30_000,
  watchLostMsMax: 120_000,
};

export type AskOptions = {
  readonly deadlineMs?: number;
  readonly signal?: AbortSignal;
  /**
   * Called before the request is sent again: it may have been done, and its job may have ended. An exception becomes
   * the caller's answer.
   */
  readonly again?: () => Promise<void>;
};

/** A definite answer from the owner. */
export type Settled = Extract<ShardResponse, { kind: "reply" | "answer" | "rejected" | "said" }>;
export type Watched = Exclude<WatchMessage, { kind: "moved" }>;

export type Router = {
  request(request: ShardRequest, options?: AskOptions): Promise<Settled>;
  /** Continues through changes of owner until the job has ended; never yields "moved". */
  watch(request: WatchRequest, signal: AbortSignal): AsyncIterable<Watched>;
  /** The newest stamp seen from the shard. */
  seen(shard: ShardId): Stamp | undefined;
};

export const createRouter = (ports: RouterPorts): Router => new OwnerRouter(ports);

class OwnerRouter implements Router {
  readonly #ports: RouterPorts;
  readonly #options: RouterOptions;
  readonly #owners: OwnerMap;
  readonly #newest = new Map<ShardId, Stamp>();

  constructor(ports: RouterPorts) {
    this.#ports = ports;
    this.#options = { ...routerDefaults, ...ports.options };
    this.#owners = new OwnerMap(ports.ownerships, ports.clock, this.#options.refreshMsMin);
  }

  seen(shard: ShardId): Stamp | undefined {
    return this.#newest.get(shard);
  }

  async request(request: ShardRequest, how: AskOptions = {}): Promise<Settled> {
    const { clock, random } = this.#ports;
    const { deadlineMs = this.#options.deadlineMs, signal, again } = how;
    const startedMs = clock.monotonicMs();
    const untilMs = startedMs + deadlineMs;
    const backoff = new Backoff(this.#options, random);
    const tries = new TryLog();
    for (;;) {
      signal?.throwIfAborted();
      const tried = await this.#try(request, untilMs, signal);
      if (tried.settled) return tried.settled;
      tries.add(tried);
      // A hint is followed at once, but only a few times: two nodes may each believe the other to be the owner.
      const waitMs = tried.hinted && tries.size <= 3 ? 0 : Math.max(backoff.next(), tried.waitMs ?? 0);
      if (clock.monotonicMs() + waitMs >= untilMs) throw tries.fault(request, clock.monotonicMs() - startedMs);
      if (waitMs > 0) await clock.sleep(waitMs, signal);
      await again?.();
    }
  }

  watch(request: WatchRequest, signal: AbortSignal): AsyncIterable<Watched> {
    const { clock, random, self, selfAddress, transport } = this.#ports;
    const { shard } = request;
    return watchThrough(request, signal, {
      clock,
      options: this.#options,
      backoff: () => new Backoff(this.#options, random),
      known: () => this.#owners.known(shard),
      find: () => this.#owners.find(shard),
      forget: (to) => this.#owners.forget(shard, to),
      correct: (to, hint) => this.#owners.correct(shard, to, hint),
      isPast: (stamp) => stamp.epoch < (this.#newest.get(shard)?.epoch ?? 0),
      see: (stamp) => this.#see(shard, stamp),
      open: (to, from, limited) =>
        self && to === selfAddress ? self.watch(from, limited) : transport.watch(to, from, limited),
    });
  }

  async #try(request: ShardRequest, untilMs: number, signal: AbortSignal | undefined): Promise<TryResult> {
    const { clock } = this.#ports;
    const { doubtMs } = this.#options;
    const { shard } = request;
    const heldMs = request.kind === "command" ? (request.waitMs ?? 0) : 0;
    const beganMs = clock.monotonicMs();
    const tryMs = Math.min(this.#options.tryMs + heldMs, untilMs - beganMs);
    const late = (): Fault => new Fault("unavailable", "ask owner", { shard, tryMs: Math.round(tryMs) });
    let to: Address | undefined;
    const limited = new Deadline(clock, Math.min(tryMs, doubtMs), signal, () => {
      const nowMs = clock.monotonicMs();
      const leftMs = beganMs + tryMs - nowMs;
      if (leftMs <= 0) return late();
      if (to !== undefined) void this.#doubt(shard, to, () => limited.end(late()));
      return Math.min(leftMs, nextOf(doubtMs, nowMs));
    });
    try {
      to = this.#owners.known(shard) ?? (await limited.orOver(this.#owners.find(shard)));
      if (to === undefined) return { to: "nobody", again: "the shard has no owner" };
      const asOf = this.#newest.get(shard);
      return this.#judge(shard, to, await this.#send(to, request, limited), asOf);
    } catch (error) {
      // Callers with short deadlines must not all run into an owner that hangs: the first one refreshes the map for the
      // next.
      if (signal?.aborted && to !== undefined) this.#owners.hasMoved(shard, to, doubtMs).catch(() => {});
      signal?.throwIfAborted();
      if (!isFault(error) || !isWorthRetrying(error)) throw error;
      if (to !== undefined) this.#owners.forget(shard, to);
      // A node that was asked and did not answer in time may have done it.
      const unknown = error.code === "unknown-outcome" || (to !== undefined && limited.signal.aborted);
      return { to: to ?? "nobody", again: error.message, unknown };
    } finally {
      limited[Symbol.dispose]();
    }
  }

  /** A node that hangs or sleeps sends nothing at all; the map says who owns the shard meanwhile. */
  async #doubt(shard: ShardId, to: Address, leave: () => void): Promise<void> {
    if (await this.#owners.hasMoved(shard, to, this.#options.doubtMs).catch(() => false)) leave();
  }

  #send(to: Address, request: ShardRequest, limited: Deadline): Promise<ShardResponse> {
    const { self, selfAddress, transport } = this.#ports;
    // A node that hangs must not block its own callers either.
    if (self && to === selfAddress) return limited.orOver(self.request(request, limited.signal));
    return transport.request(to, request, limited.signal);
  }

  #judge(shard: ShardId, to: Address, response: ShardResponse, asOf: Stamp | undefined): TryResult {
    switch (response.kind) {
      case "not-owner":
        return { to, again: "not the owner", hinted: this.#owners.correct(shard, to, response.hint) };
      case "overloaded":
        return { to, again: "overloaded", waitMs: response.retryAfterMs };
      case "interrupted":
        this.#owners.forget(shard, to);
        return { to, again: `interrupted: ${response.why}`, unknown: true };
      default: {
        const epochSeen = this.#newest.get(shard)?.epoch ?? 0;
        if (response.stamp.epoch < epochSeen || (asOf && isOlder(response.stamp, asOf))) {
          this.#owners.forget(shard, to);
          return { to, again: `an answer of the outdated epoch ${response.stamp.epoch}`, unknown: true };
        }
        this.#see(shard, response.stamp);
        return { to, settled: response };
      }
    }
  }

  #see(shard: ShardId, stamp: Stamp): void {
    const seen = this.#newest.get(shard);
    if (!seen || isOlder(seen, stamp)) this.#newest.set(shard, stamp);
  }
}

export const isOlder = (a: Stamp, b: Stamp): boolean => a.epoch < b.epoch || (a.epoch === b.epoch && a.seq < b.seq);

/** Failures that another try may fix. The others (invalid, not-found, corrupt, internal) would only fail again. */
export const isWorthRetrying = ({ code }: Fault): boolean =>
  code === "unavailable" || code === "unknown-outcome" || code === "exhausted" || code === "stale";

type TryResult = {
  readonly to: Address;
  readonly settled?: Settled;
  /** Why it has to be tried again. */
  readonly again?: string;
  /** It may have been done. */
  readonly unknown?: boolean;
  readonly hinted?: boolean;
  readonly waitMs?: number;
};

/** For messages: what the request asks for. */
export function nameOf(request: ShardRequest): string {
  if (request.kind === "command") return request.command.kind;
  return request.kind === "query" ? request.query.kind : request.kind;
}

class TryLog {
  #last: TryResult | undefined;
  readonly #tried = new Set<Address>();
  #unknown = false;
  size = 0;

  add(tried: TryResult): void {
    this.size += 1;
    this.#last = tried;
    this.#unknown ||= tried.unknown ?? false;
    if (this.#tried.size < 5) this.#tried.add(tried.to);
  }

  fault(request: ShardRequest, afterMs: number): Fault {
    const code = this.#unknown && request.kind !== "query" ? "unknown-outcome" : "unavailable";
    return new Fault(code, `ask shard ${request.shard} to ${nameOf(request)}`, {
      tries: this.size,
      afterMs: Math.round(afterMs),
      tried: [...this.#tried].join(","),
      last: this.#last?.again,
    });
  }
}

/** The time until the next multiple of `everyMs`, so that many long waits wake the node once, together. */
function nextOf(everyMs: number, nowMs: number): number {
  const leftMs = everyMs - (nowMs % everyMs);
  return leftMs < everyMs / 2 ? leftMs + everyMs : leftMs;
}
