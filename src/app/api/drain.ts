/** Serves /v1/node/drain. */
import { isFault } from "#base/fault.ts";
import { parseDurationMs } from "#base/units.ts";
import { showDrain, startDrain, undoDrain } from "#api/drain.ts";
import type { Drain } from "#app/node/drain.ts";
import { Problem } from "#http/problem.ts";
import { route, type Route } from "#http/route.ts";

const withinMsMax = 7 * 86_400_000;

export const drainRoutes = (drain: Drain): readonly Route[] => [
  route(showDrain, () => ({ body: drain.view() })),
  route(startDrain, ({ query: { within, leave } }) => {
    const withinMs = parseDurationMs(within);
    if (withinMs === undefined || withinMs > withinMsMax)
      throw new Problem(400, 'within: write a number and a unit, such as "10m", of at most 7d');
    return { body: refusing(() => drain.begin({ withinMs, leave: leave === "true" })) };
  }),
  route(undoDrain, async () => {
    try {
      return { body: await drain.resume() };
    } catch (error) {
      throw asConflict(error);
    }
  }),
];

function refusing<T>(run: () => T): T {
  try {
    return run();
  } catch (error) {
    throw asConflict(error);
  }
}

const asConflict = (error: unknown): unknown =>
  isFault(error, "stale") ? new Problem(409, String(error.facts["why"]), { cause: error }) : error;
