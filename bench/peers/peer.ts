/** A queue by others, doing what ours does: many small durable tasks that do nothing. */
export type Peer = {
  readonly name: string;
  /** The chosen mode, and what "done" means in it. */
  readonly how: string;
  /** Adds this many tasks, in its fastest way. */
  fill(tasks: number): Promise<void>;
  /** Hands out and completes all of them; returns how long that took, without its own start. */
  drain(tasks: number): Promise<number>;
  close(): Promise<void>;
};

/** Adds tasks a thousand at a time, which suits all of them. */
export async function inThousands<T>(
  tasks: number,
  taskOf: (no: number) => T,
  add: (portion: readonly T[]) => Promise<unknown>,
): Promise<void> {
  for (let from = 0; from < tasks; from += 1_000)
    await add(Array.from({ length: Math.min(1_000, tasks - from) }, (_, i) => taskOf(from + i)));
}

/** Either the peer, or why it is missing. */
export type Found = { readonly peer: Peer } | { readonly missing: string };
