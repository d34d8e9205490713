/**
 * The owner's side of the protocol, for all shards of one node: commands are decided in memory as they arrive
 * (host/desk.ts), made durable together (host/committer.ts) and only then answered.
 *
 * If deciding throws, the command is refused alone (K12). If applying throws, our own code is wrong: the shard's memory
 * is dropped and rebuilt from its log, and the command that caused it is refused from then on.
 */
import type { Clock } from "#base/clock.ts";
import { Fault } from "#base/fault.ts";
import type { ShardId } from "#base/ids.ts";
import type { Command, CommandOf } from "#kernel/model/command.ts";
import { Memory } from "#kernel/memory/memory.ts";
import type { Rejection } from "#kernel/model/rejection.ts";
import type { Reply } from "#kernel/model/reply.ts";
import type { Epoch, Journal, NodeId } from "#journal/journal.ts";
import { PendingRequest, PendingCommands, noRequester, type Requester } from "./pending-request.ts";
import { sendAnswer, type SealedBatch } from "./batch.ts";
import { Committer } from "./committer.ts";
import { broken, Desk, type Hold, type UnclaimedWork } from "./desk.ts";
import { Load } from "./load.ts";
import type { ShardObserver } from "./observer.ts";
import { Poisons } from "./poison.ts";
import { namesBlobs, Preparer, type PinsOf } from "./prepare.ts";
import { Preparing, type PreparedPorts } from "./preparing.ts";
import { Pulse } from "./pulse.ts";
import { defaultHostSettings, type HostSettings } from "./settings.ts";
import { HostedShard, type Hosting, type LossReason } from "./shard.ts";
import { serveWatch } from "./watch.ts";
import { weighRequest } from "./weigh.ts";
import { WholeTexts, type LostInput } from "#shard/texts/whole-texts.ts";
import { KernelClock, type StoreClocks } from "./kernel-clock.ts";
import type { LargeTexts } from "#shard/texts/large-texts.ts";
import { isInternal, type ShardRequest, type ShardResponse, type ShardService } from "#shard/transport/protocol.ts";
import type { WatchMessage, WatchRequest } from "#shard/transport/protocol.ts";
import { hasTexts } from "#shard/texts/text-fields.ts";
import { WatchMemory } from "#shard/watch/watch-memory.ts";
import type { DurableEvents } from "#shard/watch/watchers.ts";

export type HostPorts = {
  readonly node: NodeId;
  readonly clock: Clock;
  readonly storeClocks: StoreClocks;
  readonly journal: Pick<Journal, "partition" | "append" | "confirm" | "tail" | "findKeys">;
  readonly pins: PinsOf;
  readonly settings?: Partial<HostSettings>;
  /** What every member of the cluster can read; left out, everything that this program writes. */
  readonly featureLevel?: () => number;
  /** Keeps long texts in the store; left out, they stay in memory. */
  readonly texts?: LargeTexts | undefined;
  /** Memory limit shared by all shards of the node; left out, each shard has its own. */
  readonly memory?: Memory | undefined;
  readonly observers?: readonly ShardObserver[];
  /** The address of the shard's owner, as far as this node knows. */
  readonly hintOf: (shard: ShardId) => string | undefined;
  /** This node owns the shard and is still reading its log. */
  readonly isLoading?: (shard: ShardId) => boolean;
  readonly lost: (shard: ShardId, epoch: Epoch, why: LossReason) => void;
  /** There is new work in a shard, and no executor that waits there has taken it. */
  readonly unclaimed?: (shard: ShardId, work: UnclaimedWork) => void;
  readonly report: (doing: string, error: unknown) => void;
};

export class ShardHost implements ShardService {
  readonly #ports: HostPorts;
  readonly #settings: HostSettings;
  readonly #shards = new Map<ShardId, HostedShard>();
  /** By database: one that does not answer delays only its own commits. */
  readonly #committers = new Map<number, Committer>();
  #isKilled = false;
  readonly #preparer: Preparer;
  readonly #desk: Desk;
  readonly #load: Load;
  readonly #pulse: Pulse;
  readonly #observers: readonly ShardObserver[];
  readonly #poisons = new Poisons();
  readonly #watched: WatchMemory;
  readonly #prepared: PreparedPorts;
  readonly #whole: WholeTexts | undefined;

  constructor(ports: HostPorts) {
    this.#ports = ports;
    const settings = { ...defaultHostSettings, ...ports.settings };
    this.#settings = settings;
    this.#observers = ports.observers ?? [];
    this.#load = new Load(settings);
    this.#watched = new WatchMemory(settings.nodeUnreadBytesMax);
    const { clock, journal, pins, texts, report } = ports;
    this.#preparer = new Preparer({ clock, journal, pins, texts, pinMs: settings.pinMs });
    this.#whole = texts && new WholeTexts(texts, (shard, lost) => this.#inputLost(shard, lost));
    this.#desk = new Desk({
      clock,
      tickMs: settings.tickMs,
      featureLevel: ports.featureLevel ?? (() => Number.POSITIVE_INFINITY),
      load: this.#load,
      touch: (shard) => this.#committerOf(shard.shard).touch(shard),
      broke: (shard, command, error, asker) => this.#broke(shard, command, error, asker),
      overloaded: () => this.#overloaded(),
      refused: (shard, rejection) => this.#observers.forEach((observer) => observer.refused?.(shard, rejection)),
      unclaimed: ({ shard }, work) => ports.unclaimed?.(shard, work),
      report,
    });
    this.#prepared = {
      ready: (shard, command, asker) => {
        if (shard.phase === "serving") this.#desk.execute(shard, command, asker);
        else asker.settle(this.#elsewhere(shard.shard));
      },
      failed: (asker, error) => {
        report("prepare a command", error);
        asker.settle(this.#overloaded());
      },
    };
    const tick = (shard: HostedShard, byMono: number): void => this.#desk.tick(shard, byMono);
    this.#pulse = new Pulse({ clock, settings, shards: () => this.#shards.values(), tick });
  }

  start(): void {
    this.#pulse.start();
  }

  /** Stops everything at once without answering anyone, as a crash would. */
  kill(): void {
    this.#isKilled = true;
    for (const committer of this.#committers.values()) committer.stop();
    this.#pulse.stop();
  }

  get shards(): ReadonlyMap<ShardId, HostedShard> {
    return this.#shards;
  }

  request(request: ShardRequest, signal?: AbortSignal): Promise<ShardResponse> {
    const whole = this.#whole;
    if (!whole?.mayHold(request)) return new Promise((resolve) => this.#receive(request, resolve, signal));
    const answered = new Promise<ShardResponse>((resolve) => this.#receive(request, resolve, signal));
    return answered.then((response) => whole.response(request, response));
  }

  watch(request: WatchRequest, signal: AbortSignal): AsyncIterable<WatchMessage> {
    const messages = serveWatch({
      request,
      signal,
      find: (shard) => this.#serving(shard),
      hintOf: this.#ports.hintOf,
      touch: (shard) => this.#committerOf(shard.shard).touch(shard),
    });
    return this.#whole ? this.#whole.messages(messages) : messages;
  }

  /** Runs a command of the node itself. Throws a Fault if it was not done. */
  async internal(
    shardId: ShardId,
    command: CommandOf<"forget" | "take-quota" | "published" | "notified" | "record-manifest">,
  ): Promise<Reply> {
    const shard = this.#serving(shardId);
    if (!shard) throw new Fault("unavailable", command.kind, { shard: shardId, why: "not served here" });
    const response = await new Promise<ShardResponse>((settle) => this.#desk.execute(shard, command, { settle }));
    if (response.kind === "reply") return response.reply;
    const why = response.kind === "rejected" ? response.rejection.kind : response.kind;
    throw new Fault("unavailable", command.kind, { shard: shardId, why });
  }

  /**
   * Takes the shard in under its acquired epoch, with the state replayed to a tail that was read after that. Resolves
   * when the take-over is durable: nothing is served before.
   */
  adopt(hosting: Hosting, recent: readonly DurableEvents[] = []): Promise<void> {
    const { clock, storeClocks, node } = this.#ports;
    const storeClock = storeClocks.of(hosting.shard);
    const kernelClock = new KernelClock(clock, storeClock, hosting.state.nowMs);
    if (this.#ports.memory) hosting.state.shareMemory(this.#ports.memory);
    const shard = new HostedShard(hosting, kernelClock, clock, this.#settings, this.#watched);
    shard.watchers.beginAfter((recent[0]?.stamp.seq ?? hosting.seq + 1) - 1);
    for (const durable of recent) shard.watchers.remember(durable);
    return new Promise((resolve, reject) => {
      this.#shards.set(hosting.shard, shard);
      for (const observer of this.#observers) observer.adopted?.(shard);
      let tookOver = false;
      shard.open.atRelease.push(() => {
        if (!tookOver) return this.#drop(shard, "broken", true, undefined);
        shard.phase = "serving";
        shard.tickDueMono = clock.monotonicMs();
        resolve();
      });
      const failed = (): void => reject(new Fault("stale", "take over shard", { shard: hosting.shard }));
      shard.open.atLoss.push(failed);
      const asker: Requester = {
        settle({ kind }) {
          tookOver = kind === "reply";
          if (!tookOver) failed();
        },
      };
      this.#desk.execute(shard, { kind: "take-over", epoch: hosting.epoch, node }, asker);
    });
  }

  /** Stops accepting requests and resolves when all accepted ones are durable and answered, or the shard is gone. */
  async drain(shardId: ShardId): Promise<void> {
    const shard = this.#shards.get(shardId);
    if (!shard) return;
    shard.phase = "leaving";
    for (const waiter of shard.waiters.clear()) waiter.settle(this.#elsewhere(shardId));
    await shard.idle();
  }

  /** Gives the shard up. `hint` is the address where it will be served. */
  drop(shardId: ShardId, why: LossReason, hint?: string): void {
    const shard = this.#shards.get(shardId);
    if (shard) this.#drop(shard, why, true, hint);
  }

  #committerOf(shard: ShardId): Committer {
    const database = this.#ports.journal.partition?.databaseOf(shard) ?? 0;
    const known = this.#committers.get(database);
    if (known) return known;
    const { clock, journal, storeClocks, report } = this.#ports;
    const made = new Committer({
      clock,
      journal,
      storeClock: storeClocks.of(shard),
      report,
      claims: () => this.#shards.values().reduce((sum, { state }) => sum + state.claims, 0),
      sealed: (shard, stamp) => this.#observers.forEach((observer) => observer.sealed?.(shard, stamp)),
      unsealable: (shard, error) => this.#unsealable(shard, error),
      release: (shard, batch) => this.#release(shard, batch),
      lose: (shard, why, doubtful) => this.#drop(shard, why, doubtful, undefined),
    });
    if (this.#isKilled) made.stop();
    this.#committers.set(database, made);
    return made;
  }

  #serving(shardId: ShardId): HostedShard | undefined {
    const shard = this.#shards.get(shardId);
    return shard?.phase === "serving" ? shard : undefined;
  }

  #receive(request: ShardRequest, resolve: (response: ShardResponse) => void, signal: AbortSignal | undefined): void {
    const shard = this.#serving(request.shard);
    if (!shard || request.kind === "take") return resolve(this.#elsewhere(request.shard));
    const weightBytes = weighRequest(request);
    if (signal?.aborted || !this.#load.admit(shard, weightBytes)) return resolve(this.#overloaded());
    const asking = new PendingRequest(this.#load, shard, weightBytes, resolve);
    switch (request.kind) {
      case "query":
        return this.#desk.query(shard, request.query, asking);
      case "commands":
        return this.#commands(shard, request.commands, asking);
      case "command": {
        const forMs = Math.min(request.waitMs ?? 0, this.#settings.waitMsMax);
        return this.#command(shard, request.command, asking, forMs > 0 ? { forMs, asking, signal } : undefined);
      }
    }
  }

  #commands(shard: HostedShard, commands: readonly Command[], asking: PendingRequest): void {
    const { commandsMax } = this.#settings;
    if (!Array.isArray(commands) || commands.length === 0 || commands.length > commandsMax) {
      const why = `must be a list of 1 to ${commandsMax}`;
      return this.#desk.reject(shard, asking, { kind: "invalid", path: "commands", why });
    }
    const many = new PendingCommands(asking, commands.length);
    for (let i = 0; i < commands.length; i += 1) this.#command(shard, commands[i] as Command, many.at(i));
  }

  #command(shard: HostedShard, command: Command, asker: Requester, hold?: Hold): void {
    if (shard.phase !== "serving") return asker.settle(this.#elsewhere(shard.shard));
    try {
      const refusal = this.#refusal(shard, command);
      if (refusal) return this.#desk.reject(shard, asker, refusal);
      if (!hasTexts(command) && !namesBlobs(command)) return this.#desk.execute(shard, command, asker, hold);
      this.#preparer.prepare(shard, command, new Preparing(this.#prepared, shard, asker));
    } catch (error) {
      this.#desk.reject(shard, asker, broken(error));
    }
  }

  #refusal(shard: HostedShard, command: Command): Rejection | undefined {
    if (isInternal(command.kind))
      return { kind: "invalid", path: "kind", why: "only the shard's own host may send this command" };
    if (this.#poisons.has(command)) return { kind: "broken", why: "the same command broke the shard before" };
    // A submission that only joins adds no work.
    if (command.kind !== "submit" || command.joinOnly) return undefined;
    for (const observer of this.#observers) {
      const full = observer.full?.(shard);
      if (full) return full;
    }
    return undefined;
  }

  /** A task whose spec cannot be read is not granted: it is retried, perhaps on a node that can reach the store. */
  #inputLost(shardId: ShardId, { executor, task, token, why }: LostInput): void {
    const shard = this.#serving(shardId);
    if (!shard) return;
    this.#ports.report(`read the spec of a task of shard ${shardId}`, why);
    const message = `its spec is not in the store: ${why instanceof Error ? why.message : String(why)}`;
    this.#desk.execute(shard, { kind: "fail", executor, task, token, reason: "input-lost", message }, noRequester);
  }

  #release(shard: HostedShard, batch: SealedBatch): void {
    const { stamp, events, jobs, weightBytes } = batch;
    for (const parked of batch.parked) sendAnswer(parked, stamp);
    if (batch.payload) {
      shard.watchers.publish({ stamp, events, jobs, sizeBytes: weightBytes });
      for (const observer of this.#observers) observer.durable?.(shard, batch);
    }
    for (const run of batch.atRelease) run(stamp);
  }

  #broke(shard: HostedShard, command: Command, error: unknown, asker: Requester): void {
    this.#ports.report(`shard ${shard.shard} broke on ${kindOf(command)}: it is rebuilt from its log`, error);
    this.#poisons.add(command);
    asker.settle({ kind: "rejected", stamp: shard.stamp, rejection: broken(error) });
    this.#drop(shard, "broken", true, undefined);
  }

  /**
   * The decided events cannot be encoded, so nothing was done: their commands are refused, the others may try again.
   */
  #unsealable(shard: HostedShard, error: unknown): void {
    this.#ports.report(`shard ${shard.shard} cannot be encoded: it is rebuilt from its log`, error);
    for (const { asker, spoilt } of shard.open.parked)
      if (spoilt) asker.settle({ kind: "rejected", stamp: shard.stamp, rejection: broken(error) });
    this.#drop(shard, "broken", true, undefined);
  }

  #drop(shard: HostedShard, why: LossReason, doubtful: boolean, hint: string | undefined): void {
    if (shard.phase === "gone") return;
    const { inFlight, open } = shard;
    const where = hint ?? this.#ports.hintOf(shard.shard);
    shard.phase = "gone";
    shard.state.shareMemory(new Memory(shard.state.limits.stateBytesMax));
    this.#shards.delete(shard.shard);
    this.#committerOf(shard.shard).forget(shard);
    this.#preparer.forget(shard);
    const notOwner: ShardResponse = { kind: "not-owner", shard: shard.shard, hint: where };
    // A shard that broke will come back on this node.
    const nothingDone = why === "broken" ? this.#overloaded() : notOwner;
    const interrupted: ShardResponse = { kind: "interrupted", why: `the owner lost its say (${why})` };
    for (const { asker, changed } of inFlight?.parked ?? [])
      asker.settle(doubtful && changed ? interrupted : nothingDone);
    for (const { asker } of open.parked) asker.settle(nothingDone);
    for (const waiter of shard.waiters.clear()) waiter.settle(nothingDone);
    shard.watchers.moved(where);
    for (const run of [...(inFlight?.atLoss ?? []), ...open.atLoss]) run();
    for (const observer of this.#observers) observer.gone?.(shard);
    shard.noteIdle();
    this.#ports.lost(shard.shard, shard.epoch, why);
  }

  #elsewhere(shard: ShardId): ShardResponse {
    const isComing = this.#shards.get(shard)?.phase === "taking-over" || this.#ports.isLoading?.(shard) === true;
    return isComing ? this.#overloaded() : { kind: "not-owner", shard, hint: this.#ports.hintOf(shard) };
  }

  #overloaded(): ShardResponse {
    return { kind: "overloaded", retryAfterMs: this.#settings.retryAfterMs };
  }
}

/** A command that broke something may be malformed in any way. */
function kindOf(command: Command): string {
  try {
    return command.kind;
  } catch {
    return "a command that cannot be read";
  }
}
