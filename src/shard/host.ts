/**
 * The owner's side of the protocol, for all shards of one node: commands are decided in memory as they arrive, made
 * durable together (host-committer.ts) and only then answered.
 *
 * If deciding goes wrong the command is refused alone (K12). If applying goes wrong our own code is: the shard's
 * memory is dropped and rebuilt from its log, and the command that did it is refused from then on.
 */
import type { Clock } from "#base/clock.ts";
import { Fault } from "#base/fault.ts";
import type { ShardId } from "#base/ids.ts";
import { hash32 } from "#base/random.ts";
import type { BlobStore } from "#blobs/store.ts";
import { answer } from "#kernel/answer.ts";
import type { Command, CommandOf } from "#kernel/command.ts";
import type { Query } from "#kernel/query.ts";
import type { Rejection } from "#kernel/rejection.ts";
import type { Replies, Reply } from "#kernel/reply.ts";
import { step, type Outcome } from "#kernel/step.ts";
import type { Epoch, Journal, NodeId } from "#journal/journal.ts";
import { absorb } from "./host-absorb.ts";
import { speak, tellsAbsence, type Parked, type SealedBatch, type Settle } from "./host-batch.ts";
import { Committer } from "./host-committer.ts";
import { Preparer } from "./host-prepare.ts";
import { HostedShard, type Hosting, type LossReason } from "./host-shard.ts";
import { defaultHostSettings, type HostSettings } from "./host-settings.ts";
import { serveWatch } from "./host-watch.ts";
import { weigh } from "./host-weigh.ts";
import { KernelClock, type StoreClock } from "./kernel-clock.ts";
import { isInternal, type ShardRequest, type ShardResponse, type ShardService, type Stamp } from "./protocol.ts";
import type { WatchMessage, WatchRequest } from "./protocol.ts";
import type { Waiter } from "./waiters.ts";
import type { DurableEvents } from "./watchers.ts";

/** Others who follow what a shard does: projector, snapshotter, archiver. Called in order, in the host's own turn. */
export type ShardObserver = {
  adopted?(shard: HostedShard): void;
  /** The state holds exactly what the log will hold up to `stamp`, once that is durable. */
  sealed?(shard: HostedShard, stamp: Stamp): void;
  durable?(shard: HostedShard, batch: SealedBatch): void;
  gone?(shard: HostedShard): void;
  /** A reason why no new work is taken in. */
  full?(shard: HostedShard): Rejection | undefined;
};

export type HostPorts = {
  readonly node: NodeId;
  readonly clock: Clock;
  readonly storeClock: StoreClock;
  readonly journal: Pick<Journal, "append" | "confirm" | "tail" | "findKeys">;
  readonly blobs: Pick<BlobStore, "pin">;
  readonly settings?: Partial<HostSettings>;
  readonly observers?: readonly ShardObserver[];
  /** Where the node believes the shard's owner to be. */
  readonly hintOf: (shard: ShardId) => string | undefined;
  readonly lost: (shard: ShardId, epoch: Epoch, why: LossReason) => void;
  readonly report: (doing: string, error: unknown) => void;
};

const poisonsMax = 1_000;
/** How many waiting executors in a row may turn out not to be servable before the others wait for the next turn. */
const fruitlessMax = 16;

export class ShardHost implements ShardService {
  readonly #ports: HostPorts;
  readonly #settings: HostSettings;
  readonly #shards = new Map<ShardId, HostedShard>();
  readonly #committer: Committer;
  readonly #preparer: Preparer;
  readonly #observers: readonly ShardObserver[];
  /** Commands that broke a shard, by hash: they are not tried again. */
  readonly #poisons = new Set<number>();
  #requests = 0;
  #requestBytes = 0;
  #stopped = false;
  #cancelTick: (() => void) | undefined;
  #cancelHeartbeat: (() => void) | undefined;

  constructor(ports: HostPorts) {
    this.#ports = ports;
    const settings = { ...defaultHostSettings, ...ports.settings };
    this.#settings = settings;
    this.#observers = ports.observers ?? [];
    const { clock, journal, blobs, storeClock, report } = ports;
    this.#preparer = new Preparer({ clock, journal, blobs, pinMs: settings.pinMs });
    this.#committer = new Committer({
      clock,
      journal,
      storeClock,
      report,
      sealed: (shard, stamp) => this.#observers.forEach((observer) => observer.sealed?.(shard, stamp)),
      release: (shard, batch) => this.#release(shard, batch),
      lose: (shard, why, doubtful) => this.#drop(shard, why, doubtful, undefined),
      unsealable: (shard, error) => this.#unsealable(shard, error),
    });
  }

  start(): void {
    this.#scheduleTick(this.#settings.tickMs);
    this.#scheduleHeartbeat();
  }

  /** Ends everything at once and says nothing to anyone: what a crash would do. */
  kill(): void {
    this.#stopped = true;
    this.#committer.stop();
    this.#cancelTick?.();
    this.#cancelHeartbeat?.();
  }

  get shards(): ReadonlyMap<ShardId, HostedShard> {
    return this.#shards;
  }

  request(request: ShardRequest, signal?: AbortSignal): Promise<ShardResponse> {
    return new Promise((resolve) => this.#receive(request, resolve, signal));
  }

  watch(request: WatchRequest, signal: AbortSignal): AsyncIterable<WatchMessage> {
    return serveWatch({
      request,
      signal,
      find: (shard) => this.#serving(shard),
      hintOf: this.#ports.hintOf,
      touch: (shard) => this.#committer.touch(shard),
    });
  }

  /** A command of the node's own. Throws a Fault when it was not done. */
  async internal(shardId: ShardId, command: CommandOf<"tick" | "forget" | "take-quota">): Promise<Reply> {
    const shard = this.#serving(shardId);
    if (!shard) throw new Fault("unavailable", command.kind, { shard: shardId, why: "not served here" });
    const response = await new Promise<ShardResponse>((settle) => this.#execute(shard, command, { settle }));
    if (response.kind === "reply") return response.reply;
    throw new Fault("unavailable", command.kind, { shard: shardId, why: response.kind });
  }

  /**
   * Takes the shard in under the epoch that was acquired for it, with its state replayed to a tail that was read
   * after that. Resolves when the take-over is durable: only then is anything served.
   */
  adopt(hosting: Hosting, recent: readonly DurableEvents[] = []): Promise<void> {
    const { clock, storeClock, node } = this.#ports;
    const kernelClock = new KernelClock(clock, storeClock, hosting.state.nowMs);
    const shard = new HostedShard(hosting, kernelClock, clock, this.#settings);
    shard.watchers.beginAfter((recent[0]?.stamp.seq ?? hosting.seq + 1) - 1);
    for (const durable of recent) shard.watchers.remember(durable);
    return new Promise((resolve, reject) => {
      this.#shards.set(hosting.shard, shard);
      for (const observer of this.#observers) observer.adopted?.(shard);
      shard.open.atRelease.push(() => {
        shard.phase = "serving";
        shard.tickDueMono = clock.monotonicMs();
        resolve();
      });
      shard.open.atLoss.push(() => reject(new Fault("stale", "take over shard", { shard: hosting.shard })));
      const command: Command = { kind: "take-over", epoch: hosting.epoch, node };
      this.#execute(shard, command, { settle: () => {} });
    });
  }

  /** Stops intake and resolves when everything taken in is durable and answered, or the shard is gone. */
  async drain(shardId: ShardId): Promise<void> {
    const shard = this.#shards.get(shardId);
    if (!shard || shard.phase === "gone") return;
    shard.phase = "leaving";
    this.#answerWaiters(shard, this.#ports.hintOf(shardId));
    await shard.idle();
  }

  /** Gives the shard up. `hint` is where it will be served. */
  drop(shardId: ShardId, why: LossReason, hint?: string): void {
    const shard = this.#shards.get(shardId);
    if (shard) this.#drop(shard, why, true, hint);
  }

  #serving(shardId: ShardId): HostedShard | undefined {
    const shard = this.#shards.get(shardId);
    return shard?.phase === "serving" ? shard : undefined;
  }

  #receive(request: ShardRequest, settle: Settle, signal?: AbortSignal): void {
    const shard = this.#serving(request.shard);
    if (!shard) return settle(this.#elsewhere(request.shard));
    if (request.kind === "take") return settle({ kind: "reply", stamp: shard.stamp, reply: { claims: 0 } });
    const weightBytes = request.kind === "command" ? weigh(request.command) : 0;
    if (this.#isOverloaded(shard, weightBytes)) return settle(this.#overloaded());
    this.#count(shard, 1, weightBytes);
    let settled = false;
    const counted: Settle = (response) => {
      if (settled) return;
      settled = true;
      this.#count(shard, -1, -weightBytes);
      settle(response);
    };
    if (request.kind === "query") return this.#ask(shard, request.query, counted);
    this.#command(shard, request.command, {
      settle: counted,
      hold: settle,
      weightBytes,
      waitMs: Math.min(request.waitMs ?? 0, this.#settings.waitMsMax),
      signal,
    });
  }

  #command(shard: HostedShard, command: Command, asked: Asked): void {
    let prepared: Command | Promise<Command>;
    try {
      const rejection = this.#refusal(shard, command);
      if (rejection) return this.#park(shard, asked, { kind: "rejected", rejection });
      prepared = this.#preparer.prepare(shard, command);
    } catch (error) {
      return this.#park(shard, asked, { kind: "rejected", rejection: broken(error) });
    }
    if (!(prepared instanceof Promise)) return this.#execute(shard, prepared, asked);
    prepared.then(
      (ready) => {
        if (this.#serving(shard.shard) === shard) this.#execute(shard, ready, asked);
        else asked.settle(this.#elsewhere(shard.shard));
      },
      (error: unknown) => {
        this.#ports.report(`prepare ${command.kind}`, error);
        asked.settle(this.#overloaded());
      },
    );
  }

  #refusal(shard: HostedShard, command: Command): Rejection | undefined {
    if (isInternal(command.kind)) return { kind: "invalid", path: "kind", why: "only a shard's own host may say this" };
    if (this.#poisons.size > 0 && this.#poisons.has(fingerprint(command)))
      return { kind: "broken", why: "the same command broke the shard before" };
    if (command.kind !== "submit") return undefined;
    for (const observer of this.#observers) {
      const full = observer.full?.(shard);
      if (full) return full;
    }
    return undefined;
  }

  #execute(shard: HostedShard, command: Command, asked: Asked): void {
    if (shard.phase === "gone") return asked.settle(this.#elsewhere(shard.shard));
    try {
      this.#step(shard, command, asked);
    } catch (error) {
      return this.#broke(shard, command, error, asked.settle);
    }
    if (shard.state.woken.size > 0) this.#wake(shard);
  }

  /** Decides, and parks the answer; or holds an executor that there is no work for. */
  #step(shard: HostedShard, command: Command, asked: Asked): void {
    const outcome = this.#decide(shard, command);
    const { events } = outcome;
    if (!outcome.ok) return this.#park(shard, asked, { kind: "rejected", rejection: outcome.rejection }, events);
    const { reply } = outcome;
    if (command.kind === "reserve" && asked.hold && (asked.waitMs ?? 0) > 0 && events.length === 0)
      if ((reply as Replies["reserve"]).grants.length === 0) return this.#hold(shard, command, asked);
    if (command.kind === "tick") this.#ticked(shard, reply as Replies["tick"]);
    // Hearing that a claim is lost an executor stops its work: as grave as a refusal.
    if (command.kind === "renew" && (reply as Replies["renew"]).lost.length > 0) shard.open.needsConfirm = true;
    if (command.kind === "tick" && events.length === 0) return asked.settle(replyOf(shard, reply));
    this.#park(shard, asked, { kind: "reply", reply }, events);
  }

  #decide(shard: HostedShard, command: Command): Outcome {
    const { storeClock } = this.#ports;
    const storeNowMs = (): number => storeClock.nowMs();
    return step(shard.state, command, shard.nowMs(), (event) => absorb(shard, event, storeNowMs));
  }

  #park(shard: HostedShard, asked: Asked, said: Parked["said"], events: Parked["events"] = []): void {
    if (said.kind === "rejected" && tellsAbsence(said.rejection)) shard.open.needsConfirm = true;
    shard.park({ settle: asked.settle, said, events, weightBytes: asked.weightBytes ?? 0 });
    this.#committer.touch(shard);
  }

  #ask(shard: HostedShard, query: Query, settle: Settle): void {
    try {
      const outcome = answer(shard.state, query, shard.nowMs());
      if (outcome.ok) this.#park(shard, { settle }, { kind: "answer", answer: outcome.answer });
      else this.#park(shard, { settle }, { kind: "rejected", rejection: outcome.rejection });
    } catch (error) {
      this.#ports.report(`answer ${query.kind}`, error);
      this.#park(shard, { settle }, { kind: "rejected", rejection: broken(error) });
    }
  }

  #hold(shard: HostedShard, command: CommandOf<"reserve">, asked: Asked): void {
    const { signal, hold } = asked;
    // Held requests have a bound of their own; they count as requests again when there is work for them.
    const settle: Settle = (response) => {
      signal?.removeEventListener("abort", left);
      hold?.(response);
    };
    const waiter: Waiter = { command, settle, untilMono: this.#ports.clock.monotonicMs() + (asked.waitMs ?? 0) };
    const left = (): void => {
      if (shard.waiters.remove(waiter)) settle(this.#overloaded());
    };
    if (signal?.aborted) return asked.settle(this.#overloaded());
    const added = shard.waiters.add(waiter);
    if (!added) return asked.settle(this.#overloaded());
    added.replaced?.settle(this.#overloaded());
    signal?.addEventListener("abort", left, { once: true });
    this.#count(shard, -1, -(asked.weightBytes ?? 0));
  }

  /** There is new work: tries those who wait for such, in turn. */
  #wake(shard: HostedShard): void {
    const { state, waiters } = shard;
    const woken = [...state.woken];
    state.woken.clear();
    if (waiters.size === 0) return;
    const tried = new Set<Waiter>();
    for (const readyClass of woken) {
      for (let fruitless = 0; readyClass.ready > 0 && fruitless < fruitlessMax;) {
        const waiter = waiters.next(readyClass.requires, tried);
        if (!waiter) break;
        tried.add(waiter);
        try {
          fruitless = this.#serve(shard, waiter) ? 0 : fruitless + 1;
        } catch (error) {
          return this.#broke(shard, waiter.command, error, waiter.settle);
        }
      }
    }
    // Whatever the grants woke has just been looked at.
    state.woken.clear();
  }

  /** False when there is no work for this one after all. */
  #serve(shard: HostedShard, waiter: Waiter): boolean {
    const outcome = this.#decide(shard, waiter.command);
    const { ok, events } = outcome;
    if (ok && (outcome.reply as Replies["reserve"]).grants.length === 0) {
      if (events.length > 0) this.#committer.touch(shard);
      return false;
    }
    shard.waiters.remove(waiter);
    const said: Parked["said"] = ok
      ? { kind: "reply", reply: outcome.reply }
      : { kind: "rejected", rejection: outcome.rejection };
    this.#park(shard, waiter, said, events);
    return true;
  }

  #release(shard: HostedShard, batch: SealedBatch): void {
    const { stamp, events, jobs, payload } = batch;
    for (const parked of batch.parked) speak(parked, stamp);
    if (payload) {
      shard.watchers.publish({ stamp, events, jobs, sizeBytes: payload.length });
      for (const observer of this.#observers) observer.durable?.(shard, batch);
    }
    for (const run of batch.atRelease) run(stamp);
  }

  #broke(shard: HostedShard, command: Command, error: unknown, settle: Settle): void {
    this.#ports.report(`shard ${shard.shard} broke on ${command.kind}: it is rebuilt from its log`, error);
    if (!isInternal(command.kind) && this.#poisons.size < poisonsMax) this.#poisons.add(fingerprint(command));
    settle({ kind: "rejected", stamp: shard.stamp, rejection: broken(error) });
    this.#drop(shard, "broken", true, undefined);
  }

  /** What was decided cannot be written down. Nothing of it was: those who did it are refused, the others try again. */
  #unsealable(shard: HostedShard, error: unknown): void {
    this.#ports.report(`shard ${shard.shard} cannot be written down: it is rebuilt from its log`, error);
    for (const { settle, events } of shard.open.parked)
      if (!isPlain(events)) settle({ kind: "rejected", stamp: shard.stamp, rejection: broken(error) });
    this.#drop(shard, "broken", true, undefined);
  }

  #drop(shard: HostedShard, why: LossReason, doubtful: boolean, hint: string | undefined): void {
    if (shard.phase === "gone") return;
    const { inFlight, open } = shard;
    const where = hint ?? (why === "broken" ? undefined : this.#ports.hintOf(shard.shard));
    const nothingDone: ShardResponse =
      why === "broken" ? this.#overloaded() : { kind: "not-owner", shard: shard.shard, hint: where };
    shard.phase = "gone";
    this.#shards.delete(shard.shard);
    this.#committer.forget(shard);
    this.#preparer.forget(shard);
    const interrupted: ShardResponse = { kind: "interrupted", why: `the owner lost its say (${why})` };
    for (const { settle, events } of inFlight?.parked ?? [])
      settle(doubtful && events.length > 0 ? interrupted : nothingDone);
    for (const { settle } of open.parked) settle(nothingDone);
    this.#answerWaiters(shard, where);
    shard.watchers.moved(where);
    for (const run of [...(inFlight?.atLoss ?? []), ...open.atLoss]) run();
    for (const observer of this.#observers) observer.gone?.(shard);
    shard.noteIdle();
    this.#ports.lost(shard.shard, shard.epoch, why);
  }

  #answerWaiters(shard: HostedShard, hint: string | undefined): void {
    for (const { settle } of shard.waiters.clear()) settle({ kind: "not-owner", shard: shard.shard, hint });
  }

  #scheduleTick(ms: number): void {
    if (!this.#stopped) this.#cancelTick = this.#ports.clock.after(ms, () => this.#tick());
  }

  #tick(): void {
    const { clock } = this.#ports;
    const { tickMs, tickMsMin } = this.#settings;
    let nextMono = clock.monotonicMs() + tickMs;
    for (const shard of this.#shards.values()) {
      if (shard.phase !== "serving") continue;
      if (shard.tickDueMono <= clock.monotonicMs()) this.#execute(shard, { kind: "tick" }, { settle: () => {} });
      for (const waiter of shard.waiters.expired(clock.monotonicMs())) this.#execute(shard, waiter.command, waiter);
      nextMono = Math.min(nextMono, shard.tickDueMono);
    }
    this.#scheduleTick(Math.max(tickMsMin, nextMono - clock.monotonicMs()));
  }

  #ticked(shard: HostedShard, { more, nextDueInMs }: Replies["tick"]): void {
    const inMs = more ? 0 : Math.min(nextDueInMs, this.#settings.tickMs);
    shard.tickDueMono = this.#ports.clock.monotonicMs() + Math.max(0, inMs);
  }

  #scheduleHeartbeat(): void {
    if (this.#stopped) return;
    this.#cancelHeartbeat = this.#ports.clock.after(this.#settings.heartbeatMs, () => {
      for (const shard of this.#shards.values())
        if (shard.phase === "serving" && shard.leaseStands) shard.watchers.heartbeat(shard.stamp);
      this.#scheduleHeartbeat();
    });
  }

  #elsewhere(shard: ShardId): ShardResponse {
    const phase = this.#shards.get(shard)?.phase;
    if (phase === "taking-over") return this.#overloaded();
    return { kind: "not-owner", shard, hint: this.#ports.hintOf(shard) };
  }

  #overloaded(): ShardResponse {
    return { kind: "overloaded", retryAfterMs: this.#settings.retryAfterMs };
  }

  #isOverloaded(shard: HostedShard, weightBytes: number): boolean {
    const { requestsMax, requestBytesMax, nodeRequestsMax, nodeRequestBytesMax } = this.#settings;
    return (
      shard.requests >= requestsMax ||
      shard.requestBytes + weightBytes > requestBytesMax ||
      this.#requests >= nodeRequestsMax ||
      this.#requestBytes + weightBytes > nodeRequestBytesMax
    );
  }

  #count(shard: HostedShard, requests: number, bytes: number): void {
    shard.requests += requests;
    shard.requestBytes += bytes;
    this.#requests += requests;
    this.#requestBytes += bytes;
  }
}

/** Who asked, and how to answer. */
type Asked = {
  readonly settle: Settle;
  /** Answers a request that no longer counts as one, being held. */
  readonly hold?: Settle;
  readonly weightBytes?: number;
  readonly waitMs?: number;
  readonly signal?: AbortSignal | undefined;
};

const replyOf = (shard: HostedShard, reply: Replies["tick"] | object): ShardResponse =>
  ({ kind: "reply", stamp: shard.stamp, reply }) as ShardResponse;

const broken = (error: unknown): Rejection => ({
  kind: "broken",
  why: error instanceof Error ? error.message : String(error),
});

function isPlain(events: readonly object[]): boolean {
  try {
    JSON.stringify(events);
    return true;
  } catch {
    return false;
  }
}

function fingerprint(command: Command): number {
  try {
    return hash32(JSON.stringify(command));
  } catch {
    return hash32(command.kind);
  }
}
