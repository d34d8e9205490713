/**
 * Messages that wait to be gossiped. Each is sent a limited number of times; the least sent come first, and of those
 * the longest, as many as fit. A newer message about the same subject replaces the older one.
 */

type Item = {
  readonly about: string | undefined;
  readonly bytes: Uint8Array;
  readonly order: number;
  readonly whenDone: (() => void) | undefined;
  sent: number;
};

export type Broadcast = {
  /** The subject; undefined for messages that nothing replaces. */
  readonly about?: string | undefined;
  readonly bytes: Uint8Array;
  /** Called when it was sent often enough, or was replaced or dropped. */
  readonly whenDone?: (() => void) | undefined;
};

export class Broadcasts {
  readonly #itemsMax: number;
  #items: Item[] = [];
  #order = 0;

  constructor(itemsMax: number) {
    this.#itemsMax = itemsMax;
  }

  get size(): number {
    return this.#items.length;
  }

  add({ about, bytes, whenDone }: Broadcast): void {
    if (about !== undefined) this.#drop((item) => item.about === about);
    if (this.#items.length >= this.#itemsMax) {
      const most = this.#items.reduce((a, b) => (isBefore(a, b) ? b : a));
      this.#drop((item) => item === most);
    }
    this.#items.push({ about, bytes, whenDone, order: (this.#order += 1), sent: 0 });
  }

  /** The messages that fit into so many bytes, each with some overhead. */
  take(spaceBytes: number, overheadBytes: number, sendsMax: number, itemsMax: number): readonly Uint8Array[] {
    if (this.#items.length === 0) return [];
    const taken: Item[] = [];
    let left = spaceBytes;
    for (const item of this.#items.toSorted((a, b) => (isBefore(a, b) ? -1 : 1))) {
      if (taken.length >= itemsMax) break;
      const cost = item.bytes.length + overheadBytes;
      if (cost > left) continue;
      left -= cost;
      item.sent += 1;
      taken.push(item);
    }
    this.#drop((item) => item.sent >= sendsMax);
    return taken.map(({ bytes }) => bytes);
  }

  #drop(which: (item: Item) => boolean): void {
    const dropped = this.#items.filter(which);
    if (dropped.length === 0) return;
    this.#items = this.#items.filter((item) => !dropped.includes(item));
    for (const { whenDone } of dropped) whenDone?.();
  }
}

function isBefore(a: Item, b: Item): boolean {
  if (a.sent !== b.sent) return a.sent < b.sent;
  if (a.bytes.length !== b.bytes.length) return a.bytes.length > b.bytes.length;
  return a.order > b.order;
}
