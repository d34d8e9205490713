/**
 * What a run is found by, as tags of its job. They stay when the job has left memory and its spec is gone: so they hold
 * all that lists and pages say of a run, and where its record is. Pure.
 */
import type { Digest } from "#base/digest.ts";
import { effectsTag } from "#effects/effects.ts";
import type { Tag } from "#kernel/model/model.ts";
import type { RunAbout } from "./record.ts";

const valueLengthMax = 200;

/** A text that a tag can hold: cut, and without control characters. */
const tagText = (text: string): string => text.replaceAll(/\p{Cc}/gu, " ").slice(0, valueLengthMax);

export function tagsOf(about: RunAbout, record: Digest): readonly Tag[] {
  const values: Readonly<Record<string, string>> = {
    actor: about.actor,
    branch: shortRef(about.ref),
    event: about.event,
    path: about.path,
    record,
    ref: about.ref,
    repository: about.repository,
    sha: about.sha,
    workflow: about.workflow,
    ...(about.head !== undefined && { head: about.head }),
    ...(about.attempt !== undefined && { attempt: String(about.attempt) }),
    ...(about.number !== undefined && { number: String(about.number) }),
    ...(about.again !== undefined && { again: about.again }),
    // a re-run shares the ledger of effects with the first run: what that did is not done again
    ...(about.root !== undefined && { [effectsTag]: about.root }),
  };
  return Object.entries(values).flatMap(([name, value]) => (value === "" ? [] : [{ name, value: tagText(value) }]));
}

export type RunTags = RunAbout & { readonly record?: Digest };

export function aboutOfTags(title: string, tags: readonly Tag[] = []): RunTags {
  const values = new Map(tags.map(({ name, value }) => [name, value]));
  const get = (name: string): string => values.get(name) ?? "";
  const [attempt, number] = [Number(get("attempt")), Number(get("number"))];
  const [again, record, head] = [get("again"), get("record"), get("head")];
  return {
    title,
    workflow: get("workflow"),
    path: get("path"),
    repository: get("repository"),
    event: get("event"),
    ref: get("ref"),
    sha: get("sha"),
    actor: get("actor"),
    ...(head !== "" && { head }),
    ...(attempt > 0 && { attempt }),
    ...(number > 0 && { number }),
    ...(again !== "" && { again }),
    ...(record !== "" && { record }),
  };
}

export const shortRef = (ref: string): string => ref.replace(/^refs\/(heads|tags|pull)\//, "");
