/** Serves /v1/events: the event feed as pages and as a stream. */
import type { Clock } from "#base/clock.ts";
import { isFault } from "#base/fault.ts";
import { listEvents, watchEvents, type EventItem } from "#api/events.ts";
import type { Feed } from "#feed/feed.ts";
import type { FeedFilter } from "#feed/filter.ts";
import type { FeedReader, FeedStart } from "#feed/reader.ts";
import { Problem } from "#http/problem.ts";
import { route, type Route } from "#http/route.ts";
import { lastEventId, type ServerEvent } from "#http/live/sse.ts";
import type { FeedItem } from "#kernel/read/feed.ts";
import { tagOf } from "#shard/client/history.ts";
import { scopeOf } from "./scope.ts";

export type EventsPorts = { readonly feed: Feed; readonly clock: Clock };

/** Items that leave together: the last has the cursor as its id. */
const togetherMax = 200;
/** A long cursor is not sent more often than this. */
const idEveryMs = 1_000;
const idLengthShort = 200;
/** After so long without a wanted event the cursor is sent alone, so that resuming does not read all of it again. */
const quietMs = 10_000;

export const eventsRoutes = ({ feed, clock }: EventsPorts): readonly Route[] => [
  route(listEvents, async (call) => {
    const { query, signal } = call;
    using reader = await opened(feed, filterOf(scopeOf(call), query), startOf(query.cursor, query.from, "oldest"));
    const items = await pageOf(reader, query, signal, clock);
    feed.counts.delivered += items.length;
    return { body: { items: items.map(shown), next: reader.cursor } };
  }),
  route(watchEvents, async (call) => {
    const { query, signal, headers, url } = call;
    const start = startOf(query.cursor ?? lastEventId(headers, url), query.from, "now");
    const reader = await opened(feed, filterOf(scopeOf(call), query), start);
    return { body: streamed(feed, reader, clock, signal) };
  }),
];

type Filters = {
  readonly kind?: readonly EventItem["kind"][] | undefined;
  readonly door?: readonly string[] | undefined;
  readonly tag?: readonly string[] | undefined;
  readonly job?: string | undefined;
};

export const filterOf = (tenant: string | undefined, { kind, door, tag, job }: Filters): FeedFilter => ({
  tenant,
  kinds: kind,
  doors: door,
  job,
  ...(tag && tag.length > 0 && { tags: tag.map(tagOf) }),
});

export const startOf = (
  cursor: string | undefined,
  from: "now" | "oldest" | undefined,
  otherwise: "now" | "oldest",
): FeedStart => (cursor === undefined ? (from ?? otherwise) : { cursor });

async function opened(feed: Feed, filter: FeedFilter, start: FeedStart): Promise<FeedReader> {
  try {
    return await feed.open(filter, start);
  } catch (error) {
    if (isFault(error, "stale")) throw new Problem(410, `cursor: ${String(error.facts["why"])}; begin again with from`);
    throw error;
  }
}

async function pageOf(
  reader: FeedReader,
  { limit, wait }: { readonly limit: number; readonly wait: number },
  signal: AbortSignal,
  clock: Clock,
): Promise<readonly FeedItem[]> {
  for (const untilMono = clock.monotonicMs() + wait * 1_000; ;) {
    const items = await reader.take(limit, signal);
    const leftMs = untilMono - clock.monotonicMs();
    if (items.length > 0 || leftMs <= 0 || signal.aborted) return items;
    await reader.news(leftMs, signal);
  }
}

type Sent = ServerEvent<EventItem | { readonly cursor: string; readonly reason?: string }>;

/** Pulled by the connection: what is held for a slow reader is one chunk. */
async function* streamed(
  feed: Feed,
  opened: FeedReader,
  clock: Clock,
  signal: AbortSignal,
): AsyncGenerator<Sent | readonly Sent[]> {
  using reader = opened;
  const ids = new CursorIds(clock, reader.cursor);
  while (!signal.aborted) {
    let items: readonly FeedItem[];
    try {
      items = await reader.take(togetherMax, signal);
    } catch (error) {
      if (isFault(error, "unavailable") || signal.aborted) return; // the node stops: the reader resumes elsewhere
      if (!isFault(error, "exhausted")) throw error;
      feed.counts.shed += 1;
      const { cursor } = reader;
      return yield { id: cursor, event: "shed", data: { cursor, reason: String(error.facts["why"]) } };
    }
    if (items.length === 0) {
      const cursor = ids.due(reader);
      if (cursor !== undefined) yield { id: cursor, event: "cursor", data: { cursor } };
      await reader.news(1_000, signal);
      continue;
    }
    feed.counts.delivered += items.length;
    const id = ids.with(reader);
    yield items.map((item, i) => ({
      ...(i === items.length - 1 && id !== undefined && { id }),
      event: item.kind,
      data: item as unknown as EventItem,
      text: textOf(item),
    }));
  }
}

/** When to send a cursor: with every chunk if it is short, and from time to time if it is long. */
class CursorIds {
  readonly #clock: Clock;
  #sent: string;
  #sentMono: number;
  /** Events were sent since the last cursor. */
  #isOwed = false;

  constructor(clock: Clock, cursor: string) {
    this.#clock = clock;
    this.#sent = cursor;
    this.#sentMono = clock.monotonicMs();
  }

  with(reader: FeedReader): string | undefined {
    this.#isOwed = true;
    const isShort = this.#sent.length <= idLengthShort;
    return isShort || this.#clock.monotonicMs() - this.#sentMono >= idEveryMs ? this.#send(reader.cursor) : undefined;
  }

  due(reader: FeedReader): string | undefined {
    if (this.#clock.monotonicMs() - this.#sentMono < (this.#isOwed ? idEveryMs : quietMs)) return undefined;
    const { cursor } = reader;
    this.#sentMono = this.#clock.monotonicMs();
    return cursor === this.#sent ? undefined : this.#send(cursor);
  }

  #send(cursor: string): string {
    this.#isOwed = false;
    this.#sent = cursor;
    this.#sentMono = this.#clock.monotonicMs();
    return cursor;
  }
}

export const shown = (item: FeedItem): EventItem => ({ ...item, at: new Date(item.at).toISOString() });

/** A hundred readers share the text of an item. */
const texts = new WeakMap<FeedItem, string>();

export function textOf(item: FeedItem): string {
  let text = texts.get(item);
  if (text === undefined) texts.set(item, (text = JSON.stringify(shown(item))));
  return text;
}
