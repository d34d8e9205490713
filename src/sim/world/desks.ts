/** What nodes answer besides requests to shards: workers that look for work, other nodes and readers of the feed. */
import type { FeedDesk } from "#feed/desk.ts";
import type { Feed, FeedPorts } from "#feed/feed.ts";
import type { FeedFilter } from "#feed/filter.ts";
import type { FeedStart } from "#feed/reader.ts";
import type { FeedItem } from "#kernel/read/feed.ts";
import type { Address } from "#shard/transport/transport.ts";
import type { ReadyDesk } from "#shard/watch/ready-desk.ts";
import type { WorkSource } from "#worker/visits/sources.ts";
import type { Life } from "./machine.ts";
import { addressOf, type Network } from "./network.ts";

export type Desks = {
  readonly life: Life;
  readonly work: Pick<ReadyDesk, "wait">;
  readonly feedDesk: Pick<FeedDesk, "ask">;
  readonly feed: Pick<Feed, "open">;
};

export type FeedRequest = { readonly filter: FeedFilter; readonly start: FeedStart; readonly itemsMax: number };

/** The first has no items: only the cursor at which the reader begins. */
export type FeedPage = { readonly items: readonly FeedItem[]; readonly cursor: string };

/** How long a page is waited for. */
const quietMs = 1_000;

export class DeskCalls {
  readonly #network: Network;
  readonly #seen: (by: Life, page: FeedPage) => void;
  readonly #at = new Map<Address, Desks>();

  constructor(network: Network, seen: (by: Life, page: FeedPage) => void) {
    this.#network = network;
    this.#seen = seen;
  }

  /** From now on they answer at the address where the node listens. */
  offer(desks: Desks): void {
    this.#at.set(addressOf(desks.life.machine.name), desks);
  }

  /** The node at the address, as a worker on another machine asks it for work. */
  workAt(from: Life, to: Address): WorkSource {
    const ready: WorkSource["ready"] = (room, waitMs, signal) =>
      this.#network.ask({ from, to, signal }, this.#at, { room, waitMs }, ({ work }, question, gone) =>
        work.wait(question.room, question.waitMs, gone),
      );
    return { ready };
  }

  askFeed(from: Life): FeedPorts["ask"] {
    return (to, question, signal) =>
      this.#network.ask({ from, to, signal }, this.#at, question, ({ feedDesk }, asked, gone) =>
        feedDesk.ask(asked, gone),
      );
  }

  readFeed(from: Life, to: Address, request: FeedRequest, signal: AbortSignal): AsyncIterable<FeedPage> {
    return this.#network.follow(
      { from, to, signal },
      this.#at,
      ({ feed }, gone) => pages(feed, request, gone),
      this.#seen,
    );
  }
}

async function* pages(
  feed: Desks["feed"],
  { filter, start, itemsMax }: FeedRequest,
  gone: AbortSignal,
): AsyncGenerator<FeedPage> {
  using reader = await feed.open(filter, start);
  let sent = reader.cursor;
  yield { items: [], cursor: sent };
  while (!gone.aborted) {
    const items = await reader.take(itemsMax, gone);
    const { cursor } = reader;
    if (items.length > 0 || cursor !== sent) yield { items, cursor };
    else await reader.news(quietMs, gone);
    sent = cursor;
  }
}
