/**
 * One command: decide, apply, then let what follows by itself follow. The events come back to be made durable before
 * anyone is told anything.
 *
 * Deciding only looks, so a command that makes it throw is refused alone and the state is as it was (K12). When
 * applying throws, our own code is wrong: the error goes up, and the state must be dropped and read back.
 */
import { apply } from "./apply.ts";
import { applySoft } from "./apply-soft.ts";
import type { Command, CommandOf } from "./command.ts";
import { decideDue } from "./decide-due.ts";
import { decideGrant, grantedBefore, grantOf, wrongReserve } from "./decide-claim.ts";
import { decide } from "./decide.ts";
import type { Decision } from "./decision.ts";
import { Job, Stage } from "./entities.ts";
import type { Event, SoftEvent } from "./event.ts";
import type { Lock } from "./locks.ts";
import type { Grant } from "./model.ts";
import { settleJob, settleStage } from "./settle.ts";
import { settleLock } from "./settle-locks.ts";
import type { Rejection } from "./rejection.ts";
import type { Reply } from "./reply.ts";
import type { State } from "./state.ts";

export type Outcome =
  | { readonly ok: true; readonly events: readonly Event[]; readonly reply: Reply }
  | { readonly ok: false; readonly events: readonly Event[]; readonly rejection: Rejection };

/** Called after each event has been applied: for history and watchers, who need the state just then. */
export type Observe = (event: Event) => void;

export function step(state: State, given: Command, nowMs: number, observe?: Observe): Outcome {
  // Even to ask what is wanted may throw (K12): everything is read once, before anything is done.
  const read = guard(() => ({ kind: "read" as const, command: { ...given } }));
  if (read.kind === "broken") return { ok: false, events: [], rejection: read };
  const { command } = read;
  const work = new Work(state, passTime(state, command.kind, nowMs), observe);
  switch (command.kind) {
    case "reserve":
      return reserve(work, command);
    case "tick":
      return tick(work);
    default: {
      const decision = guard(() => decide(state, command, work.nowMs));
      if (!isDecision(decision)) return { ok: false, events: [], rejection: decision };
      work.take(decision.events, decision.ok ? decision.soft : []);
      if (!decision.ok) return { ok: false, events: work.settled(), rejection: decision.rejection };
      return { ok: true, events: work.settled(), reply: decision.reply };
    }
  }
}

const isDecision = (value: Decision | Rejection): value is Decision => "ok" in value;

/**
 * K11: time never goes back; and when more of it has passed than a shard that is awake ever lets pass between two
 * looks, it was asleep (a stopped process, a leaping clock): then nobody's lease ran out meanwhile.
 */
function passTime(state: State, kind: Command["kind"], nowMs: number): number {
  const passedMs = nowMs - state.nowMs;
  if (!(passedMs > 0 && Number.isFinite(passedMs))) return state.nowMs;
  // How long nobody watched is for the event to say: whoever replays it must come to the same.
  if (kind === "take-over") return nowMs;
  if (passedMs > state.limits.sleepMs && state.nowMs > 0)
    applySoft(state, { kind: "slept", at: nowMs, forMs: passedMs });
  else applySoft(state, { kind: "passed", at: nowMs });
  return nowMs;
}

function reserve(work: Work, command: CommandOf<"reserve">): Outcome {
  const { state, nowMs } = work;
  const first = guard(() => wrongReserve(state, command, nowMs) ?? { kind: "fine" as const });
  if (first.kind !== "fine") return { ok: false, events: [], rejection: first };
  const before = grantedBefore(state, command);
  if (before && before.length > 0) return { ok: true, events: [], reply: { grants: before } };
  const { executor: id, offers, tenant } = command;
  work.take([], [{ kind: "executor-seen", executor: id, offers, tenant, at: nowMs }]);
  const executor = state.executor(id);
  const grants: Grant[] = [];
  while (grants.length < command.count) {
    const event = guard(() => decideGrant(state, command, executor, nowMs) ?? { kind: "none" as const });
    if (event.kind !== "claimed") break;
    work.take([event], []);
    const claim = executor.claims.get(event.token);
    if (claim) grants.push(grantOf(claim));
  }
  return { ok: true, events: work.settled(), reply: { grants } };
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
    const due = guard(() => decideDue(state, item, nowMs));
    if ("kind" in due) {
      state.agenda.file(item, nowMs + 1_000, nowMs);
      work.note(due);
      continue;
    }
    if (due.againAtMs !== undefined) state.agenda.file(item, due.againAtMs, nowMs);
    work.take(due.events, due.soft);
  }
  work.take([], oldKeys(state, nowMs));
  const events = work.settled();
  more ||= state.unsettled.size > 0 || state.locks.unsettled.size > 0;
  const nextDueInMs = Math.max(0, state.agenda.nextAtMs() - nowMs);
  return { ok: true, events, reply: { more, nextDueInMs } };
}

/** Which request keys leave memory now. */
function oldKeys(state: State, nowMs: number): readonly SoftEvent[] {
  // A snapshot that is being written still has to write them: they wait for it (K1).
  if (state.capture) return [];
  const { keysInMemoryMax, tickStepsMax } = state.limits;
  let count = 0;
  let elsewhereUntilMs = 0;
  for (const { untilMs } of state.keys.values()) {
    const tooMany = state.keys.size - count > keysInMemoryMax;
    if (count >= tickStepsMax * 10 || (untilMs > nowMs && !tooMany)) break;
    if (untilMs > nowMs) elsewhereUntilMs = untilMs;
    count += 1;
  }
  return count === 0 ? [] : [{ kind: "keys-let-go", count, elsewhereUntilMs }];
}

/** Runs something that only looks; if it throws, that is the answer (K12). */
function guard<T>(look: () => T): T | Extract<Rejection, { kind: "broken" }> {
  try {
    return look();
  } catch (error) {
    return { kind: "broken", why: error instanceof Error ? error.message : String(error) };
  }
}

const settleStepsMax = 10_000;

class Work {
  readonly state: State;
  readonly nowMs: number;
  readonly #events: Event[] = [];
  readonly #observe: Observe | undefined;

  constructor(state: State, nowMs: number, observe: Observe | undefined) {
    this.state = state;
    this.nowMs = nowMs;
    this.#observe = observe;
  }

  take(events: readonly Event[], soft: readonly SoftEvent[]): void {
    for (const event of events) {
      apply(this.state, event);
      this.#events.push(event);
      this.#observe?.(event);
    }
    for (const event of soft) applySoft(this.state, event);
  }

  note(fault: { readonly why: string }): void {
    const { faults } = this.state;
    faults.push(fault.why);
    if (faults.length > 100) faults.shift();
  }

  /** Follows up until nothing is left to follow, or enough has been done: the next command or tick goes on. */
  settled(): readonly Event[] {
    const { state, nowMs } = this;
    for (let left = settleStepsMax; left > 0; left -= 1) {
      const item = first(state.unsettled) ?? first(state.locks.unsettled);
      if (!item) break;
      const events = guard(() => settleOne(state, item, nowMs));
      if ("kind" in events) {
        forget(state, item);
        this.note(events);
      } else {
        if (events.length === 0 || item instanceof Stage || item instanceof Job) forget(state, item);
        this.take(events, []);
      }
    }
    return this.#events;
  }
}

function settleOne(state: State, item: Stage | Job | Lock, nowMs: number): readonly Event[] {
  if (item instanceof Stage) return settleStage(state, item, nowMs);
  if (item instanceof Job) return settleJob(item, nowMs);
  return settleLock(item, nowMs);
}

function forget(state: State, item: Stage | Job | Lock): void {
  if (item instanceof Stage || item instanceof Job) state.unsettled.delete(item);
  else state.locks.unsettled.delete(item);
}

function first<T>(set: ReadonlySet<T>): T | undefined {
  for (const item of set) return item;
  return undefined;
}
