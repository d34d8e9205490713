/** What is known of a task before it runs, and once it has run: results of the same work, found by what decides it. */
import type { Digest } from "#base/digest.ts";
import type { ActionIndex } from "#blobs/action-index.ts";
import type { BlobStore } from "#blobs/store.ts";
import type { StageDocument } from "#doors/batch/documents.ts";
import type { SourceFile } from "#doors/batch/plan/source.ts";
import { filesOf, type Packs } from "#doors/batch/run/inputs.ts";
import type { ContentDigests } from "./identity.ts";
import { taskKey, type TaskKey } from "./key.ts";
import { findMemo, whyNoMemo, type MemoResult } from "./memo.ts";

export type MemoLookup = {
  readonly index: ActionIndex;
  readonly looked: (tenant: string, outcome: "hit" | "miss") => void;
  /** Left out: files are recognised by their place. */
  readonly contents?: ContentDigests | undefined;
};

export type LookUpPorts = {
  readonly memo?: MemoLookup;
  readonly blobs: BlobStore;
  readonly scratch: (name: string) => Promise<AsyncDisposable & { readonly path: string }>;
};

export type Known = {
  readonly tenant: string;
  readonly document: StageDocument;
  readonly part: number;
  readonly named: Packs;
  readonly signal: AbortSignal;
};

type Memo = {
  readonly key: TaskKey;
  readonly found: MemoResult | undefined;
  /** The pack that a task with this key has written, though it may be lost. */
  readonly before: Digest | undefined;
  readonly why: string;
};

export async function lookUp(
  { tenant, document, part, named, signal }: Known,
  ports: LookUpPorts,
): Promise<Memo | undefined> {
  const { memo } = ports;
  if (!memo) return undefined;
  const packs = new Map([...named].map(([id, { digests }]) => [id, digests]));
  const identities = new Map<string, string>();
  if (memo.contents)
    for (const file of filesOf(document, part).filter(({ object }) => !object)) {
      await using scratch = await ports.scratch("identity");
      identities.set(file.path, await memo.contents.of(file, scratch.path, signal));
    }
  const identityOf = ({ path, place }: SourceFile): string => identities.get(path) ?? place;
  const key = taskKey(document, part, { identityOf, packs });
  if (!key) return undefined;
  const from = { index: memo.index, blobs: ports.blobs };
  const { found, before } = await findMemo(key, tenant, from);
  memo.looked(tenant, found ? "hit" : "miss");
  const why = found ? "it was to be computed again" : (await whyNoMemo(key, tenant, from)).slice(0, 300);
  return { key, found, before, why };
}

/** Long enough for the shard to have given the task to a second executor, and for that one to have been quicker. */
const twinMsMin = 1_000;

/** What the other attempt has written meanwhile: its result counts, and what this one wrote is compared with it. */
export async function twinsPack(
  key: TaskKey,
  tenant: string,
  ms: number,
  { memo, blobs }: LookUpPorts,
): Promise<Digest | undefined> {
  return memo && ms >= twinMsMin ? (await findMemo(key, tenant, { index: memo.index, blobs })).before : undefined;
}
