/**
 * Many viewers of one task ask for the same bytes: they share one question, and its answer is kept for those that come
 * a little later. A viewer that is far behind asks for itself, and no other waits for it.
 */
import type { LiveSource } from "./live-source.ts";

const keptBytesMax = 16 * 1024 * 1024;

type PendingRead = {
  readonly answer: Promise<Uint8Array | undefined>;
  /** Ends the question when the last one that waited has left. */
  readonly leave: AbortController;
  waiting: number;
};

export function sharedSource(source: LiveSource): LiveSource {
  const pending = new Map<string, PendingRead>();
  /** Answers with bytes never change: what was printed stays. Oldest first. */
  const kept = new Map<string, Uint8Array>();
  let keptBytes = 0;

  const keep = (name: string, bytes: Uint8Array): void => {
    if (kept.has(name)) return;
    kept.set(name, bytes);
    keptBytes += bytes.length;
    for (const [oldest, { length }] of kept) {
      if (keptBytes <= keptBytesMax) return;
      kept.delete(oldest);
      keptBytes -= length;
    }
  };

  return {
    size: (worker, key, signal) => source.size(worker, key, signal),
    async pull(worker, key, offset, { waitMs, signal }) {
      const place = JSON.stringify([worker, key.tenant, key.task, key.token, key.name, offset]);
      const before = kept.get(place);
      if (before) return before;
      // One that does not wait must not be held by one that does.
      const name = waitMs === 0 ? `${place} now` : place;
      let one = pending.get(name);
      if (!one || one.leave.signal.aborted) {
        const leave = new AbortController();
        const answer = source.pull(worker, key, offset, { waitMs, signal: leave.signal });
        one = { answer, leave, waiting: 0 };
        pending.set(name, one);
        const mine = one;
        const gone = (): void => {
          if (pending.get(name) === mine) pending.delete(name);
        };
        answer.then((bytes) => bytes?.length && keep(place, bytes)).then(gone, gone);
      }
      return await shared(one, signal);
    },
  };
}

async function shared(one: PendingRead, signal: AbortSignal): Promise<Uint8Array | undefined> {
  const left = Promise.withResolvers<undefined>();
  const leave = (): void => left.resolve(undefined);
  signal.addEventListener("abort", leave, { once: true });
  if (signal.aborted) leave();
  one.waiting += 1;
  try {
    return await Promise.race([one.answer, left.promise]);
  } finally {
    signal.removeEventListener("abort", leave);
    one.waiting -= 1;
    if (one.waiting === 0) one.leave.abort();
  }
}
