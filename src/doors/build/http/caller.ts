/** Who asks for something of a cache, as far as a cache has to know. Found out by whoever mounts the caches. */

/**
 * Bytes by their digest, or names that others will trust: whoever may write a name decides what others' builds hold.
 */
export type Need = "blobs.read" | "blobs.write" | "names.read" | "names.write";

export type HttpCaller = {
  /** Whose cache it is. */
  readonly tenant: string;
  /** For the record of who wrote an entry. */
  readonly principal: string;
  /** Undefined when it may. */
  refusal(need: Need): CallRefusal | undefined;
};

export type CallRefusal = {
  readonly status: 401 | 403 | 503;
  readonly message: string;
  readonly headers?: Readonly<Record<string, string>>;
};

/** Who a request comes from, or why nobody can be told. */
export type Identified = { readonly caller: HttpCaller } | { readonly refused: CallRefusal };

export type Identify = (request: Request) => Promise<Identified>;
