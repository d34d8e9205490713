/**
 * Encodes events as they are applied, so that a batch is ready the moment it is closed: see event-code.ts.
 *
 * An event with an unexpected value (not a number, a field of another type) is written as JSON, which decides whether
 * it can be written at all.
 */
import { isPlainTemplate, isSameList, isSameTemplate } from "#kernel/apply/job.ts";
import type { Event, EventOf } from "#kernel/model/event.ts";
import type { ListedTasks, Result, StageSpec, TaskPlan, TaskTemplate } from "#kernel/model/model.ts";
import * as code from "./event-code.ts";
import { ByteWriter } from "./event-bytes.ts";

export class EventWriter {
  readonly #bytes = new ByteWriter();
  #before = new code.PreviousValues();
  #count = 0;
  #error: unknown;
  /** How many events of the batch cannot be encoded. */
  unwritable = 0;

  add(event: Event): void {
    const bytes = this.#bytes;
    const start = bytes.pos;
    this.#count += 1;
    bytes.reserve(128);
    if (this.#tries(event) && bytes.isSound) return;
    bytes.rewind(start);
    this.#before = new code.PreviousValues();
    try {
      const json = JSON.stringify(event);
      bytes.reserve(8);
      bytes.byte(code.codes.json);
      bytes.text(json);
    } catch (error) {
      this.#error = error;
      this.unwritable += 1;
    }
  }

  /** Returns the batch and starts the next one. Throws when one of its events cannot be encoded. */
  finish(): Uint8Array {
    const isWhole = this.unwritable === 0;
    const payload = this.#bytes.take(code.version, this.#count);
    this.#before = new code.PreviousValues();
    this.#count = 0;
    this.unwritable = 0;
    if (!isWhole) throw this.#error;
    return payload;
  }

  /** False for events without a code. */
  #tries(event: Event): boolean {
    try {
      switch (event.kind) {
        case "job-submitted":
          return this.#submitted(event);
        case "stage-ready":
          return this.#stageReady(event);
        case "claimed":
          return this.#claimed(event);
        case "started":
          this.#bytes.byte(code.codes.started);
          return this.#claim(event);
        case "reported":
          return this.#reported(event);
        case "committed":
          return this.#committed(event);
        case "published":
          return this.#published(event);
        case "stage-ended":
          return this.#stageEnded(event);
        case "job-ended":
          return this.#jobEnded(event);
        case "forgotten":
          return this.#forgotten(event);
        default:
          return false;
      }
    } catch {
      return false; // for a missing field, or one that throws when it is read
    }
  }

  #stageReady(event: EventOf<"stage-ready">): boolean {
    if (event.planTask !== undefined) return false;
    this.#bytes.byte(code.codes.stageReady);
    this.#jobAt(event);
    this.#bytes.varint(event.stage);
    return true;
  }

  #claimed(event: EventOf<"claimed">): boolean {
    const bytes = this.#bytes;
    const before = this.#before;
    const { started, executor, nonce, leaseMs } = event;
    const bits = code.claimedBits;
    bytes.byte(code.codes.claimed);
    bytes.byte(
      bytes.flag(started, bits.started) |
        (executor === before.executor ? bits.sameExecutor : 0) |
        (nonce === before.nonce ? bits.sameNonce : 0) |
        (leaseMs === before.leaseMs ? bits.sameLease : 0),
    );
    this.#claim(event);
    if (executor !== before.executor) bytes.text((before.executor = executor));
    if (nonce !== before.nonce) bytes.text((before.nonce = nonce));
    if (leaseMs !== before.leaseMs) bytes.varint((before.leaseMs = leaseMs));
    return true;
  }

  #committed(event: EventOf<"committed">): boolean {
    const { publish } = event.result;
    this.#bytes.byte(publish === undefined ? code.codes.committed : code.codes.committedToPublish);
    this.#claim(event);
    this.#result(event.result);
    if (publish !== undefined) this.#bytes.text(publish);
    return true;
  }

  #published(event: EventOf<"published">): boolean {
    const bytes = this.#bytes;
    const before = this.#before;
    bytes.byte(code.codes.published);
    this.#jobAt(event);
    bytes.signed(event.task - before.task);
    before.task = event.task;
    bytes.varint(event.generation);
    return true;
  }

  #result({ payload, digests }: Result): void {
    const bytes = this.#bytes;
    bytes.text(payload);
    bytes.varint(digests.length);
    for (let i = 0; i < digests.length; i += 1) bytes.digest(digests[i] as string);
  }

  #reported(event: EventOf<"reported">): boolean {
    const bytes = this.#bytes;
    bytes.byte(code.codes.reported);
    this.#claim(event);
    bytes.varint(event.steps.length);
    for (const { step, name, status } of event.steps) {
      bytes.reserve(16);
      bytes.varint(step);
      bytes.varint(code.stepStatuses.indexOf(status));
      bytes.text(name);
    }
    return true;
  }

  #stageEnded(event: EventOf<"stage-ended">): boolean {
    const bytes = this.#bytes;
    bytes.byte(code.codes.stageEnded);
    this.#jobAt(event);
    bytes.varint(event.stage);
    bytes.varint(code.stagePhases.indexOf(event.phase));
    bytes.text(event.reason);
    return true;
  }

  #jobEnded(event: EventOf<"job-ended">): boolean {
    const bytes = this.#bytes;
    bytes.byte(code.codes.jobEnded);
    this.#jobAt(event);
    bytes.varint(code.jobPhases.indexOf(event.phase));
    bytes.text(event.reason);
    return true;
  }

  #forgotten({ jobs }: EventOf<"forgotten">): boolean {
    const bytes = this.#bytes;
    bytes.byte(code.codes.forgotten);
    bytes.varint(jobs.length);
    bytes.reserve(10 * jobs.length);
    let last = 0;
    for (const job of jobs) {
      bytes.signed(job - last);
      last = job;
    }
    return true;
  }

  #submitted(event: EventOf<"job-submitted">): boolean {
    // As JSON, a trace is read by older programs, too: they leave out what they do not know.
    if (event.lock !== undefined || event.reuse !== undefined || event.trace !== undefined) return false;
    if (event.cancelGraceMs !== undefined) return false;
    if (event.tags !== undefined || event.series !== undefined || event.notify !== undefined) return false;
    if (event.tracked !== undefined) return false;
    const { key, keyUntilMs, mergeKey, subscriber, leaveGraceMs, tenant, door, stages } = event;
    if ((key === undefined) !== (keyUntilMs === undefined)) return false;
    const bytes = this.#bytes;
    const before = this.#before;
    const bits = code.submittedBits;
    bytes.byte(code.codes.submitted);
    bytes.byte(
      (key === undefined ? 0 : bits.key) |
        (mergeKey === undefined ? 0 : bits.mergeKey) |
        (subscriber === undefined ? 0 : bits.subscriber) |
        (leaveGraceMs === undefined ? 0 : bits.leaveGrace) |
        (tenant === before.tenant ? bits.sameTenant : 0) |
        (door === before.door ? bits.sameDoor : 0),
    );
    this.#jobAt(event);
    bytes.signed(event.firstTask - before.task);
    before.task = event.firstTask;
    bytes.signed(event.deadlineAtMs - event.at);
    bytes.signed(event.priority);
    if (keyUntilMs !== undefined) bytes.signed(keyUntilMs - event.at);
    if (leaveGraceMs !== undefined) bytes.varint(leaveGraceMs);
    if (tenant !== before.tenant) bytes.text((before.tenant = tenant));
    if (door !== before.door) bytes.text((before.door = door));
    bytes.text(event.name);
    bytes.text(event.payloadHash);
    bytes.text(event.spec);
    if (key !== undefined) bytes.text(key);
    if (mergeKey !== undefined) bytes.text(mergeKey);
    if (subscriber !== undefined) bytes.text(subscriber);
    bytes.varint(stages.length);
    for (const stage of stages) if (!this.#stage(stage)) return false;
    return true;
  }

  #stage(stage: StageSpec): boolean {
    const { tasks: set } = stage;
    if (!set?.tasks || stage.plan !== undefined || stage.lock !== undefined) return false;
    const bytes = this.#bytes;
    const before = this.#before;
    const bits = code.stageBits;
    const isSameShape = before.shape !== undefined && sameShape(before.shape, stage);
    const isSameSet = before.template !== undefined && isSameTemplate(before.template, set.template);
    const hasAffinity = set.tasks.some(isChoosy);
    bytes.reserve(64);
    bytes.byte(
      (isSameShape ? bits.sameShape : 0) |
        (isSameSet ? bits.sameTemplate : 0) |
        (hasAffinity ? bits.affinity : 0) |
        bytes.choice(stage.after, "success", "end", bits.afterEnd) |
        bytes.flag(stage.failFast, bits.failFast) |
        bytes.flag(stage.mayFail, bits.mayFail),
    );
    if (!isSameShape) {
      before.shape = stage;
      bytes.text(stage.name);
      bytes.varint(stage.parallelMax);
      bytes.varint(stage.needs.length);
      bytes.reserve(10 * stage.needs.length);
      for (const need of stage.needs) bytes.varint(need);
    }
    if (!isSameSet) {
      if (!isPlainTemplate(set.template)) return false;
      this.#template((before.template = set.template));
    }
    this.#tasks(set, hasAffinity);
    return true;
  }

  #template(template: TaskTemplate): void {
    const bytes = this.#bytes;
    const bits = code.templateBits;
    bytes.reserve(100);
    bytes.byte(
      bytes.choice(template.retryOn, "infrastructure", "any", bits.retryAny) |
        bytes.choice(template.effects, "pure", "outside", bits.outside) |
        bytes.flag(template.speculate, bits.speculate),
    );
    bytes.varint(template.leaseMs);
    bytes.varint(template.attemptsMax);
    bytes.varint(template.backoffMs);
    bytes.varint(template.backoffMsMax);
    bytes.varint(template.queueMs);
    bytes.varint(template.attemptMs);
    bytes.varint(template.graceMs);
    bytes.text(template.kind);
    bytes.varint(template.requires.length);
    for (const label of template.requires) bytes.text(label);
  }

  #tasks({ tasks }: ListedTasks, hasAffinity: boolean): void {
    const bytes = this.#bytes;
    bytes.reserve(16);
    bytes.varint(tasks.length);
    for (let i = 0; i < tasks.length; i += 1) {
      const { key, spec, affinity } = tasks[i] as TaskPlan;
      bytes.text(key);
      bytes.text(spec);
      if (!hasAffinity) continue;
      bytes.byte(affinity === undefined ? 0 : 1);
      if (affinity !== undefined) bytes.text(affinity);
    }
  }

  #jobAt({ job, at }: { readonly job: number; readonly at: number }): void {
    const before = this.#before;
    this.#bytes.signed(job - before.job);
    this.#bytes.signed(at - before.at);
    before.job = job;
    before.at = at;
  }

  #claim({ task, token, at }: { readonly task: number; readonly token: number; readonly at: number }): true {
    const before = this.#before;
    this.#bytes.signed(task - before.task);
    this.#bytes.signed(token - before.token);
    this.#bytes.signed(at - before.at);
    before.task = task;
    before.token = token;
    before.at = at;
    return true;
  }
}

const sameShape = (a: code.Shape, b: code.Shape): boolean =>
  a.name === b.name &&
  a.after === b.after &&
  a.failFast === b.failFast &&
  a.mayFail === b.mayFail &&
  a.parallelMax === b.parallelMax &&
  isSameList(a.needs, b.needs);

const isChoosy = ({ affinity }: TaskPlan): boolean => affinity !== undefined;
