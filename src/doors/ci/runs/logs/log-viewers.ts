/**
 * All who follow logs on this node. Viewers of one log share a subscription once they have caught up with one another.
 *
 * LV1 A viewer gets each line once and in order, whomever it shares with.
 * LV2 No viewer makes others wait, and what is held for it is bounded: one that falls too far behind the others is
 *     shed. It is told so, and may ask again from its place: then it reads by itself, as fast as it can.
 */
import type { Clock } from "#base/clock.ts";
import { gathered } from "./gather.ts";
import { eventOf, type LogBatch, type LogEvent, type LogPlace, type LogQuery } from "./log-feed.ts";
import { type Seat, SharedLog } from "./shared-log.ts";

export type ViewerPorts = {
  readonly feed: (query: LogQuery) => AsyncIterable<LogBatch>;
  readonly clock: Pick<Clock, "after">;
  /** Of each log that is followed, as JSON. */
  readonly bytesMax?: number;
};

export type ViewQuery = Omit<LogQuery, "follow"> & {
  /** Only this step's lines. */
  readonly step?: number | undefined;
};

const bytesMaxDefault = 8 << 20;
const shedText = "this viewer reads too slowly: ask again with the last event's id to go on from there";

const placeBehind = ({ token, end }: LogBatch): LogPlace | undefined =>
  token === undefined ? undefined : { token, offset: end };

type Shared = { readonly log: SharedLog; readonly ended: AbortController };

export class LogViewers {
  readonly #ports: ViewerPorts;
  readonly #logs = new Map<string, Shared>();
  /** Viewers that were shed so far. */
  shed = 0;

  constructor(ports: ViewerPorts) {
    this.#ports = ports;
  }

  /** How many subscriptions there are. */
  get subscriptions(): number {
    return this.#logs.size;
  }

  async *view(query: ViewQuery): AsyncGenerator<LogEvent> {
    const key = JSON.stringify([query.tenant, query.run, query.task]);
    const known = this.#logs.get(key) ?? this.#share(key, query);
    let seat = known.log.seatAt(query.from);
    let shared = seat && this.#enter(known);
    try {
      if (!seat) {
        const joined = new AbortController(); // ends a read that waits for more
        const signal = AbortSignal.any([query.signal, joined.signal]);
        for await (const batch of gathered(this.#ports.feed({ ...query, follow: true, signal }), this.#ports.clock)) {
          yield eventOf(batch, query.step);
          if (batch.ended) return;
          const now = this.#logs.get(key);
          seat = now?.log.seatAt(placeBehind(batch));
          if (!now || !seat) continue;
          shared = this.#enter(now);
          joined.abort();
          break;
        }
      }
      if (seat && shared) yield* this.#together(shared, seat, query);
    } finally {
      if (shared) this.#leave(key, shared);
    }
  }

  #enter(shared: Shared): Shared {
    shared.log.viewers += 1;
    return shared;
  }

  #leave(key: string, { log, ended }: Shared): void {
    log.viewers -= 1;
    if (log.viewers > 0) return;
    ended.abort();
    if (this.#logs.get(key)?.log === log) this.#logs.delete(key);
  }

  #share(key: string, { step: _step, ...query }: ViewQuery): Shared {
    const ended = new AbortController();
    const feed = this.#ports.feed({ ...query, follow: true, signal: ended.signal });
    const log = new SharedLog(gathered(feed, this.#ports.clock), query.from, this.#ports.bytesMax ?? bytesMaxDefault);
    const shared = { log, ended };
    this.#logs.set(key, shared);
    return shared;
  }

  async *#together({ log }: Shared, from: Seat, { step, signal }: ViewQuery): AsyncGenerator<LogEvent> {
    let seat = from;
    let id: string | undefined;
    for (;;) {
      const event = await log.next(seat, signal, step);
      if (event === undefined) return;
      if (event === "behind") {
        this.shed += 1;
        yield { ...(id !== undefined && { id }), data: { lines: [], shed: shedText } };
        return;
      }
      yield event;
      id = event.id ?? id;
      seat = { number: seat.number + 1, offset: 0 };
    }
  }
}
