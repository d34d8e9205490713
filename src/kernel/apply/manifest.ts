/**
 * The manifest of a stage's results: a blob that lists task and result, written by the shard's owner once all tasks of
 * the stage have ended and before the stage ends. A consumer's input is its digest, one for each generation.
 */
import { must } from "#base/assert.ts";
import type { Stage } from "#kernel/model/entities.ts";
import type { EventOf } from "#kernel/model/event.ts";
import type { State } from "#kernel/model/state.ts";
import { bytesOfManifest } from "#kernel/memory/weigh.ts";
import { dropResults } from "./arrays.ts";
import { beforeChange } from "./moves.ts";

/** Whether the stage's results go into a manifest: those of an array always do. */
export const hasManifest = (stage: Stage): boolean => stage.arrays !== undefined || stage.shape.manifest;

export function applyManifestDue(state: State, event: EventOf<"manifest-due">): void {
  const stage = state.stage(event.job, event.stage);
  beforeChange(state, stage);
  set(state, stage, { no: event.no, dueAtMs: event.at, digest: undefined, base: stage.manifest?.base });
  state.manifests.set(event.no, stage);
  state.nextTask = Math.max(state.nextTask, event.no + 1);
}

export function applyManifestWritten(state: State, event: EventOf<"manifest-written">): void {
  const stage = must(state.manifests.get(event.no), "stage whose manifest is due");
  beforeChange(state, stage);
  const { no, dueAtMs } = must(stage.manifest, "manifest that is due");
  set(state, stage, { no, dueAtMs, digest: event.digest, base: undefined });
  state.manifests.delete(event.no);
  for (const array of stage.arrays ?? []) dropResults(state, array);
  state.unsettled.add(stage);
}

/** What was to be written no longer counts: a result became invalid, or the stage ended without it. */
export function voidManifest(state: State, stage: Stage): void {
  const { manifest } = stage;
  if (!manifest || manifest.digest !== undefined || manifest.no === 0) return;
  beforeChange(state, stage);
  state.manifests.delete(manifest.no);
  set(state, stage, manifest.base === undefined ? undefined : { ...manifest, no: 0 });
}

/** Some of the stage's tasks run again: the next manifest is made from this one. */
export function reviseManifest(state: State, stage: Stage): void {
  const digest = stage.manifest?.digest;
  if (digest !== undefined) set(state, stage, { no: 0, dueAtMs: 0, digest: undefined, base: digest });
}

function set(state: State, stage: Stage, manifest: Stage["manifest"]): void {
  state.grow(stage.job, bytesOfManifest(manifest) - bytesOfManifest(stage.manifest));
  stage.manifest = manifest;
}
