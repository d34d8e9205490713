/** Batches of a log gathered: one is passed on when it has so many lines, or so long after its first line came. */
import type { Clock } from "#base/clock.ts";
import type { LogBatch } from "./log-feed.ts";

const linesMax = 100;
const waitMs = 100;

export async function* gathered(
  source: AsyncIterable<LogBatch>,
  clock: Pick<Clock, "after">,
): AsyncGenerator<LogBatch> {
  const batches = source[Symbol.asyncIterator]();
  let held: LogBatch | undefined;
  let due = Promise.withResolvers<"due">();
  let cancel = (): void => {};
  try {
    let next = batches.next();
    for (;;) {
      const got = held ? await Promise.race([next, due.promise]) : await next;
      if (got === "due" || got.done === true) {
        if (held) yield held;
        held = undefined;
        if (got !== "due") return;
        continue;
      }
      next = batches.next();
      next.catch(() => {}); // thrown when it is awaited: the reader may be slow
      if (held && !fits(held, got.value)) {
        yield held;
        held = undefined;
      }
      if (!held) {
        cancel();
        due = Promise.withResolvers();
        const { resolve } = due;
        cancel = clock.after(waitMs, () => resolve("due"));
      }
      held = held ? joined(held, got.value) : got.value;
      if (held.lines.length < linesMax && !held.ended) continue;
      yield held;
      held = undefined;
    }
  } finally {
    cancel();
    await batches.return?.(undefined);
  }
}

/** Attempts have logs of their own. */
const fits = (first: LogBatch, then: LogBatch): boolean =>
  first.token === then.token && first.end === then.offset && first.lines.length + then.lines.length <= linesMax;

const joined = (first: LogBatch, then: LogBatch): LogBatch => ({
  ...then,
  offset: first.offset,
  lines: [...first.lines, ...then.lines],
  ends: [...first.ends, ...then.ends],
});
