/** Events of a log gathered: one is sent when it has so many lines, or so long after its first line came. */
import type { Clock } from "#base/clock.ts";
import type { ServerEvent } from "#http/live/sse.ts";

type Batch<L> = { readonly lines: L[]; readonly ended?: true };

const linesMax = 100;
const waitMs = 100;

export async function* gathered<L>(
  source: AsyncIterable<ServerEvent<Batch<L>>>,
  clock: Pick<Clock, "after">,
): AsyncGenerator<ServerEvent<Batch<L>>> {
  const events = source[Symbol.asyncIterator]();
  let held: ServerEvent<Batch<L>> | undefined;
  let due = Promise.withResolvers<"due">();
  let cancel = (): void => {};
  try {
    let next = events.next();
    for (;;) {
      const got = held ? await Promise.race([next, due.promise]) : await next;
      if (got === "due" || got.done === true) {
        if (held) yield held;
        held = undefined;
        if (got !== "due") return;
        continue;
      }
      next = events.next();
      if (held && held.data.lines.length + got.value.data.lines.length > linesMax) {
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
      if (held.data.lines.length < linesMax && !held.data.ended) continue;
      yield held;
      held = undefined;
    }
  } finally {
    cancel();
    await events.return?.();
  }
}

function joined<L>(first: ServerEvent<Batch<L>>, then: ServerEvent<Batch<L>>): ServerEvent<Batch<L>> {
  const data = { ...then.data, lines: [...first.data.lines, ...then.data.lines] };
  const id = then.id ?? first.id;
  return { ...(id !== undefined && { id }), data };
}
