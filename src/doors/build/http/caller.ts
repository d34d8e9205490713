/** The caller of a cache, as far as a cache has to know. The code that mounts the caches authenticates it. */

/**
 * Blobs by their digest, or names that others will trust: a caller that may write names decides what others' builds
 * contain. The store as a whole is for operators.
 */
export type Need = "blobs.read" | "blobs.write" | "names.read" | "names.write" | "store.look" | "store.tend";

export type HttpCaller = {
  /** The owner of the cache. */
  readonly tenant: string;
  /** Recorded as the writer of an entry. */
  readonly principal: string;
  /** Undefined when it has the permission. */
  refusal(need: Need): CallRefusal | undefined;
};

export type CallRefusal = {
  readonly status: 401 | 403 | 503;
  readonly message: string;
  readonly headers?: Readonly<Record<string, string>>;
};

/** The caller of a request, or why it could not be identified. */
export type Identified = { readonly caller: HttpCaller } | { readonly refused: CallRefusal };

export type Identify = (request: Request) => Promise<Identified>;
