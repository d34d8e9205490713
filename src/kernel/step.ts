/**
 * Runs one command: decide, apply, then the follow-up steps (settle.ts). The host makes the returned events durable
 * before it answers anyone.
 *
 * Deciding changes nothing, so a command that makes it throw is refused alone and the state is unchanged (K12). When
 * applying throws, our own code is wrong: the error propagates, and the state must be dropped and read back.
 */
import { apply } from "./apply/apply.ts";
import { applySoft } from "./apply/soft.ts";
import type { Command, CommandOf } from "./model/command.ts";
import { decideDue, type DueDecision } from "./decide/due.ts";
import { decideGrant, grantedBefore, grantOf, wrongReserve } from "./decide/claim.ts";
import { decide, type SingleCommand } from "./decide/decide.ts";
import type { Decision } from "./decide/decision.ts";
import { type Executor, Job, Stage } from "./model/entities.ts";
import type { Event, EventOf, SoftEvent } from "./model/event.ts";
import type { Lock, TaskLock } from "./ready/locks.ts";
import type { Grant } from "./model/model.ts";
import { settleJob, settleStage } from "./apply/settle.ts";
import { settleLock, settleWanting } from "./apply/settle-locks.ts";
import type { Rejection } from "./model/rejection.ts";
import type { Reply } from "./model/reply.ts";
import type { State } from "./model/state.ts";
import { bytesOfKey } from "./memory/weigh.ts";

/** The outcome of a command. `changes` is the number of events; they are listed only if no observer received them. */
export type Outcome =
  | { readonly ok: true; readonly changes: number; readonly events: readonly Event[]; readonly reply: Reply }
  | { readonly ok: false; readonly changes: number; readonly events: readonly Event[]; readonly rejection: Rejection };

/** Called with each event right after it was applied, for history and watchers, which need the state of that moment. */
export type Observer = { applied(event: Event): void };

export function step(state: State, given: Command, nowMs: number, observer?: Observer): Outcome {
  let command: Command;
  try {
    // Even reading a command's fields may throw (K12): read all of them once, before anything is done.
    command = { ...given };
  } catch (error) {
    return broken(error);
  }
  const work = new Work(state, passTime(state, command.kind, nowMs), observer);
  switch (command.kind) {
    case "reserve":
      return reserve(work, command);
    case "tick":
      return tick(work);
    default:
      return single(work, command);
  }
}

function single(work: Work, command: SingleCommand): Outcome {
  let decision: Decision;
  try {
    decision = decide(work.state, command, work.nowMs);
  } catch (error) {
    return broken(error);
  }
  work.take(decision.events);
  if (!decision.ok) return work.refused(decision.rejection);
  work.takeSoft(decision.soft);
  return work.done(decision.reply);
}

const none: readonly never[] = [];

/** Deciding threw, so nothing was done: that is the answer (K12). */
const broken = (error: unknown): Outcome => ({
  ok: false,
  changes: 0,
  events: none,
  rejection: { kind: "broken", why: whyOf(error) },
});

const whyOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

/**
 * K11: time never goes back. If more time passed between two commands than can pass while a shard is awake, the shard
 * was asleep (a stopped process, a clock jump), and no lease expired meanwhile.
 */
function passTime(state: State, kind: Command["kind"], nowMs: number): number {
  const passedMs = nowMs - state.nowMs;
  if (!(passedMs > 0 && Number.isFinite(passedMs))) return state.nowMs;
  // The event records how long the shard had no owner, so that every replay computes the same.
  if (kind === "take-over") return nowMs;
  if (passedMs > state.limits.sleepMs && state.nowMs > 0)
    applySoft(state, { kind: "slept", at: nowMs, forMs: passedMs });
  else applySoft(state, { kind: "passed", at: nowMs });
  return nowMs;
}

function reserve(work: Work, command: CommandOf<"reserve">): Outcome {
  const { state, nowMs } = work;
  let before: readonly Grant[] | undefined;
  try {
    const wrong = wrongReserve(state, command, nowMs);
    if (wrong) return { ok: false, changes: 0, events: none, rejection: wrong };
    before = grantedBefore(state, command);
  } catch (error) {
    return broken(error);
  }
  if (before && before.length > 0) return { ok: true, changes: 0, events: none, reply: { grants: before } };
  const { executor: id, offers, tenant } = command;
  work.takeSoft([{ kind: "executor-seen", executor: id, offers, tenant, at: nowMs }]);
  const executor = state.executor(id);
  const grants: Grant[] = [];
  while (grants.length < command.count) {
    const event = nextGrant(work, command, executor);
    if (!event) break;
    work.takeOne(event);
    const claim = executor.claims.get(event.token);
    if (claim) grants.push(grantOf(claim));
  }
  return work.done({ grants });
}

function nextGrant(work: Work, command: CommandOf<"reserve">, executor: Executor): EventOf<"claimed"> | undefined {
  try {
    return decideGrant(work.state, command, executor, work.nowMs);
  } catch (error) {
    work.note(error);
    return undefined;
  }
}

function tick(work: Work): Outcome {
  const { state, nowMs } = work;
  let left = state.limits.tickStepsMax;
  let more = true;
  while (left > 0) {
    left -= 1;
    const item = state.agenda.take(nowMs);
    if (!item) {
      more = false;
      break;
    }
    let due: DueDecision;
    try {
      due = decideDue(state, item, nowMs);
    } catch (error) {
      state.agenda.file(item, nowMs + 1_000, nowMs);
      work.note(error);
      continue;
    }
    if (due.againAtMs !== undefined) state.agenda.file(item, due.againAtMs, nowMs);
    work.take(due.events);
    work.takeSoft(due.soft);
  }
  work.takeSoft(oldKeys(state, nowMs));
  work.settle();
  more ||= !state.unsettled.isEmpty || state.locks.unsettled.size > 0 || state.locks.wanting.size > 0;
  const nextDueInMs = Math.max(0, state.agenda.nextAtMs() - nowMs);
  return work.answer({ more, nextDueInMs });
}

/** The request keys that leave memory now. */
function oldKeys(state: State, nowMs: number): readonly SoftEvent[] {
  // A snapshot in progress still has to write them: they stay until it is done (K1).
  if (state.capture) return [];
  const { keysInMemoryMax, keyBytesInMemoryMax, tickStepsMax } = state.limits;
  let bytes = state.keyBytes;
  let count = 0;
  let elsewhereUntilMs = 0;
  for (const [key, bound] of state.keys) {
    const { untilMs } = bound;
    const tooMany = state.keys.size - count > keysInMemoryMax || bytes > keyBytesInMemoryMax;
    if (count >= tickStepsMax * 10 || (untilMs > nowMs && !tooMany)) break;
    if (untilMs > nowMs) elsewhereUntilMs = Math.max(elsewhereUntilMs, untilMs);
    bytes -= bytesOfKey(key, bound);
    count += 1;
  }
  return count === 0 ? [] : [{ kind: "keys-let-go", count, elsewhereUntilMs }];
}

class Work {
  readonly state: State;
  readonly nowMs: number;
  #changes = 0;
  /** Created on demand: at a hundred thousand commands a second, most lists would stay unread. */
  #events: Event[] | undefined;
  readonly #observer: Observer | undefined;

  constructor(state: State, nowMs: number, observer: Observer | undefined) {
    this.state = state;
    this.nowMs = nowMs;
    this.#observer = observer;
  }

  take(events: readonly Event[]): void {
    for (let i = 0; i < events.length; i += 1) this.takeOne(events[i] as Event);
  }

  takeOne(event: Event): void {
    apply(this.state, event);
    this.#changes += 1;
    if (this.#observer) this.#observer.applied(event);
    else (this.#events ??= []).push(event);
  }

  takeSoft(events: readonly SoftEvent[]): void {
    for (const event of events) applySoft(this.state, event);
  }

  note(error: unknown): void {
    const { faults } = this.state;
    faults.push(whyOf(error));
    if (faults.length > 100) faults.shift();
  }

  /** Runs follow-up steps until none is left or the limit is reached; then the next command or tick continues. */
  settle(): void {
    const { unsettled, locks, limits } = this.state;
    for (let left = limits.settleStepsMax; left > 0; left -= 1) {
      const item = unsettled.shift();
      if (item) {
        this.take(this.#next(item));
        continue;
      }
      if (locks.wanting.size > 0) {
        const wanted = first(locks.wanting);
        this.take(this.#next(wanted));
        // It asks once, whatever comes of it.
        locks.wanting.delete(wanted);
        continue;
      }
      if (locks.unsettled.size === 0) break;
      const lock = first(locks.unsettled);
      const events = this.#next(lock);
      if (events.length === 0) locks.unsettled.delete(lock);
      this.take(events);
    }
  }

  done(reply: Reply): Outcome {
    this.settle();
    return this.answer(reply);
  }

  answer(reply: Reply): Outcome {
    return { ok: true, changes: this.#changes, events: this.#events ?? none, reply };
  }

  refused(rejection: Rejection): Outcome {
    this.settle();
    return { ok: false, changes: this.#changes, events: this.#events ?? none, rejection };
  }

  #next(item: Stage | Job | Lock | TaskLock): readonly Event[] {
    try {
      if (item instanceof Stage) return settleStage(this.state, item, this.nowMs);
      if (item instanceof Job) return settleJob(item, this.nowMs);
      if ("task" in item) return settleWanting(this.state, item, this.nowMs);
      return settleLock(item, this.nowMs);
    } catch (error) {
      this.note(error);
      return none;
    }
  }
}

function first<T>(set: ReadonlySet<T>): T {
  const [item] = set;
  return item as T;
}
