/**
 * The kernel's commands as requests of the work protocol, and back. What only a host may send (its own commands, pins,
 * the journal's entry for a key) has no field in the messages, so no caller can claim it.
 */
import type { CommandKind, CommandOf } from "#kernel/model/command.ts";
import type { Method } from "#wire/message.ts";
import type * as wire from "#wire/generated/millrace/work/v1/commands.ts";
import { Admin, Peer, Work } from "#wire/generated/millrace/work/v1/work.ts";
import type { internalKinds } from "#shard/transport/protocol.ts";
import { startOf } from "./plain/claims.ts";
import { readCheckpoint, readClaimRef, readSignal, writeCheckpoint } from "./model.ts";
import { readPlan, readResult, readReuse, readStages, readSteps, writePlan, writeStage, writeSteps } from "./model.ts";
import { each, failReasons, noSuch, readPart, within } from "./enums.ts";

/** Commands that may come from outside. */
export type ClientKind = Exclude<CommandKind, (typeof internalKinds)[number]>;

type Messages = {
  submit: [wire.SubmitRequest, wire.SubmitResponse];
  leave: [wire.LeaveRequest, wire.LeaveResponse];
  cancel: [wire.CancelRequest, wire.CancelResponse];
  signal: [wire.SignalRequest, wire.SignalResponse];
  reserve: [wire.ReserveRequest, wire.ReserveResponse];
  start: [wire.StartRequest, wire.StartResponse];
  renew: [wire.RenewRequest, wire.RenewResponse];
  report: [wire.ReportRequest, wire.ReportResponse];
  commit: [wire.CommitRequest, wire.CommitResponse];
  "record-plan": [wire.RecordPlanRequest, wire.RecordPlanResponse];
  fail: [wire.FailRequest, wire.FailResponse];
  checkpoint: [wire.CheckpointRequest, wire.CheckpointResponse];
  release: [wire.ReleaseRequest, wire.ReleaseResponse];
  invalidate: [wire.InvalidateRequest, wire.InvalidateResponse];
  drain: [wire.DrainRequest, wire.DrainResponse];
  resume: [wire.ResumeRequest, wire.ResumeResponse];
  "set-tenant": [wire.SetTenantRequest, wire.SetTenantResponse];
  "lend-quota": [wire.LendQuotaRequest, wire.LendQuotaResponse];
};

export type RequestOf<K extends ClientKind> = Messages[K][0];
export type ResponseOf<K extends ClientKind> = Messages[K][1];
/** The field of `Command` and `Outcome` that carries it in a Batch. */
export type FieldOf = NonNullable<wire.Command["command"]>["kind"];

type Entry<K extends ClientKind> = {
  readonly method: Method<RequestOf<K>, ResponseOf<K>>;
  readonly field: FieldOf;
  /** The sender adds the shard. */
  readonly write: (command: CommandOf<K>) => Omit<RequestOf<K>, "shard">;
  readonly read: (request: RequestOf<K>) => Omit<CommandOf<K>, "kind">;
};

export const commandTable: { readonly [K in ClientKind]: Entry<K> } = {
  submit: {
    method: Work.methods.submit,
    field: "submit",
    write: (submit) => ({
      ...submit,
      stages: submit.stages.map(writeStage),
      reuse: submit.reuse ?? [],
      joinOnly: submit.joinOnly ?? false,
      tags: submit.tags ?? [],
      notify: submit.notify ?? [],
      tracked: submit.tracked ?? false,
    }),
    read: readSubmit,
  },
  leave: {
    method: Work.methods.leave,
    field: "leave",
    write: (leave) => leave,
    read: ({ job, subscriber }) => ({ job, subscriber }),
  },
  cancel: {
    method: Work.methods.cancel,
    field: "cancel",
    write: (cancel) => ({ ...cancel, hard: cancel.hard ?? false }),
    read: ({ job, reason, tenant, hard, stage, graceMs }) => ({
      job,
      reason,
      ...given({ tenant, stage, graceMs }),
      ...(hard ? { hard } : {}),
    }),
  },
  signal: {
    method: Work.methods.signal,
    field: "signal",
    write: (signal) => signal,
    read: ({ job, stage, signal, tenant }) => ({
      job,
      stage,
      signal: readPart("signal", signal, readSignal),
      ...given({ tenant }),
    }),
  },
  reserve: {
    method: Work.methods.reserve,
    field: "reserve",
    write: (reserve) => ({ ...reserve, start: reserve.start === true, startPure: reserve.start === "pure" }),
    read: ({ executor, offers, prefer, count, start, startPure, nonce, tenant }) => ({
      executor,
      offers,
      prefer,
      count,
      start: startOf(start, startPure),
      nonce,
      ...given({ tenant }),
    }),
  },
  start: {
    method: Work.methods.start,
    field: "start",
    write: (start) => start,
    read: ({ executor, task, token }) => ({ executor, task, token }),
  },
  renew: {
    method: Work.methods.renew,
    field: "renew",
    write: (renew) => renew,
    read: ({ executor, claims }) => ({ executor, claims: claims.map(readClaimRef) }),
  },
  report: {
    method: Work.methods.report,
    field: "report",
    write: (report) => ({ ...report, steps: writeSteps(report.steps) }),
    read: ({ executor, task, token, steps }) => ({ executor, task, token, steps: readSteps(steps) }),
  },
  commit: {
    method: Work.methods.commit,
    field: "commit",
    write: (commit) => commit,
    read: ({ executor, task, token, result }) => ({
      executor,
      task,
      token,
      result: readPart("result", result, readResult),
      evidence: noEvidence,
    }),
  },
  "record-plan": {
    method: Work.methods.recordPlan,
    field: "recordPlan",
    write: (record) => ({ ...record, plan: writePlan(record.plan) }),
    read: ({ executor, task, token, plan }) => ({
      executor,
      task,
      token,
      plan: readPart("plan", plan, readPlan),
    }),
  },
  fail: {
    method: Work.methods.fail,
    field: "fail",
    write: (fail) => ({ ...fail, reason: failReasons.numberOf(fail.reason) }),
    read: ({ executor, task, token, reason, message, result }) => ({
      executor,
      task,
      token,
      reason: failReasons.wordOf(reason) ?? noSuch("reason"),
      message,
      ...(result && { result: within("result", () => readResult(result)) }),
    }),
  },
  checkpoint: {
    method: Work.methods.checkpoint,
    field: "checkpoint",
    write: ({ checkpoint, ...rest }) => ({ ...rest, checkpoint: writeCheckpoint(checkpoint) }),
    read: ({ executor, task, token, checkpoint }) => ({
      executor,
      task,
      token,
      checkpoint: readPart("checkpoint", checkpoint, readCheckpoint),
      evidence: noEvidence,
    }),
  },
  release: {
    method: Work.methods.release,
    field: "release",
    write: ({ checkpoint, ...release }) => ({
      ...release,
      ...(checkpoint && { checkpoint: writeCheckpoint(checkpoint) }),
    }),
    read: ({ executor, task, token, checkpoint }) => ({
      executor,
      task,
      token,
      ...(checkpoint && { checkpoint: readCheckpoint(checkpoint) }),
    }),
  },
  invalidate: {
    method: Work.methods.invalidate,
    field: "invalidate",
    write: (invalidate) => invalidate,
    read: ({ task, generation, reason }) => ({ task, generation, reason }),
  },
  drain: {
    method: Admin.methods.drain,
    field: "drain",
    write: (drain) => drain,
    read: ({ executor, reason }) => ({ executor, reason }),
  },
  resume: {
    method: Admin.methods.resume,
    field: "resume",
    write: (resume) => resume,
    read: ({ executor }) => ({ executor }),
  },
  "set-tenant": {
    method: Admin.methods.setTenant,
    field: "setTenant",
    write: (setTenant) => setTenant,
    read: ({ shard: _shard, ...setTenant }) => setTenant,
  },
  "lend-quota": {
    method: Peer.methods.lendQuota,
    field: "lendQuota",
    write: (lend) => lend,
    read: ({ shard: _shard, ...lend }) => lend,
  },
};

/** The host replaces this with its own evidence (K3). */
const noEvidence = { digests: [], pinnedForMs: 0 } as const;

function readSubmit(request: wire.SubmitRequest): Omit<CommandOf<"submit">, "kind"> {
  const { tenant, door, name, payloadHash, priority, spec, deadlineMs } = request;
  const { requestKey, mergeKey, subscriber, leaveGraceMs, lock, reuse, joinOnly, trace, cancelGraceMs } = request;
  const { tags, series, notify, tracked } = request;
  return {
    tenant,
    door,
    name,
    payloadHash,
    priority,
    spec,
    deadlineMs,
    stages: readStages(request.stages),
    ...given({ requestKey }),
    ...given({ mergeKey }),
    ...(joinOnly ? { joinOnly } : {}),
    ...given({ subscriber }),
    ...given({ leaveGraceMs }),
    ...given({ lock }),
    ...given({ trace }),
    ...given({ cancelGraceMs }),
    ...(tags.length === 0 ? {} : { tags }),
    ...given({ series }),
    ...(notify.length === 0 ? {} : { notify }),
    ...(tracked ? { tracked } : {}),
    ...(reuse.length === 0 ? {} : { reuse: each("reuse", reuse, readReuse) }),
  };
}

/** Without the fields that were not given: in the kernel's types absent differs from undefined. */
export function given<T extends object>(fields: T): { [F in keyof T]?: Exclude<T[F], undefined> } {
  const kept: { [F in keyof T]?: Exclude<T[F], undefined> } = {};
  for (const key in fields) {
    const value = fields[key];
    if (value !== undefined) kept[key] = value as Exclude<T[typeof key], undefined>;
  }
  return kept;
}
