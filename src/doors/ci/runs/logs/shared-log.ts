/**
 * The newest lines of one log, for all of its viewers on this node: one subscription, and each batch is written as JSON
 * once. It reads on when the first of its viewers has seen everything; those that read more slowly find what they have
 * missed here, as far back as this goes.
 */
import { orAborted } from "#base/calls/abort.ts";
import type { ServerEvent } from "#http/live/sse.ts";
import { behind, eventOf, type LogBatch, type LogEvent, type LogPlace } from "./log-feed.ts";

/** What a viewer sees next. */
export type Seat = {
  readonly number: number;
  /** Of that batch, lines up to here were seen. */
  readonly offset: number;
};

type Kept = { readonly batch: LogBatch; readonly event: LogEvent & Required<Pick<ServerEvent, "text">> };

export class SharedLog {
  readonly #source: AsyncIterator<LogBatch>;
  readonly #bytesMax: number;
  /** Where the oldest of the batches begins; undefined: at the beginning of the log. */
  #start: LogPlace | undefined;
  #batches: Kept[] = [];
  #firstNumber = 0;
  #bytes = 0;
  #reading: Promise<void> | undefined;
  #over: { readonly error?: unknown } | undefined;
  viewers = 0;

  constructor(source: AsyncIterable<LogBatch>, start: LogPlace | undefined, bytesMax: number) {
    this.#source = source[Symbol.asyncIterator]();
    this.#start = start;
    this.#bytesMax = bytesMax;
  }

  /** Undefined: what comes after the place is not here. */
  seatAt(place: LogPlace | undefined): Seat | undefined {
    const isStart = place?.token === this.#start?.token && place?.offset === this.#start?.offset;
    if (isStart) return { number: this.#firstNumber, offset: 0 };
    const { offset = 0 } = place ?? {};
    const at = this.#batches.findLastIndex(
      ({ batch }) => batch.token === place?.token && batch.offset <= offset && offset <= batch.end,
    );
    const found = this.#batches[at]?.batch;
    if (!found) return undefined;
    const isSeen = offset === found.end && !found.ended;
    return isSeen ? { number: this.#firstNumber + at + 1, offset: 0 } : { number: this.#firstNumber + at, offset };
  }

  /** "behind": it is not here any more. Undefined: there is nothing after it, or the viewer has left. */
  async next({ number, offset }: Seat, signal: AbortSignal, step?: number): Promise<LogEvent | "behind" | undefined> {
    for (;;) {
      if (number < this.#firstNumber) return "behind";
      const kept = this.#batches[number - this.#firstNumber];
      if (kept) return eventFor(kept, offset, step);
      if (this.#over?.error !== undefined) throw this.#over.error as Error;
      if (this.#over || signal.aborted) return undefined;
      await orAborted((this.#reading ??= this.#read()), signal).catch(() => {}); // by the viewer's leaving only
    }
  }

  async #read(): Promise<void> {
    try {
      const { done, value } = await this.#source.next();
      if (done === true) this.#over = {};
      else this.#keep(value);
    } catch (error) {
      this.#over = { error };
    } finally {
      this.#reading = undefined;
    }
  }

  #keep(batch: LogBatch): void {
    const event = eventOf(batch);
    const kept = { batch, event: { ...event, text: JSON.stringify(event.data) } };
    this.#batches.push(kept);
    this.#bytes += kept.event.text.length;
    while (this.#bytes > this.#bytesMax && this.#batches.length > 1) {
      const oldest = this.#batches.shift();
      if (!oldest) return;
      const { token, end } = oldest.batch;
      this.#start = token === undefined ? undefined : { token, offset: end };
      this.#bytes -= oldest.event.text.length;
      this.#firstNumber += 1;
    }
  }
}

function eventFor({ batch, event }: Kept, offset: number, step: number | undefined): LogEvent {
  if (step === undefined && offset <= batch.offset) return event;
  return eventOf(offset <= batch.offset ? batch : behind(batch, offset), step);
}
