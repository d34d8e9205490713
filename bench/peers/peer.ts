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

/** Puts tasks in a thousand at a time, which all of them take well. */
export async function inThousands<T>(
  tasks: number,
  taskOf: (no: number) => T,
  add: (portion: readonly T[]) => Promise<unknown>,
): Promise<void> {
  for (let from = 0; from < tasks; from += 1_000)
    await add(Array.from({ length: Math.min(1_000, tasks - from) }, (_, i) => taskOf(from + i)));
}

/** Either the peer, or why there is none. */
export type Found = { readonly peer: Peer } | { readonly missing: string };
