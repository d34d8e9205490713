/**
 * Makes results known in the action index, once their commit counts. The owner of the job's shard does it, as often as
 * it takes, so it may be done again, and late.
 *
 * E1 What was published after a result was made is never replaced by it, nor is the first by one that was asked for
 *    when there was none: an action may be run twice, its result is published once.
 */
import { isDigest, type Digest } from "#base/digest.ts";
import type { ActionIndex, EntryKey } from "#blobs/action-index.ts";
import type { Publisher } from "#shard/outbox.ts";
import { resultSpaces } from "./action-cache.ts";

export type Publication = {
  readonly space: string;
  readonly name: string;
  readonly digest: Digest;
  readonly principal: string;
  readonly atMs: number;
  /** There was none when it was asked for. */
  readonly first?: boolean;
};

export const publicationText = (publication: Publication): string => JSON.stringify(publication);

const triesMax = 10;

export const buildPublisher =
  (index: ActionIndex, wallMs: () => number): Publisher =>
  async ({ tenant, publish }) => {
    const publication = readPublication(publish);
    if (!publication) return "done";
    const { space, name, digest, principal, first = false } = publication;
    // What says that it is from the future could be neither replaced nor taken back.
    const atMs = Math.min(publication.atMs, wallMs());
    const key: EntryKey = { tenant, space, name };
    // Who wants to be the first need not look: there is nothing, or it is told what there is.
    let current = first ? undefined : await index.get(key);
    for (let tries = 0; tries < triesMax; tries += 1) {
      if (current && (first || current.digest === digest || current.atMs > atMs)) return "done";
      const written = await index.put(key, { digest, principal, atMs }, current?.version ?? 0);
      if (written.kind === "written") return "done";
      ({ current } = written);
    }
    return "later";
  };

/** Executors write it, and those need not be ours: it names a result of an action, and nothing else in the index. */
const actionName = /^[0-9a-f]{16,128}\/\d{1,16}$/;
const textMax = 300;

const isText = (value: unknown): value is string => typeof value === "string" && value.length <= textMax;

/** What is not ours to read makes no sense, and never will. By hand: every result comes by here. */
function readPublication(text: string): Publication | undefined {
  const read = parsed(text);
  if (typeof read !== "object" || read === null) return undefined;
  const { space, name, digest, principal, atMs, first } = read as Readonly<Record<string, unknown>>;
  if (!isText(space) || !space.startsWith(resultSpaces) || !isText(principal)) return undefined;
  if (typeof name !== "string" || !actionName.test(name)) return undefined;
  if (typeof digest !== "string" || !isDigest(digest)) return undefined;
  if (typeof atMs !== "number" || !Number.isSafeInteger(atMs) || atMs < 0) return undefined;
  if (first !== undefined && typeof first !== "boolean") return undefined;
  const publication = { space, name, digest, principal, atMs };
  return first === undefined ? publication : { ...publication, first };
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
