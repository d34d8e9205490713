/**
 * Task templates decoded directly from the wire. A door has few of them and sends them with every job: a template whose
 * bytes were decoded before is the same object, frozen, so that a million jobs share it. Its label list is not frozen:
 * loops over frozen lists take six times as long. The cache is bounded: each template hashes to one slot, and a slot
 * keeps what came last.
 */
import type { TaskTemplate } from "#kernel/model/model.ts";
import { byteHash } from "#wire/byte-hash.ts";
import { KnownTexts } from "#wire/known-texts.ts";
import type { Reader } from "#wire/reader.ts";
import { added, nothing } from "#base/short-list.ts";
import { unusual } from "#shard/work/unusual.ts";
import { effects, retryOns } from "#shard/work/enums.ts";

const places = 256;
const bytesMax = 1_024;

type Kept = { readonly bytes: Buffer; readonly template: TaskTemplate };

const kept: (Kept | undefined)[] = Array.from({ length: places });

/** Texts that many jobs have in common; rare ones would only push them out. */
export const knownTexts = new KnownTexts();

/** Decodes the template between the reader's position and `end`. */
export function readTemplate(from: Reader, end: number): TaskTemplate {
  const start = from.pos;
  if (end - start > bytesMax) return readAfresh(from, end, -1);
  const place = byteHash(from.bytes, start, end) & (places - 1);
  const found = kept[place];
  if (found === undefined || !isSame(found.bytes, from.bytes, start, end)) return readAfresh(from, end, place);
  from.pos = end;
  from.count(found.template.requires.length);
  return found.template;
}

function isSame(known: Buffer, bytes: Buffer, start: number, end: number): boolean {
  if (known.length !== end - start) return false;
  for (let i = start; i < end; i += 1) if (known[i - start] !== bytes[i]) return false;
  return true;
}

/** `place` -1: do not cache it. */
function readAfresh(from: Reader, end: number, place: number): TaskTemplate {
  const start = from.pos;
  let requires: readonly string[] = nothing;
  const numbers = { leaseMs: 0, attemptsMax: 0, backoffMs: 0, backoffMsMax: 0, queueMs: 0, attemptMs: 0, graceMs: 0 };
  let kind = "";
  let retryOn = 0;
  let effect = 0;
  let speculate = false;
  let isKnown = true;
  while (from.pos < end) {
    const tag = from.tag();
    if (tag === 10) kind = knownTexts.read(from);
    else if (tag === 18) {
      from.count();
      requires = added(requires, knownTexts.read(from));
    } else if (tag === 24) numbers.leaseMs = from.int64();
    else if (tag === 32) numbers.attemptsMax = from.int32();
    else if (tag === 40) retryOn = from.int32();
    else if (tag === 48) numbers.backoffMs = from.int64();
    else if (tag === 56) numbers.backoffMsMax = from.int64();
    else if (tag === 64) numbers.queueMs = from.int64();
    else if (tag === 72) numbers.attemptMs = from.int64();
    else if (tag === 80) effect = from.int32();
    else if (tag === 88) speculate = from.bool();
    else if (tag === 96) numbers.graceMs = from.int64();
    else if (tag === 320 || tag === 328 || tag === 338) return unusual();
    else {
      from.skip(tag);
      // Unknown fields may be allowed here and not elsewhere, since limits count from the start of the message: do not
      // cache.
      isKnown = false;
    }
  }
  const template: TaskTemplate = Object.freeze({
    kind,
    requires,
    leaseMs: numbers.leaseMs,
    attemptsMax: numbers.attemptsMax,
    retryOn: retryOns.wordOf(retryOn) ?? unusual(),
    backoffMs: numbers.backoffMs,
    backoffMsMax: numbers.backoffMsMax,
    queueMs: numbers.queueMs,
    attemptMs: numbers.attemptMs,
    effects: effects.wordOf(effect) ?? unusual(),
    speculate,
    graceMs: numbers.graceMs,
  });
  if (isKnown && place >= 0) kept[place] = { bytes: Buffer.from(from.bytes.subarray(start, end)), template };
  return template;
}
