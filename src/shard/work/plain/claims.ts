/** The most frequent executor commands, decoded from the wire directly, without the generated messages in between. */
import type { CommandOf } from "#kernel/model/command.ts";
import type { Evidence, Result, Step } from "#kernel/model/model.ts";
import type { Reader } from "#wire/reader.ts";
import { knownTexts } from "./template.ts";
import { added, nothing } from "#base/short-list.ts";
import { unusual } from "#shard/work/unusual.ts";
import { stepStatuses } from "#shard/work/enums.ts";

/** Fields of a request besides its command. */
export type RequestFields = { shard: number; waitMs: number | undefined };

/** The host replaces this with its own evidence (K3). */
const noEvidence: Evidence = { digests: [], pinnedForMs: 0 };

export function readReserve(from: Reader, end: number, beside: RequestFields): CommandOf<"reserve"> {
  let offers: readonly string[] = nothing;
  let prefer: readonly string[] = nothing;
  let executor = "";
  let count = 0;
  let startAll = false;
  let startPure = false;
  let nonce = "";
  let tenant: string | undefined;
  while (from.pos < end) {
    const tag = from.tag();
    if (tag === 8) beside.shard = from.int32();
    else if (tag === 18) executor = knownTexts.read(from);
    else if (tag === 26) {
      from.count();
      offers = added(offers, knownTexts.read(from));
    } else if (tag === 34) {
      from.count();
      prefer = added(prefer, from.string());
    } else if (tag === 40) count = from.int32();
    else if (tag === 48) startAll = from.bool();
    else if (tag === 58) nonce = from.string();
    else if (tag === 66) tenant = knownTexts.read(from);
    else if (tag === 72) beside.waitMs = from.int64();
    else if (tag === 80) startPure = from.bool();
    else from.skip(tag);
  }
  const start = startOf(startAll, startPure);
  if (tenant === undefined) return { kind: "reserve", executor, offers, prefer, count, start, nonce };
  return { kind: "reserve", executor, offers, prefer, count, start, nonce, tenant };
}

export const startOf = (all: boolean, pure: boolean): boolean | "pure" => (!all && pure ? "pure" : all);

export function readStart(from: Reader, end: number, beside: RequestFields): CommandOf<"start"> {
  let executor = "";
  let task = 0;
  let token = 0;
  while (from.pos < end) {
    const tag = from.tag();
    if (tag === 8) beside.shard = from.int32();
    else if (tag === 18) executor = knownTexts.read(from);
    else if (tag === 24) task = from.int64();
    else if (tag === 32) token = from.int64();
    else from.skip(tag);
  }
  return { kind: "start", executor, task, token };
}

type Claim = { readonly task: number; readonly token: number; readonly heard?: number };

export function readRenew(from: Reader, end: number, beside: RequestFields): CommandOf<"renew"> {
  let claims: readonly Claim[] = nothing;
  let executor = "";
  while (from.pos < end) {
    const tag = from.tag();
    if (tag === 8) beside.shard = from.int32();
    else if (tag === 18) executor = knownTexts.read(from);
    else if (tag === 26) {
      const stop = from.enter();
      claims = added(claims, readClaim(from, stop));
      from.leave(stop);
    } else from.skip(tag);
  }
  return { kind: "renew", executor, claims };
}

function readClaim(from: Reader, end: number): Claim {
  let task = 0;
  let token = 0;
  let heard: number | undefined;
  while (from.pos < end) {
    const tag = from.tag();
    if (tag === 8) task = from.int64();
    else if (tag === 16) token = from.int64();
    else if (tag === 320) heard = from.int64();
    else from.skip(tag);
  }
  return heard === undefined ? { task, token } : { task, token, heard };
}

export function readReport(from: Reader, end: number, beside: RequestFields): CommandOf<"report"> {
  let steps: readonly Step[] = nothing;
  let executor = "";
  let task = 0;
  let token = 0;
  while (from.pos < end) {
    const tag = from.tag();
    if (tag === 8) beside.shard = from.int32();
    else if (tag === 18) executor = knownTexts.read(from);
    else if (tag === 24) task = from.int64();
    else if (tag === 32) token = from.int64();
    else if (tag === 42) {
      const stop = from.enter();
      steps = added(steps, readStep(from, stop));
      from.leave(stop);
    } else from.skip(tag);
  }
  return { kind: "report", executor, task, token, steps };
}

function readStep(from: Reader, end: number): Step {
  let step = 0;
  let name = "";
  let status = 0;
  while (from.pos < end) {
    const tag = from.tag();
    if (tag === 8) step = from.int32();
    else if (tag === 18) name = knownTexts.read(from);
    else if (tag === 24) status = from.int32();
    else from.skip(tag);
  }
  return { step, name, status: stepStatuses.wordOf(status) ?? unusual() };
}

export function readCommit(from: Reader, end: number, beside: RequestFields): CommandOf<"commit"> {
  let executor = "";
  let task = 0;
  let token = 0;
  let result: Result | undefined;
  while (from.pos < end) {
    const tag = from.tag();
    if (tag === 8) beside.shard = from.int32();
    else if (tag === 18) executor = knownTexts.read(from);
    else if (tag === 24) task = from.int64();
    else if (tag === 32) token = from.int64();
    else if (tag === 42) {
      if (result !== undefined) return unusual();
      const stop = from.enter();
      result = readResult(from, stop);
      from.leave(stop);
    } else from.skip(tag);
  }
  return { kind: "commit", executor, task, token, result: result ?? unusual(), evidence: noEvidence };
}

function readResult(from: Reader, end: number): Result {
  let digests: readonly string[] = nothing;
  let payload = "";
  let publish: string | undefined;
  while (from.pos < end) {
    const tag = from.tag();
    if (tag === 10) payload = from.string();
    else if (tag === 18) {
      from.count();
      digests = added(digests, from.string());
    } else if (tag === 26) publish = from.string();
    else from.skip(tag);
  }
  return publish === undefined ? { payload, digests } : { payload, digests, publish };
}
