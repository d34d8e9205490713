/**
 * How far a reader is in the output of a job: which tasks it has seen whole, and how much of those that it is reading.
 * As text it is what the reader brings back (Last-Event-ID) after a lost connection. Pure.
 */

export type StreamPlace = { readonly token: number; readonly stream: number; readonly offset: number };

/** Longer texts are cut: a reader that comes back then sees some output again, and misses none. */
const textLengthMax = 3_000;

export class Position {
  readonly #whole: Set<number>;
  /** By task, then by stream. A newer attempt takes the place of an older one. */
  readonly #open: Map<number, Map<number, { token: number; offset: number }>>;

  private constructor(
    whole: Iterable<number>,
    open: Iterable<[number, Map<number, { token: number; offset: number }>]>,
  ) {
    this.#whole = new Set(whole);
    this.#open = new Map(open);
  }

  static start(): Position {
    return new Position([], []);
  }

  /** Undefined for a text that is not one of ours. */
  static parse(text: string): Position | undefined {
    const [, ranges, places] = /^1:((?:\d+(?:-\d+)?,?)*):((?:\d+\.\d+\.\d+\.\d+,?)*)$/.exec(text) ?? [];
    if (ranges === undefined || places === undefined || text.length > textLengthMax) return undefined;
    const position = Position.start();
    for (const range of parts(ranges)) {
      const [from = 0, to = from] = range.split("-").map(Number);
      if (to - from > tasksMax) return undefined;
      for (let task = from; task <= to; task += 1) position.#whole.add(task);
    }
    for (const place of parts(places)) {
      const [task = 0, token = 0, stream = 0, offset = 0] = place.split(".").map(Number);
      if (![task, token, stream, offset].every(Number.isSafeInteger)) return undefined;
      position.read(task, { token, stream, offset });
    }
    return position;
  }

  isWhole(task: number): boolean {
    return this.#whole.has(task);
  }

  /** The attempt at a task that was read last, if some of it was. */
  tokenOf(task: number): number | undefined {
    return this.#open.get(task)?.values().next().value?.token;
  }

  offsetOf(task: number, token: number, stream: number): number {
    const known = this.#open.get(task)?.get(stream);
    return known?.token === token ? known.offset : 0;
  }

  read(task: number, { token, stream, offset }: StreamPlace): void {
    const known = this.#open.get(task);
    const isSame = known?.values().next().value?.token === token;
    const streams = known && isSame ? known : new Map<number, { token: number; offset: number }>();
    streams.set(stream, { token, offset });
    this.#open.set(task, streams);
  }

  finish(task: number): void {
    this.#open.delete(task);
    this.#whole.add(task);
  }

  /** Another attempt is made at a task that was finished. */
  reopen(task: number): void {
    this.#whole.delete(task);
  }

  get text(): string {
    const places = [...this.#open].flatMap(([task, streams]) =>
      [...streams].map(([stream, { token, offset }]) => `${task}.${token}.${stream}.${offset}`),
    );
    let text = `:${places.join(",")}`;
    if (text.length > textLengthMax - 2) text = ":";
    let whole = "";
    for (const range of rangesOf(this.#whole)) {
      if (whole.length + range.length + text.length + 3 > textLengthMax) break;
      whole += whole === "" ? range : `,${range}`;
    }
    return `1:${whole}${text}`;
  }
}

/** Of one job: more cannot be named by a text of that length, but a forged one could make us count for ever. */
const tasksMax = 1_000_000;

const parts = (text: string): readonly string[] => text.split(",").filter((part) => part !== "");

function rangesOf(numbers: ReadonlySet<number>): readonly string[] {
  const ranges: [number, number][] = [];
  for (const n of [...numbers].toSorted((a, b) => a - b)) {
    const last = ranges.at(-1);
    if (last?.[1] === n - 1) last[1] = n;
    else ranges.push([n, n]);
  }
  return ranges.map(([from, to]) => (from === to ? `${from}` : `${from}-${to}`));
}
