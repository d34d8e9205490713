/** Runs over all items, with limited concurrency. */
export async function inParallel<T>(
  max: number,
  items: readonly T[],
  run: (item: T, index: number) => Promise<unknown>,
): Promise<void> {
  const entries = items.entries();
  const lane = async (): Promise<void> => {
    for (const [index, item] of entries) await run(item, index);
  };
  await Promise.all(Array.from({ length: Math.min(max, items.length) }, lane));
}
