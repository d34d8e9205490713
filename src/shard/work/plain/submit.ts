/**
 * Submissions decoded directly from the wire, without the generated messages in between. The number of a field times 8
 * plus its wire type is its tag; the numbers are those of `proto/millrace/work/v1`.
 */
import type { Submit } from "#kernel/model/command.ts";
import type { LockSpec, Notice, PlanSpec, Reuse, StageSpec, Tag, TaskPlan, TaskSet } from "#kernel/model/model.ts";
import type { TaskTemplate } from "#kernel/model/model.ts";
import * as wire from "#wire/generated/millrace/work/v1/model.ts";
import type { Message } from "#wire/message.ts";
import type { Reader } from "#wire/reader.ts";
import { readReuse } from "#shard/work/model.ts";
import type { RequestFields } from "./claims.ts";
import { knownTexts, readTemplate } from "./template.ts";
import { added, nothing } from "#base/short-list.ts";
import { unusual } from "#shard/work/unusual.ts";
import { afters } from "#shard/work/enums.ts";

type Mutable<T> = { -readonly [K in keyof T]: T[K] };

export function readSubmit(from: Reader, end: number, beside: RequestFields): Submit {
  let stages: readonly StageSpec[] = nothing;
  let more: More | undefined;
  let requestKey: string | undefined;
  let tenant = "";
  let door = "";
  let name = "";
  let payloadHash = "";
  let priority = 0;
  let spec = "";
  let deadlineMs = 0;
  while (from.pos < end) {
    const tag = from.tag();
    if (tag === 18) tenant = knownTexts.read(from);
    else if (tag === 26) door = knownTexts.read(from);
    else if (tag === 34) name = from.string();
    else if (tag === 50) payloadHash = from.string();
    else if (tag === 80) priority = from.int32();
    else if (tag === 90) spec = from.string();
    else if (tag === 98) {
      const stop = from.enter();
      stages = added(stages, readStage(from, stop));
      from.leave(stop);
    } else if (tag === 104) deadlineMs = from.int64();
    else if (tag === 42) requestKey = from.string();
    else if (tag === 8) beside.shard = from.int32();
    else readMore(from, tag, (more ??= {}));
  }
  const submit: Submit =
    requestKey === undefined
      ? { kind: "submit", tenant, door, name, payloadHash, priority, spec, deadlineMs, stages }
      : { kind: "submit", tenant, door, name, payloadHash, priority, spec, deadlineMs, stages, requestKey };
  return more === undefined ? submit : { ...submit, ...more };
}

type MoreFields =
  | "mergeKey"
  | "joinOnly"
  | "subscriber"
  | "leaveGraceMs"
  | "lock"
  | "trace"
  | "cancelGraceMs"
  | "series";
type More = Partial<Mutable<Pick<Submit, MoreFields>>> & {
  reuse?: Reuse[];
  tags?: Tag[];
  notify?: Notice[];
  tracked?: true;
};

/** Rare fields, and unknown ones. */
function readMore(from: Reader, tag: number, more: More): void {
  if (tag === 58) more.mergeKey = from.string();
  else if (tag === 66) more.subscriber = from.string();
  else if (tag === 72) more.leaveGraceMs = from.int64();
  else if (tag === 138) more.trace = from.string();
  else if (tag === 320) more.cancelGraceMs = from.int64();
  else if (tag === 114) more.lock = once(from, wire.LockSpec, more.lock);
  else if (tag === 122) {
    const stop = from.enter();
    (more.reuse ??= []).push(readReuse(wire.Reuse.read(from, stop)));
    from.leave(stop);
  } else if (tag === 562) {
    const stop = from.enter();
    (more.tags ??= []).push(wire.Tag.read(from, stop));
    from.leave(stop);
  } else if (tag === 578) {
    const stop = from.enter();
    (more.notify ??= []).push(wire.Notice.read(from, stop));
    from.leave(stop);
  } else if (tag === 584) {
    if (from.bool()) more.tracked = true;
    else delete more.tracked;
  } else if (tag === 570) more.series = from.string();
  else if (tag === 128) {
    if (from.bool()) more.joinOnly = true;
    else delete more.joinOnly;
  } else from.skip(tag);
}

/** A message in a field. If it is given twice, leave it to the generated decoder, which merges both. */
function once<T>(from: Reader, type: Message<T>, before: T | undefined): T {
  if (before !== undefined) return unusual();
  const stop = from.enter();
  const message = type.read(from, stop);
  from.leave(stop);
  return message;
}

/** Fields of stages with arrays: left to the generated decoder. */
const manifestTag = 480;
const arrayTag = 482;

function readStage(from: Reader, end: number): StageSpec {
  let name = "";
  let needs: readonly number[] = nothing;
  let after = 0;
  let tasks: TaskSet | undefined;
  let plan: PlanSpec | undefined;
  let failFast = false;
  let mayFail = false;
  let parallelMax = 0;
  let lock: LockSpec | undefined;
  while (from.pos < end) {
    const tag = from.tag();
    if (tag === 10) name = knownTexts.read(from);
    else if (tag === 18) needs = readNeeds(from, needs);
    else if (tag === 24) after = from.int32();
    else if (tag === 34) {
      if (tasks !== undefined) return unusual();
      const stop = from.enter();
      tasks = readTaskSet(from, stop);
      from.leave(stop);
    } else if (tag === 42) plan = once(from, wire.PlanSpec, plan);
    else if (tag === 48) failFast = from.bool();
    else if (tag === 56) mayFail = from.bool();
    else if (tag === 64) parallelMax = from.int32();
    else if (tag === 74) lock = once(from, wire.LockSpec, lock);
    else if (tag === 16 || tag === manifestTag) return unusual();
    else from.skip(tag);
  }
  const when = afters.wordOf(after) ?? unusual();
  if (tasks !== undefined && plan === undefined && lock === undefined)
    return { name, needs, after: when, failFast, mayFail, parallelMax, tasks };
  const stage: Mutable<StageSpec> = { name, needs, after: when, failFast, mayFail, parallelMax };
  if (tasks !== undefined) stage.tasks = tasks;
  if (plan !== undefined) stage.plan = plan;
  if (lock !== undefined) stage.lock = lock;
  return stage;
}

function readNeeds(from: Reader, before: readonly number[]): readonly number[] {
  const needs = [...before];
  const stop = from.enter();
  while (from.pos < stop) {
    from.count();
    needs.push(from.int32());
  }
  from.leave(stop);
  return needs;
}

function readTaskSet(from: Reader, end: number): TaskSet {
  let tasks: readonly TaskPlan[] = nothing;
  let template: TaskTemplate | undefined;
  while (from.pos < end) {
    const tag = from.tag();
    if (tag === 18) {
      const stop = from.enter();
      tasks = added(tasks, readTask(from, stop));
      from.leave(stop);
    } else if (tag === 10) {
      if (template !== undefined) return unusual();
      const stop = from.enter();
      template = readTemplate(from, stop);
      from.leave(stop);
    } else if (tag === arrayTag) return unusual();
    else from.skip(tag);
  }
  return { template: template ?? unusual(), tasks };
}

function readTask(from: Reader, end: number): TaskPlan {
  let key = "";
  let spec = "";
  let affinity: string | undefined;
  while (from.pos < end) {
    const tag = from.tag();
    if (tag === 10) key = from.string();
    else if (tag === 18) spec = from.string();
    else if (tag === 26) affinity = from.string();
    else from.skip(tag);
  }
  return affinity === undefined ? { key, spec } : { key, spec, affinity };
}
