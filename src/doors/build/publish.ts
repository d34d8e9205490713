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
  (index: ActionIndex): Publisher =>
  async ({ tenant, publish }) => {
    const publication = readPublication(publish);
    if (!publication) return "done";
    const { space, name, digest, principal, atMs, first = false } = publication;
    const key: EntryKey = { tenant, space, name };
    for (let tries = 0; tries < triesMax; tries += 1) {
      const current = await index.get(key);
      if (current && (first || current.digest === digest || current.atMs > atMs)) return "done";
      const written = await index.put(key, { digest, principal, atMs }, current?.version ?? 0);
      if (written.kind === "written") return "done";
    }
    return "later";
  };

/** What is not ours to read makes no sense, and never will. */
function readPublication(text: string): Publication | undefined {
  try {
    const publication = JSON.parse(text) as Publication;
    return isDigest(publication.digest) ? publication : undefined;
  } catch {
    return undefined;
  }
}
