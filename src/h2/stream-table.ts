/** The streams of a connection, and the memory of those that are gone: what a late frame means depends on it. */
import type { Stream } from "./stream.ts";

/** Remembers the last so many ids. Looked at only when a frame names a stream that is not there. */
class RecentIds {
  readonly #ids: number[] = [];
  readonly #max: number;
  #at = 0;

  constructor(max: number) {
    this.#max = max;
  }

  add(id: number): void {
    this.#ids[this.#at] = id;
    this.#at = (this.#at + 1) % this.#max;
  }

  has(id: number): boolean {
    return this.#ids.includes(id);
  }
}

export class StreamTable {
  readonly open = new Map<number, Stream>();
  /** Reset by us: the peer may not have heard yet, and what it still sends is let pass. */
  readonly resetByUs = new RecentIds(256);
  /** Ended by both sides, or reset by the peer: it must not send any more. */
  readonly ended = new RecentIds(64);
  /** The highest id that the peer has opened; every id up to it is no longer idle. */
  lastPeerId = 0;
  /** The same for ids of our own. */
  lastOwnId = 0;

  isIdle(id: number, peerIsClient: boolean): boolean {
    const byPeer = (id & 1) === (peerIsClient ? 1 : 0);
    return id > (byPeer ? this.lastPeerId : this.lastOwnId);
  }
}
