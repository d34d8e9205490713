/**
 * Reads what event-writer.ts wrote, for ever. Faults: "corrupt" for bytes that no version wrote, "invalid" for a newer
 * code.
 */
import { Fault } from "#base/fault.ts";
import type { Event, EventOf } from "#kernel/model/event.ts";
import type { Result, StageSpec, Step, TaskPlan, TaskSet, TaskTemplate } from "#kernel/model/model.ts";
import * as code from "./event-code.ts";
import { ByteReader } from "./event-byte-reader.ts";

type Mutable<T> = { -readonly [K in keyof T]: T[K] };

export class EventReader {
  readonly #bytes: ByteReader;
  readonly #ofJson: (json: string) => Event;
  #before = new code.PreviousValues();

  /** `ofJson` reads an event that was written as JSON. */
  constructor(payload: Uint8Array, ofJson: (json: string) => Event) {
    this.#bytes = new ByteReader(payload);
    this.#ofJson = ofJson;
  }

  all(): readonly Event[] {
    const bytes = this.#bytes;
    bytes.byte(); // the version, which the caller has checked
    const count = bytes.count();
    const events: Event[] = [];
    for (let i = 0; i < count; i += 1) events.push(this.#event(bytes.byte()));
    bytes.end();
    return events;
  }

  #event(found: number): Event {
    const bytes = this.#bytes;
    switch (found) {
      case code.codes.json:
        this.#before = new code.PreviousValues();
        return this.#ofJson(bytes.text());
      case code.codes.submitted:
        return this.#submitted();
      case code.codes.stageReady: {
        const { job, at } = this.#jobAt();
        return { kind: "stage-ready", job, stage: bytes.varint(), at };
      }
      case code.codes.claimed:
        return this.#claimed();
      case code.codes.started:
        return { kind: "started", ...this.#claim() };
      case code.codes.reported:
        return this.#reported();
      case code.codes.committed: {
        const { task, token, at } = this.#claim();
        return { kind: "committed", task, token, result: this.#result(), at };
      }
      case code.codes.committedToPublish: {
        const { task, token, at } = this.#claim();
        const { payload, digests } = this.#result();
        return { kind: "committed", task, token, result: { payload, digests, publish: bytes.text() }, at };
      }
      case code.codes.published: {
        const { job, at } = this.#jobAt();
        const task = (this.#before.task += bytes.signed());
        return { kind: "published", job, task, generation: bytes.varint(), at };
      }
      case code.codes.stageEnded: {
        const { job, at } = this.#jobAt();
        const stage = bytes.varint();
        const phase = bytes.one(code.stagePhases);
        return { kind: "stage-ended", job, stage, phase, reason: bytes.text(), at };
      }
      case code.codes.jobEnded: {
        const { job, at } = this.#jobAt();
        const phase = bytes.one(code.jobPhases);
        return { kind: "job-ended", job, phase, reason: bytes.text(), at };
      }
      case code.codes.forgotten: {
        let last = 0;
        return { kind: "forgotten", jobs: bytes.list(() => (last += bytes.signed())) };
      }
      default:
        throw new Fault("invalid", "decode events: written by a newer Millrace", { code: found });
    }
  }

  #claimed(): Event {
    const bytes = this.#bytes;
    const before = this.#before;
    const bits = bytes.byte();
    const { task, token, at } = this.#claim();
    if (!(bits & code.claimedBits.sameExecutor)) before.executor = bytes.text();
    if (!(bits & code.claimedBits.sameNonce)) before.nonce = bytes.text();
    if (!(bits & code.claimedBits.sameLease)) before.leaseMs = bytes.varint();
    const { executor, nonce, leaseMs } = before;
    const started = (bits & code.claimedBits.started) !== 0;
    return { kind: "claimed", task, token, executor, leaseMs, started, nonce, at };
  }

  #reported(): Event {
    const bytes = this.#bytes;
    const { task, token, at } = this.#claim();
    const steps = bytes.list((): Step => {
      const step = bytes.varint();
      const status = bytes.one(code.stepStatuses);
      return { step, name: bytes.text(), status };
    });
    return { kind: "reported", task, token, steps, at };
  }

  #result(): Result {
    const bytes = this.#bytes;
    const payload = bytes.text();
    return { payload, digests: bytes.list(() => bytes.digest()) };
  }

  #submitted(): Event {
    const bytes = this.#bytes;
    const before = this.#before;
    const bits = bytes.byte();
    const has = (bit: number): boolean => (bits & bit) !== 0;
    const { key, mergeKey, subscriber, leaveGrace, sameTenant, sameDoor } = code.submittedBits;
    const { job, at } = this.#jobAt();
    const firstTask = (before.task += bytes.signed());
    const deadlineAtMs = at + bytes.signed();
    const priority = bytes.signed();
    const keyUntilMs = has(key) ? at + bytes.signed() : undefined;
    const leaveGraceMs = has(leaveGrace) ? bytes.varint() : undefined;
    if (!has(sameTenant)) before.tenant = bytes.text();
    if (!has(sameDoor)) before.door = bytes.text();
    const event: Mutable<EventOf<"job-submitted">> = {
      kind: "job-submitted",
      job,
      firstTask,
      tenant: before.tenant,
      door: before.door,
      name: bytes.text(),
      payloadHash: bytes.text(),
      priority,
      spec: bytes.text(),
      stages: [],
      deadlineAtMs,
      at,
    };
    if (has(key)) event.key = bytes.text();
    if (keyUntilMs !== undefined) event.keyUntilMs = keyUntilMs;
    if (has(mergeKey)) event.mergeKey = bytes.text();
    if (has(subscriber)) event.subscriber = bytes.text();
    if (leaveGraceMs !== undefined) event.leaveGraceMs = leaveGraceMs;
    event.stages = bytes.list(() => this.#stage());
    return event;
  }

  #stage(): StageSpec {
    const bytes = this.#bytes;
    const before = this.#before;
    const bits = bytes.byte();
    const has = (bit: number): boolean => (bits & bit) !== 0;
    const { sameShape, sameTemplate, affinity, afterEnd, failFast, mayFail } = code.stageBits;
    if (!has(sameShape)) {
      const name = bytes.text();
      const parallelMax = bytes.varint();
      const needs = bytes.list(() => bytes.varint());
      const after = has(afterEnd) ? "end" : "success";
      before.shape = { name, needs, after, failFast: has(failFast), mayFail: has(mayFail), parallelMax };
    }
    const shape = before.shape ?? bytes.corrupt("a stage that refers to an earlier one, but there is none");
    const template = has(sameTemplate) ? before.template : (before.template = this.#template());
    return {
      ...shape,
      tasks: this.#tasks(
        template ?? bytes.corrupt("tasks that refer to earlier ones, but there are none"),
        has(affinity),
      ),
    };
  }

  #template(): TaskTemplate {
    const bytes = this.#bytes;
    const bits = bytes.byte();
    const leaseMs = bytes.varint();
    const attemptsMax = bytes.varint();
    const backoffMs = bytes.varint();
    const backoffMsMax = bytes.varint();
    const queueMs = bytes.varint();
    const attemptMs = bytes.varint();
    const graceMs = bytes.varint();
    return {
      kind: bytes.text(),
      requires: bytes.list(() => bytes.text()),
      leaseMs,
      attemptsMax,
      retryOn: bits & code.templateBits.retryAny ? "any" : "infrastructure",
      backoffMs,
      backoffMsMax,
      queueMs,
      attemptMs,
      effects: bits & code.templateBits.outside ? "outside" : "pure",
      speculate: (bits & code.templateBits.speculate) !== 0,
      graceMs,
    };
  }

  #tasks(template: TaskTemplate, hasAffinity: boolean): TaskSet {
    const bytes = this.#bytes;
    const tasks = bytes.list((): TaskPlan => {
      const key = bytes.text();
      const spec = bytes.text();
      if (!hasAffinity || bytes.byte() === 0) return { key, spec };
      return { key, spec, affinity: bytes.text() };
    });
    return { template, tasks };
  }

  #jobAt(): { readonly job: number; readonly at: number } {
    const before = this.#before;
    const job = (before.job += this.#bytes.signed());
    const at = (before.at += this.#bytes.signed());
    return { job, at };
  }

  #claim(): { readonly task: number; readonly token: number; readonly at: number } {
    const before = this.#before;
    const task = (before.task += this.#bytes.signed());
    const token = (before.token += this.#bytes.signed());
    const at = (before.at += this.#bytes.signed());
    return { task, token, at };
  }
}
