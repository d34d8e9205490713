/**
 * Makes results known in the action index, once their commit counts. The owner of the job's shard does it, as often as
 * it takes, so it may be done again, and late.
 *
 * E1 What was published after a result was made is never replaced by it, nor is the first by one that was asked for
 *    when there was none: an action may be run twice, its result is published once.
 * E4 A result is published for the action that its own task was given for, if that may be cached, in the name of who
 *    asked for it and at the time of its commit. An executor's word counts for which blob it is, and for nothing else.
 */
import { isDigest, type Digest } from "#base/digest.ts";
import type { ActionIndex, EntryKey } from "#blobs/action-index.ts";
import type { Publication, Publisher } from "#shard/outbox/outbox.ts";
import { spaceOf } from "#doors/build/cache/action-cache.ts";
import { isEmpty } from "#doors/build/digests.ts";
import { readSpec, type ActionSpec } from "#doors/build/plan.ts";

/** What an executor asks for: this blob is the result of that action. */
export type Wanted = { readonly space: string; readonly name: string; readonly digest: Digest };

type Of = Pick<ActionSpec, "fn" | "instance" | "action">;

export const publicationText = (spec: Of, digest: Digest): string =>
  JSON.stringify({ ...placeOf(spec), digest } satisfies Wanted);

/** What is published, and whether only where there is nothing yet. */
type Entry = { readonly key: EntryKey; readonly digest: Digest; readonly principal: string; readonly first: boolean };

export type PublisherPorts = {
  readonly index: ActionIndex;
  readonly wallMs: () => number;
  /** Told of what is not published, and never will be. */
  readonly refused: (publication: Publication, why: string) => void;
};

type Known = Awaited<ReturnType<ActionIndex["get"]>>;

const triesMax = 10;

export const buildPublisher =
  ({ index, wallMs, refused }: PublisherPorts): Publisher =>
  async (publication) => {
    const entry = entryOf(publication);
    if ("refused" in entry) {
      refused(publication, entry.refused);
      return "done";
    }
    const { key, digest, principal, first } = entry;
    // What says that it is from the future could be neither replaced nor taken back.
    const atMs = Math.min(publication.committedAtMs, wallMs());
    // Not looked at before: what a write is refused for is sure to stay, what is merely seen may be lost with its
    // server, and this publication is not asked for again once it is done (K7).
    let current: Known;
    for (let tries = 0; tries < triesMax; tries += 1) {
      if (current && (first || current.digest === digest || current.atMs > atMs)) return "done";
      const written = await index.put(key, { digest, principal, atMs }, current?.version ?? 0);
      if (written.kind === "written") return "done";
      ({ current } = written);
    }
    return "later";
  };

/** E4. Pure. */
export function entryOf({
  tenant,
  spec: text,
  publish,
  result,
}: Pick<Publication, "tenant" | "spec" | "publish" | "result">): Entry | { readonly refused: string } {
  const spec = readSpec(text);
  if (!spec) return { refused: "its task is of no action" };
  const wanted = readWanted(publish);
  if (!wanted) return { refused: "it does not say which blob is the result of which action" };
  const { space, name } = placeOf(spec);
  if (wanted.space !== space || wanted.name !== name)
    return { refused: "it names another action than the one that its task is of" };
  if (spec.doNotCache) return { refused: "its action is not to be cached" };
  const { digest } = wanted;
  // K3: what was not pinned may be gone. An empty blob is always there.
  if (!isEmpty(digest) && !result.digests.includes(digest))
    return { refused: "it names a blob that the result does not name" };
  const { principal, because } = spec;
  return { key: { tenant, space, name }, digest, principal, first: because?.kind === "never-stored" };
}

const placeOf = ({ fn, instance, action }: Of): Pick<Wanted, "space" | "name"> => ({
  space: spaceOf(fn, instance),
  name: action.slice(action.indexOf(":") + 1),
});

/** Executors write it, and those need not be ours. By hand: every result comes by here. */
function readWanted(text: string): Wanted | undefined {
  const read = parsed(text);
  if (typeof read !== "object" || read === null) return undefined;
  const { space, name, digest } = read as Readonly<Record<string, unknown>>;
  if (typeof space !== "string" || typeof name !== "string") return undefined;
  return typeof digest === "string" && isDigest(digest) ? { space, name, digest } : undefined;
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
