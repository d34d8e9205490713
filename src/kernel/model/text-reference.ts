/**
 * A long text (a spec, a signal's payload) is kept in the store, and the shard keeps a reference to it. Only a host
 * makes references. A caller's text that looks like one is refused: it could name another tenant's blob.
 */
import { digestSizeBytes, isDigest, type Digest } from "#base/digest.ts";
import type { Submit } from "./command.ts";
import type { Plan, Signal, TaskSet } from "./model.ts";
import type { Rejection } from "./rejection.ts";
import { listedIn, setsOf } from "./task-set.ts";

const prefix = "@blob:";

export const referenceTo = (digest: Digest): string => `${prefix}${digest}`;

export const isReference = (text: string): boolean => text.startsWith(prefix);

/** Undefined if the text is not a reference. */
export function digestReferredTo(text: string): Digest | undefined {
  if (!isReference(text)) return undefined;
  const digest = text.slice(prefix.length);
  return isDigest(digest) ? digest : undefined;
}

/** Referenced bytes are on disk, but they are pinned and read whenever the text is needed: count this share of them. */
const keptShare = 1 / 16;

/** The memory that a reference counts for, besides its own text. */
export function bytesOfKept(text: string): number {
  const digest = digestReferredTo(text);
  return digest === undefined ? 0 : Math.ceil(digestSizeBytes(digest) * keptShare);
}

const looksLikeOne = (path: string): Rejection => ({
  kind: "invalid",
  path,
  why: `must not begin with ${prefix}: only the node makes such texts`,
});

export function wrongReferences(submit: Submit): Rejection | undefined {
  if (submit.textsKept) return undefined;
  if (isReference(submit.spec)) return looksLikeOne("spec");
  for (const { tasks } of submit.stages) if (refersIn(tasks)) return looksLikeOne("stages.tasks.spec");
  for (const { spec } of submit.reuse ?? []) if (isReference(spec)) return looksLikeOne("reuse.spec");
  return undefined;
}

export function wrongPlanReferences(plan: Plan): Rejection | undefined {
  if (plan.kind !== "tasks") return undefined;
  return setsOf(plan).some(refersIn) ? looksLikeOne("plan.set.tasks.spec") : undefined;
}

const refersIn = (set: TaskSet | undefined): boolean =>
  listedIn(set).some(({ spec }) => isReference(spec)) || (set?.array !== undefined && isReference(set.array.spec));

export const wrongSignalReference = ({ payload }: Signal): Rejection | undefined =>
  isReference(payload) ? looksLikeOne("signal.payload") : undefined;
