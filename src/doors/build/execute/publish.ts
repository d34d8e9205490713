/**
 * Publishes results in the action index, once their commit counts. The owner of the job's shard does it, as often as
 * necessary, so it may happen again, and late.
 *
 * E1 A result never replaces one that was published after it was made; and one that was requested when there was none
 * never replaces the first: an action may run twice, its result is published once.
 * E4 A result is published for the action of its own task, if that may be cached, in the name of the client that
 * requested it and with the time of its commit. The executor decides only which blob it is, and nothing else.
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

/** What is published, and whether only if there is nothing yet. */
type Entry = { readonly key: EntryKey; readonly digest: Digest; readonly principal: string; readonly first: boolean };

export type PublisherPorts = {
  readonly index: ActionIndex;
  readonly wallMs: () => number;
  /** Called for a publication that is refused for good. */
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
    // An entry with a future time could be neither replaced nor revoked.
    const atMs = Math.min(publication.committedAtMs, wallMs());
    // Not read before: an entry that refuses a write is durable, one that is merely read may be lost with its server,
    // and a publication that is done is not asked for again (K7).
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
  if (!spec) return { refused: "its task has no action" };
  const wanted = readWanted(publish);
  if (!wanted) return { refused: "it does not say which blob is the result of which action" };
  const { space, name } = placeOf(spec);
  if (wanted.space !== space || wanted.name !== name) return { refused: "it names another action than its task's" };
  if (spec.doNotCache) return { refused: "its action is not to be cached" };
  const { digest } = wanted;
  // K3: an unpinned blob may be gone. The empty blob always exists.
  if (!isEmpty(digest) && !result.digests.includes(digest))
    return { refused: "it names a blob that the result does not name" };
  const { principal, because } = spec;
  return { key: { tenant, space, name }, digest, principal, first: because?.kind === "never-stored" };
}

const placeOf = ({ fn, instance, action }: Of): Pick<Wanted, "space" | "name"> => ({
  space: spaceOf(fn, instance),
  name: action.slice(action.indexOf(":") + 1),
});

/** Written by executors, which need not be ours. Parsed by hand, because every result passes here. */
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
