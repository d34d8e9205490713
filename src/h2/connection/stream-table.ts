/** The streams of a connection, and a record of recently closed ones: the meaning of a late frame depends on it. */
import { windowBytesLimit } from "#h2/frames/frame.ts";
import { LateRequests } from "./late-requests.ts";
import type { H2Limits } from "./limits.ts";
import type { Stream } from "./stream.ts";

/** Remembers the most recent ids. Read only when a frame names an unknown stream. */
class RecentIds {
  protected readonly ids: number[] = [];
  readonly #max: number;
  protected at = 0;

  constructor(max: number) {
    this.#max = max;
  }

  add(id: number): void {
    this.ids[this.at] = id;
    this.at = (this.at + 1) % this.#max;
  }

  has(id: number): boolean {
    return this.ids.includes(id);
  }

  forget(id: number): void {
    const at = this.ids.indexOf(id);
    if (at !== -1) this.ids[at] = 0;
  }
}

/** Also remembers the send window, because its upper limit applies to closed streams too. */
class EndedStreams extends RecentIds {
  readonly #windows: number[] = [];

  addWith(id: number, sendWindow: number): void {
    this.#windows[this.at] = sendWindow;
    this.add(id);
  }

  /** False if the window is now larger than allowed. */
  widen(id: number, increment: number): boolean {
    const at = this.ids.indexOf(id);
    if (at === -1) return true;
    const window = (this.#windows[at] ?? 0) + increment;
    this.#windows[at] = window;
    return window <= windowBytesLimit;
  }
}

export class StreamTable {
  readonly open = new Map<number, Stream>();
  /** Reset by us: the peer may not know yet, and what it still sends is ignored. */
  readonly resetByUs = new RecentIds(256);
  /** Ended by both sides, or reset by the peer: it must not send any more. */
  readonly ended = new EndedStreams(64);
  readonly late: LateRequests;
  /** The highest id that the peer has opened; no id up to it is idle any more. */
  lastPeerId = 0;
  /** The same for our own ids. */
  lastOwnId = 0;

  constructor(limits: H2Limits) {
    this.late = new LateRequests(limits);
  }

  isIdle(id: number, peerIsClient: boolean): boolean {
    const byPeer = (id & 1) === (peerIsClient ? 1 : 0);
    return id > (byPeer ? this.lastPeerId : this.lastOwnId);
  }
}
