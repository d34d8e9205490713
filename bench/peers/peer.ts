/** A queue that others wrote, doing what ours does: many small tasks, made durable, that do nothing. */
export type Peer = {
  readonly name: string;
  /** What was chosen, and what its word "done" means. */
  readonly how: string;
  /** Puts so many tasks in, the fastest way it has. */
  fill(tasks: number): Promise<void>;
  /** Hands all of them out and takes all of them back; answers how long that took, without its own start. */
  drain(tasks: number): Promise<number>;
  close(): Promise<void>;
};

/** Either the peer, or why there is none. */
export type Found = { readonly peer: Peer } | { readonly missing: string };
