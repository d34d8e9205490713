/** A store with every optional method, to see which of them a decorator keeps. */
import type { BlobStore, Prompt } from "#blobs/store.ts";

type Complete = Required<Omit<BlobStore, "prompt">> & { readonly prompt: Required<Prompt> };

/** Typed as complete: a new optional method does not compile until it is here, and so in every decorator's test. */
export const completeStore: Complete = {
  missing: async () => [],
  async *read() {},
  write: async () => {},
  pin: async (digests, forMs) => ({ digests, pinnedForMs: forMs }),
  file: async () => undefined,
  adopt: async () => false,
  path: async () => undefined,
  part: async () => undefined,
  prompt: { has: () => true, hasMany: () => {}, sizeOf: () => 1, bytes: () => undefined },
};

const names = (store: BlobStore): readonly string[] => [
  ...Object.entries(store).flatMap(([name, value]) => (typeof value === "function" ? [name] : [])),
  ...Object.entries(store.prompt ?? {}).map(([name]) => `prompt.${name}`),
];

const complete = names(completeStore);

/** What the decorator's store does not have, although the store inside has it. */
export function lostBy(decorate: (inner: BlobStore) => BlobStore): readonly string[] {
  const kept = new Set(names(decorate(completeStore)));
  return complete.filter((name) => !kept.has(name));
}
