/**
 * Decides commands and queries against a shard's memory, at once, and parks their answers in the open batch. Executors
 * without matching work are held, and tried again when there is work.
 */
import type { Clock } from "#base/clock.ts";
import { answer } from "#kernel/read/answer.ts";
import type { Command, CommandOf } from "#kernel/model/command.ts";
import type { Query } from "#kernel/read/query.ts";
import type { ReadyClass } from "#kernel/ready/ready-queue.ts";
import type { Rejection } from "#kernel/model/rejection.ts";
import type { Replies } from "#kernel/model/reply.ts";
import { step, type Outcome } from "#kernel/step.ts";
import { type Requester, type PendingRequest, noRequester } from "./pending-request.ts";
import { saysNotFound, unstamped, type UnstampedAnswer } from "./batch.ts";
import type { Load } from "./load.ts";
import type { HostedShard } from "./shard.ts";
import { weigh } from "./weigh.ts";
import type { ShardResponse } from "#shard/transport/protocol.ts";
import type { Waiter } from "#shard/watch/waiters.ts";

export type DeskPorts = {
  readonly clock: Clock;
  readonly tickMs: number;
  readonly featureLevel: () => number;
  readonly load: Load;
  readonly touch: (shard: HostedShard) => void;
  /** `apply` failed: the shard's memory no longer matches its log. */
  readonly broke: (shard: HostedShard, command: Command, error: unknown, asker: Requester) => void;
  readonly overloaded: () => ShardResponse;
  /** A limit is reached: a command is refused for it. */
  readonly refused: (shard: HostedShard, rejection: Rejection) => void;
  /** There is new work, and no executor that waits at this shard has taken it. */
  readonly unclaimed: (shard: HostedShard, work: UnclaimedWork) => void;
  readonly report: (doing: string, error: unknown) => void;
};

/** The labels it requires, how much there is, and the affinity hint, if it has one. */
export type UnclaimedWork = Pick<ReadyClass, "requires" | "planning" | "ready"> & {
  readonly affinity?: string | undefined;
};

/** For a reserve request that may be held: for how long. */
export type Hold = {
  readonly forMs: number;
  readonly asking: PendingRequest;
  readonly signal: AbortSignal | undefined;
};

export class Desk {
  readonly #ports: DeskPorts;

  constructor(ports: DeskPorts) {
    this.#ports = ports;
  }

  execute(shard: HostedShard, command: Command, asker: Requester, hold?: Hold): void {
    try {
      this.#step(shard, command, asker, hold);
    } catch (error) {
      return this.#ports.broke(shard, command, error, asker);
    }
    if (shard.state.woken.size > 0) this.#wake(shard);
  }

  query(shard: HostedShard, query: Query, asker: Requester): void {
    try {
      const outcome = answer(shard.state, query, shard.nowMs());
      if (outcome.ok) this.#park(shard, asker, { kind: "answer", stamp: unstamped, answer: outcome.answer });
      else this.reject(shard, asker, outcome.rejection);
    } catch (error) {
      this.#ports.report("answer a query", error);
      this.reject(shard, asker, broken(error));
    }
  }

  /** A rejection waits for its batch like any other answer. */
  reject(shard: HostedShard, asker: Requester, rejection: Rejection): void {
    this.#park(shard, asker, refusal(rejection));
  }

  /** Lets time pass, and answers held requests whose time is over. */
  tick(shard: HostedShard, byMono: number): void {
    const mono = this.#ports.clock.monotonicMs();
    if (shard.tickDueMono <= byMono) this.execute(shard, { kind: "tick" }, noRequester);
    for (const waiter of shard.waiters.expired(mono))
      // The last try: answers that there is no work if none can be granted.
      if (shard.phase !== "gone") this.execute(shard, waiter.command, waiter);
      else waiter.settle(this.#ports.overloaded());
  }

  #step(shard: HostedShard, command: Command, asker: Requester, hold: Hold | undefined): void {
    const { unwritable } = shard.writer;
    const outcome = this.#decide(shard, command);
    const changed = outcome.changes > 0;
    const spoilt = shard.writer.unwritable > unwritable;
    if (!outcome.ok) return this.#park(shard, asker, refusal(outcome.rejection), changed, spoilt);
    const { reply } = outcome;
    switch (command.kind) {
      case "reserve":
        if (changed || !hold || (reply as Replies["reserve"]).grants.length > 0) break;
        return this.#hold(shard, command, hold);
      case "renew":
        // An executor that hears that a claim is lost stops its work: as serious as a rejection.
        if ((reply as Replies["renew"]).lost.length > 0) shard.open.needsConfirm = true;
        break;
      case "tick":
        this.#ticked(shard, reply as Replies["tick"]);
        if (changed) break;
        return;
      default:
    }
    this.#park(shard, asker, { kind: "reply", stamp: unstamped, reply }, changed, spoilt);
  }

  #decide(shard: HostedShard, command: Command): Outcome {
    shard.state.featureLevel = this.#ports.featureLevel();
    shard.commands += 1;
    return step(shard.state, command, shard.nowMs(), shard.absorber);
  }

  #park(shard: HostedShard, asker: Requester, said: UnstampedAnswer, changed = false, spoilt = false): void {
    if (said.kind === "rejected") this.#noteRefusal(shard, said.rejection);
    shard.open.parked.push({ asker, said, changed, spoilt });
    this.#ports.touch(shard);
  }

  #noteRefusal(shard: HostedShard, rejection: Rejection): void {
    if (saysNotFound(rejection)) shard.open.needsConfirm = true;
    if (rejection.kind === "shard-full" || rejection.kind === "queue-full") this.#ports.refused(shard, rejection);
  }

  #ticked(shard: HostedShard, { more, nextDueInMs }: Replies["tick"]): void {
    const inMs = more ? 0 : Math.min(nextDueInMs, this.#ports.tickMs);
    shard.tickDueMono = this.#ports.clock.monotonicMs() + Math.max(0, inMs);
  }

  #hold(shard: HostedShard, command: CommandOf<"reserve">, { forMs, asking, signal }: Hold): void {
    const { clock, load, overloaded } = this.#ports;
    const weightBytes = weigh(command);
    const held: Requester = {
      settle(response) {
        signal?.removeEventListener("abort", leave);
        load.release(weightBytes);
        asking.settle(response);
      },
    };
    const leave = (): void => {
      if (shard.waiters.leave(command, held)) held.settle(overloaded());
    };
    if (!load.hold(weightBytes)) return asking.settle(overloaded());
    if (!shard.waiters.add(command, held, clock.monotonicMs() + forMs)) return held.settle(overloaded());
    signal?.addEventListener("abort", leave, { once: true });
    // Held requests have a limit of their own.
    asking.uncount();
  }

  /**
   * There is new work: offers it to the executors that wait for it, in turn. What is left is announced to other nodes.
   */
  #wake(shard: HostedShard): void {
    const { state, waiters } = shard;
    const woken = [...state.woken];
    state.woken.clear();
    for (const readyClass of woken) {
      if (waiters.size > 0 && !this.#offer(shard, readyClass)) return;
      if (readyClass.ready > 0) this.#ports.unclaimed(shard, readyClass);
    }
    // The classes woken by these grants have just been handled.
    state.woken.clear();
  }

  /** False if the shard broke. */
  #offer(shard: HostedShard, readyClass: ReadyClass): boolean {
    const turn = shard.waiters.turn(readyClass);
    while (readyClass.ready > 0) {
      const waiter = turn.next(readyClass.affinity);
      if (!waiter) break;
      try {
        if (!this.#serve(shard, waiter)) turn.fruitless();
      } catch (error) {
        this.#ports.broke(shard, waiter.command, error, waiter);
        return false;
      }
    }
    return true;
  }

  /** False if there is no work for this executor after all. */
  #serve(shard: HostedShard, waiter: Waiter): boolean {
    const { unwritable } = shard.writer;
    const outcome = this.#decide(shard, waiter.command);
    const { ok } = outcome;
    const changed = outcome.changes > 0;
    if (ok && (outcome.reply as Replies["reserve"]).grants.length === 0) {
      if (changed) this.#ports.touch(shard);
      return false;
    }
    shard.waiters.remove(waiter);
    const spoilt = shard.writer.unwritable > unwritable;
    const said: UnstampedAnswer = ok
      ? { kind: "reply", stamp: unstamped, reply: outcome.reply }
      : refusal(outcome.rejection);
    this.#park(shard, waiter, said, changed, spoilt);
    return true;
  }
}

const refusal = (rejection: Rejection): UnstampedAnswer => ({ kind: "rejected", stamp: unstamped, rejection });

export const broken = (error: unknown): Rejection => ({
  kind: "broken",
  why: error instanceof Error ? error.message : String(error),
});
